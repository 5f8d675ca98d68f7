-- How a leader is reached, and the seats of other parts of a site of which one may be at work.
ALTER TABLE leader ADD COLUMN contact TEXT(255) NOT NULL DEFAULT '';
INSERT INTO leader (id, holder, generation, expires) VALUES (2, '', 0, 0), (3, '', 0, 0);

-- What several servers hold in memory, and how often it changed.
CREATE TABLE revisions (
    name VARCHAR(63) NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL
);
INSERT INTO revisions (name, number) VALUES ('accounts', 0);
