-- Values that jobs told and what they used.
CREATE TABLE samples (
    job BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    replica BIGINT NOT NULL,
    step BIGINT NOT NULL,
    at BIGINT NOT NULL,
    value DOUBLE NOT NULL
);
CREATE INDEX samples_of ON samples (job, name, replica, step);
