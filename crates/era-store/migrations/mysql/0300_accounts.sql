-- Who there is. Limits and money are the core's; here are names, rights and secrets.
CREATE TABLE account_groups (
    id BIGINT NOT NULL PRIMARY KEY,
    name VARCHAR(255) NOT NULL UNIQUE,
    level SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE account_users (
    id BIGINT NOT NULL PRIMARY KEY,
    name VARCHAR(255) NOT NULL UNIQUE,
    group_id BIGINT NOT NULL,
    role SMALLINT NOT NULL,
    level SMALLINT NOT NULL,
    enabled SMALLINT NOT NULL,
    password LONGTEXT NOT NULL,
    one_time SMALLINT NOT NULL,
    storage_bytes BIGINT,
    created BIGINT NOT NULL,
    FOREIGN KEY (group_id) REFERENCES account_groups (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Tokens and browser sessions, by the hash of what was told once.
CREATE TABLE account_tokens (
    id VARCHAR(255) NOT NULL PRIMARY KEY,
    hash VARCHAR(64) NOT NULL UNIQUE,
    user_id BIGINT NOT NULL,
    label LONGTEXT NOT NULL,
    scopes SMALLINT NOT NULL,
    csrf LONGTEXT,
    limited SMALLINT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    used BIGINT,
    FOREIGN KEY (user_id) REFERENCES account_users (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX account_tokens_of ON account_tokens (user_id);

-- What was answered to a creation, so that repeating it is harmless. No status yet: being done.
CREATE TABLE answered_keys (
    user_id BIGINT NOT NULL,
    name VARCHAR(255) NOT NULL,
    fingerprint LONGTEXT NOT NULL,
    status SMALLINT,
    body LONGTEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX answered_keys_at ON answered_keys (at);

CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    who LONGTEXT NOT NULL,
    origin LONGTEXT NOT NULL,
    what LONGTEXT NOT NULL,
    target LONGTEXT NOT NULL,
    done SMALLINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE images (
    name VARCHAR(255) NOT NULL PRIMARY KEY,
    details LONGTEXT NOT NULL,
    published_by LONGTEXT NOT NULL,
    published BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE webhooks (
    id BIGINT NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL,
    url LONGTEXT NOT NULL,
    events LONGTEXT NOT NULL,
    pool LONGTEXT,
    below BIGINT,
    -- Whether the price was below at the last look: only a fall is told, not that it is low.
    was_below SMALLINT NOT NULL,
    secret LONGTEXT NOT NULL,
    last LONGTEXT,
    created BIGINT NOT NULL,
    FOREIGN KEY (user_id) REFERENCES account_users (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX webhooks_of ON webhooks (user_id);

-- The outbox: what is still to be told, and when it is tried next.
CREATE TABLE webhook_outbox (
    id BIGINT NOT NULL PRIMARY KEY,
    webhook_id BIGINT NOT NULL,
    -- What it is about: the same thing is told once.
    origin VARCHAR(255) NOT NULL,
    body LONGTEXT NOT NULL,
    tries SMALLINT NOT NULL,
    due BIGINT NOT NULL,
    created BIGINT NOT NULL,
    UNIQUE (webhook_id, origin),
    FOREIGN KEY (webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
CREATE INDEX webhook_outbox_due ON webhook_outbox (due);

-- How far the journal has been looked through.
CREATE TABLE webhook_cursor (
    id SMALLINT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
