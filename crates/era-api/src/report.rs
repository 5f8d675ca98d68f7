//! The five measures that the platform is judged by, with and without ERA.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;

/// The measures over a period, and beside each the same period without ERA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Report {
    pub from: Timestamp,
    pub to: Timestamp,
    pub with: Measures,
    /// How much of it was only simulated; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// The same period replayed on the laboratory's core as it was. How far it is from `with` is
    /// the error of the method, by which `without` may be off, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Measures>,
    /// The same work first come first served on demand, replayed on the laboratory's core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Measures>,
    /// `with` divided by `without`, measure by measure, where both are known and `replayed`
    /// reproduces `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratios>,
    /// Measures whose ratio is withheld, since `replayed` is more than a tenth off `with`: a method
    /// that does not reproduce what happened cannot say what would have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<Measure>,
}

/// How far `replayed` may be off `with`, as a share of it, for a ratio to be told.
pub const REPRODUCED_WITHIN: f64 = 0.1;

/// Whether a replay of the rules that were in force reproduces a measure.
pub fn is_reproduced(with: f64, replayed: f64) -> bool {
    (replayed - with).abs() <= REPRODUCED_WITHIN * with.abs()
}

/// A measure that has a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Start-up time in all.
    StartUp,
    /// Start success at the first attempt.
    StartFirst,
    /// Start success at the first or second attempt.
    StartSecond,
    RunSuccess,
    Utilisation,
    UnitCost,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 6] = [
        Measure::StartUp,
        Measure::StartFirst,
        Measure::StartSecond,
        Measure::RunSuccess,
        Measure::Utilisation,
        Measure::UnitCost,
    ];

    /// What it is; nothing where it is not known.
    pub fn of(self, measures: &Measures) -> Option<f64> {
        match self {
            Measure::StartUp => measures.start_up.total_s,
            Measure::StartFirst => measures.start_first,
            Measure::StartSecond => measures.start_second,
            Measure::RunSuccess => measures.run_success,
            Measure::Utilisation => measures.utilisation,
            Measure::UnitCost => measures.unit_cost.map(|Credits(micro)| micro as f64),
        }
    }

    pub fn ratio(self, ratios: &mut Ratios) -> &mut Option<f64> {
        match self {
            Measure::StartUp => &mut ratios.start_up,
            Measure::StartFirst => &mut ratios.start_first,
            Measure::StartSecond => &mut ratios.start_second,
            Measure::RunSuccess => &mut ratios.run_success,
            Measure::Utilisation => &mut ratios.utilisation,
            Measure::UnitCost => &mut ratios.unit_cost,
        }
    }
}

/// How much of a period was only simulated. The measures have it in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Simulated {
    /// Jobs that were submitted in the period and whose tasks only slept.
    pub jobs: u64,
    /// Simulated nodes that were there.
    pub nodes: u64,
    /// The share that they had in all core-hours given out, 0 to 1.
    pub share: Option<f64>,
}

/// The five measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Measures {
    /// Jobs that were submitted in the period.
    pub jobs: u64,
    /// From a submission to its first instruction, by stage, in seconds.
    pub start_up: Stages,
    /// The share of starts that succeeded at the first attempt.
    pub start_first: Option<f64>,
    /// And at the first or second.
    pub start_second: Option<f64>,
    /// Starts that failed by the system's fault.
    pub system_faults: u64,
    /// Bids and submissions that were refused.
    pub refusals: u64,
    /// The share of ended runs that succeeded.
    pub run_success: Option<f64>,
    /// By the formula, over the period.
    pub utilisation: Option<f64>,
    /// Paid for a GPU-hour delivered.
    pub unit_cost: Option<Credits>,
    /// The same for each model of GPU.
    pub unit_cost_by_model: Vec<(String, Credits)>,
}

/// Start-up time by stage: means, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Stages {
    /// To answer a quote.
    pub quote_s: Option<f64>,
    /// From the submission to its acceptance.
    pub accept_s: Option<f64>,
    /// Waiting: in a queue, or for the promised start.
    pub queue_s: Option<f64>,
    /// Preparing code and data.
    pub prepare_s: Option<f64>,
    /// Starting the process.
    pub start_s: Option<f64>,
    pub total_s: Option<f64>,
}

/// One number for each measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Ratios {
    /// Of the start-up times in all.
    pub start_up: Option<f64>,
    /// Of start success at the first attempt.
    pub start_first: Option<f64>,
    /// Of start success at the first or second attempt.
    pub start_second: Option<f64>,
    /// Of run success.
    pub run_success: Option<f64>,
    pub utilisation: Option<f64>,
    /// Of unit costs.
    pub unit_cost: Option<f64>,
}
