//! A job from bid to settlement, as typed states.
//!
//! A job has one part for each request of its bid (queue work has one). A part is waiting, booked,
//! active or done, and has what belongs to that phase alone; what runs is an attempt at it, and only
//! the newest attempt is listened to.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bid::{Attributes, Bid, Request};
use crate::calendar::Seat;
use crate::outlook::JobOutlook;
use crate::resources::Resources;
use crate::units::{GroupId, HoldId, JobId, Money, Name, Span, Time, Title, UserId};

/// One replica of one attempt: what an executor starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    pub job: JobId,
    /// Which request of its bid.
    pub part: u16,
    /// Which attempt, from 1. The fence against late messages.
    pub attempt: u32,
    pub rank: u32,
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}.{}", self.job, self.part, self.attempt, self.rank)
    }
}

/// What a user wants run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub user: UserId,
    /// The group that the user was in.
    pub group: GroupId,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Title>,
    #[serde(default)]
    pub attributes: Attributes,
    /// The owner's own ranking of his jobs.
    #[serde(default)]
    pub priority: i32,
    /// When it was accepted.
    pub submitted: Time,
    /// The array that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Member>,
    /// What has to be over before it may start, and is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// When the last of what it had to wait for was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Time>,
    #[serde(rename = "deal")]
    pub terms: JobTerms,
    /// What it came after, and what was predicted of it.
    #[serde(default, skip_serializing_if = "JobOutlook::is_blank")]
    pub outlook: JobOutlook,
    /// One for each request.
    pub parts: Vec<Part>,
    /// How it is going to end: decided, while some of its parts are still stopping, or have
    /// their own time to run after another's was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Outcome>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<JobEnd>,
}

/// How a job belongs to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The first job of the array.
    pub first: JobId,
    /// Whether it was changed since, and is no longer like the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// A job that has to be over before another one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Which. The first job of an array stands for all of it.
    pub job: JobId,
    /// How it has to end.
    #[serde(default)]
    pub when: When,
}

/// How a job has to end for another one to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// It has to succeed.
    #[default]
    Ok,
    /// In any way.
    Any,
}

impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            When::Ok => "success",
            When::Any => "end",
        })
    }
}

/// On which terms a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobTerms {
    Promise(Promise),
    /// A place in a queue.
    Queue(QueueTerms),
}

/// The terms of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    pub bid: Bid,
    /// Which alternative was accepted.
    pub alternative: u8,
    /// What happens when it needs longer.
    pub overrun: Overrun,
    /// Whether idle GPUs may be taken back.
    pub release_when_idle: bool,
}

/// What happens when a job needs longer than it said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// It goes on at the market price while there is room and money.
    #[default]
    Extend,
    /// It is told to stop one grace period before its promised end.
    Stop,
}

/// The terms of queue work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTerms {
    pub queue: Name,
    /// Whether it may be stopped, with grace, and started again.
    #[serde(default)]
    pub preemptible: bool,
    /// Whether idle GPUs may be taken back.
    #[serde(default)]
    pub release_when_idle: bool,
}

impl QueueTerms {
    /// Waits in a queue and, once started, runs to its end.
    pub fn new(queue: Name) -> QueueTerms {
        QueueTerms { queue, preemptible: false, release_when_idle: false }
    }
}

/// How and when a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    pub at: Time,
    pub outcome: Outcome,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every task exited with 0.
    Succeeded,
    /// A task exited with another code.
    Failed { code: i32 },
    /// Its owner gave it up before it started.
    Cancelled,
    /// Its owner gave back what was left of its time.
    Released,
    /// Its time was over.
    LimitReached,
    /// The promise could not be kept.
    Broken { reason: String },
    /// A job that had to succeed before it did not.
    Unfulfilled { job: JobId },
}

/// Where and when a part runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub pool: Name,
    pub from: Time,
    /// End: of the promise, or of the enforced limit.
    pub to: Time,
    /// One for each promised replica.
    pub seats: Vec<Seat>,
    /// What a total of GPUs was split by.
    pub gpus_per_node: u32,
}

/// One request of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What was asked for: the same value for all jobs of an array.
    pub request: Arc<Request>,
    /// What it does now.
    pub phase: Phase,
    /// The newest attempt at it; 0 before the first.
    pub attempt: u32,
    /// Work that a checkpoint has saved.
    #[serde(default)]
    pub done: Span,
    /// GPU thousandths times milliseconds received in earlier attempts.
    #[serde(default)]
    pub attained: u64,
    /// How it has given way to other queue work.
    #[serde(default, rename = "yields", skip_serializing_if = "PreemptionCount::is_none")]
    pub preemptions: PreemptionCount,
    /// Where it stands among those that received as much service.
    #[serde(default, rename = "line", skip_serializing_if = "ServicePosition::is_first")]
    pub position: ServicePosition,
}

/// What a part does now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// In a queue.
    Waiting(Waiting),
    /// Promised, not begun.
    Booked(Booked),
    /// Its tasks were sent out.
    Active(Attempt),
    Done {
        at: Time,
    },
}

/// A part that waits in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// When it may start at the earliest.
    pub not_before: Time,
    /// The hole that conservative backfilling keeps for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hole: Option<Plan>,
}

/// A part that waits for the start that was promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booked {
    /// Where and when it is to run.
    pub plan: Plan,
    /// What is kept in escrow for it.
    pub escrow: Money,
    /// Whether preemptible work on its seats was told to give way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
}

/// An attempt at a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Where it runs, and until when.
    pub plan: Plan,
    /// When it was sent out.
    pub since: Time,
    /// What is kept in escrow for it.
    pub escrow: Money,
    /// Its tasks, by rank.
    pub tasks: Vec<Task>,
    /// Growth beyond the promise; the first has the rank after the last promised one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<Extra>,
    /// How often it has grown by a replica: a rank is never used twice in an attempt, so that a
    /// task is launched once under its name and a late report is about no other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grown: u32,
    /// When the last of its tasks that have exited did, as executors know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exited_at: Option<Time>,
    /// Whether it was extended beyond what its launch said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prolonged: bool,
    /// How it is being stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stoppage>,
}

/// How a run is being stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stoppage {
    /// What it was told.
    pub stop: Stop,
    /// Whether a rank of it failed and others were not heard of any more: nobody pays for the wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Where a promise goes on after hardware under it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// Where a promise goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// Where and when.
    pub plan: Plan,
    /// Whether preemptible work on its seats was told to give way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
}

/// How a job has given way to other queue work: what limits how often it has to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionCount {
    /// How often since it last saved work.
    pub times: u32,
    /// When it last had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
}

impl PreemptionCount {
    fn is_none(&self) -> bool {
        *self == PreemptionCount::default()
    }
}

/// Where a job stands under least-attained service: in the line of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePosition {
    /// The class whose line it is in.
    pub class: u8,
    /// Its turn there: smaller goes first, those that run before those that wait.
    pub turn: i64,
    /// When it came into the class, if it ran then and nobody has looked at the line since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came: Option<Time>,
}

impl ServicePosition {
    fn is_first(&self) -> bool {
        *self == ServicePosition::default()
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A task as the core knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Sent out, not confirmed.
    Launching,
    /// Confirmed to run.
    Running,
    /// Over, with this code.
    Exited(i32),
    /// On a node that was lost: no word reaches it, and it may run until its lease lapses then.
    CutOff(Time),
    /// Its node no longer has what it sits on: it is to be gone by then, and has no seat.
    Evicted(Time),
    /// It was told to stop because its gang is failing, its time is over, and its node has not
    /// said that it is gone.
    Unanswered,
    Lost,
}

impl Task {
    /// When it is gone at the latest, if hardware was lost under it.
    pub fn lapses(self) -> Option<Time> {
        match self {
            Task::CutOff(until) | Task::Evicted(until) => Some(until),
            _ => None,
        }
    }

    /// Whether it is not known to be over.
    pub fn is_live(self) -> bool {
        matches!(self, Task::Launching | Task::Running | Task::Unanswered)
            || self.lapses().is_some()
    }
}

/// A replica beyond the promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    pub rank: u32,
    /// Where it sits.
    pub seat: Seat,
    pub since: Time,
    /// When its gang's run was to end.
    pub to: Time,
    /// What is kept in escrow for it.
    pub escrow: Money,
    /// What it does.
    pub task: Task,
    /// When it is gone, if it was told to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_until: Option<Time>,
}

/// What was told to stop, and until when it has time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub why: StopReason,
    /// When nothing of it runs any more, whatever it does.
    pub until: Time,
}

/// Why something is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Its owner gave up.
    Cancelled,
    /// Its owner gave the rest back.
    Released,
    /// Its time is over.
    Limit,
    /// It gives way, and waits again.
    Preempted,
    /// Hardware under it was lost.
    Lost,
    /// Its node is drained.
    Drained,
    /// One of its tasks failed.
    Failed { code: i32 },
}

impl Attempt {
    /// The first attempt of a part, or another one, begins.
    fn begin(plan: Plan, escrow: Money, now: Time) -> Attempt {
        Attempt {
            tasks: vec![Task::Launching; plan.seats.len()],
            plan,
            since: now,
            escrow,
            extras: Vec::new(),
            grown: 0,
            exited_at: None,
            prolonged: false,
            stopping: None,
        }
    }

    /// Whether it was told to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// What it was told, if it was told to stop.
    pub fn stop(&self) -> Option<Stop> {
        self.stopping.as_ref().map(|stopping| stopping.stop)
    }

    /// It is told to stop, or otherwise than before.
    pub(crate) fn tell(&mut self, stop: Stop) {
        match &mut self.stopping {
            Some(stopping) => stopping.stop = stop,
            None => self.stopping = Some(Stoppage { stop, silent: false, next: None }),
        }
    }

    /// It goes on there once it is gone, or nowhere.
    pub(crate) fn go_on(&mut self, next: Option<Plan>) {
        if let Some(stopping) = &mut self.stopping {
            stopping.next = next.map(|plan| Next { plan, cleared: false });
        }
    }

    /// All its tasks, growth included.
    pub(crate) fn tasks_mut(&mut self) -> impl Iterator<Item = (u32, &mut Task)> {
        let growth = self.extras.iter_mut().map(|e| (e.rank, &mut e.task));
        (0u32..).zip(&mut self.tasks).chain(growth)
    }

    /// A task of it exited, at an instant that its executor may know better than `now`: also
    /// later, where time has not gone on since the scheduler was away.
    pub(crate) fn note_exit(&mut self, at: Option<Time>, now: Time) {
        let at = at.map_or(now, |at| at.clamp(self.since, self.plan.to.max(now)));
        self.exited_at = self.exited_at.max(Some(at));
    }

    /// Since when nothing of it runs, if nothing does: the last exit, where every task's is known.
    fn quiet_since(&self, now: Time) -> Time {
        let silent = self.stopping.as_ref().is_some_and(|stopping| stopping.silent);
        let exited = || self.tasks.iter().all(|task| matches!(task, Task::Exited(_)));
        self.exited_at.filter(|_| silent || exited()).unwrap_or(now)
    }

    /// Its seats, growth included.
    pub fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.plan.seats.iter().chain(self.extras.iter().map(|e| &e.seat))
    }

    /// Whether its ranks, growth included, are on more than one node.
    fn spans_nodes(&self) -> bool {
        let mut nodes = self.seats().map(|seat| seat.node);
        let first = nodes.next();
        nodes.any(|node| Some(node) != first)
    }

    /// Whether any of its tasks, growth included, may still be running.
    pub fn has_live_tasks(&self) -> bool {
        self.tasks.iter().any(|t| t.is_live()) || self.extras.iter().any(|e| e.task.is_live())
    }

    /// When the last of it is gone, whatever happens, if it was told to stop.
    pub fn gone_by(&self) -> Option<Time> {
        let tasks = self.tasks.iter().chain(self.extras.iter().map(|e| &e.task));
        let lapses = tasks.filter_map(|task| task.lapses());
        self.stop().map(|stop| lapses.fold(stop.until, Time::max))
    }
}

impl Part {
    /// A part that has a plan and waits for its start.
    pub fn booked(request: impl Into<Arc<Request>>, plan: Plan, escrow: Money) -> Part {
        let phase = Phase::Booked(Booked { plan, escrow, cleared: false });
        Part { phase, ..Part::waiting(request, Time(0)) }
    }

    /// A part that waits in a queue.
    pub fn waiting(request: impl Into<Arc<Request>>, not_before: Time) -> Part {
        Part {
            request: request.into(),
            phase: Phase::waiting(not_before),
            attempt: 0,
            done: Span::ZERO,
            attained: 0,
            preemptions: PreemptionCount::default(),
            position: ServicePosition::default(),
        }
    }

    /// The attempt at it, if one is under way.
    pub fn run(&self) -> Option<&Attempt> {
        match &self.phase {
            Phase::Active(run) => Some(run),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn run_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.phase {
            Phase::Active(run) => Some(run),
            _ => None,
        }
    }

    /// Where and when it runs or is to run, unless it waits or is over.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.phase {
            Phase::Booked(Booked { plan, .. }) | Phase::Active(Attempt { plan, .. }) => Some(plan),
            _ => None,
        }
    }

    /// Where it goes on after hardware under it was lost.
    pub fn next(&self) -> Option<&Plan> {
        Some(&self.run()?.stopping.as_ref()?.next.as_ref()?.plan)
    }

    /// Where it runs last: where it goes on, if it goes on elsewhere.
    pub fn last_plan(&self) -> Option<&Plan> {
        self.next().or_else(|| self.plan())
    }

    /// Its plans, with the attempt that each is for.
    pub(crate) fn plans(&self) -> impl Iterator<Item = (u32, &Plan)> {
        let plan = self.plan().into_iter().map(|plan| (self.attempt_of_plan(), plan));
        plan.chain(self.next().map(|next| (self.attempt + 1, next)))
    }

    /// The attempt that its plan is for: the coming one while it waits for its start.
    pub(crate) fn attempt_of_plan(&self) -> u32 {
        self.attempt + u32::from(self.is_booked())
    }

    /// The plan of an attempt that is still to begin, its first or where it goes on, and whether
    /// preemptible work on its seats was told to give way.
    pub(crate) fn coming(&self) -> Option<(&Plan, bool)> {
        match &self.phase {
            Phase::Booked(booked) => Some((&booked.plan, booked.cleared)),
            Phase::Active(run) => {
                run.stopping.as_ref()?.next.as_ref().map(|next| (&next.plan, next.cleared))
            }
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn coming_mut(&mut self) -> Option<(&mut Plan, &mut bool)> {
        match &mut self.phase {
            Phase::Booked(booked) => Some((&mut booked.plan, &mut booked.cleared)),
            Phase::Active(run) => {
                let next = run.stopping.as_mut()?.next.as_mut()?;
                Some((&mut next.plan, &mut next.cleared))
            }
            _ => None,
        }
    }

    /// Its tasks, by rank, while active.
    pub fn tasks(&self) -> &[Task] {
        self.run().map_or(&[], |run| &run.tasks)
    }

    /// Growth beyond the promise.
    pub fn extras(&self) -> &[Extra] {
        self.run().map_or(&[], |run| &run.extras)
    }

    /// What a rank does, growth included.
    pub(crate) fn task(&self, rank: u32) -> Option<Task> {
        let growth = || self.extras().iter().find(|e| e.rank == rank).map(|e| e.task);
        self.tasks().get(rank as usize).copied().or_else(growth)
    }

    /// What it was told, if it was told to stop.
    pub fn stop(&self) -> Option<Stop> {
        self.run()?.stop()
    }

    /// What is kept in escrow for it, but for its growth.
    pub fn escrow(&self) -> Money {
        match &self.phase {
            Phase::Booked(Booked { escrow, .. }) | Phase::Active(Attempt { escrow, .. }) => *escrow,
            _ => Money::ZERO,
        }
    }

    /// The hole that conservative backfilling keeps for it.
    pub fn hole(&self) -> Option<&Plan> {
        match &self.phase {
            Phase::Waiting(waiting) => waiting.hole.as_ref(),
            _ => None,
        }
    }

    /// When it may start at the earliest, if it waits.
    pub fn not_before(&self) -> Option<Time> {
        match &self.phase {
            Phase::Waiting(waiting) => Some(waiting.not_before),
            _ => None,
        }
    }

    /// A hole is kept for it while it waits, or none.
    pub(crate) fn keep_hole(&mut self, hole: Option<Plan>) {
        if let Phase::Waiting(waiting) = &mut self.phase {
            waiting.hole = hole;
        }
    }

    /// Its next attempt begins.
    pub(crate) fn begin(&mut self, plan: Plan, escrow: Money, now: Time) {
        self.attempt += 1;
        self.phase = Phase::Active(Attempt::begin(plan, escrow, now));
    }

    /// Its attempt ended, or its plan was given up.
    pub(crate) fn leave(&mut self, end: Time, then: Phase) {
        self.attained = self.attained(end);
        self.phase = then;
    }

    /// How many replicas the gang has: the promised ones, and the growth that stays.
    pub fn gang_size(&self) -> u32 {
        let staying = self.extras().iter().filter(|e| e.stop_until.is_none()).count();
        (self.tasks().len() + staying) as u32
    }

    /// What a rank needs: for a total of GPUs, its node's part of it.
    pub fn each_of(&self, plan: &Plan, rank: u32) -> Resources {
        each_of(&self.request, plan.gpus_per_node, rank)
    }

    /// Whether it waits in a queue.
    pub fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_))
    }

    /// Whether it is promised and has not begun.
    pub fn is_booked(&self) -> bool {
        matches!(self.phase, Phase::Booked(_))
    }

    /// Whether anything of it may be running.
    pub fn is_active(&self) -> bool {
        self.run().is_some()
    }

    /// Whether it is over.
    pub fn is_done(&self) -> bool {
        self.done_at().is_some()
    }

    /// When it was over.
    pub fn done_at(&self) -> Option<Time> {
        match self.phase {
            Phase::Done { at } => Some(at),
            _ => None,
        }
    }

    /// Since when nothing of it runs, if nothing does.
    pub(crate) fn quiet_since(&self, now: Time) -> Time {
        self.run().map_or(now, |run| run.quiet_since(now))
    }

    /// Whether any of its tasks, growth included, may still be running.
    pub fn has_live_tasks(&self) -> bool {
        self.run().is_some_and(Attempt::has_live_tasks)
    }

    /// When the last of it is gone, whatever happens, if it was told to stop.
    pub fn gone_by(&self) -> Option<Time> {
        self.run()?.gone_by()
    }

    /// GPU thousandths times milliseconds received until `now`; core thousandths where no GPU was
    /// asked for.
    pub fn attained(&self, now: Time) -> u64 {
        let running = self.run().map_or(0, |run| {
            let ran = now.since(run.since).0.max(0).unsigned_abs();
            self.service_units().saturating_mul(ran)
        });
        self.attained.saturating_add(running)
    }

    /// What its service is counted in: GPU thousandths, or core thousandths without GPUs.
    pub(crate) fn service_units(&self) -> u64 {
        let [cpu, _, gpu] = self.request.units();
        if gpu > 0 { gpu } else { cpu }
    }

    /// How much of its work it has done, if all that it does now is saved.
    pub fn progress(&self, now: Time) -> Span {
        let runs = self.run().map_or(0, |run| now.since(run.since).0.max(0));
        Span(self.done.0 + runs)
    }

    /// How much of its duration is still to be run.
    pub fn remaining(&self) -> Span {
        Span((self.request.duration.0 - self.done.0).max(1))
    }
}

/// What a rank of a request needs on nodes of so many GPUs.
pub fn each_of(request: &Request, gpus_per_node: u32, rank: u32) -> Resources {
    let mut first = 0;
    for block in request.blocks(gpus_per_node) {
        first += block.count;
        if rank < first {
            return block.each;
        }
    }
    request.each.clone()
}

impl Phase {
    /// In a queue, without a place that is kept.
    pub(crate) fn waiting(not_before: Time) -> Phase {
        Phase::Waiting(Waiting { not_before, hole: None })
    }
}

impl Job {
    /// Its first part: queue work has no other.
    pub fn first_part(&self) -> &Part {
        &self.parts[0]
    }

    /// The same, to be changed.
    pub(crate) fn first_part_mut(&mut self) -> &mut Part {
        &mut self.parts[0]
    }

    /// The queue it is in, unless it has a promise.
    pub fn queue(&self) -> Option<&QueueTerms> {
        match &self.terms {
            JobTerms::Queue(terms) => Some(terms),
            JobTerms::Promise(_) => None,
        }
    }

    /// The promise it has, unless it is queue work.
    pub fn promise(&self) -> Option<&Promise> {
        match &self.terms {
            JobTerms::Promise(promise) => Some(promise),
            JobTerms::Queue(_) => None,
        }
    }

    /// Since when it could have started, as far as other jobs go: what counts as its wait.
    pub fn waits_since(&self) -> Time {
        self.ready.unwrap_or(self.submitted)
    }

    /// Whether it waits for other jobs to be over.
    pub fn is_held(&self) -> bool {
        self.ended.is_none() && !self.after.is_empty()
    }

    /// Whether it waits in its queue, or for other jobs before.
    pub fn is_waiting(&self) -> bool {
        self.ended.is_none() && self.parts.iter().any(Part::is_waiting)
    }

    /// Whether a gang over several nodes is stopping because a rank of it exited with an error.
    /// That may be the doing of a node that is lost: until the nodes of the others have answered,
    /// nobody knows.
    pub fn is_failing(&self, part: usize) -> bool {
        let Some(run) = self.parts[part].run() else { return false };
        let failed = run.stop().is_some_and(|s| matches!(s.why, StopReason::Failed { .. }));
        failed && self.verdict.is_none() && run.spans_nodes()
    }

    /// Whether its end is decided and all that is left of it is stopping.
    pub fn is_ending(&self) -> bool {
        let runs = |part: &Part| part.run().is_some_and(|run| !run.is_stopping());
        let goes_on = |part: &Part| part.coming().is_some() || runs(part);
        self.verdict.is_some() && !self.parts.iter().any(goes_on)
    }

    /// When the first part starts that may only start after this one has finished.
    pub fn starts_after(&self, part: usize) -> Option<Time> {
        let follows = |p: &&Part| p.request.after.iter().any(|i| usize::from(*i) == part);
        let plans = self.parts.iter().filter(follows);
        let plans = plans.filter_map(Part::last_plan);
        plans.map(|plan| plan.from).min()
    }

    /// When the last of the parts that this one must wait for has finished.
    pub fn finished_before(&self, part: usize) -> Option<Time> {
        let before = self.parts[part].request.after.iter().map(|i| &self.parts[usize::from(*i)]);
        let plans = before.filter_map(Part::last_plan);
        plans.map(|plan| plan.to).max()
    }

    /// One word for what it does, of [`STATES`].
    pub fn state(&self) -> &'static str {
        if self.ended.is_some() {
            "ended"
        } else if self.parts.iter().any(|p| p.stop().is_some()) {
            "stopping"
        } else if self.parts.iter().any(Part::is_active) {
            "running"
        } else if self.promise().is_some() {
            "promised"
        } else {
            "waiting"
        }
    }
}

/// What a job may be doing, in one word each.
pub const STATES: [&str; 5] = ["waiting", "promised", "running", "stopping", "ended"];

/// A binding quote: capacity and price are set aside until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub id: HoldId,
    /// The group that its user was in.
    pub group: GroupId,
    pub bid: Bid,
    /// Which alternative fits.
    pub alternative: u8,
    /// A plan and a price for each request.
    pub parts: Vec<(Plan, Money)>,
    pub expires: Time,
    /// The requests on whose seats preemptible work was told to give way.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cleared: BTreeSet<u16>,
}

impl Hold {
    /// The price of the whole.
    pub fn price(&self) -> Money {
        Money(self.parts.iter().map(|(_, price)| price.0).sum())
    }

    /// The requests that the plans are for.
    pub fn requests(&self) -> &[Request] {
        &self.bid.one_of[usize::from(self.alternative)].all_of
    }
}
