CREATE TABLE webhooks (
    id BIGINT NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account_users (id),
    url TEXT(2048) NOT NULL,
    events TEXT(255) NOT NULL,
    pool TEXT(63),
    below BIGINT,
    -- Whether the price was below at the last look: only a fall is told, not that it is low.
    was_below SMALLINT NOT NULL,
    secret TEXT(64) NOT NULL,
    last TEXT(255),
    created BIGINT NOT NULL
);
CREATE INDEX webhooks_of ON webhooks (user_id);

-- The outbox: what is still to be told, and when it is tried next.
CREATE TABLE webhook_outbox (
    id BIGINT NOT NULL PRIMARY KEY,
    webhook_id BIGINT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    -- What it is about: the same thing is told once.
    origin KEY_TEXT(64|255) NOT NULL,
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
