//! Idempotency keys: what was answered to a creation, kept for a day.
//!
//! A key is claimed before the work and answered after it. A claim that was never answered means
//! that the server went down in between: whether the work was done is then not known here.

use sqlx::Row;

use super::AccountTables;
use super::users::maybe;
use crate::StoreError;

/// How long an answer is kept.
pub const KEY_KEPT_MS: i64 = 24 * 3_600_000;

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedAnswer {
    /// Its HTTP status.
    pub status: u16,
    pub body: String,
}

/// What came of claiming a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is new, and now claimed.
    New,
    /// The same was asked and answered before.
    Answered(KeyedAnswer),
    /// The same was asked before, and no answer was kept.
    Unanswered,
    /// Something else was asked with it.
    Other,
}

impl AccountTables {
    /// Claims a key of a user for a request with this fingerprint.
    pub async fn claim_key(
        &self,
        user: u32,
        name: &str,
        fingerprint: &str,
        now: i64,
    ) -> Result<Claim, StoreError> {
        let mut all = self.database.writer().begin().await?;
        sqlx::query("DELETE FROM answered_keys WHERE at <= ?")
            .bind(now - KEY_KEPT_MS)
            .execute(&mut *all)
            .await?;
        let found = sqlx::query(
            "SELECT fingerprint, status, body FROM answered_keys WHERE user_id = ? AND name = ?",
        )
        .bind(i64::from(user))
        .bind(name)
        .fetch_optional(&mut *all)
        .await?;
        let claim = match found {
            Some(row) if row.try_get::<String, _>("fingerprint")? != fingerprint => Claim::Other,
            Some(row) => {
                match (maybe(&row, "status")?, row.try_get::<Option<String>, _>("body")?) {
                    (Some(status), Some(body)) => Claim::Answered(KeyedAnswer { status, body }),
                    _ => Claim::Unanswered,
                }
            }
            None => {
                sqlx::query(
                    "INSERT INTO answered_keys (user_id, name, fingerprint, at) \
                     VALUES (?, ?, ?, ?)",
                )
                .bind(i64::from(user))
                .bind(name)
                .bind(fingerprint)
                .bind(now)
                .execute(&mut *all)
                .await?;
                Claim::New
            }
        };
        all.commit().await?;
        Ok(claim)
    }

    /// Keeps the answer to a claimed key.
    pub async fn answer_key(
        &self,
        user: u32,
        name: &str,
        answer: &KeyedAnswer,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE answered_keys SET status = ?, body = ? WHERE user_id = ? AND name = ?")
            .bind(i64::from(answer.status))
            .bind(&answer.body)
            .bind(i64::from(user))
            .bind(name)
            .execute(self.database.writer())
            .await?;
        Ok(())
    }

    /// Frees a claimed key: what was asked with it was refused and changed nothing.
    pub async fn free_key(&self, user: u32, name: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM answered_keys WHERE user_id = ? AND name = ?")
            .bind(i64::from(user))
            .bind(name)
            .execute(self.database.writer())
            .await?;
        Ok(())
    }
}
