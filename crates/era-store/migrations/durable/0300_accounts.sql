-- Who there is. Limits and money are the core's; here are names, rights and secrets.
CREATE TABLE account_groups (
    id BIGINT NOT NULL PRIMARY KEY,
    name KEY_TEXT(63|255) NOT NULL UNIQUE,
    level SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
);

CREATE TABLE account_users (
    id BIGINT NOT NULL PRIMARY KEY,
    name KEY_TEXT(63|255) NOT NULL UNIQUE,
    group_id BIGINT NOT NULL REFERENCES account_groups (id),
    role SMALLINT NOT NULL,
    level SMALLINT NOT NULL,
    enabled SMALLINT NOT NULL,
    password TEXT(255) NOT NULL,
    one_time SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
);

-- Tokens and browser sessions, by the hash of what was told once.
CREATE TABLE account_tokens (
    id KEY_TEXT(32|255) NOT NULL PRIMARY KEY,
    hash KEY_TEXT(64) NOT NULL UNIQUE,
    user_id BIGINT NOT NULL REFERENCES account_users (id),
    label TEXT(255) NOT NULL,
    scopes SMALLINT NOT NULL,
    csrf TEXT(64),
    limited SMALLINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    used BIGINT
);
CREATE INDEX account_tokens_of ON account_tokens (user_id);

-- What was answered to a creation, so that repeating it is harmless. No status yet: being done.
CREATE TABLE answered_keys (
    user_id BIGINT NOT NULL,
    name KEY_TEXT(64|255) NOT NULL,
    fingerprint TEXT(64) NOT NULL,
    status SMALLINT,
    body TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);
CREATE INDEX answered_keys_at ON answered_keys (at);

CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    who TEXT(63) NOT NULL,
    origin TEXT(64) NOT NULL,
    what TEXT(64) NOT NULL,
    target TEXT(255) NOT NULL,
    done SMALLINT NOT NULL
);

CREATE TABLE images (
    name KEY_TEXT(63|255) NOT NULL PRIMARY KEY,
    details TEXT NOT NULL,
    published_by TEXT(63) NOT NULL,
    published BIGINT NOT NULL
);
