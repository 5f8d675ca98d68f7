-- What a job is done for, as its owner says.
ALTER TABLE jobs ADD COLUMN project KEY_TEXT(63);

-- What was spent and used, by account, group, project and hour: millionths of a credit that were
-- charged and given back, and units times milliseconds of tasks that are over. Jobs without a
-- project have an empty one.
CREATE TABLE spending (
    account BIGINT NOT NULL,
    team BIGINT NOT NULL,
    project KEY_TEXT(63) NOT NULL,
    hour BIGINT NOT NULL,
    charged BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    PRIMARY KEY (account, team, project, hour)
) WITHOUT ROWID;
CREATE INDEX spending_of_team ON spending (team, hour);
