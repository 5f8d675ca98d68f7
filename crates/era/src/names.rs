//! The names that values of the core and of the laboratory have on the command line, for every
//! command that takes them.

use clap::ValueEnum;
use era_core::settings::Backfill;
use era_sim::run::StatedDurations;

/// How long jobs are said to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EstimatesName {
    /// As long as they do
    Exact,
    /// The smallest usual limit that covers it
    Bucket,
    /// As the trace says, or as long as they do where it does not
    Stated,
    /// As learned from the jobs that have ended; the limit is the stated or the usual one
    Predicted,
}

impl From<EstimatesName> for StatedDurations {
    fn from(name: EstimatesName) -> StatedDurations {
        match name {
            EstimatesName::Exact => StatedDurations::Exact,
            EstimatesName::Bucket => StatedDurations::Bucket,
            EstimatesName::Stated => StatedDurations::Stated,
            EstimatesName::Predicted => StatedDurations::Predicted,
        }
    }
}

/// How jobs may start around what waits ahead of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackfillName {
    /// Strictly in order
    None,
    /// What does not delay the first that waits
    Easy,
    /// What delays none that waits ahead
    Conservative,
}

impl From<BackfillName> for Backfill {
    fn from(name: BackfillName) -> Backfill {
        match name {
            BackfillName::None => Backfill::None,
            BackfillName::Easy => Backfill::Easy,
            BackfillName::Conservative => Backfill::Conservative,
        }
    }
}
