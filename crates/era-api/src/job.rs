//! Jobs: what a user wants run, and what became of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::quote::QuoteView;
use crate::{Credits, Problem};

pub use era_spec::{
    AfterSpec, AfterWhen, ArraySpec, Ask, AttributesSpec, ConstraintsSpec, JobSpec, JobState,
    OverrunSpec, Quantity, Replicas, ResourcesSpec, TopologySpec, Work, WorkInput,
};

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Submitted {
    /// The job's number; of an array, the first one's. The others follow it.
    pub job: u64,
    /// How many jobs were made.
    pub count: u32,
    /// Price and slot, where it has a promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<QuoteView>,
    /// The job whose checkpoints it begins with, where it was handed in in the place of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints_of: Option<u64>,
}

impl Submitted {
    /// The path at which the job is found.
    pub fn location(&self) -> String {
        format!("{}/jobs/{}", crate::PREFIX, self.job)
    }
}

/// A job that is being written, as the server understands it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobChecked {
    /// The job as it would be handed in, with what its owner leaves open. What cannot be read is
    /// left out.
    pub job: JobSpec,
    /// Whether it asks for a promise, which has a price: a quote tells it, and whether there is
    /// room. Else it waits in a queue.
    pub bid: bool,
    /// What all of it costs at most where it waits in a queue; it pays for what it uses. Nothing
    /// where no node could run it, or something is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Credits>,
    /// All that it would be refused for, whatever it costs and whoever else books. None where
    /// nothing is wrong.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

/// A job as it would be handed in again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Again)]
pub struct Resubmission {
    /// The same work on terms that hold now: a window that has passed begins now and is as long as
    /// it was. It has a value only where its owner said one: what it cost then is none.
    pub job: JobSpec,
    /// Whether it asks for a promise, which has a price. Else it waits in a queue and pays for what
    /// it uses.
    pub promise: bool,
}

/// What giving up a job would bring back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Refund {
    /// What comes back to its owner's wallet.
    pub back: Credits,
    /// What stays paid, for what was used and by the rules.
    pub kept: Credits,
    /// Whether something of it runs: the longer that takes to stop, the less comes back.
    pub runs: bool,
}

/// A job as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobSummary {
    pub id: u64,
    /// What people call it.
    pub name: Option<String>,
    /// Whose: the account's name.
    pub user: String,
    /// The owner's group.
    pub group: String,
    /// Where it stands.
    pub state: JobState,
    /// Its queue, without a promise.
    pub queue: Option<String>,
    /// When it was accepted.
    pub submitted: Timestamp,
    /// The start that was promised.
    pub promised_start: Option<Timestamp>,
    /// The end that was promised.
    pub promised_finish: Option<Timestamp>,
    /// When it is likely to start, of one that waits, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely_start: Option<Timestamp>,
    /// When its newest attempt ran.
    pub started: Option<Timestamp>,
    /// When it was over.
    pub ended: Option<Timestamp>,
    /// The code of the first task that exited with another than 0, else 0 once it succeeded.
    pub exit_code: Option<i32>,
    /// What it costs: all that was charged or set aside for it so far, less all that came back.
    pub price: Credits,
    /// What each replica needs.
    pub resources: BTreeMap<String, String>,
    /// How many replicas, or GPUs of a total.
    pub replicas: u32,
    /// How long it runs at most.
    pub duration_s: u64,
    /// The array that it belongs to (its first job), and its index there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayPlace>,
    /// Whether it ran on simulated nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// What it is done for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// A job's place in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ArrayPlace {
    /// The first job of the array.
    pub array: u64,
    pub index: u32,
}

/// A job with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// As lists show it.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// What was handed in.
    pub spec: JobSpec,
    /// How it ended, in a sentence.
    pub reason: Option<String>,
    /// The same for whoever puts it in words of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeView>,
    /// How often it was tried.
    pub attempts: u32,
    /// Its tasks, newest attempt first.
    pub tasks: Vec<TaskView>,
    /// What it paid and got back.
    pub cost: Cost,
    /// Why it waits, or when it will run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationView>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Outcome)]
pub struct OutcomeView {
    /// `succeeded`, `failed`, `out_of_memory`, `out_of_disk`, `not_started`, `cancelled`,
    /// `unfulfilled`, `released`, `limit_reached` or `broken`.
    pub code: String,
    /// What it says besides: the exit `code`, or the `job` that had to succeed first.
    #[serde(default, skip_serializing_if = "crate::Parameters::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub parameters: crate::Parameters,
}

/// One replica of one attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Task)]
pub struct TaskView {
    /// Which request of the bid.
    pub part: u16,
    /// Which attempt, from 1.
    pub attempt: u32,
    pub rank: u32,
    /// On which node, by name.
    pub node: String,
    /// Which of its GPUs.
    pub gpus: Vec<u8>,
    /// When it was sent out.
    pub launched: Timestamp,
    /// When its first instruction ran.
    pub started: Option<Timestamp>,
    /// When it was over.
    pub ended: Option<Timestamp>,
    /// Its exit code; absent if it was lost.
    pub exit_code: Option<i32>,
    /// What ended it, if not itself: `out_of_memory`, `out_of_disk`, `stopped`,
    /// `lost`, `drained`, `limit`, `not_started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether it only slept, on a simulated node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// How many jobs are in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobCounts {
    /// By state, for each that was asked for.
    pub counts: BTreeMap<String, u64>,
    /// States of which there are as many or more: counting stops at 100,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<JobState>,
}

/// Which jobs are counted, of those that the caller may see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct JobCountFilter {
    /// In one of these states, by comma; `active` stands for all that are not over, `over` for the
    /// others.
    pub state: Option<String>,
    /// Of this account; for those who may see others'.
    pub user: Option<String>,
}

/// What a job paid and got back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Cost {
    /// Charged in all.
    pub charged: Credits,
    /// Refunded and returned in all.
    pub refunded: Credits,
    /// What it has cost.
    pub net: Credits,
}

/// Why a job waits, or when it will run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView {
    /// `promised`, `running`, `waiting` or `ended`.
    pub state: String,
    /// The same in a sentence.
    pub sentence: String,
    /// 1 for the next one of its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The code of the reason why it does not start now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the reason says besides its code, for whoever puts it in words of their own.
    #[serde(default, skip_serializing_if = "crate::Parameters::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub parameters: crate::Parameters,
    /// When it starts or is likely to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// At the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// At the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    /// Jobs just ahead of it, the next one first; others' without their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<u64>,
}

/// One line of a job's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TimelineLine {
    /// The journal's number of the input that it follows from.
    pub seq: u64,
    pub at: Timestamp,
    /// What, as the journal calls it.
    pub event: String,
    /// The same in a sentence.
    pub sentence: String,
    /// What it says besides, for whoever puts it in words of their own: money in millionths of a
    /// credit, instants and spans in milliseconds, machines by name.
    #[serde(default, skip_serializing_if = "crate::Parameters::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub parameters: crate::Parameters,
    /// Whether its tasks only slept from then on, on simulated nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// Which lines of a timeline are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct TimelineFilter {
    /// Of one of these kinds, by comma, such as `promised` or `running`.
    pub event: Option<String>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// Which jobs are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct JobFilter {
    /// In one of these states, by comma; `active` stands for all that are not over, `over` for the
    /// others.
    pub state: Option<String>,
    /// Of this account; for those who may see others'.
    pub user: Option<String>,
    /// Of this group.
    pub group: Option<String>,
    /// In this queue.
    pub queue: Option<String>,
    /// Of this project.
    pub project: Option<String>,
    /// Whose name begins so.
    pub name: Option<String>,
    /// Of this array.
    pub array: Option<u64>,
    /// One of these, by number and comma; at most 100.
    pub ids: Option<String>,
    /// Also say when those that wait are likely to start: dearer, for it plans them on paper.
    pub likely: Option<bool>,
    /// Submitted at or after.
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// A change of a waiting job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobEdit {
    /// Its new priority.
    pub priority: Option<i32>,
    /// Its new enforced limit, in seconds.
    pub duration_s: Option<u64>,
    /// Its new queue.
    pub queue: Option<String>,
}

/// More time for a running reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Extend)]
pub struct Extension {
    /// By how much, in seconds.
    pub by_s: u64,
    /// At most for this price.
    pub most: Credits,
}

/// Which lines of a log are wanted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams,
)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LogFilter {
    /// From this offset: `next` of the line before. From the first line that is kept where
    /// nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Most lines, up to 1000. Not for a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Only so many of the last lines, up to 1000, instead of those from an offset. Not for a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub last: Option<u32>,
    /// Of this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Of this replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// `json` for a page, `text` for all of it as it was printed.
    #[serde(default, skip_serializing_if = "LogFormat::is_json")]
    #[param(inline)]
    pub format: LogFormat,
}

/// How a log is given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines, in pages.
    #[default]
    Json,
    /// As it was printed.
    Text,
}

impl LogFormat {
    /// Whether it is what is given out where nothing is said.
    fn is_json(&self) -> bool {
        *self == LogFormat::Json
    }
}

/// Which recorded values are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct MetricFilter {
    /// Of these names, by comma; of all where nothing is said.
    pub names: Option<String>,
    /// At most so many of each name and replica, from 1 to 10000: the first, the last, and of
    /// equal stretches in between the lowest and the highest, so that no peak is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10000)]
    pub points: Option<u32>,
    /// Of this replica.
    pub rank: Option<u32>,
    /// From this step on.
    pub step_from: Option<u64>,
    /// Up to and with this step.
    pub step_to: Option<u64>,
}

/// Where a job stands, and how it ended once it has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobStatus {
    pub job: u64,
    #[serde(flatten)]
    pub explanation: ExplanationView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeView>,
    /// Its exit code, once it has ended with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// One recorded value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MetricPoint {
    /// Its name, such as `loss`; what is used is named `usage/cpu`, `usage/memory`, `usage/gpu0`…
    pub name: String,
    /// The step that the job told; else a running number.
    pub step: u64,
    pub at: Timestamp,
    pub value: f64,
    /// Of which replica.
    pub rank: u32,
}

/// One line of a job's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogLine {
    /// The offset of what follows it: where to go on from.
    pub next: u64,
    /// When it was printed.
    pub at: Timestamp,
    /// Of which attempt.
    pub attempt: u32,
    /// Of which replica.
    pub rank: u32,
    /// `out` or `err`.
    pub stream: String,
    /// The line, without its end. What is not UTF-8 is replaced.
    pub text: String,
    /// Whether the line goes on in the next one of its stream: it was very long, or was shown
    /// before its end had come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}
