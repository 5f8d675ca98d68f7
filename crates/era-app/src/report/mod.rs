//! The five measures that the platform is judged by, per period, and the same period without ERA.
//!
//! What happened is summed up in the tables; here it becomes shares, means and ratios, by pure
//! functions. What would have happened is asked of a [`Laboratory`], which replays the journal
//! as it was, and first come first served and on demand: this crate knows that there is one, not how it works.

mod laboratory;
mod measures;
mod usage;

use era_api::report::{Measures, Simulated};
use era_core::units::Time;
use era_store::StoreError;
use era_store::tables::{HOUR_MS, Tables};

pub use laboratory::{Counterfactual, Laboratory, Replays, replays};
pub use measures::{MeasureSums, measures, report};
pub use usage::{MachineUsage, Shares};

/// A period of whole hours, but for its end, which is now at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportPeriod {
    pub from: Time,
    pub to: Time,
}

impl ReportPeriod {
    /// The whole hours around a period that have begun.
    pub fn around(from: Time, to: Time, now: Time) -> ReportPeriod {
        let hour = era_core::units::Span(HOUR_MS);
        ReportPeriod { from: from.floor_to(hour), to: to.ceil_to(hour).min(now.max(to)) }
    }
}

/// What machines had and gave out in a period.
pub async fn gathered(tables: &Tables, period: ReportPeriod) -> Result<MachineUsage, StoreError> {
    Ok(MachineUsage {
        period,
        hours: tables.node_hours(period.from, period.to).await?,
        open: tables.open_tasks().await?,
        spans: tables.node_spans(period.from, period.to).await?,
    })
}

/// The five measures as they were, and how much of them was only simulated.
pub async fn measured(
    tables: &Tables,
    period: ReportPeriod,
) -> Result<(Measures, Option<Simulated>), StoreError> {
    let sums = MeasureSums(tables.tallies(period.from, period.to).await?);
    let usage = gathered(tables, period).await?;
    let asleep = tables.simulated_nodes().await?;
    let jobs = tables.simulated_jobs(period.from, period.to).await?;
    let with = measures(&sums, usage.over(period).map(|shares| shares.value));
    Ok((with, usage.simulated(&asleep, jobs)))
}
