//! The audit trail: who did what, from where, and whether it was done.

use sqlx::Row;

use super::Accounts;
use super::users::{big, number};
use crate::StoreError;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number; given when it is written.
    pub id: u64,
    /// When, in milliseconds.
    pub at: i64,
    /// Who, by name.
    pub who: String,
    /// From where.
    pub origin: String,
    /// What.
    pub what: String,
    /// On what.
    pub target: String,
    /// Whether it was done.
    pub done: bool,
}

impl Accounts {
    /// Writes a line; its number is the next one.
    pub async fn audit(&self, line: &AuditRow) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO audit (id, at, who, origin, what, target, done) \
             SELECT COALESCE(MAX(id), 0) + 1, ?, ?, ?, ?, ?, ? FROM audit",
        )
        .bind(line.at)
        .bind(&line.who)
        .bind(&line.origin)
        .bind(&line.what)
        .bind(&line.target)
        .bind(i64::from(line.done))
        .execute(self.database.writer())
        .await?;
        Ok(())
    }

    /// Lines before a number, newest first.
    pub async fn audit_before(&self, before: u64, most: u32) -> Result<Vec<AuditRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?")
            .bind(big(before))
            .bind(i64::from(most))
            .fetch_all(self.database.readers())
            .await?;
        rows.iter()
            .map(|row| {
                Ok(AuditRow {
                    id: number(row, "id")?,
                    at: row.try_get("at")?,
                    who: row.try_get("who")?,
                    origin: row.try_get("origin")?,
                    what: row.try_get("what")?,
                    target: row.try_get("target")?,
                    done: number::<i64>(row, "done")? != 0,
                })
            })
            .collect()
    }
}
