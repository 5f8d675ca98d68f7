//! Several servers that hold accounts and tokens in memory: how often these changed, so that each
//! knows when to read them again, and the right to change them, which one has at a time.

use sqlx::Any;

use super::Accounts;
use crate::{Connection, Dialect, StoreError, Transaction};

type Query<'q> = sqlx::query::Query<'q, Any, <Any as sqlx::Database>::Arguments>;

/// The right to change accounts, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Alone {
    /// Holds a row as long as it lives; nothing of it is ever committed.
    _held: Option<Transaction>,
}

impl Accounts {
    /// How often accounts and tokens were changed.
    pub async fn revision(&self) -> Result<u64, StoreError> {
        let number: i64 =
            sqlx::query_scalar("SELECT number FROM revisions WHERE name = 'accounts'")
                .fetch_one(self.database.readers())
                .await?;
        Ok(number.cast_unsigned())
    }

    /// Waits until no other server changes accounts, and keeps them all from it.
    pub async fn alone(&self) -> Result<Alone, StoreError> {
        // Beside SQLite's files there is no other server, and the lock would be that of all writes.
        if self.database.dialect() == Dialect::Sqlite {
            return Ok(Alone { _held: None });
        }
        // Not on the connection that writes, which the change itself needs.
        let mut held = self.database.readers().begin().await?;
        sqlx::query("UPDATE revisions SET number = number WHERE name = 'changing'")
            .execute(&mut *held)
            .await?;
        Ok(Alone { _held: Some(held) })
    }

    /// Carries out a change together with the word that there was one.
    pub(super) async fn change(&self, query: Query<'_>) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        query.execute(&mut *all).await?;
        changed(&mut all).await?;
        Ok(all.commit().await?)
    }
}

/// Leaves word of a change.
pub(super) async fn changed(transaction: &mut Connection) -> Result<(), StoreError> {
    sqlx::query("UPDATE revisions SET number = number + 1 WHERE name = 'accounts'")
        .execute(transaction)
        .await?;
    Ok(())
}
