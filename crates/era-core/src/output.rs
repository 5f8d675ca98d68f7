//! What comes out of a step: events for the journal, effects for the executors, and an answer.

use serde::{Deserialize, Serialize};

use crate::event::{Event, is_one, one};
use crate::job::{StopReason, TaskId};
use crate::offer::{CounterOffers, Quote};
use crate::refusal::Refusal;
use crate::resources::Resources;
use crate::units::{HoldId, JobId, NodeId, Time, UserId};

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

/// What is to be done outside. Each can be found again in the state until it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Start a task.
    Launch {
        task: TaskId,
        node: NodeId,
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
        #[serde(rename = "news")]
        notification: Notification,
    },
}

/// What users are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notification {
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
