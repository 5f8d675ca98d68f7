//! Everything that can happen to the core: one closed enum, in a stable serialisation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::accounts::{Actor, Group, User};
use crate::bid::{Attributes, Bid, Request};
use crate::cluster::{Domain, Pool};
use crate::estimate::Estimates;
use crate::forecast::Forecast;
use crate::job::{After, Overrun, QueueTerms, TaskId};
use crate::market::MarketRules;
use crate::queue::{PolicyRule, Queue};
use crate::quota::Quota;
use crate::refusal::{QuotaScope, Refusal};
use crate::resources::Capacity;
use crate::settings::Settings;
use crate::units::{HoldId, JobId, Money, Name, NodeId, Span, Time, Title, UserId};

/// Something that happens, at a place in the order of all things that happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One more than the last one's.
    pub seq: u64,
    /// When. An instant before the last one's counts as that one's.
    pub at: Time,
    pub command: Command,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(clippy::large_enum_variant)] // commands live one at a time
pub enum Command {
    // Users.
    /// A job is handed in.
    Submit {
        /// Makes a repeated submission harmless.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Name>,
        job: NewJob,
    },
    /// A quote is made binding for a while.
    Hold {
        /// Makes a repetition harmless.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Name>,
        bid: Bid,
    },
    /// A hold is given up.
    DropHold {
        hold: HoldId,
        by: Actor,
    },
    /// A job is given up, whatever it does.
    Cancel {
        job: JobId,
        by: Actor,
    },
    /// All that is left of an array is given up.
    CancelArray {
        job: JobId,
        by: Actor,
    },
    /// What is left of a running reservation is given back.
    Release {
        job: JobId,
        by: Actor,
    },
    /// A running reservation is to last longer.
    Extend {
        job: JobId,
        by: Actor,
        /// By how much.
        span: Span,
        /// At most for this price.
        most: Money,
    },
    /// A waiting job is changed.
    Edit {
        job: JobId,
        by: Actor,
        /// Its new priority.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<i32>,
        /// Its new enforced limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Span>,
        /// Its new queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<Name>,
    },

    // Executors.
    /// A task runs.
    Started {
        task: TaskId,
    },
    /// A task is over.
    Exited {
        task: TaskId,
        code: i32,
        /// When, as its executor knows it: the word may come much later, or before time goes on
        /// after the scheduler was away. It counts from the launch of its attempt until the end of
        /// its plan, or until this input; without it, this input does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Time>,
    },
    /// A task is gone through no fault of its own, and certainly runs no more.
    TaskLost {
        task: TaskId,
        reason: Name,
    },
    /// A job saved its work.
    Checkpointed {
        /// Any task of the attempt.
        task: TaskId,
        /// How much of its duration need not be run again.
        done: Span,
    },
    /// A job's use of its resources crossed a threshold.
    UsageCrossed {
        /// Any task of the attempt.
        task: TaskId,
        threshold: Threshold,
    },

    // The cluster.
    Join {
        nodes: Vec<NewNode>,
    },
    /// A node leaves for good. Only when nothing runs there and its promises fit elsewhere.
    Leave {
        node: NodeId,
    },
    /// A node takes nothing new; its promises move where they can. What runs there may finish, or
    /// is told to stop at a time and goes on elsewhere.
    Drain {
        node: NodeId,
        /// When whatever still runs or is promised there has to go elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_at: Option<Time>,
    },
    /// A node takes nothing new; what runs or is promised there stays.
    Cordon {
        node: NodeId,
    },
    /// A node takes work again: it was cordoned or draining, or lost and came back.
    Resume {
        node: NodeId,
    },
    /// A node is cut off or dead.
    Lost {
        node: NodeId,
    },
    /// A node has more or less than before. What no longer fits is lost as with the node.
    SetCapacity {
        node: NodeId,
        /// What it has now.
        capacity: Capacity,
    },
    /// A node is changed in several ways at once: in all of them, or, where one is refused, in none.
    EditNode {
        node: NodeId,
        /// In the order in which they are made.
        changes: Vec<NodeChange>,
    },
    /// A node will be away. Promises move, or it is refused.
    SetMaintenance {
        node: NodeId,
        /// When, in order.
        windows: Vec<(Time, Time)>,
    },
    /// A node joins or leaves a domain.
    SetDomain {
        node: NodeId,
        /// Its domain from now on.
        domain: Option<Name>,
    },
    /// A pool is created or changed.
    PutPool {
        pool: Pool,
    },
    /// A domain is created or changed.
    PutDomain {
        domain: Domain,
    },
    /// An empty domain is removed.
    RemoveDomain {
        name: Name,
    },

    // The house.
    /// A group is created or changed.
    PutGroup {
        group: Group,
    },
    /// A user is created or changed.
    PutUser {
        user: User,
    },
    /// A quota is set: by an administrator, by a group administrator who divides the group's, or
    /// by a billing rule.
    SetQuota {
        /// On whose authority.
        by: Actor,
        scope: QuotaScope,
        quota: Quota,
        /// Why, in a word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Name>,
    },
    /// Credits are given to a user.
    Grant {
        user: UserId,
        amount: Money,
    },
    /// Credits are taken from a user.
    Withdraw {
        user: UserId,
        amount: Money,
    },
    /// A queue is created or changed.
    PutQueue {
        queue: Queue,
    },
    /// A queue in which nothing waits is removed.
    RemoveQueue {
        name: Name,
    },
    /// A new version of a policy is published.
    PublishPolicy {
        name: Name,
        /// What it says.
        rule: PolicyRule,
    },
    /// An older version of a policy is put in force again.
    RollBackPolicy {
        name: Name,
        version: u32,
    },
    /// The rules of the house change.
    SetSettings {
        settings: Settings,
    },
    /// The rules of the market change.
    SetMarket {
        rules: MarketRules,
    },
    /// A forecast is published.
    PublishForecast {
        forecast: Arc<Forecast>,
    },
    /// Estimates are published.
    PublishEstimates {
        estimates: Arc<Estimates>,
    },

    // The driver.
    /// The queues are gone through, and whatever may start is started.
    Pass,
    /// Time has passed.
    Tick,
}

/// A job as it is handed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    pub user: UserId,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Title>,
    #[serde(default)]
    pub attributes: Attributes,
    /// The owner's own ranking of his jobs.
    #[serde(default)]
    pub priority: i32,
    pub terms: Terms,
    /// How many of its kind, where it is more than one: for a queue only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// What has to be over before it may start: for a queue only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
}

impl NewJob {
    /// One job that says nothing but whose it is and on which terms.
    pub fn new(user: UserId, terms: Terms) -> NewJob {
        let attributes = Attributes::default();
        NewJob { user, name: None, attributes, priority: 0, terms, array: None, after: Vec::new() }
    }

    /// Whether an array and what a job waits for are within their limits, and for a queue.
    pub fn check_number(&self) -> Result<(), Refusal> {
        let for_queue = matches!(self.terms, Terms::Queue { .. });
        let count = self.array.map_or(1, |array| array.count);
        if let Some(Array { count, running_max }) = self.array {
            let running = running_max.unwrap_or(count);
            if !(1..=ARRAY_MAX).contains(&count) || running == 0 {
                return Err(Refusal::BadArray { count, running, most: ARRAY_MAX });
            }
            if !for_queue {
                let hint = "bid for each job, or hand the array to a queue";
                return Err(Refusal::NotWithBid { what: "array".into(), hint: hint.into() });
            }
        }
        let after = self.after.len();
        if after > AFTER_MAX {
            return Err(Refusal::TooMany {
                what: "dependencies".into(),
                given: after,
                most: AFTER_MAX,
            });
        }
        if after > 0 && !for_queue {
            let hint = "order the requests inside one bid, or hand the job to a queue";
            return Err(Refusal::NotWithBid { what: "after".into(), hint: hint.into() });
        }
        let given = after * count as usize;
        if given > AFTER_OF_ARRAY_MAX {
            let (what, most) = ("dependencies of an array".into(), AFTER_OF_ARRAY_MAX);
            return Err(Refusal::TooMany { what, given, most });
        }
        Ok(())
    }
}

/// Many jobs alike, handed in as one. Their numbers follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    pub count: u32,
    /// Most of them that may run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_max: Option<u32>,
}

/// Most jobs of an array.
pub const ARRAY_MAX: u32 = 100_000;
/// Most jobs that a job may wait for.
pub const AFTER_MAX: usize = 64;
/// Most jobs that all jobs of an array together may wait for.
pub const AFTER_OF_ARRAY_MAX: usize = 100_000;

/// On which terms a job is handed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Terms {
    /// With a bid.
    Bid {
        bid: Bid,
        /// The price that was quoted: the most that it may cost, below its value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<Money>,
        /// When it needs longer.
        #[serde(default)]
        overrun: Overrun,
        /// Whether idle GPUs may be taken back.
        #[serde(default)]
        release_when_idle: bool,
    },
    /// With a hold.
    Hold {
        hold: HoldId,
        /// When it needs longer.
        #[serde(default)]
        overrun: Overrun,
        /// Whether idle GPUs may be taken back.
        #[serde(default)]
        release_when_idle: bool,
    },
    /// For a queue. The request's duration is its enforced limit; its window's start is when it
    /// may start, and its deadline is ignored.
    Queue {
        /// What is needed.
        request: Request,
        /// Where and how it waits.
        queue: QueueTerms,
    },
}

impl Terms {
    /// A bid at any price up to its value, for a job that stops at its end.
    pub fn bid(bid: Bid) -> Terms {
        Terms::Bid { bid, most: None, overrun: Overrun::Stop, release_when_idle: false }
    }
}

/// One of several changes of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum NodeChange {
    Domain {
        /// Where it belongs from now on, or to none.
        domain: Option<Name>,
    },
    Maintenance {
        /// When it is away, in order.
        windows: Vec<(Time, Time)>,
    },
    Cordon,
    Drain {
        /// When whatever still runs or is promised there has to go elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_at: Option<Time>,
    },
    Resume,
    Leave,
}

/// A node as it joins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// What people call it.
    pub name: Name,
    pub pool: Name,
    /// What it has.
    pub capacity: Capacity,
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<Name, Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<Name>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Name>,
}

impl NewNode {
    /// A node without labels, in no rack and no domain.
    pub fn new(name: Name, pool: Name, capacity: Capacity) -> NewNode {
        let labels = std::collections::BTreeMap::new();
        NewNode { name, pool, capacity, labels, rack: None, domain: None }
    }
}

/// A threshold of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// Its GPUs have been idle for long.
    GpusIdle,
}
