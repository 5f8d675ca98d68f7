-- Projections of the journal. Every row here can be made anew from it.
-- Times are milliseconds since the epoch, money is millionths of a credit, units are thousandths
-- of a core, MiB and thousandths of a GPU.

-- One row a job. Its number rises with the time of its acceptance, so lists are in its order.
CREATE TABLE jobs (
    id INTEGER NOT NULL PRIMARY KEY,
    name KEY_TEXT(63|255),
    account BIGINT NOT NULL,
    account_name TEXT(255) NOT NULL,
    team BIGINT NOT NULL,
    team_name TEXT(255) NOT NULL,
    state SMALLINT NOT NULL,
    queue KEY_TEXT(63|255),
    submitted BIGINT NOT NULL,
    promised_start BIGINT,
    promised_finish BIGINT,
    started BIGINT,
    ended BIGINT,
    exit_code BIGINT,
    price BIGINT NOT NULL,
    resources TEXT NOT NULL,
    replicas BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    array_first BIGINT,
    array_index BIGINT,
    simulated SMALLINT NOT NULL,
    reason TEXT,
    attempts BIGINT NOT NULL,
    charged BIGINT NOT NULL,
    refunded BIGINT NOT NULL,
    changed BIGINT NOT NULL
);
-- A list is the merge of one short walk for each state, whatever else is asked for.
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_account ON jobs (account, state, id);
CREATE INDEX jobs_by_team ON jobs (team, state, id);
CREATE INDEX jobs_by_queue ON jobs (queue, state, id) WHERE queue IS NOT NULL;
CREATE INDEX jobs_by_array ON jobs (array_first, state, id) WHERE array_first IS NOT NULL;
CREATE INDEX jobs_by_name ON jobs (name, id) WHERE name IS NOT NULL;
CREATE INDEX jobs_by_time ON jobs (submitted, id);

-- What was handed in, once for all jobs of an array.
CREATE TABLE specs (
    job INTEGER NOT NULL PRIMARY KEY,
    spec TEXT NOT NULL
);

-- What the projection has to remember of jobs that are not over: the job's own, and under the
-- negative number of an array's first job that of those of its jobs that nothing happened to yet.
CREATE TABLE live (
    job INTEGER NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE holds (
    hold INTEGER NOT NULL PRIMARY KEY,
    bid TEXT NOT NULL
);

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
    cause TEXT(63),
    prepared_ms BIGINT,
    PRIMARY KEY (job, part, attempt, replica)
) WITHOUT ROWID;
CREATE INDEX tasks_open ON tasks (node) WHERE ended IS NULL;

CREATE TABLE events (
    seq BIGINT NOT NULL,
    place BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT(63) NOT NULL,
    job BIGINT,
    account BIGINT,
    team BIGINT,
    body TEXT NOT NULL,
    PRIMARY KEY (seq, place)
) WITHOUT ROWID;
CREATE INDEX events_of_job ON events (job, seq, place) WHERE job IS NOT NULL;
CREATE INDEX events_of_account ON events (account, seq, place) WHERE account IS NOT NULL;
CREATE INDEX events_of_team ON events (team, seq, place) WHERE team IS NOT NULL;

CREATE TABLE statement_lines (
    account BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    place BIGINT NOT NULL,
    at BIGINT NOT NULL,
    job BIGINT,
    reason TEXT(63) NOT NULL,
    amount BIGINT NOT NULL,
    balance BIGINT NOT NULL,
    PRIMARY KEY (account, seq, place)
) WITHOUT ROWID;

CREATE TABLE refusals (
    seq INTEGER NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    account BIGINT NOT NULL,
    code TEXT(63) NOT NULL,
    sentence TEXT NOT NULL,
    price BIGINT
);
CREATE INDEX refusals_by_time ON refusals (at);

-- Accounts, groups and wallets as far as rows name them.
CREATE TABLE accounts (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT(255) NOT NULL,
    team BIGINT NOT NULL,
    balance BIGINT NOT NULL
);
CREATE TABLE teams (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT(255) NOT NULL
);

-- Machines, and since when each was as it was: a row for every stretch of time.
CREATE TABLE nodes (
    id INTEGER NOT NULL PRIMARY KEY,
    name TEXT(63) NOT NULL,
    pool TEXT(63) NOT NULL,
    model TEXT(63),
    simulated SMALLINT NOT NULL
);
CREATE TABLE node_spans (
    node BIGINT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    PRIMARY KEY (node, since)
) WITHOUT ROWID;

-- Given out, by node and hour: units times milliseconds of tasks that are over.
CREATE TABLE node_hours (
    hour BIGINT NOT NULL,
    node BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    PRIMARY KEY (hour, node)
) WITHOUT ROWID;

-- Whatever is counted or summed up, by hour.
CREATE TABLE tallies (
    hour BIGINT NOT NULL,
    what KEY_TEXT(127|255) NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (hour, what)
) WITHOUT ROWID;
