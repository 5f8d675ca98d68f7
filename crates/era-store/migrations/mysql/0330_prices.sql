-- What pools cost: a row for each change, which holds until the next one.
CREATE TABLE prices (
    pool VARCHAR(63) NOT NULL,
    at BIGINT NOT NULL,
    cpu BIGINT NOT NULL,
    memory BIGINT NOT NULL,
    gpu BIGINT NOT NULL,
    -- Shares that were promised, in thousandths.
    promised_cpu BIGINT NOT NULL,
    promised_memory BIGINT NOT NULL,
    promised_gpu BIGINT NOT NULL,
    PRIMARY KEY (pool, at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
