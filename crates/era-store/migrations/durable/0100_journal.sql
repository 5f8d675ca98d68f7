-- A segment begins with a state; what follows from inputs until the next one begins is in order.
CREATE TABLE segments (
    number BIGINT NOT NULL PRIMARY KEY,
    first_seq BIGINT NOT NULL,
    begun BIGINT NOT NULL,
    core_version BIGINT NOT NULL,
    wire_version BIGINT NOT NULL,
    state TEXT NOT NULL
);

-- Every input, with what was decided about it and what the platform keeps with it. An input that
-- made jobs names the first of them, so that what is kept with a job can be found again.
CREATE TABLE journal (
    seq BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    input TEXT NOT NULL,
    events TEXT NOT NULL,
    note TEXT,
    job BIGINT
);
CREATE INDEX journal_job ON journal (job);
