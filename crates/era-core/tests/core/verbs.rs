//! More verbs for the bench: what tests of commands, queues and placement say often.

#![allow(dead_code, unreachable_pub)] // each test file uses a part of it

use era_core::accounts::{Actor, Group, User};
use era_core::bid::{Bid, Request};
use era_core::explain::Explanation;
use era_core::input::{NewJob, Terms};
use era_core::job::{Outcome, Overrun, QueueTerms, StopReason, TaskId};
use era_core::queue::Queue;
use era_core::quota::Quota;
use era_core::reason::WaitReason;
use era_core::refusal::QuotaScope;
use era_core::settings::Settings;
use era_core::units::{GroupId, HoldId, JobId, Money, NodeId, UserId};
use era_core::{Command, Effect, Event, Refusal, Reply, explain};

use crate::bed::{ALICE, BOB, Bed, LAB, bid, name, new_job};

pub fn n(index: u32) -> NodeId {
    NodeId(index)
}

/// So many credits.
pub fn credits(whole: i64) -> Money {
    Money::credits(whole)
}

/// A quota of so many GPUs at once.
pub fn gpu_quota(gpus: u64) -> Quota {
    Quota { concurrent: [None, None, Some(gpus * 1000)], ..Quota::UNLIMITED }
}

/// A user of a group at level 1.
pub fn user(id: UserId, group: GroupId) -> User {
    User { level: 1, ..User::new(id, group) }
}

/// Terms for a queue, not preemptible.
pub fn queue_terms(queue: &str) -> QueueTerms {
    QueueTerms::new(name(queue))
}

/// A job with a bid by Alice.
pub fn with_bid(bid: Bid, most: Option<Money>, overrun: Overrun, idle: bool) -> NewJob {
    let user = bid.user;
    new_job(user, Terms::Bid { bid, most, overrun, release_when_idle: idle })
}

pub fn for_queue(user: UserId, request: Request, queue: QueueTerms) -> NewJob {
    new_job(user, Terms::Queue { request, queue })
}

impl Bed {
    /// A job that must be accepted.
    pub fn accept(&mut self, job: NewJob) -> JobId {
        match self.send(Command::Submit { key: None, job }) {
            Reply::Accepted { job, .. } => job,
            reply => panic!("should have been accepted: {reply:?}"),
        }
    }

    /// A job that must be refused.
    pub fn reject(&mut self, job: NewJob) -> Refusal {
        self.refused(Command::Submit { key: None, job })
    }

    /// A promise that is extended when it overruns.
    pub fn promise_extending(&mut self, request: Request) -> JobId {
        self.accept(with_bid(bid(request), None, Overrun::Extend, false))
    }

    /// A hold that must be given.
    pub fn hold(&mut self, bid: Bid) -> (HoldId, Money) {
        match self.send(Command::Hold { key: None, bid }) {
            Reply::Held { hold, quote, .. } => (hold, quote.price),
            reply => panic!("should have been held: {reply:?}"),
        }
    }

    pub fn accept_hold(&mut self, user: UserId, hold: HoldId) -> Reply {
        let overrun = Overrun::Stop;
        let terms = Terms::Hold { hold, overrun, release_when_idle: false };
        self.send(Command::Submit { key: None, job: new_job(user, terms) })
    }

    /// A job for a queue that must be accepted.
    pub fn enqueue_in(&mut self, user: UserId, queue: &str, request: Request) -> JobId {
        self.accept(for_queue(user, request, queue_terms(queue)))
    }

    /// Creates or changes a queue.
    pub fn queue(&mut self, queue: &str, policy: &str, edit: impl FnOnce(&mut Queue)) {
        let mut queue = Queue::new(name(queue), name(policy));
        edit(&mut queue);
        self.done(Command::PutQueue { queue });
    }

    pub fn set(&mut self, edit: impl FnOnce(&mut Settings)) {
        let mut settings = self.state.settings().clone();
        edit(&mut settings);
        self.done(Command::SetSettings { settings });
    }

    /// Sets Alice's quota as the administrator.
    pub fn alice_may(&mut self, quota: Quota) {
        let by = Actor::Administrator;
        self.done(Command::SetQuota { by, scope: QuotaScope::User(ALICE), quota, reason: None });
    }

    /// Moves Bob into Alice's group.
    pub fn bob_joins_the_lab(&mut self) {
        self.done(Command::PutUser { user: user(BOB, LAB) });
    }

    /// Changes a group.
    pub fn lab_may(&mut self, quota: Quota) {
        self.done(Command::PutGroup { group: Group { level: 1, quota, ..Group::new(LAB) } });
    }

    /// What a job does, in one word.
    pub fn is(&self, job: JobId) -> &'static str {
        self.state.job(job).unwrap().state()
    }

    /// The jobs that run, in order of their numbers.
    pub fn running(&self) -> Vec<JobId> {
        let jobs = self.state.jobs().filter(|j| matches!(j.state(), "running" | "stopping"));
        jobs.map(|j| j.id).collect()
    }

    /// How a job ended.
    pub fn outcome(&self, job: JobId) -> Option<Outcome> {
        self.state.job(job).unwrap().ended.as_ref().map(|e| e.outcome.clone())
    }

    /// The nodes that a job's first part is planned on, rank by rank.
    pub fn nodes_of(&self, job: JobId) -> Vec<u32> {
        let job = self.state.job(job).unwrap();
        job.first_part().plan().unwrap().seats.iter().map(|s| s.node.0).collect()
    }

    /// The GPUs of each rank of a job's first part.
    pub fn gpus_of(&self, job: JobId) -> Vec<(u32, Vec<u8>)> {
        let job = self.state.job(job).unwrap();
        let bits = |mask: u64| (0..64).filter(|i| mask >> i & 1 == 1).collect();
        let seats = &job.first_part().plan().unwrap().seats;
        seats.iter().map(|s| (s.node.0, bits(s.gpus))).collect()
    }

    /// Why a job waits.
    pub fn reason(&self, job: JobId) -> WaitReason {
        match explain(&self.state, job).unwrap() {
            Explanation::Waiting { reason, .. } => reason,
            other => panic!("{job} does not wait: {other:?}"),
        }
    }

    /// The order of a queue, by what `explain` says of its jobs.
    pub fn order(&self, queue: &str) -> Vec<JobId> {
        let mut places: Vec<(u32, JobId)> = Vec::new();
        for job in self.state.waiting(&name(queue)) {
            match explain(&self.state, job).unwrap() {
                Explanation::Waiting { position, .. } => places.push((position, job)),
                other => panic!("{job} does not wait: {other:?}"),
            }
        }
        places.sort_unstable();
        places.into_iter().map(|(_, job)| job).collect()
    }

    /// A task of a job's first part, in its current attempt.
    pub fn task(&self, job: JobId, rank: u32) -> TaskId {
        let attempt = self.state.job(job).unwrap().first_part().attempt;
        TaskId { job, part: 0, attempt, rank }
    }

    /// Lets a running job end well.
    pub fn finish(&mut self, job: JobId) {
        let ranks = self.state.job(job).unwrap().first_part().tasks().len() as u32;
        for rank in 0..ranks {
            let task = self.task(job, rank);
            self.done(Command::Exited { task, code: 0, at: None });
        }
    }

    /// Takes all stops out, and leaves nothing.
    pub fn take_stops(&mut self) -> Vec<(TaskId, StopReason)> {
        let stop = |effect: Effect| match effect {
            Effect::Stop { task, why, .. } => Some((task, why)),
            _ => None,
        };
        self.effects.drain(..).filter_map(stop).collect()
    }

    /// Whether an event came out.
    pub fn saw(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(wanted)
    }
}
