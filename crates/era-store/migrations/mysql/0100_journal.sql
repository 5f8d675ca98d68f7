-- A segment begins with a state; what follows from inputs until the next one begins is in order.
CREATE TABLE segments (
    number BIGINT NOT NULL PRIMARY KEY,
    first_seq BIGINT NOT NULL,
    begun BIGINT NOT NULL,
    core_version BIGINT NOT NULL,
    wire_version BIGINT NOT NULL,
    state LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Every input, with what was decided about it and what the platform keeps with it. An input that
-- made jobs names the first of them, so that what is kept with a job can be found again.
CREATE TABLE journal (
    seq BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    input LONGTEXT NOT NULL,
    events LONGTEXT NOT NULL,
    note LONGTEXT,
    job BIGINT
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX journal_job ON journal (job);

-- Who leads, until when by this database's clock, and how often the lead was taken: whoever writes
-- the journal names the generation that it knows.
CREATE TABLE leader (
    id SMALLINT NOT NULL PRIMARY KEY,
    holder LONGTEXT NOT NULL,
    generation BIGINT NOT NULL,
    expires BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
INSERT INTO leader (id, holder, generation, expires) VALUES (1, '', 0, 0);

-- There is a row while rows of another database are copied in: nobody may use half of them.
CREATE TABLE copying (
    id SMALLINT NOT NULL PRIMARY KEY,
    source LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
