//! The launcher's decisions: what executors are told because of effects, and in which order, while
//! what a task runs is still being looked up.
//!
//! A launch whose code and data must be asked for waits beside the others. Whatever is decided
//! about its task meanwhile overtakes it: a stop cancels it, a later end or another size of its
//! gang changes it. How a task's work is found, and how an executor is reached, is not known here;
//! `S` is what a task runs.

use std::collections::{BTreeMap, BTreeSet};

use era_core::job::{Job, Part, TaskId};
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Span, Time, UserId};
use era_core::{Effect, State};

use crate::tasks;

/// How long before its promised start a task is staged.
const STAGED_AHEAD: Span = Span::from_min(10);

/// A task on its node, as it is launched or staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub task: TaskId,
    pub node: NodeId,
    /// Which of the node's GPUs.
    pub gpus: Vec<u8>,
    pub each: Resources,
    /// How many replicas its gang has.
    pub replicas: u32,
    /// When its guard ends it.
    pub until: Time,
    /// The node of each rank of its gang, as far as it is known.
    pub ranks: BTreeMap<u32, NodeId>,
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<S> {
    /// Find what a task of this user runs; the answer goes to [`Reconciler::found`].
    LookUp {
        user: UserId,
        task: TaskId,
        /// Whether the values of its secrets are needed too: not for what is only staged.
        with_secrets: bool,
    },
    /// Start a task.
    Launch(Assignment, S),
    /// Bring what a task needs to its node, ahead of its start.
    Stage(Assignment, S),
    /// Signal a task now, and kill it then. One that was never launched does not run.
    Stop { task: TaskId, node: NodeId, until: Time },
    /// Let a task run until then.
    Prolong { task: TaskId, node: NodeId, until: Time },
    /// Tell the executors of these nodes how many replicas a gang has now.
    Resize { job: JobId, part: u16, attempt: u32, replicas: u32, nodes: BTreeSet<NodeId> },
    /// Tell the scheduler that a task ended without having started, and why.
    Decline { task: TaskId, problem: String },
}

/// What a lookup came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookedUp<S> {
    /// Everything that the task needs.
    Whole(S),
    /// Everything but the values of its secrets: enough to stage it.
    WithoutSecrets(S),
    /// It can never run, and why.
    Never(String),
}

/// What is to be done with a task once it is known what it runs.
#[derive(Clone, Debug)]
enum Wanted {
    Launch(Assignment),
    Stage,
}

/// Turns effects into actions, and remembers what waits for a lookup.
#[derive(Clone, Debug, Default)]
pub struct Reconciler {
    waiting: BTreeMap<TaskId, Wanted>,
    /// What was staged or is being: once for each plan.
    staged: BTreeSet<(TaskId, Time, NodeId)>,
}

impl Reconciler {
    /// Whether nothing waits for a lookup.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An effect was released. `state` is at least as new as the decision behind it; `at_hand` says
    /// what a job runs where that is known without a lookup.
    pub fn released<S>(
        &mut self,
        state: &State,
        effect: Effect,
        at_hand: impl FnOnce(&Job) -> Option<S>,
    ) -> Option<Action<S>> {
        match effect {
            Effect::Launch { task, node, gpus, each, replicas, until } => {
                // What has ended or was overtaken since needs no start.
                let job = tasks::current(state, task)?;
                let ranks = BTreeMap::new();
                let launch = Assignment { task, node, gpus, each, replicas, until, ranks };
                if let Some(runs) = at_hand(job) {
                    // What was looked up meanwhile is not needed any more.
                    self.waiting.remove(&task);
                    return launched(state, launch, runs);
                }
                self.waiting.insert(task, Wanted::Launch(launch));
                Some(Action::LookUp { user: job.user, task, with_secrets: true })
            }
            Effect::Stop { task, node, until, .. } => {
                self.waiting.remove(&task);
                Some(Action::Stop { task, node, until })
            }
            Effect::Prolong { task, node, until } => {
                if let Some(Wanted::Launch(launch)) = self.waiting.get_mut(&task) {
                    launch.until = until;
                }
                Some(Action::Prolong { task, node, until })
            }
            Effect::Resize { job, part, attempt, replicas } => {
                let first = TaskId { job, part, attempt, rank: 0 };
                let last = TaskId { rank: u32::MAX, ..first };
                for (_, wanted) in self.waiting.range_mut(first..=last) {
                    if let Wanted::Launch(launch) = wanted {
                        launch.replicas = replicas;
                    }
                }
                let found = state.job(job).ok()?.parts.get(usize::from(part))?;
                let nodes: BTreeSet<NodeId> = ranks(found).into_values().collect();
                let is_there = !nodes.is_empty();
                is_there.then_some(Action::Resize { job, part, attempt, replicas, nodes })
            }
            // Users are told by feeds of the journal, which has the same news.
            Effect::Notify { .. } => None,
        }
    }

    /// A lookup has ended.
    pub fn found<S>(
        &mut self,
        state: &State,
        task: TaskId,
        found: LookedUp<S>,
    ) -> Option<Action<S>> {
        match (self.waiting.remove(&task)?, found) {
            // It was looked up to be staged, and is launched meanwhile: that has a lookup of its
            // own.
            (launch @ Wanted::Launch(_), LookedUp::WithoutSecrets(_)) => {
                self.waiting.insert(task, launch);
                None
            }
            (Wanted::Launch(launch), LookedUp::Whole(runs)) => launched(state, launch, runs),
            (Wanted::Launch(_), LookedUp::Never(problem)) => {
                tasks::current(state, task).map(|_| Action::Decline { task, problem })
            }
            (Wanted::Stage, LookedUp::Whole(runs) | LookedUp::WithoutSecrets(runs)) => {
                // It may have been moved meanwhile: what is staged is its plan of now, if that is due.
                let job = state.job(task.job).ok()?;
                let mut due = tasks::starting_of(job, state.now(), state.now() + STAGED_AHEAD);
                self.staged.insert(due.find(|(other, ..)| *other == task)?);
                staged(state, task).map(|stage| Action::Stage(stage, runs))
            }
            // What is wrong with it is told when it starts.
            (Wanted::Stage, LookedUp::Never(_)) => None,
        }
    }

    /// Stages what starts soon and was not staged before, once for each plan.
    pub fn stage<S>(
        &mut self,
        state: &State,
        at_hand: impl Fn(&Job) -> Option<S>,
    ) -> Vec<Action<S>> {
        let due: BTreeSet<_> = tasks::starting(state, state.now() + STAGED_AHEAD).collect();
        self.staged.retain(|one| due.contains(one));
        let mut actions = Vec::new();
        for one in due {
            let task = one.0;
            let Ok(job) = state.job(task.job) else { continue };
            if !self.staged.insert(one) || self.waiting.contains_key(&task) {
                continue;
            }
            match at_hand(job) {
                Some(runs) => actions.extend(staged(state, task).map(|s| Action::Stage(s, runs))),
                None => {
                    self.waiting.insert(task, Wanted::Stage);
                    actions.push(Action::LookUp { user: job.user, task, with_secrets: false });
                }
            }
        }
        actions
    }
}

/// A launch, if it is still wanted and its node is there.
fn launched<S>(state: &State, mut launch: Assignment, runs: S) -> Option<Action<S>> {
    let job = tasks::current(state, launch.task)?;
    state.cluster().node(launch.node).ok()?;
    launch.ranks = ranks(job.parts.get(usize::from(launch.task.part))?);
    Some(Action::Launch(launch, runs))
}

/// A task that is promised to start, as it will be launched.
fn staged(state: &State, task: TaskId) -> Option<Assignment> {
    let part = state.job(task.job).ok()?.parts.get(usize::from(task.part))?;
    if !part.is_booked() || part.attempt + 1 != task.attempt {
        return None;
    }
    let plan = part.plan()?;
    let seat = plan.seats.get(usize::try_from(task.rank).ok()?)?;
    state.cluster().node(seat.node).ok()?;
    Some(Assignment {
        task,
        node: seat.node,
        gpus: (0..64).filter(|gpu| seat.gpus >> gpu & 1 == 1).collect(),
        each: part.each_of(plan, task.rank),
        replicas: u32::try_from(plan.seats.len()).ok()?,
        until: plan.to,
        ranks: ranks(part),
    })
}

fn ranks(part: &Part) -> BTreeMap<u32, NodeId> {
    tasks::seats(part).map(|(rank, seat)| (rank, seat.node)).collect()
}
