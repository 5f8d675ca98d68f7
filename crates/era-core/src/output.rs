//! What comes out of a step: events for the journal, effects for the executors, and an answer.

use serde::{Deserialize, Serialize};

use crate::calendar::Seat;
use crate::job::{Outcome, Plan, StopReason, TaskId};
use crate::ledger::Posting;
use crate::offer::{CounterOffers, Quote};
use crate::refusal::Refusal;
use crate::resources::Resources;
use crate::units::{HoldId, JobId, Money, Name, NodeId, Time, UserId};

/// All that a step gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// What was decided, in order.
    pub events: Vec<Event>,
    /// What is to be done outside.
    pub effects: Vec<Effect>,
    /// The answer to whoever asked.
    pub reply: Reply,
}

/// The answer to an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Done,
    /// A job was accepted.
    Accepted {
        /// Its number; the first one's, where there are several.
        job: JobId,
        /// Its price and slot, where it has a promise.
        quote: Option<Quote>,
        /// How many jobs, with numbers that follow one another.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u32,
    },
    /// A hold binds.
    Held {
        hold: HoldId,
        expires: Time,
        /// Price and slot.
        quote: Quote,
    },
    /// Nodes have joined.
    Joined {
        /// Their numbers, in the order given.
        nodes: Vec<NodeId>,
    },
    /// A report that came too late, or twice, and changed nothing.
    Ignored,
    /// No, and what would be possible instead.
    Refused {
        refusal: Refusal,
        /// What would be possible.
        counter: Box<CounterOffers>,
    },
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// What was decided: with the input that it follows from, enough to keep every table outside up
/// to date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// An input was refused.
    Refused {
        refusal: Refusal,
    },
    /// A bid was refused: demand that a forecast wants to know of.
    BidDeclined {
        user: UserId,
        price: Option<Money>,
    },
    /// A bid became a promise.
    Promised {
        job: JobId,
        user: UserId,
        price: Money,
        parts: Vec<Plan>,
    },
    /// A job went into a queue, or as many as are counted, with numbers that follow one another.
    Queued {
        job: JobId,
        user: UserId,
        queue: Name,
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u32,
    },
    /// All that these jobs waited for is over as they asked.
    Ready {
        jobs: Vec<JobId>,
    },
    /// A quote was made binding.
    Held {
        hold: HoldId,
        user: UserId,
        price: Money,
        expires: Time,
    },
    /// A hold is over: it was accepted, given up, or it expired.
    HoldEnded {
        hold: HoldId,
    },
    /// A promise's replica moved to another seat. Its start is as it was.
    Moved {
        job: JobId,
        part: u16,
        rank: u32,
        from: Seat,
        to: Seat,
    },
    /// A held quote's replica moved to another seat.
    HoldMoved {
        hold: HoldId,
        part: u16,
        rank: u32,
        to: Seat,
    },
    /// Tasks were sent out.
    Launched {
        job: JobId,
        part: u16,
        attempt: u32,
        plan: Plan,
    },
    /// All tasks of an attempt run.
    Running {
        job: JobId,
        part: u16,
        attempt: u32,
    },
    /// A part was told to stop.
    Stopping {
        job: JobId,
        part: u16,
        attempt: u32,
        why: StopReason,
        until: Time,
    },
    /// A task ended.
    TaskEnded {
        task: TaskId,
        code: Option<i32>,
    },
    /// A part is over.
    PartDone {
        job: JobId,
        part: u16,
    },
    /// Queue work goes back to its queue, with its age and its checkpoint.
    Requeued {
        job: JobId,
        not_before: Time,
    },
    /// A promise was re-planned within its window because hardware was lost.
    Replanned {
        job: JobId,
        part: u16,
        plan: Plan,
    },
    /// A promise could not be kept.
    Broken {
        job: JobId,
        reason: String,
    },
    /// A running promise lasts longer.
    Extended {
        job: JobId,
        part: u16,
        to: Time,
        price: Money,
    },
    /// An elastic job has another number of replicas.
    Resized {
        job: JobId,
        part: u16,
        replicas: u32,
    },
    /// A job is over.
    Ended {
        job: JobId,
        outcome: Outcome,
        /// When, where that was before anybody could tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
    },
    Posted {
        job: Option<JobId>,
        posting: Posting,
    },
    /// A job or hold was changed by its owner.
    Edited {
        job: JobId,
    },
    /// A checkpoint was recorded.
    Checkpointed {
        job: JobId,
        part: u16,
        done_ms: i64,
    },
    /// Idle GPUs were reported.
    IdleReported {
        job: JobId,
        released: bool,
    },
    /// A report was ignored: it is of an older attempt, or says what is known.
    Ignored {
        task: TaskId,
    },
    /// Nodes joined, left or changed.
    NodesChanged {
        nodes: Vec<NodeId>,
    },
    /// A pool, domain, queue, policy, account or rule changed.
    Changed {
        what: Name,
        name: Option<Name>,
    },
    /// Ended jobs were forgotten.
    Forgotten {
        jobs: Vec<JobId>,
    },
}

/// What is to be done outside. Each can be found again in the state until it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Start a task.
    Launch {
        task: TaskId,
        node: NodeId,
        /// Which of its GPUs.
        gpus: Vec<u8>,
        each: Resources,
        /// How many replicas its gang has.
        replicas: u32,
        /// When its guard ends it, whatever happens.
        until: Time,
    },
    /// Stop a task: signal now, end at `until`.
    Stop {
        task: TaskId,
        node: NodeId,
        /// When it is killed.
        until: Time,
        why: StopReason,
    },
    /// Let a running task run longer than its launch said.
    Prolong {
        task: TaskId,
        node: NodeId,
        /// When its guard ends it from now on.
        until: Time,
    },
    /// Tell a running gang how many replicas it has now.
    Resize { job: JobId, part: u16, attempt: u32, replicas: u32 },
    /// Tell a user.
    Notify {
        user: UserId,
        /// About which job.
        job: JobId,
        news: News,
    },
}

/// What users are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    Started,
    /// It is over.
    Ended,
    /// Its promise was broken and refunded.
    Broken,
    /// Its promise was re-planned.
    Replanned,
    /// It gave way and waits again.
    Preempted,
    /// Its GPUs are idle.
    Idle,
}
