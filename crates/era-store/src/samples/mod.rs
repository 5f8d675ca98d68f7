//! What jobs told and used: values by job, name and replica.
//!
//! Values are appended in batches and never changed. Storage is bounded in three ways: a series
//! that grows beyond [`POINTS_PER_SERIES_MAX`] is thinned to half, by the same choice that charts
//! are drawn with; a job has at most [`SERIES_PER_JOB_MAX`] series, and what is told beyond them
//! is counted and dropped; and [`Samples::keep_at_most`] forgets whole jobs, the longest silent
//! ones first.
//!
//! What a name means, and who may read it, is not known here.

mod append;
mod mean;
mod read;
mod retain;
mod thin;

use era_core::units::{JobId, Time};

use crate::Database;

pub use append::Appended;
pub use mean::Mean;
pub use read::{Follow, SampleSeries, SeriesAsk, SeriesSummary};
pub use thin::thin;

/// Most values that are kept of one series.
pub const POINTS_PER_SERIES_MAX: usize = 16_384;
/// Most series of one job.
pub const SERIES_PER_JOB_MAX: usize = 4096;
/// Longest name.
pub const NAME_BYTES_MAX: usize = 255;

/// A value of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSample {
    pub job: JobId,
    /// Which request of its bid.
    pub part: u16,
    pub rank: u32,
    pub name: String,
    pub step: u64,
    pub at: Time,
    pub value: f64,
}

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Its place in the order of arrival.
    pub number: u64,
    pub step: u64,
    pub at: Time,
    pub value: f64,
}

/// Values that jobs told and used. A clone shares.
#[derive(Clone)]
pub struct Samples {
    database: Database,
}

impl Samples {
    /// Values that are kept in a database.
    pub fn new(database: Database) -> Samples {
        Samples { database }
    }
}

/// Part and rank as one number.
fn replica(part: u16, rank: u32) -> i64 {
    i64::from(part) << 32 | i64::from(rank)
}

fn part_and_rank(replica: i64) -> (u16, u32) {
    let rank = u32::try_from(replica & i64::from(u32::MAX)).unwrap_or(u32::MAX);
    (u16::try_from(replica >> 32).unwrap_or(u16::MAX), rank)
}

/// Numbers as databases keep them. What comes from outside is within range: steps are checked.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn loaded(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
