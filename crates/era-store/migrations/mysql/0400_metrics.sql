-- What a job tells or uses under one name, of one replica; with its newest value.
CREATE TABLE series (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    replica BIGINT NOT NULL,
    -- How many values ever came, and how many are kept.
    told BIGINT NOT NULL,
    kept BIGINT NOT NULL,
    last_step BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    last_value DOUBLE NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Quotes that were asked, taken or not: demand that a forecast wants to know of.
CREATE TABLE asks (
    at BIGINT NOT NULL,
    account BIGINT NOT NULL,
    bid LONGTEXT NOT NULL,
    price BIGINT
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX asks_at ON asks (at);
