//! The audit trail: who did what, from where, and whether it was done.

use sqlx::{Any, QueryBuilder, Row};

use super::AccountTables;
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
    pub origin: String,
    pub what: String,
    pub target: String,
    /// Whether it was done.
    pub done: bool,
}

/// Which lines are wanted. Every field narrows the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAsk {
    /// By this account.
    pub who: Option<String>,
    /// Whatever begins so was done.
    pub what: Option<String>,
    pub target: Option<String>,
    /// At or after, in milliseconds.
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// With a lower number than this.
    pub before: u64,
}

impl Default for AuditAsk {
    /// All of them.
    fn default() -> AuditAsk {
        let (who, what, target, since, until) = (None, None, None, None, None);
        AuditAsk { who, what, target, since, until, before: u64::MAX }
    }
}

impl AccountTables {
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

    /// Lines, newest first; at most so many.
    pub async fn audit_lines(
        &self,
        ask: &AuditAsk,
        most: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let mut query: QueryBuilder<Any> = QueryBuilder::new("SELECT * FROM audit WHERE id < ");
        query.push_bind(big(ask.before));
        if let Some(who) = &ask.who {
            query.push(" AND who = ").push_bind(who.clone());
        }
        if let Some(target) = &ask.target {
            query.push(" AND target = ").push_bind(target.clone());
        }
        if let Some(what) = &ask.what {
            // A beginning as a range: no letter of it has another meaning.
            query.push(" AND what >= ").push_bind(what.clone());
            query.push(" AND what < ").push_bind(format!("{what}{}", char::MAX));
        }
        if let Some(since) = ask.since {
            query.push(" AND at >= ").push_bind(since);
        }
        if let Some(until) = ask.until {
            query.push(" AND at < ").push_bind(until);
        }
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(most));
        let rows = query.build().fetch_all(self.database.readers()).await?;
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
