//! Queues and the policies that order them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where jobs without a promise wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Queue)]
pub struct QueueView {
    pub name: String,
    /// Its level: lower ones are served first.
    #[serde(default)]
    pub level: u8,
    /// The policy that orders it.
    pub policy: String,
    /// The part of the cluster that it may use while others wait, 0 to 1.
    #[serde(default = "whole")]
    pub share: f64,
    /// Whether it may use more than that while nobody else wants it.
    #[serde(default = "yes")]
    pub borrows: bool,
    /// Whether jobs that it ranks higher may preempt those that allow it.
    #[serde(default)]
    pub preempts: bool,
    /// Whether a job that has waited for long goes ahead of all others.
    #[serde(default = "yes")]
    pub ages: bool,
    /// Most jobs that may wait.
    #[serde(default = "million")]
    pub waiting_max: u32,
    /// Most jobs that may run.
    #[serde(default = "million")]
    pub running_max: u32,
    /// Most GPUs that its jobs may hold at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_max: Option<f64>,
    /// How many wait. Ignored when a queue is put.
    #[serde(default)]
    pub waiting: u32,
    /// How many run. Ignored when a queue is put.
    #[serde(default)]
    pub running: u32,
}

fn whole() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

fn million() -> u32 {
    1_000_000
}

/// Which queues are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct QueueFilter {
    /// Whose name has this in it.
    pub search: Option<String>,
    /// Ordered by this policy.
    pub policy: Option<String>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Policy {
    pub name: String,
    /// The version in force.
    pub version: u32,
    /// What it says.
    pub rule: Rule,
    /// Versions that can be gone back to.
    pub versions: Vec<u32>,
}

/// A version of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PolicyVersion {
    /// Its number, from 1.
    pub version: u32,
    /// What it says.
    pub rule: Rule,
    /// Whether it is the one in force.
    pub in_force: bool,
}

/// A job that waits in a queue. Of those that the caller may not see only number and position are
/// told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Waiter {
    /// The job's number.
    pub job: u64,
    /// 1 for the next one; 0 while it waits for other jobs.
    pub position: u32,
    /// The job, where the caller may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<WaiterAbout>,
    /// Why it waits and when it is likely to start, where the caller may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<crate::job::ExplanationView>,
}

/// What is told of a job that waits to those who may see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaiterAbout {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whose: the account's name.
    pub user: String,
    /// When it was accepted.
    pub submitted: Timestamp,
    /// How many GPUs it asks for in all, where any.
    pub gpus: f64,
    /// How many replicas.
    pub replicas: u32,
    /// How long it runs at most.
    pub duration_s: u64,
}

/// Who goes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `fifo`, `sjf`, `srtf`, `las`, `gittins`, `fair-share` or `priority`.
    pub order: String,
    /// For `priority`: the formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// For `las`: rising limits in GPU-seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<u64>,
}

/// A formula that is to be checked, and perhaps tried on a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleCheck {
    pub rule: Rule,
    /// The queue whose order it would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RuleChecked {
    /// Whether it can be published.
    pub ok: bool,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The code of what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it says besides its code, for whoever puts it in words of their own.
    #[serde(default, skip_serializing_if = "crate::Parameters::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub parameters: crate::Parameters,
    /// At which character, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u32>,
    /// The names that a formula may use.
    pub names: Vec<String>,
    /// The queue's first jobs as they stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_now: Vec<u64>,
    /// And as they would stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_then: Vec<u64>,
    /// The jobs of both, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Waiter>,
}

/// Which version is put in force again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    pub version: u32,
}

/// A version of a policy that tuning proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Proposal {
    pub id: u64,
    /// When it was made.
    pub at: Timestamp,
    pub policy: String,
    /// What it would say.
    pub rule: Rule,
    /// What it gained on a span that it never saw, in words.
    pub gain: String,
    /// By which share it is better than the rule in force where it learned.
    pub gain_train: f64,
    /// And on later work, which it never saw.
    pub gain_test: f64,
}
