-- Who there is. Limits and money are the core's; here are names, rights and secrets.
CREATE TABLE account_groups (
    id BIGINT NOT NULL PRIMARY KEY,
    name VARCHAR(63) NOT NULL UNIQUE,
    level SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
);

CREATE TABLE account_users (
    id BIGINT NOT NULL PRIMARY KEY,
    name VARCHAR(63) NOT NULL UNIQUE,
    group_id BIGINT NOT NULL REFERENCES account_groups (id),
    role SMALLINT NOT NULL,
    level SMALLINT NOT NULL,
    enabled SMALLINT NOT NULL,
    password VARCHAR(255) NOT NULL,
    one_time SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
);

-- Tokens and browser sessions, by the hash of what was told once.
CREATE TABLE account_tokens (
    id VARCHAR(32) NOT NULL PRIMARY KEY,
    hash VARCHAR(64) NOT NULL UNIQUE,
    user_id BIGINT NOT NULL REFERENCES account_users (id),
    label VARCHAR(255) NOT NULL,
    scopes SMALLINT NOT NULL,
    csrf VARCHAR(64),
    limited SMALLINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    used BIGINT
);
CREATE INDEX account_tokens_of ON account_tokens (user_id);

-- What was answered to a creation, so that repeating it is harmless. No status yet: being done.
CREATE TABLE answered_keys (
    user_id BIGINT NOT NULL,
    name VARCHAR(64) NOT NULL,
    fingerprint VARCHAR(64) NOT NULL,
    status SMALLINT,
    body TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);
CREATE INDEX answered_keys_at ON answered_keys (at);

CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    who VARCHAR(63) NOT NULL,
    origin VARCHAR(64) NOT NULL,
    what VARCHAR(64) NOT NULL,
    target VARCHAR(255) NOT NULL,
    done SMALLINT NOT NULL
);

CREATE TABLE images (
    name VARCHAR(63) NOT NULL PRIMARY KEY,
    details TEXT NOT NULL,
    published_by VARCHAR(63) NOT NULL,
    published BIGINT NOT NULL
);
