//! Adding entries: all of a batch or none of it, on the disk before it is answered.

use sqlx::{Any, AssertSqlSafe};

use super::{Entry, Journal, signed};
use crate::StoreError;

/// Most rows in one statement: six values each, which is below what any database binds at most.
const ROWS_MAX: usize = 1024;

impl Journal {
    /// Appends a batch in one transaction. If this fails, nothing of it was written, and nobody
    /// may be told that it was.
    pub async fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        // One statement is a transaction of its own, and saves two ways to the database.
        if entries.len() <= ROWS_MAX {
            return match insert(entries)? {
                Some(query) => Ok(query.execute(self.database.writer()).await.map(drop)?),
                None => Ok(()),
            };
        }
        let mut transaction = self.database.writer().begin().await?;
        for rows in entries.chunks(ROWS_MAX) {
            if let Some(query) = insert(rows)? {
                query.execute(&mut *transaction).await?;
            }
        }
        Ok(transaction.commit().await?)
    }
}

type Query<'q> = sqlx::query::Query<'q, Any, <Any as sqlx::Database>::Arguments>;

fn insert(rows: &[Entry]) -> Result<Option<Query<'_>>, StoreError> {
    if rows.is_empty() {
        return Ok(None);
    }
    let mut sql = String::from("INSERT INTO journal (seq, at, input, events, note, job) VALUES ");
    for index in 0..rows.len() {
        sql.push_str(if index == 0 { "(?,?,?,?,?,?)" } else { ",(?,?,?,?,?,?)" });
    }
    // Made of constants alone.
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for row in rows {
        query = query
            .bind(signed(row.seq)?)
            .bind(row.at.0)
            .bind(row.input.as_str())
            .bind(row.events.as_str())
            .bind(row.note.as_deref().map(serde_json::value::RawValue::get))
            .bind(row.job.map(|job| signed(job.0)).transpose()?);
    }
    Ok(Some(query))
}
