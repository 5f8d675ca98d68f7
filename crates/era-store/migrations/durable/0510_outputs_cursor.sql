-- How far the ends of jobs were looked through for what they left.
CREATE TABLE outputs_cursor (
    id SMALLINT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL,
    place BIGINT NOT NULL
);
