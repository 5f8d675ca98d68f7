-- Who leads, until when by this database's clock, and how often the lead was taken: whoever writes
-- the journal names the generation that it knows.
CREATE TABLE leader (
    id SMALLINT NOT NULL PRIMARY KEY,
    holder TEXT(255) NOT NULL,
    generation BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
INSERT INTO leader (id, holder, generation, expires) VALUES (1, '', 0, 0);

-- There is a row while rows of another database are copied in: nobody may use half of them.
CREATE TABLE copying (
    id SMALLINT NOT NULL PRIMARY KEY,
    source TEXT(255) NOT NULL
);
