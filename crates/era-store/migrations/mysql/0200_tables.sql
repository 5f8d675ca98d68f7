-- How far each projection has read the journal; written with what it wrote.
CREATE TABLE cursors (
    projection VARCHAR(255) NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Projections of the journal. Every row here can be made anew from it.
-- Times are milliseconds since the epoch, money is millionths of a credit, units are thousandths
-- of a core, MiB and thousandths of a GPU.

-- One row a job. Its number rises with the time of its acceptance, so lists are in its order.
CREATE TABLE jobs (
    id BIGINT NOT NULL PRIMARY KEY,
    name VARCHAR(255),
    account BIGINT NOT NULL,
    account_name LONGTEXT NOT NULL,
    team BIGINT NOT NULL,
    team_name LONGTEXT NOT NULL,
    state SMALLINT NOT NULL,
    queue VARCHAR(255),
    submitted BIGINT NOT NULL,
    promised_start BIGINT,
    promised_finish BIGINT,
    started BIGINT,
    ended BIGINT,
    exit_code BIGINT,
    price BIGINT NOT NULL,
    resources LONGTEXT NOT NULL,
    replicas BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    array_first BIGINT,
    array_index BIGINT,
    simulated SMALLINT NOT NULL,
    reason LONGTEXT,
    attempts BIGINT NOT NULL,
    charged BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    changed BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
-- A list is the merge of one short walk for each state, whatever else is asked for.
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_account ON jobs (account, state, id);
CREATE INDEX jobs_by_team ON jobs (team, state, id);
CREATE INDEX jobs_by_queue ON jobs (queue, state, id);
CREATE INDEX jobs_by_array ON jobs (array_first, state, id);
CREATE INDEX jobs_by_name ON jobs (name, id);
CREATE INDEX jobs_by_time ON jobs (submitted, id);

-- What was handed in, once for all jobs of an array.
CREATE TABLE specs (
    job BIGINT NOT NULL PRIMARY KEY,
    spec LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- What the projection has to remember of jobs that are not over: the job's own, and under the
-- negative number of an array's first job that of those of its jobs that nothing happened to yet.
CREATE TABLE live (
    job BIGINT NOT NULL PRIMARY KEY,
    body LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE holds (
    hold BIGINT NOT NULL PRIMARY KEY,
    bid LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE tasks (
    job BIGINT NOT NULL,
    part BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    replica BIGINT NOT NULL,
    node BIGINT,
    gpus BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    launched BIGINT NOT NULL,
    started BIGINT,
    ended BIGINT,
    exit_code BIGINT,
    cause LONGTEXT,
    prepared_ms BIGINT,
    PRIMARY KEY (job, part, attempt, replica)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX tasks_open ON tasks (node);

CREATE TABLE events (
    seq BIGINT NOT NULL,
    place BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind LONGTEXT NOT NULL,
    job BIGINT,
    account BIGINT,
    team BIGINT,
    body LONGTEXT NOT NULL,
    PRIMARY KEY (seq, place)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX events_of_job ON events (job, seq, place);
CREATE INDEX events_of_account ON events (account, seq, place);
CREATE INDEX events_of_team ON events (team, seq, place);

CREATE TABLE statement_lines (
    account BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    place BIGINT NOT NULL,
    at BIGINT NOT NULL,
    job BIGINT,
    reason LONGTEXT NOT NULL,
    amount BIGINT NOT NULL,
    balance BIGINT NOT NULL,
    PRIMARY KEY (account, seq, place)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE refusals (
    seq BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    account BIGINT NOT NULL,
    code LONGTEXT NOT NULL,
    sentence LONGTEXT NOT NULL,
    price BIGINT
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX refusals_by_time ON refusals (at);

-- Accounts, groups and wallets as far as rows name them.
CREATE TABLE accounts (
    id BIGINT NOT NULL PRIMARY KEY,
    name LONGTEXT NOT NULL,
    team BIGINT NOT NULL,
    balance BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE TABLE teams (
    id BIGINT NOT NULL PRIMARY KEY,
    name LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Machines, and since when each was as it was: a row for every stretch of time.
CREATE TABLE nodes (
    id BIGINT NOT NULL PRIMARY KEY,
    name LONGTEXT NOT NULL,
    pool LONGTEXT NOT NULL,
    model LONGTEXT,
    simulated SMALLINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE TABLE node_spans (
    node BIGINT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    PRIMARY KEY (node, since)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Given out, by node and hour: units times milliseconds of tasks that are over.
CREATE TABLE node_hours (
    hour BIGINT NOT NULL,
    node BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    PRIMARY KEY (hour, node)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Whatever is counted or summed up, by hour.
CREATE TABLE tallies (
    hour BIGINT NOT NULL,
    what VARCHAR(255) NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (hour, what)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
