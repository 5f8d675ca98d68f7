//! The rows that the projection writes and the queries read, as values.

use era_core::Event;
use era_core::units::{GroupId, JobId, NodeId, Time, UserId};
use era_spec::JobState;
use serde::{Deserialize, Serialize};

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    pub id: JobId,
    /// What people call it.
    pub name: Option<String>,
    pub account: UserId,
    /// What that account is called.
    pub account_name: String,
    /// The owner's group when it was accepted.
    pub team: GroupId,
    /// What that group is called.
    pub team_name: String,
    /// Where it stands.
    pub state: JobState,
    /// Its queue, without a promise.
    pub queue: Option<String>,
    /// When it was accepted.
    pub submitted: Time,
    pub promised_start: Option<Time>,
    /// The end that was promised.
    pub promised_finish: Option<Time>,
    /// When its newest attempt ran.
    pub started: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
    /// The first code other than 0, else 0 once it succeeded.
    pub exit_code: Option<i32>,
    /// What it was promised for, extensions included, or has paid for a queue, in millionths of a
    /// credit. What it has cost is [`JobRow::cost`].
    pub price: i64,
    /// What each replica needs, as a JSON object of texts.
    pub resources: String,
    /// How many replicas, or GPUs of a total.
    pub replicas: u32,
    /// How long it runs at most.
    pub duration_ms: i64,
    /// The first job of its array, and its index there.
    pub array: Option<(JobId, u32)>,
    /// Whether it ran on simulated nodes.
    pub simulated: bool,
    /// How it ended, in a sentence.
    pub reason: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
    pub charged: i64,
    /// Refunded and returned in all.
    pub refunded: i64,
    /// The journal's number of the last input that changed it.
    pub changed: u64,
    /// What it is done for, as its owner says.
    #[serde(default)]
    pub project: Option<String>,
}

impl JobRow {
    /// What it has cost, in millionths of a credit: all that was charged, less all that came back.
    pub fn cost(&self) -> i64 {
        self.charged - self.refunded
    }
}

/// One replica of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    pub job: JobId,
    /// Which request of its bid.
    pub part: u16,
    /// Which attempt, from 1.
    pub attempt: u32,
    pub rank: u32,
    /// On which node; unknown for growth beyond a promise.
    pub node: Option<NodeId>,
    /// Which of its GPUs, one bit each.
    pub gpus: u64,
    /// Thousandths of a core, MiB, thousandths of a GPU.
    pub units: [u64; 3],
    /// When it was sent out.
    pub launched: Time,
    /// When its first instruction ran.
    pub started: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
    /// Its exit code; absent if it was lost.
    pub exit_code: Option<i32>,
    /// What ended it, if not itself.
    pub cause: Option<String>,
    /// How long code and data took to be there.
    pub prepared_ms: Option<i64>,
}

/// Something that was decided, as the timeline and the stream have it.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// The journal's number of its input.
    pub seq: u64,
    pub place: u32,
    pub at: Time,
    /// What, as the journal calls it.
    pub kind: String,
    /// About which job.
    pub job: Option<JobId>,
    pub account: Option<UserId>,
    pub team: Option<GroupId>,
    /// The event itself; `None` where this version does not know it.
    pub event: Option<Event>,
}

/// One line of a wallet's statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementRow {
    pub account: UserId,
    /// The journal's number of the input that it follows from.
    pub seq: u64,
    pub place: u32,
    pub at: Time,
    /// About which job.
    pub job: Option<JobId>,
    pub reason: String,
    /// Above zero came in, below zero went out.
    pub amount: i64,
    /// What the wallet held then.
    pub balance: i64,
    /// Whether the job ran on simulated nodes.
    pub simulated: bool,
}

/// A bid or submission that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalRow {
    /// The journal's number of its input.
    pub seq: u64,
    pub at: Time,
    pub account: UserId,
    /// Why, for programs.
    pub code: String,
    /// Why, for people.
    pub sentence: String,
    /// The price that would have won.
    pub price: Option<i64>,
}

/// A machine, as rows name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub id: NodeId,
    pub name: String,
    pub pool: String,
    /// The model of its GPUs.
    pub model: Option<String>,
    /// Whether its tasks only sleep.
    pub simulated: bool,
}

/// A stretch of time in which a machine was there with this capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpan {
    pub node: NodeId,
    pub since: Time,
    /// Until when; still, where nothing is said.
    pub until: Option<Time>,
    /// Thousandths of a core, MiB, thousandths of a GPU.
    pub units: [u64; 3],
}
