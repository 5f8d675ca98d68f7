-- What a job tells or uses under one name, of one replica; with its newest value.
CREATE TABLE series (
    id SERIAL,
    job BIGINT NOT NULL,
    name KEY_TEXT(255) NOT NULL,
    replica BIGINT NOT NULL,
    -- How many values ever came, and how many are kept.
    told BIGINT NOT NULL,
    kept BIGINT NOT NULL,
    last_step BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    last_value DOUBLE NOT NULL
);
CREATE UNIQUE INDEX series_of ON series (job, name, replica);
CREATE INDEX series_by_age ON series (last_at);

-- The values, in the order in which they came.
CREATE TABLE samples (
    series BIGINT NOT NULL,
    number BIGINT NOT NULL,
    step BIGINT NOT NULL,
    at BIGINT NOT NULL,
    value DOUBLE NOT NULL,
    PRIMARY KEY (series, number)
) WITHOUT ROWID;
