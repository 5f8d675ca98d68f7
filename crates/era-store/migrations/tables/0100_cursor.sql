-- How far each projection has read the journal; written with what it wrote.
CREATE TABLE cursors (
    projection KEY_TEXT(64|255) NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);
