//! The launcher's decisions against a plain model: however effects, lookups, reports, crashes and
//! time interleave, executors are told what the core decided, once and in order.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use era_core::accounts::Actor;
use era_core::bid::{Bid, Request, Shape, Window};
use era_core::cluster::Pool;
use era_core::input::{NewJob, NewNode, Terms};
use era_core::job::{Job, Overrun, QueueTerms, Task, TaskId};
use era_core::resources::{Capacity, Resources};
use era_core::units::{GroupId, JobId, Money, NodeId, Span, Time, UserId};
use era_core::{Command, Effect, Reply};
use era_drive::{Action, Engine, LookedUp, Reconciler, Released, SiteBuilder, name, tasks};

const START: Time = Time::from_s(1_800_000_000);
const NODES: u32 = 3;
const USER: UserId = UserId(1);

fn site() -> SiteBuilder {
    let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
    let node = |n: u32| NewNode::new(name(&format!("n{n}")), name("main"), capacity.clone());
    let mut site = SiteBuilder {
        pools: vec![Pool::new(name("main"))],
        nodes: (0..NODES).map(node).collect(),
        ..SiteBuilder::default()
    };
    site.user(USER, GroupId(1), Money::credits(1_000_000));
    site
}

/// What a job runs, here: its number. Every third is at hand only after a lookup, every fifth has
/// secrets.
type Runs = JobId;

fn is_at_hand(job: JobId) -> bool {
    !job.0.is_multiple_of(3)
}

fn has_secrets(job: JobId) -> bool {
    job.0.is_multiple_of(5)
}

/// What the model knows of a task that an executor was told of.
#[derive(Clone, Copy, Debug)]
struct Told {
    until: Time,
    replicas: u32,
}

/// A scheduler, a launcher and executors that do what they are told.
struct Site {
    engine: Engine,
    reconciler: Reconciler,
    /// Released, and not yet carried out.
    released: Vec<Effect>,
    /// Lookups under way, and whether they are for a launch.
    lookups: Vec<(TaskId, bool)>,
    /// What runs on the executors, which survive a crash of the launcher.
    known: BTreeMap<TaskId, NodeId>,
    /// The plain model: everything that was carried out of each task since the launcher started.
    history: BTreeMap<TaskId, Vec<Effect>>,
    launched: BTreeMap<TaskId, Told>,
    stopped: BTreeSet<TaskId>,
    /// Where and until when a task was last staged for.
    staged: BTreeMap<TaskId, (NodeId, Time)>,
}

impl Site {
    fn new() -> Site {
        Site {
            engine: Engine::of(&site(), START, &mut ()).unwrap(),
            reconciler: Reconciler::default(),
            released: Vec::new(),
            lookups: Vec::new(),
            known: BTreeMap::new(),
            history: BTreeMap::new(),
            launched: BTreeMap::new(),
            stopped: BTreeSet::new(),
            staged: BTreeMap::new(),
        }
    }

    fn now(&self) -> Time {
        self.engine.state().now()
    }

    fn send(&mut self, command: Command) -> Reply {
        let batch = self.engine.carry_out(self.now(), [((), command, None)], ());
        self.released.extend(batch.released.effects);
        batch.answers.into_iter().next().unwrap().1.reply
    }

    fn pass_time(&mut self, span: Span) {
        let until = self.now() + span;
        while let Some(due) = self.engine.next().filter(|due| *due <= until) {
            let batch = self.engine.carry_out::<(), ()>(due, [], ());
            self.released.extend(batch.released.effects);
        }
        let batch = self.engine.carry_out(until, [((), Command::Tick, None)], ());
        self.released.extend(batch.released.effects);
    }

    fn carry_out(&mut self, count: usize) {
        for effect in self.released.drain(..count.min(self.released.len())).collect::<Vec<_>>() {
            match &effect {
                Effect::Launch { task, .. }
                | Effect::Stop { task, .. }
                | Effect::Prolong { task, .. } => {
                    self.history.entry(*task).or_default().push(effect.clone());
                }
                Effect::Resize { job, part, attempt, .. } => {
                    let is_of = |task: &TaskId| {
                        (task.job, task.part, task.attempt) == (*job, *part, *attempt)
                    };
                    for (_, history) in self.history.iter_mut().filter(|(task, _)| is_of(task)) {
                        history.push(effect.clone());
                    }
                }
                Effect::Notify { .. } => {}
            }
            let at_hand =
                |job: &Job| (is_at_hand(job.id) && !has_secrets(job.id)).then_some(job.id);
            let action = self.reconciler.released(self.engine.state(), effect, at_hand);
            action.into_iter().for_each(|action| self.obey(action));
        }
    }

    fn answer(&mut self, index: usize, never: bool) {
        let (task, for_launch) = self.lookups.swap_remove(index);
        let found = match (never, for_launch || !has_secrets(task.job)) {
            (true, _) => LookedUp::Never("it is gone".to_owned()),
            (false, true) => LookedUp::Whole(task.job),
            (false, false) => LookedUp::WithoutSecrets(task.job),
        };
        let action = self.reconciler.found(self.engine.state(), task, found);
        action.into_iter().for_each(|action| self.obey(action));
    }

    /// What the history of a task says that it is launched with, if it is to be launched at all.
    fn model(&self, task: TaskId) -> Option<Told> {
        let mut told = None;
        for effect in &self.history[&task] {
            match (effect, &mut told) {
                (Effect::Launch { until, replicas, .. }, told) => {
                    *told = Some(Told { until: *until, replicas: *replicas });
                }
                (Effect::Stop { .. }, told) => *told = None,
                (Effect::Prolong { until, .. }, Some(told)) => told.until = *until,
                (Effect::Resize { replicas, .. }, Some(told)) => told.replicas = *replicas,
                _ => {}
            }
        }
        told
    }

    fn obey(&mut self, action: Action<Runs>) {
        match action {
            Action::LookUp { user, task, with_secrets } => {
                assert_eq!(user, USER);
                assert!(!is_at_hand(task.job) || has_secrets(task.job), "{task} is at hand");
                self.lookups.push((task, with_secrets));
            }
            Action::Launch(launch, runs) => {
                let task = launch.task;
                let model = self.model(task);
                let model = model.unwrap_or_else(|| panic!("{task} was stopped or never begun"));
                assert_eq!(
                    (launch.until, launch.replicas),
                    (model.until, model.replicas),
                    "{task}"
                );
                assert_eq!(runs, task.job);
                assert_eq!(launch.ranks.get(&task.rank), Some(&launch.node), "{task}");
                assert!(self.launched.insert(task, model).is_none(), "{task} is launched twice");
                self.known.insert(task, launch.node);
            }
            Action::Stage(stage, runs) => {
                assert_eq!(runs, stage.task.job);
                assert!(!self.known.contains_key(&stage.task), "{} runs already", stage.task);
                let plan = (stage.node, stage.until);
                let before = self.staged.insert(stage.task, plan);
                assert_ne!(before, Some(plan), "{} is staged twice for one plan", stage.task);
            }
            Action::Stop { task, .. } => {
                self.stopped.insert(task);
            }
            Action::Prolong { .. } => {}
            Action::Resize { nodes, .. } => assert!(!nodes.is_empty()),
            Action::Decline { task, problem } => {
                assert_eq!(problem, "it is gone");
                assert!(self.model(task).is_some(), "{task} was not to start");
                self.send(Command::Exited { task, code: 126, at: None });
            }
        }
    }

    /// The launcher dies with what it was about to do. The next one finds out what is left.
    fn crash(&mut self) {
        self.reconciler = Reconciler::default();
        self.lookups.clear();
        self.history.clear();
        self.launched.clear();
        self.staged.clear();
        let known = self.known.keys().copied().collect();
        for task in tasks::missing(self.engine.state(), &known) {
            self.send(Command::TaskLost { task, reason: name("lost") });
        }
        // What was released by that is outstanding too.
        self.released = Released::<()>::outstanding(self.engine.state()).effects;
    }

    fn submit(&mut self, arg: u16) {
        let each = Resources { cpu: 1000 + 1000 * u32::from(arg % 4), ..Resources::default() };
        let earliest = match arg % 3 {
            0 => self.now() + Span::from_min(i64::from(arg % 40)),
            _ => self.now(),
        };
        let deadline = earliest + Span::from_h(6);
        let window = Window { earliest, deadline };
        let span = Span::from_min(5 + i64::from(arg % 30));
        let min = 1 + u32::from(arg % 5) / 2;
        let shape = Shape::Replicas { min, max: min + u32::from(arg >> 8) % 4 };
        let request = Request::new(shape, each, span, window);
        let terms = if arg.is_multiple_of(2) {
            let bid = Bid::single(USER, request, Money::credits(1_000));
            Terms::Bid { bid, most: None, overrun: Overrun::Extend, release_when_idle: false }
        } else {
            let queue =
                QueueTerms { preemptible: arg % 3 == 1, ..QueueTerms::new(name("default")) };
            Terms::Queue { request, queue }
        };
        self.send(Command::Submit { key: None, job: NewJob::new(USER, terms) });
    }

    /// One of what runs on the executors, its end or its start; a stop comes to an end too.
    fn report(&mut self, arg: u16) {
        let Some(index) = usize::from(arg).checked_rem(self.known.len()) else { return };
        let (task, _) = self.known.iter().nth(index).map(|(task, node)| (*task, *node)).unwrap();
        if arg.is_multiple_of(3) || self.stopped.contains(&task) {
            self.known.remove(&task);
            self.send(Command::Exited { task, code: i32::from(arg.is_multiple_of(7)), at: None });
        } else {
            self.send(Command::Started { task });
        }
    }

    fn act(&mut self, kind: u8, arg: u16) {
        match kind {
            0..6 => self.submit(arg),
            6..11 => self.carry_out(1 + usize::from(arg % 4)),
            11..16 if !self.lookups.is_empty() => {
                self.answer(usize::from(arg) % self.lookups.len(), arg % 16 == 7);
            }
            16..20 => self.report(arg),
            20 => {
                let jobs = self.engine.state().jobs().map(|job| job.id).collect::<Vec<_>>();
                if let Some(job) = jobs.get(usize::from(arg) % jobs.len().max(1)) {
                    self.send(Command::Cancel { job: *job, by: Actor::Administrator });
                }
            }
            21..24 => self.pass_time(Span::from_s(1 + i64::from(arg % 900))),
            24..26 => {
                let at_hand = |job: &Job| is_at_hand(job.id).then_some(job.id);
                let actions = self.reconciler.stage(self.engine.state(), at_hand);
                actions.into_iter().for_each(|action| self.obey(action));
            }
            26 => {
                let node = NodeId(u32::from(arg) % NODES);
                if arg.is_multiple_of(2) {
                    self.send(Command::Lost { node });
                    // What ran there is gone with it.
                    self.known.retain(|_, on| *on != node);
                } else {
                    self.send(Command::Resume { node });
                }
            }
            27 => self.crash(),
            _ => {}
        }
    }

    /// Nothing new arrives: all is carried out, all is found.
    fn come_to_rest(&mut self) {
        while !self.released.is_empty() || !self.lookups.is_empty() {
            self.carry_out(usize::MAX);
            while !self.lookups.is_empty() {
                self.answer(0, false);
            }
        }
    }
}

proptest! {
    #[test]
    fn what_the_core_launched_is_launched_once_and_nothing_else_however_lookups_interleave(
        acts in vec((0u8..28, any::<u16>()), 1..160),
    ) {
        let mut site = Site::new();
        for (kind, arg) in acts {
            site.act(kind, arg);
        }
        site.come_to_rest();
        prop_assert!(site.reconciler.is_idle());
        let state = site.engine.state();
        for job in state.jobs().filter(|job| job.ended.is_none()) {
            for (index, part) in job.parts.iter().enumerate().filter(|(_, p)| p.stop().is_none()) {
                for (rank, task) in part.tasks().iter().enumerate() {
                    let (index, rank) = (index as u16, rank as u32);
                    let id = TaskId { job: job.id, part: index, attempt: part.attempt, rank };
                    prop_assert!(
                        *task != Task::Launching || site.known.contains_key(&id),
                        "{id} was sent out, and no executor has heard of it"
                    );
                }
            }
        }
    }
}
