-- Who there is. Limits and money are the core's; here are names, rights and secrets.
CREATE TABLE account_groups (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    level SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
);

CREATE TABLE account_users (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    group_id BIGINT NOT NULL REFERENCES account_groups (id),
    role SMALLINT NOT NULL,
    level SMALLINT NOT NULL,
    enabled SMALLINT NOT NULL,
    password TEXT NOT NULL,
    one_time SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
);

-- Tokens and browser sessions, by the hash of what was told once.
CREATE TABLE account_tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL UNIQUE,
    user_id BIGINT NOT NULL REFERENCES account_users (id),
    label TEXT NOT NULL,
    scopes SMALLINT NOT NULL,
    csrf TEXT,
    limited SMALLINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    used BIGINT
);
CREATE INDEX account_tokens_of ON account_tokens (user_id);

-- What was answered to a creation, so that repeating it is harmless. No status yet: being done.
CREATE TABLE answered_keys (
    user_id BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT NOT NULL,
    status SMALLINT,
    body TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);
CREATE INDEX answered_keys_at ON answered_keys (at);

CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    who TEXT NOT NULL,
    origin TEXT NOT NULL,
    what TEXT NOT NULL,
    target TEXT NOT NULL,
    done SMALLINT NOT NULL
);

CREATE TABLE images (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    details TEXT NOT NULL,
    published_by TEXT NOT NULL,
    published BIGINT NOT NULL
);

CREATE TABLE webhooks (
    id BIGINT NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account_users (id),
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    pool TEXT,
    below BIGINT,
    -- Whether the price was below at the last look: only a fall is told, not that it is low.
    was_below SMALLINT NOT NULL,
    secret TEXT NOT NULL,
    last TEXT,
    created BIGINT NOT NULL
);
CREATE INDEX webhooks_of ON webhooks (user_id);

-- The outbox: what is still to be told, and when it is tried next.
CREATE TABLE webhook_outbox (
    id BIGINT NOT NULL PRIMARY KEY,
    webhook_id BIGINT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    -- What it is about: the same thing is told once.
    origin TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL,
    tries SMALLINT NOT NULL,
    due BIGINT NOT NULL,
    created BIGINT NOT NULL,
    UNIQUE (webhook_id, origin)
);
CREATE INDEX webhook_outbox_due ON webhook_outbox (due);

-- How far the journal has been looked through.
CREATE TABLE webhook_cursor (
    id SMALLINT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);
