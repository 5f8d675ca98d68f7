//! Quotes that were asked, taken or not: demand that a forecast wants to know of.
//!
//! They are written in batches and beside the journal: losing the last few in a crash harms
//! nobody, and no quote waits for the disk.

use era_core::bid::Bid;
use era_core::units::{Money, Time, UserId};
use sqlx::Row;

use super::{number, written};
use crate::{Database, StoreError};

/// A quote that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedQuote {
    pub at: Time,
    pub user: UserId,
    /// What for, as JSON.
    pub bid: String,
    /// The price that was told; `None` where it was refused.
    pub price: Option<Money>,
}

impl AskedQuote {
    /// A question and its answer.
    pub fn new(at: Time, bid: &Bid, price: Option<Money>) -> AskedQuote {
        AskedQuote { at, user: bid.user, bid: written(bid), price }
    }

    /// What it was for.
    pub fn bid(&self) -> Result<Bid, StoreError> {
        serde_json::from_str(&self.bid).map_err(|e| StoreError::Damaged {
            what: "a quote that was asked".to_owned(),
            problem: e.to_string(),
        })
    }
}

/// The quotes that were asked. A clone shares.
#[derive(Clone, Debug)]
pub struct Asks {
    database: Database,
}

impl Asks {
    pub fn new(database: Database) -> Asks {
        Asks { database }
    }

    pub async fn append(&self, asks: &[AskedQuote]) -> Result<(), StoreError> {
        let mut transaction = self.database.writer().begin().await?;
        for ask in asks {
            sqlx::query("INSERT INTO asks (at, account, bid, price) VALUES (?, ?, ?, ?)")
                .bind(ask.at.0)
                .bind(i64::from(ask.user.0))
                .bind(ask.bid.as_str())
                .bind(ask.price.map(|price| price.0))
                .execute(&mut *transaction)
                .await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Those of `[from, to)`, in order; at most so many.
    pub async fn read(
        &self,
        from: Time,
        to: Time,
        most: u32,
    ) -> Result<Vec<AskedQuote>, StoreError> {
        let rows = sqlx::query(
            "SELECT at, account, bid, price FROM asks WHERE at >= ? AND at < ? ORDER BY at LIMIT ?",
        )
        .bind(from.0)
        .bind(to.0)
        .bind(i64::from(most))
        .fetch_all(self.database.readers())
        .await?;
        let ask = |row: &sqlx::any::AnyRow| {
            let user = number("asks", row.try_get(1)?)?;
            Ok(AskedQuote {
                at: Time(row.try_get(0)?),
                user: UserId(u32::try_from(user).unwrap_or(u32::MAX)),
                bid: row.try_get(2)?,
                price: row.try_get::<Option<i64>, _>(3)?.map(Money),
            })
        };
        rows.iter().map(ask).collect()
    }

    /// Forgets those before an instant.
    pub async fn forget_before(&self, before: Time) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM asks WHERE at < ?")
            .bind(before.0)
            .execute(self.database.writer())
            .await?;
        Ok(())
    }
}
