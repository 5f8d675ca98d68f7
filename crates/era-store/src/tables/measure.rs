//! What is summed up by hour: what machines gave out, and what is counted for reports.
//!
//! Sums over a period are whole hours; tasks that are not over are read one by one.

use std::collections::BTreeMap;

use era_core::units::{NodeId, Time};
use sqlx::{AssertSqlSafe, Row};

use super::hours::hour_of;
use super::read::{self, TASK_COLUMNS};
use super::rows::{NodeRow, NodeSpan, RefusalRow, TaskRow};
use super::{Tables, load};
use crate::StoreError;

/// What a machine gave out in an hour: units times milliseconds of tasks that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeUse {
    pub hour: i64,
    pub node: NodeId,
    /// Thousandths of a core, MiB, thousandths of a GPU; each times milliseconds.
    pub unit_ms: [i64; 3],
}

/// A task that is not over.
pub type Open = TaskRow;

impl Tables {
    /// What machines gave out from the hour of one instant to that before another's.
    pub async fn node_hours(&self, from: Time, to: Time) -> Result<Vec<NodeUse>, StoreError> {
        let sql = "SELECT hour, node, cpu, memory, gpu FROM node_hours \
                   WHERE hour >= ? AND hour <= ? ORDER BY hour, node";
        let rows = sqlx::query(sql)
            .bind(hour_of(from))
            .bind(hour_of(Time(to.0 - 1)))
            .fetch_all(self.database.replica())
            .await?;
        let used = |row: &sqlx::any::AnyRow| {
            Ok(NodeUse {
                hour: row.try_get(0)?,
                node: NodeId(read::id32(row, 1)?),
                unit_ms: [row.try_get(2)?, row.try_get(3)?, row.try_get(4)?],
            })
        };
        rows.iter().map(used).collect()
    }

    /// Tasks that are not over and sit on a machine.
    pub async fn open_tasks(&self) -> Result<Vec<Open>, StoreError> {
        let sql =
            format!("SELECT {TASK_COLUMNS} FROM tasks WHERE ended IS NULL AND node IS NOT NULL");
        // Made of constants alone.
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(self.database.replica()).await?;
        rows.iter().map(read::task).collect()
    }

    /// Since when which machines were there, as far as it touches a period.
    pub async fn node_spans(&self, from: Time, to: Time) -> Result<Vec<NodeSpan>, StoreError> {
        let sql = "SELECT node, since, until, cpu, memory, gpu FROM node_spans \
                   WHERE since < ? AND (until IS NULL OR until > ?) ORDER BY node, since";
        let rows = sqlx::query(sql).bind(to.0).bind(from.0);
        let rows = rows.fetch_all(self.database.replica()).await?;
        rows.iter().map(load::node_span).collect()
    }

    /// Machines that were ever there.
    pub async fn nodes(&self) -> Result<Vec<NodeRow>, StoreError> {
        Ok(load::names(self.database.replica()).await?.nodes.into_values().collect())
    }

    /// Whatever was counted from the hour of one instant to that before another's, by name.
    pub async fn tallies(&self, from: Time, to: Time) -> Result<BTreeMap<String, i64>, StoreError> {
        let sql = "SELECT what, CAST(SUM(amount) AS BIGINT) FROM tallies \
                   WHERE hour >= ? AND hour <= ? GROUP BY what";
        let rows = sqlx::query(sql)
            .bind(hour_of(from))
            .bind(hour_of(Time(to.0 - 1)))
            .fetch_all(self.database.replica())
            .await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Jobs that were submitted in a period and ran on simulated nodes.
    pub async fn simulated_jobs(&self, from: Time, to: Time) -> Result<u64, StoreError> {
        let sql = "SELECT COUNT(*) FROM jobs \
                   WHERE submitted >= ? AND submitted < ? AND simulated <> 0";
        let count: i64 = sqlx::query_scalar(sql)
            .bind(from.0)
            .bind(to.0)
            .fetch_one(self.database.replica())
            .await?;
        read::narrow(count)
    }

    /// Promises that were ever due, and how many of them were kept.
    pub async fn promises(&self) -> Result<(u64, u64), StoreError> {
        let sums = self.tallies(Time(0), Time::LATEST).await?;
        let sum = |what: &str| sums.get(what).copied().unwrap_or(0).max(0).unsigned_abs();
        Ok((sum("promises_due"), sum("promises_kept")))
    }

    /// Bids and submissions that were refused in a period, newest first; at most so many.
    pub async fn refusals(
        &self,
        from: Time,
        to: Time,
        most: u32,
    ) -> Result<Vec<RefusalRow>, StoreError> {
        let sql = "SELECT seq, at, account, code, sentence, price FROM refusals \
                   WHERE at >= ? AND at < ? ORDER BY at DESC, seq DESC LIMIT ?";
        let rows = sqlx::query(sql)
            .bind(from.0)
            .bind(to.0)
            .bind(i64::from(most))
            .fetch_all(self.database.replica())
            .await?;
        let refusal = |row: &sqlx::any::AnyRow| {
            Ok(RefusalRow {
                seq: read::unsigned(row, 0)?,
                at: Time(row.try_get(1)?),
                account: era_core::units::UserId(read::id32(row, 2)?),
                code: row.try_get(3)?,
                sentence: row.try_get(4)?,
                price: row.try_get(5)?,
            })
        };
        rows.iter().map(refusal).collect()
    }
}
