//! Jobs: what a user wants run, and what became of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;
use crate::quote::{Quote, Value};

/// Resources of one replica, as Kubernetes writes them: `{"cpu": "4", "memory": "16Gi",
/// "gpu": "1", "gpu.model": "h100", "gpu.memory": "40Gi"}`. Numbers are read too.
pub type Resources = BTreeMap<String, Quantity>;

/// An amount: a string such as `16Gi`, or a plain number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "an amount such as 2 or \"16Gi\"")]
pub enum Quantity {
    /// As text.
    Text(String),
    /// As a number.
    Number(f64),
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Quantity::Text(text) => f.write_str(text),
            Quantity::Number(number) => write!(f, "{number}"),
        }
    }
}

/// What a job needs, when it may run and where: the part of it that is priced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What each replica needs.
    #[serde(deserialize_with = "crate::reading::resources")]
    pub resources: Resources,
    /// How many replicas start together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Replicas>,
    /// A total of GPUs instead of replicas, split over nodes; `resources` go with each GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// How long it runs at most, in seconds.
    pub duration_s: u64,
    /// Not before; now where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    /// Finished by; the horizon where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Where it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Constraints>,
}

impl Ask {
    /// Whether all of the job is one task, now and later.
    pub fn is_one_task(&self) -> bool {
        let one = [None, Some(Replicas::Fixed(1)), Some(Replicas::Range { min: 1, max: 1 })];
        self.gpus.is_none() && one.contains(&self.replicas)
    }
}

/// A fixed number of replicas, or a range: `min` are promised, `max` is the limit of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Replicas {
    /// So many.
    Fixed(u32),
    /// An elastic job.
    Range {
        /// Promised.
        min: u32,
        /// At most.
        max: u32,
    },
}

/// Where a job may run. Empty means anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// Only in this pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Only in this domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Only on nodes with these labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// All replicas on one `node`, in one `rack` or in one `domain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same: Option<Topology>,
    /// At most so many replicas on a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_node_max: Option<u32>,
    /// Spread replicas over nodes rather than pack them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spread: bool,
}

/// How near to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// One machine.
    Node,
    /// One rack.
    Rack,
    /// One domain.
    Domain,
}

/// What is run: a command in an environment, with its code and data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Work {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The code: the hash of an uploaded tree, which becomes the working folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of secrets that it finds in its environment, with the values that they have when it
    /// starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Data sets that it sees, read-only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<WorkInput>,
    /// The image that it runs in, where the executor has images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Whether each replica has a terminal of its own, to which one can attach, rather than an
    /// output and no input. Where tasks are plain processes of the server's own machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
}

/// A data set as a job sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkInput {
    /// Its name, or `owner/name`.
    pub data: String,
    /// Where it appears in the working folder; `inputs/NAME` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Typed facts about a job that formulas and estimates may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Attributes {
    /// Such as `vision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Such as `pytorch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// Such as `resnet50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Parameters of the network, in thousands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_k: Option<u64>,
    /// Size of the data, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_mib: Option<u64>,
}

/// A job as it is handed in. With a `value` or a `hold` it is a bid; without either it waits in
/// a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is done for: spending is told by project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What is run.
    pub work: Work,
    /// What it needs, and when.
    pub ask: Ask,
    /// What it is worth: makes it a bid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The price that was quoted: the most that it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Credits>,
    /// A held quote that it takes; `ask` is then what was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// What happens when it needs longer than it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun: Option<Overrun>,
    /// The queue that it waits in without a promise; `default` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Whether it may be stopped for others, with grace, and started again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preemptible: bool,
    /// Whether idle GPUs may be taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release_when_idle: bool,
    /// The owner's own ranking of his jobs.
    #[serde(default)]
    pub priority: i32,
    /// Typed facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Attributes>,
    /// Many of the same: one job for each index. For queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Jobs that must be over first. For queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

/// What happens when a job needs longer than it said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// It goes on at the market price while there is room and money.
    #[default]
    Extend,
    /// It is told to stop one grace period before its promised end.
    Stop,
}

/// The indices of an array: `from`, `from + step`, … up to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// The first index.
    pub from: u32,
    /// The last index, or less.
    pub to: u32,
    /// From one to the next.
    #[serde(default = "one")]
    pub step: u32,
    /// At most so many run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

fn one() -> u32 {
    1
}

impl Array {
    /// How many jobs it makes; `None` where it makes none.
    pub fn count(&self) -> Option<u32> {
        (self.to >= self.from && self.step > 0).then(|| (self.to - self.from) / self.step + 1)
    }
}

/// A job that must be over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Which; the first job of an array stands for all of it.
    pub job: u64,
    /// How it must have ended.
    #[serde(default)]
    pub when: AfterWhen,
}

/// How a job must have ended for another to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterWhen {
    /// It succeeded.
    #[default]
    Ok,
    /// In any way.
    Any,
}

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Submitted {
    /// The job's number; of an array, the first one's. The others follow it.
    pub job: u64,
    /// How many jobs were made.
    pub count: u32,
    /// Price and slot, where it has a promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// In a queue.
    Waiting,
    /// It has a promise that has not begun.
    Promised,
    /// Its tasks were sent out.
    Starting,
    /// It runs.
    Running,
    /// It was told to stop.
    Stopping,
    /// Every task exited with 0.
    Succeeded,
    /// A task exited with another code.
    Failed,
    /// Its owner gave it up.
    Cancelled,
    /// Its owner gave back what was left.
    Released,
    /// Its time was over.
    LimitReached,
    /// The promise could not be kept.
    Broken,
}

impl JobState {
    /// Whether it is over.
    pub fn is_over(self) -> bool {
        use JobState::{Broken, Cancelled, Failed, LimitReached, Released, Succeeded};
        matches!(self, Succeeded | Failed | Cancelled | Released | LimitReached | Broken)
    }

    /// As it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Waiting => "waiting",
            JobState::Promised => "promised",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Released => "released",
            JobState::LimitReached => "limit_reached",
            JobState::Broken => "broken",
        }
    }
}

/// A job as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobSummary {
    /// Its number.
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
    /// What it was promised for, or has paid so far.
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
    /// Its index.
    pub index: u32,
}

/// A job with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Job {
    /// As lists show it.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// What was handed in.
    pub spec: NewJob,
    /// How it ended, in a sentence.
    pub reason: Option<String>,
    /// The same for whoever puts it in words of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How often it was tried.
    pub attempts: u32,
    /// Its tasks, newest attempt first.
    pub tasks: Vec<Task>,
    /// What it paid and got back.
    pub cost: Cost,
    /// Why it waits, or when it will run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Outcome {
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
pub struct Task {
    /// Which request of the bid.
    pub part: u16,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Which replica.
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
pub struct Explanation {
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
    /// When.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Which jobs are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct JobFilter {
    /// In one of these states, by comma; `active` stands for all that are not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Of this account; for those who may see others'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Of this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// In this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Of this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Whose name begins so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of this array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<u64>,
    /// One of these, by number and comma; at most 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<String>,
    /// Also say when those that wait are likely to start: dearer, for it plans them on paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<bool>,
    /// Submitted at or after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Submitted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
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
pub struct Extend {
    /// By how much, in seconds.
    pub by_s: u64,
    /// At most for this price.
    pub most: Credits,
}

/// One recorded value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MetricPoint {
    /// Its name, such as `loss`; what is used is named `usage/cpu`, `usage/memory`, `usage/gpu0`…
    pub name: String,
    /// The step that the job told; else a running number.
    pub step: u64,
    /// When.
    pub at: Timestamp,
    /// The value.
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
