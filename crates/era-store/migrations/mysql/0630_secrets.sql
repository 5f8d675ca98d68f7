-- What users' jobs are told and nobody else: sealed by a key that is not in this database.
CREATE TABLE secrets (
    user_id BIGINT NOT NULL,
    name VARCHAR(64) NOT NULL,
    sealed LONGTEXT NOT NULL,
    changed BIGINT NOT NULL,
    PRIMARY KEY (user_id, name),
    FOREIGN KEY (user_id) REFERENCES account_users (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
