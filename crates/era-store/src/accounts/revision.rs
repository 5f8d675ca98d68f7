//! Several servers that hold accounts and tokens in memory: how often these changed, so that each
//! knows when to read them again, and the right to change them, which one has at a time. The same
//! count for the catalogue of images, for whoever mirrors it.

use sqlx::Any;

use super::AccountTables;
use crate::{Connection, Held, Lock, StoreError};

type Query<'q> = sqlx::query::Query<'q, Any, <Any as sqlx::Database>::Arguments>;

/// The right to change accounts, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct AccountLock {
    _held: Held,
}

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    Accounts,
    Images,
}

impl Counted {
    fn name(self) -> &'static str {
        match self {
            Counted::Accounts => "accounts",
            Counted::Images => "images",
        }
    }
}

impl AccountTables {
    /// How often accounts and tokens were changed.
    pub async fn revision(&self) -> Result<u64, StoreError> {
        self.count(Counted::Accounts).await
    }

    /// How often the catalogue of images was changed.
    pub async fn images_revision(&self) -> Result<u64, StoreError> {
        self.count(Counted::Images).await
    }

    async fn count(&self, counted: Counted) -> Result<u64, StoreError> {
        let number: i64 = sqlx::query_scalar("SELECT number FROM revisions WHERE name = ?")
            .bind(counted.name())
            .fetch_one(self.database.readers())
            .await?;
        Ok(number.cast_unsigned())
    }

    /// Waits until no other server changes accounts, and keeps them all from it.
    pub async fn alone(&self) -> Result<AccountLock, StoreError> {
        Ok(AccountLock { _held: self.database.lock(Lock::Accounts).await? })
    }

    /// Carries out a change of accounts together with the word that there was one.
    pub(super) async fn change(&self, query: Query<'_>) -> Result<(), StoreError> {
        self.change_of(Counted::Accounts, query).await
    }

    /// Carries out a change together with the word that there was one.
    pub(super) async fn change_of(
        &self,
        counted: Counted,
        query: Query<'_>,
    ) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        query.execute(&mut *all).await?;
        changed(counted, &mut all).await?;
        Ok(all.commit().await?)
    }
}

/// Leaves word of a change.
pub(super) async fn changed(
    counted: Counted,
    transaction: &mut Connection,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE revisions SET number = number + 1 WHERE name = ?")
        .bind(counted.name())
        .execute(transaction)
        .await?;
    Ok(())
}
