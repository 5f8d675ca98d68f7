//! What was spent and used, by project: of one account over time, and of a group's members.
//!
//! Sums are of whole hours. A charge counts in the hour in which it was made, a refund in the one
//! in which it came back, so a quiet hour may give more back than it took.

use era_core::units::{GroupId, Time, UserId};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::hours::hour_of;
use super::{Tables, read};
use crate::StoreError;

/// What was spent and used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingRow {
    /// Charged, in millionths of a credit.
    pub charged: i64,
    pub refunded: i64,
    /// Thousandths of a core, MiB, thousandths of a GPU; each times milliseconds.
    pub unit_ms: [i64; 3],
}

/// What an account spent on a project in an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentHour {
    pub hour: i64,
    /// The project; `None` for jobs that name none.
    pub project: Option<String>,
    pub spent: SpendingRow,
}

/// What a member of a group spent on a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentBy {
    pub account: UserId,
    /// The project; `None` for jobs that name none.
    pub project: Option<String>,
    pub spent: SpendingRow,
}

const SUMS: &str = "CAST(SUM(charged) AS BIGINT), CAST(SUM(refunded) AS BIGINT), \
    CAST(SUM(cpu) AS BIGINT), CAST(SUM(memory) AS BIGINT), CAST(SUM(gpu) AS BIGINT)";

impl Tables {
    /// What an account spent from the hour of one instant to that before another's, hour by hour.
    pub async fn spending(
        &self,
        account: UserId,
        from: Time,
        to: Time,
    ) -> Result<Vec<SpentHour>, StoreError> {
        let sql = format!(
            "SELECT hour, project, {SUMS} FROM spending WHERE account = ? AND hour >= ? \
             AND hour <= ? GROUP BY hour, project ORDER BY hour, project"
        );
        // Made of constants alone.
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(i64::from(account.0))
            .bind(hour_of(from))
            .bind(hour_of(Time(to.0 - 1)))
            .fetch_all(self.database.readers())
            .await?;
        let hour = |row: &AnyRow| {
            Ok(SpentHour { hour: row.try_get(0)?, project: project(row)?, spent: spent(row)? })
        };
        rows.iter().map(hour).collect()
    }

    /// What each member of a group spent on each project in a period, whoever spent most first.
    pub async fn chargeback(
        &self,
        team: GroupId,
        from: Time,
        to: Time,
    ) -> Result<Vec<SpentBy>, StoreError> {
        let sql = format!(
            "SELECT account, project, {SUMS} FROM spending WHERE team = ? AND hour >= ? \
             AND hour <= ? GROUP BY account, project \
             ORDER BY SUM(charged) - SUM(refunded) DESC, account, project"
        );
        // Made of constants alone.
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(i64::from(team.0))
            .bind(hour_of(from))
            .bind(hour_of(Time(to.0 - 1)))
            .fetch_all(self.database.readers())
            .await?;
        let by = |row: &AnyRow| {
            let account = UserId(read::id32(row, 0)?);
            Ok(SpentBy { account, project: project(row)?, spent: spent(row)? })
        };
        rows.iter().map(by).collect()
    }
}

fn project(row: &AnyRow) -> Result<Option<String>, StoreError> {
    Ok(Some(row.try_get::<String, _>(1)?).filter(|name| !name.is_empty()))
}

fn spent(row: &AnyRow) -> Result<SpendingRow, StoreError> {
    Ok(SpendingRow {
        charged: row.try_get(2)?,
        refunded: row.try_get(3)?,
        unit_ms: [row.try_get(4)?, row.try_get(5)?, row.try_get(6)?],
    })
}
