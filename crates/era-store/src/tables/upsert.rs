//! Many rows in one statement: what is not there is inserted, what is there is changed.
//!
//! This is the one place that writes out how a database says so.

use std::fmt::Write;

use sqlx::AssertSqlSafe;

use crate::{StoreError, Transaction};

/// Most values in one statement: below what SQLite binds (32,766), and a few sizes only, so that
/// prepared statements are used again.
const VALUES_MAX: usize = 2048;

/// One value of a row.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Number(Option<i64>),
    Text(Option<String>),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Number(Some(number))
    }
}

impl From<Option<i64>> for Cell {
    fn from(number: Option<i64>) -> Cell {
        Cell::Number(number)
    }
}

impl From<u64> for Cell {
    /// Bit by bit: a mask of GPUs may use the highest bit, and no count ever does.
    fn from(number: u64) -> Cell {
        Cell::Number(Some(number.cast_signed()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(Some(text))
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Cell {
        Cell::Text(text)
    }
}

/// A table that rows are put into.
pub(super) struct Upsert {
    pub table: &'static str,
    pub columns: &'static [&'static str],
    /// How many of the columns, from the first, make the key.
    pub keys: usize,
    /// What happens to a row that is there already.
    pub on_conflict: OnConflict,
}

/// What happens to a row that is there already.
pub(super) enum OnConflict {
    /// These columns get the new values. Those that never change are left out, so that their
    /// indexes are not touched.
    Set(&'static [&'static str]),
    /// All columns but the key's are added up.
    Add,
    /// It stays as it is.
    Keep,
}

impl Upsert {
    fn sql(&self, rows: usize) -> String {
        let columns = self.columns.join(", ");
        let row = format!("({})", vec!["?"; self.columns.len()].join(","));
        let mut sql = format!("INSERT INTO {} ({columns}) VALUES ", self.table);
        for index in 0..rows {
            sql.push_str(if index == 0 { "" } else { "," });
            sql.push_str(&row);
        }
        // Writing to a string cannot fail.
        let _ = write!(sql, " ON CONFLICT ({}) DO ", self.columns[..self.keys].join(", "));
        let sets: Vec<String> = match self.on_conflict {
            OnConflict::Keep => Vec::new(),
            OnConflict::Set(columns) => {
                columns.iter().map(|c| format!("{c} = excluded.{c}")).collect()
            }
            OnConflict::Add => {
                let columns = self.columns[self.keys..].iter();
                columns.map(|c| format!("{c} = {}.{c} + excluded.{c}", self.table)).collect()
            }
        };
        if sets.is_empty() {
            sql.push_str("NOTHING");
        } else {
            let _ = write!(sql, "UPDATE SET {}", sets.join(", "));
        }
        sql
    }

    /// Puts rows into the table. No key may be among them twice.
    pub(super) async fn put(
        &self,
        transaction: &mut Transaction,
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let whole = VALUES_MAX / self.columns.len();
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let chunk: Vec<Vec<Cell>> = rows.by_ref().take(whole).collect();
            let mut chunk = chunk.as_slice();
            // What is left over goes in powers of two: few statements, all of them known.
            while !chunk.is_empty() {
                let count = if chunk.len() == whole { whole } else { 1 << chunk.len().ilog2() };
                let (now, later) = chunk.split_at(count);
                self.put_chunk(transaction, now).await?;
                chunk = later;
            }
        }
        Ok(())
    }

    async fn put_chunk(
        &self,
        transaction: &mut Transaction,
        rows: &[Vec<Cell>],
    ) -> Result<(), StoreError> {
        // Made of constants alone.
        let mut query = sqlx::query(AssertSqlSafe(self.sql(rows.len())));
        for cell in rows.iter().flatten() {
            query = match cell {
                Cell::Number(number) => query.bind(*number),
                Cell::Text(text) => query.bind(text.as_deref()),
            };
        }
        query.execute(&mut **transaction).await?;
        Ok(())
    }
}
