-- Contents by their hash. A row is written once the file is on the disk under its name.
CREATE TABLE blobs (
    hash KEY_TEXT(64) NOT NULL PRIMARY KEY,
    bytes BIGINT NOT NULL,
    touched BIGINT NOT NULL
);

-- Who brought a content lately: may read it and name it in a tree until the claim lapses.
CREATE TABLE blob_claims (
    hash KEY_TEXT(64) NOT NULL,
    account BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (hash, account)
);
CREATE INDEX blob_claims_of ON blob_claims (account);

-- Trees of files. A tree counts once it is complete, and never changes then.
CREATE TABLE trees (
    id UNIQUE_SERIAL,
    hash KEY_TEXT(64) NOT NULL UNIQUE,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    complete SMALLINT NOT NULL
);
CREATE TABLE tree_files (
    tree BIGINT NOT NULL,
    path PATH(1024) NOT NULL,
    hash KEY_TEXT(64) NOT NULL,
    bytes BIGINT NOT NULL,
    executable SMALLINT NOT NULL,
    PRIMARY KEY (tree, path)
) WITHOUT ROWID;
CREATE INDEX tree_files_with ON tree_files (hash, tree);

-- Who put a tree lately.
CREATE TABLE tree_claims (
    tree BIGINT NOT NULL,
    account BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tree, account)
);

-- Trees that jobs use, as their code or as data that they see.
CREATE TABLE job_trees (
    job BIGINT NOT NULL,
    tree BIGINT NOT NULL,
    account BIGINT NOT NULL,
    code SMALLINT NOT NULL,
    PRIMARY KEY (job, tree)
);
CREATE INDEX job_trees_with ON job_trees (tree);
CREATE INDEX job_trees_of ON job_trees (account);

-- How much the outputs of ended jobs take.
CREATE TABLE job_outputs (
    job BIGINT NOT NULL PRIMARY KEY,
    account BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    files BIGINT NOT NULL,
    ended BIGINT NOT NULL
);
CREATE INDEX job_outputs_of ON job_outputs (account);
CREATE INDEX job_outputs_since ON job_outputs (ended);

-- Names for trees.
CREATE TABLE data_sets (
    id UNIQUE_SERIAL,
    owner BIGINT NOT NULL,
    owner_name KEY_TEXT(63|255) NOT NULL,
    name KEY_TEXT(63|255) NOT NULL,
    visibility TEXT(16) NOT NULL,
    tree BIGINT,
    created BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    UNIQUE (owner_name, name)
);
CREATE INDEX data_sets_with ON data_sets (tree);
CREATE INDEX data_sets_of ON data_sets (owner);

-- Accounts that see a data set beside those that its visibility says.
CREATE TABLE data_shares (
    data_set BIGINT NOT NULL,
    account_name KEY_TEXT(63|255) NOT NULL,
    PRIMARY KEY (data_set, account_name)
);
CREATE INDEX data_shares_with ON data_shares (account_name);
