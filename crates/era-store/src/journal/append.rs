//! Adding entries: all of a batch or none of it, on the disk before it is answered.
//!
//! The number of a batch's first entry is read from the lead's row if its generation is ours, and
//! is nothing otherwise, which no entry may have as its number. So one statement is the check and
//! the append, and on a server nobody takes the lead between the two: the row is locked until the
//! transaction ends.

use sqlx::{Any, AssertSqlSafe};

use super::{Entry, Journal, signed};
use crate::{Dialect, StoreError};

/// Most rows in one statement: six values each, which is below what any database binds at most.
const ROWS_MAX: usize = 1024;

impl Journal {
    /// Appends a batch in one transaction. If this fails, nothing of it was written, and nobody
    /// may be told that it was.
    pub async fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        match self.try_append(entries).await {
            Err(StoreError::Database(failed)) => {
                Err(self.fence.explain(&self.database, failed).await)
            }
            done => done,
        }
    }

    async fn try_append(&self, entries: &[Entry]) -> Result<(), StoreError> {
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

    fn insert<'q>(&self, rows: &'q [Entry]) -> Result<Query<'q>, StoreError> {
        // Made of constants alone.
        let mut query = sqlx::query(AssertSqlSafe(sql(self.database.dialect(), rows.len())));
        for (index, row) in rows.iter().enumerate() {
            query = query.bind(signed(row.seq)?);
            if index == 0 {
                query = query.bind(self.fence.number());
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
