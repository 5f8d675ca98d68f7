-- How far each projection has read the journal; written with what it wrote.
CREATE TABLE cursors (
    projection VARCHAR(64) NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);
