//! What pools have cost: a row for each change, which holds until the next one.
//!
//! How often a price is looked at, and how long it is kept, is for the caller to say. Reading is
//! bounded by thinning, which keeps every peak and dip where it was.

use std::collections::BTreeMap;

use era_core::units::Time;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::samples::{Point, thin};
use crate::{Database, StoreError};

/// A pool's prices from an instant on, in millionths of a credit an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceRow {
    pub at: Time,
    /// A core, a GiB, a GPU.
    pub price: [i64; 3],
    /// The shares that were promised, in thousandths: cores, memory, GPUs.
    pub promised: [i64; 3],
}

/// Past prices. A clone shares.
#[derive(Clone, Debug)]
pub struct Prices {
    database: Database,
}

const COLUMNS: &str = "at, cpu, memory, gpu, promised_cpu, promised_memory, promised_gpu";

impl Prices {
    pub fn new(database: Database) -> Prices {
        Prices { database }
    }

    /// Adds what pools cost from now on. A second row of the same pool and instant replaces the
    /// first.
    pub async fn append(&self, rows: &[(String, PriceRow)]) -> Result<(), StoreError> {
        let mut transaction = self.database.writer().begin().await?;
        for (pool, row) in rows {
            sqlx::query("DELETE FROM prices WHERE pool = ? AND at = ?")
                .bind(pool)
                .bind(row.at.0)
                .execute(&mut *transaction)
                .await?;
            let mut insert = sqlx::query(
                "INSERT INTO prices (pool, at, cpu, memory, gpu, promised_cpu, promised_memory, \
                 promised_gpu) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(pool)
            .bind(row.at.0);
            for number in row.price.iter().chain(&row.promised) {
                insert = insert.bind(*number);
            }
            insert.execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// The newest of each pool.
    pub async fn newest(&self) -> Result<BTreeMap<String, PriceRow>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            // Made of constants alone.
            "SELECT {COLUMNS}, pool FROM prices AS p \
             WHERE at = (SELECT MAX(at) FROM prices AS q WHERE q.pool = p.pool)"
        )))
        .fetch_all(self.database.readers())
        .await?;
        rows.iter().map(|row| Ok((row.try_get(7)?, read(row)?))).collect()
    }

    /// A pool's prices in `[from, to]`, oldest first: the one that held at the beginning, moved
    /// there, and all changes since. At most so many, thinned by the price that `order` picks.
    pub async fn read(
        &self,
        pool: &str,
        (from, to): (Time, Time),
        most: usize,
        order: usize,
    ) -> Result<Vec<PriceRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM prices WHERE pool = ? AND at <= ? AND at >= COALESCE(\
             (SELECT MAX(at) FROM prices WHERE pool = ? AND at <= ?), ?) ORDER BY at"
        );
        // Made of constants alone.
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(pool)
            .bind(to.0)
            .bind(pool)
            .bind(from.0)
            .bind(from.0)
            .fetch_all(self.database.readers())
            .await?;
        let mut rows = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if let Some(first) = rows.first_mut() {
            first.at = first.at.max(from);
        }
        Ok(thinned(&rows, most, order))
    }

    /// Forgets what was before an instant, but for the price that held then.
    pub async fn forget_before(&self, before: Time) -> Result<(), StoreError> {
        let held: Vec<(String, i64)> =
            sqlx::query_as("SELECT pool, MAX(at) FROM prices WHERE at <= ? GROUP BY pool")
                .bind(before.0)
                .fetch_all(self.database.readers())
                .await?;
        for (pool, since) in held {
            sqlx::query("DELETE FROM prices WHERE pool = ? AND at < ?")
                .bind(pool)
                .bind(since)
                .execute(self.database.writer())
                .await?;
        }
        Ok(())
    }
}

fn read(row: &AnyRow) -> Result<PriceRow, StoreError> {
    let number = |column: usize| row.try_get::<i64, _>(column);
    Ok(PriceRow {
        at: Time(number(0)?),
        price: [number(1)?, number(2)?, number(3)?],
        promised: [number(4)?, number(5)?, number(6)?],
    })
}

fn thinned(rows: &[PriceRow], most: usize, order: usize) -> Vec<PriceRow> {
    let point = |(number, row): (u64, &PriceRow)| {
        // Only compared with its neighbours: what a float rounds away nobody sees.
        Point { number, step: 0, at: row.at, value: row.price.map(|price| price as f64)[order] }
    };
    let points: Vec<Point> = (0..).zip(rows).map(point).collect();
    let kept = thin(&points, most).into_iter();
    kept.filter_map(|point| rows.get(usize::try_from(point.number).ok()?).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: i64, gpu: i64) -> PriceRow {
        PriceRow { at: Time(at), price: [1, 2, gpu], promised: [0, 0, 500] }
    }

    async fn with(rows: &[(i64, i64)]) -> (tempfile::TempDir, Prices) {
        let folder = tempfile::tempdir().unwrap();
        let prices = crate::testing::open(folder.path()).await.prices();
        let rows: Vec<_> =
            rows.iter().map(|(at, gpu)| ("main".to_owned(), row(*at, *gpu))).collect();
        prices.append(&rows).await.unwrap();
        (folder, prices)
    }

    #[tokio::test]
    async fn a_stretch_begins_with_the_price_that_held_then() {
        let (_folder, prices) = with(&[(10, 8), (20, 9), (30, 7), (40, 6)]).await;
        let read = |from, to| prices.read("main", (Time(from), Time(to)), 100, 2);
        assert_eq!(read(25, 35).await.unwrap(), [row(25, 9), row(30, 7)]);
        assert_eq!(read(20, 20).await.unwrap(), [row(20, 9)]);
        assert_eq!(read(0, 10).await.unwrap(), [row(10, 8)], "nothing is known before");
        assert_eq!(prices.read("other", (Time(0), Time(99)), 100, 2).await.unwrap(), []);
        assert_eq!(prices.newest().await.unwrap()["main"], row(40, 6));
    }

    #[tokio::test]
    async fn many_changes_are_thinned_and_keep_their_peak() {
        let rows: Vec<_> = (0..500).map(|n| (n, if n == 321 { 99 } else { n % 7 })).collect();
        let (_folder, prices) = with(&rows).await;
        let few = prices.read("main", (Time(0), Time(1000)), 50, 2).await.unwrap();
        assert!(few.len() <= 50, "{}", few.len());
        assert!(few.contains(&row(321, 99)), "a peak stays where it was");
        assert_eq!((few.first(), few.last()), (Some(&row(0, 0)), Some(&row(499, 499 % 7))));
    }

    #[tokio::test]
    async fn what_is_old_is_forgotten_but_for_the_price_that_still_held() {
        let (_folder, prices) = with(&[(10, 8), (20, 9), (30, 7)]).await;
        prices.forget_before(Time(25)).await.unwrap();
        let left = prices.read("main", (Time(0), Time(99)), 100, 2).await.unwrap();
        assert_eq!(left, [row(20, 9), row(30, 7)]);
        prices.forget_before(Time(99)).await.unwrap();
        assert_eq!(prices.read("main", (Time(0), Time(99)), 9, 2).await.unwrap(), [row(30, 7)]);
    }
}
