//! Adding entries: all of a batch or none of it, on the disk before it is answered.
//!
//! The number of a batch's first entry is read from the lead's row if its generation is ours, and
//! is nothing otherwise, which no entry may have as its number. So one statement is the check and
//! the append, and on a server nobody takes the lead between the two: the row is locked until the
//! transaction ends.
//!
//! A connection that is lost meanwhile leaves it open whether the batch was written. Then it is
//! appended again, for a short while: numbers are unique, so a batch that is there is found by that
//! and is never there twice, and what an older try still holds is waited for by the database.

use std::time::Duration;

use sqlx::{Any, AssertSqlSafe, Row};
use tokio::time::Instant;

use super::{Journal, JournalEntry, signed};
use crate::{Dialect, StoreError};

/// Most rows in one statement: six values each, which is below what any database binds at most.
const ROWS_MAX: usize = 1024;
/// How long a batch is appended again after a lost connection: less than any lease, so that
/// whoever stands by need not wait for it.
const AGAIN_MAX: Duration = Duration::from_secs(2);
const AGAIN_AFTER: Duration = Duration::from_millis(20);

impl Journal {
    /// Appends a batch in one transaction. If this fails, nobody may be told that it was written;
    /// it was not, unless the connection was lost for good.
    pub async fn append(&self, entries: &[JournalEntry]) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut lost = false;
        loop {
            let failed = match self.try_append(entries).await {
                Err(StoreError::Database(failed)) => failed,
                done => return done,
            };
            let again = self.database.dialect().lost_connection(&failed);
            let failed = match self.generation.explain(&self.database, failed).await {
                deposed @ StoreError::Deposed { .. } => return Err(deposed),
                failed => failed,
            };
            // Nobody but us writes while we lead.
            if lost && self.has(entries).await.unwrap_or(false) {
                return Ok(());
            }
            if !again || begun.elapsed() > AGAIN_MAX {
                return Err(failed);
            }
            tracing::warn!(error = %failed, "an append lost its connection: trying again");
            lost = true;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Whether a batch is there: all of it is, if its last entry is.
    async fn has(&self, entries: &[JournalEntry]) -> Result<bool, StoreError> {
        let Some(last) = entries.last() else { return Ok(true) };
        let found = sqlx::query("SELECT at, input, events FROM journal WHERE seq = ?")
            .bind(signed(last.seq)?)
            .fetch_optional(self.database.readers())
            .await?;
        let Some(row) = found else { return Ok(false) };
        let (at, input, events): (i64, String, String) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(at == last.at.0 && input == last.input && events == last.events)
    }

    async fn try_append(&self, entries: &[JournalEntry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        // One statement is a transaction of its own, and saves two ways to the database.
        if entries.len() <= ROWS_MAX {
            self.insert(entries)?.execute(self.database.writer()).await?;
            return Ok(());
        }
        let mut transaction = self.database.writer().begin().await?;
        for rows in entries.chunks(ROWS_MAX) {
            self.insert(rows)?.execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    fn insert<'q>(&self, rows: &'q [JournalEntry]) -> Result<Query<'q>, StoreError> {
        // Made of constants alone.
        let mut query = sqlx::query(AssertSqlSafe(sql(self.database.dialect(), rows.len())));
        for (index, row) in rows.iter().enumerate() {
            query = query.bind(signed(row.seq)?);
            if index == 0 {
                query = query.bind(self.generation.number());
            }
            query = query
                .bind(row.at.0)
                .bind(row.input.as_str())
                .bind(row.events.as_str())
                .bind(row.note.as_deref().map(serde_json::value::RawValue::get))
                .bind(row.job.map(|job| signed(job.0)).transpose()?);
        }
        Ok(query)
    }
}

type Query<'q> = sqlx::query::Query<'q, Any, <Any as sqlx::Database>::Arguments>;

fn sql(dialect: Dialect, rows: usize) -> String {
    let mut sql = String::from("INSERT INTO journal (seq, at, input, events, note, job) VALUES ");
    sql.push_str("((SELECT ? FROM leader WHERE id = 1 AND generation = ?");
    sql.push_str(dialect.for_share());
    sql.push_str("),?,?,?,?,?)");
    for _ in 1..rows {
        sql.push_str(",(?,?,?,?,?,?)");
    }
    sql
}
