//! The laboratory behind the server: simulations, replays and tuning runs.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::queue::Rule;

/// What is to be tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LabAsk {
    /// A made-up workload under several policies.
    Simulate {
        /// Policies, such as `fifo`, `sjf` or `formula:wait - 2 * gpus`.
        policies: Vec<String>,
        /// How many jobs.
        jobs: u64,
        /// On how many GPUs, in nodes of 8.
        gpus: u32,
        /// Work offered, as a share of what they can do.
        load: f64,
        /// Another seed, another workload.
        seed: u64,
    },
    /// This site's own history under another rule.
    Replay {
        /// Order every queue by this policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<String>,
        /// Set prices by this mechanism.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mechanism: Option<String>,
    },
    /// A better formula, searched on this site's own history.
    Tune {
        /// What is to be made small, such as `mean_wait_s + 0.1 * p99_wait_s`.
        objective: String,
        /// How many candidates are tried.
        budget: u32,
        /// The same seed finds the same.
        seed: u64,
    },
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabState {
    /// Others are ahead of it.
    Waiting,
    Running,
    /// Its result can be read.
    Done,
    /// It failed; the problem says why.
    Failed,
    /// Somebody gave it up.
    Cancelled,
}

/// A run of the laboratory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LabRun {
    pub id: u64,
    /// What is tried.
    pub asked: LabAsk,
    /// Who asked; nobody where the server tunes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Timestamp,
    /// Where it stands.
    pub state: LabState,
    /// How much of it is done, from 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether that is because the server was stopped meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What it found, as the command line prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub result: Option<serde_json::Value>,
    /// Whether there is a page of charts.
    #[serde(default)]
    pub report: bool,
    /// The policy that it proposes, for review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposes: Option<Rule>,
}
