-- What users' jobs are told and nobody else: sealed by a key that is not in this database.
CREATE TABLE secrets (
    user_id BIGINT NOT NULL REFERENCES account_users (id),
    name KEY_TEXT(64) NOT NULL,
    sealed TEXT NOT NULL,
    changed BIGINT NOT NULL,
    PRIMARY KEY (user_id, name)
);
