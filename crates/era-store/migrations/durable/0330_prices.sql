-- What pools cost: a row for each change, which holds until the next one.
CREATE TABLE prices (
    pool KEY_TEXT(63) NOT NULL,
    at BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    -- Shares that were promised, in thousandths.
    promised_cpu BIGINT NOT NULL,
    promised_memory BIGINT NOT NULL,
    promised_gpu BIGINT NOT NULL,
    PRIMARY KEY (pool, at)
) WITHOUT ROWID;
