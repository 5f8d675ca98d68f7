//! Effects become orders, in the order in which they were decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use era_cloud::{Executor, Launch, Order, PEERS_MAX, TaskSpec};
use era_core::job::{Job, Part, TaskId};
use era_core::units::{JobId, NodeId, Time, UserId};
use era_core::{Command, Effect, Snapshot};
use era_store::note::{Note, Seen};
use tokio::task::JoinSet;

use super::ahead::{self, Ahead};
use super::specs::Specs;
use super::{Engines, Unstaged};
use crate::clock::SystemClock;
use crate::driver::{Handle, Releases};
use crate::lead::Gate;

/// The exit code of what could not be started, as shells have it.
const NOT_STARTED: i32 = 126;
/// Where a gang meets that is on one node.
const LOOPBACK: &str = "127.0.0.1";
/// How long it is until a store that did not answer is asked again, at first and at most.
const AGAIN_MIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(5);

pub(super) struct Orders {
    pub(super) driver: Handle,
    pub(super) engines: Engines,
    specs: Arc<Specs>,
    gate: Option<Gate>,
    /// What is to be done with tasks once it is known what they run.
    waiting: BTreeMap<TaskId, Wanted>,
    lookups: JoinSet<Found>,
}

/// What is to be done with a task.
enum Wanted {
    /// To be launched, by this effect.
    Launch(Effect),
    /// To be staged.
    Stage,
}

/// What a task runs, or why it never will.
type Found = (TaskId, Result<Arc<TaskSpec>, String>);

impl Orders {
    pub(super) fn new(
        driver: Handle,
        engines: Engines,
        specs: Specs,
        gate: Option<Gate>,
    ) -> Orders {
        let (waiting, lookups) = (BTreeMap::new(), JoinSet::new());
        Orders { driver, engines, specs: Arc::new(specs), gate, waiting, lookups }
    }

    /// Carries out what is released until the driver is gone.
    ///
    /// A launch whose code and data must be asked for waits beside the others, for as long as that
    /// takes: nothing else waits for it. What is decided about it meanwhile overtakes it.
    pub(super) async fn run(mut self, mut releases: Releases) {
        let mut ahead = Ahead::default();
        let mut look = tokio::time::interval(ahead::EVERY);
        let stages = self.engines.all().any(|engine| engine.stages());
        loop {
            let released = tokio::select! {
                released = releases.recv() => match released {
                    Some(released) => released,
                    None => return,
                },
                Some(found) = self.lookups.join_next() => {
                    if let Ok((task, spec)) = found {
                        self.found(task, spec).await;
                    }
                    continue;
                }
                _ = look.tick(), if stages => {
                    ahead.look(&mut self);
                    continue;
                }
            };
            for (first, note) in &released.accepted {
                self.specs.accepted(*first, note);
            }
            // At least as new as the decision: it was published before this was released.
            let snapshot = self.driver.snapshot();
            for effect in released.effects {
                self.carry_out(&snapshot, effect);
            }
        }
    }

    fn carry_out(&mut self, snapshot: &Arc<Snapshot>, effect: Effect) {
        match effect {
            Effect::Launch { task, .. } => {
                // What has ended or was overtaken since needs no start.
                let Some(job) = current(snapshot, task) else { return };
                let spec = self.specs.at_hand(job.user, job.id);
                match spec.filter(|spec| !spec.secrets.lack_values()) {
                    Some(spec) => self.launch(snapshot, &job, effect, spec),
                    None => self.look_up(job.user, task, Wanted::Launch(effect)),
                }
            }
            Effect::Stop { task, node, until, .. } => {
                // Who was not told of it says that it does not run.
                self.waiting.remove(&task);
                self.order(snapshot, node, Order::Stop { task, until: on_their_clock(until) });
            }
            Effect::Prolong { task, node, until } => {
                if let Some(Wanted::Launch(Effect::Launch { until: waits, .. })) =
                    self.waiting.get_mut(&task)
                {
                    *waits = until;
                }
                self.order(snapshot, node, Order::Prolong { task, until: on_their_clock(until) });
            }
            Effect::Resize { job, part, attempt, replicas } => {
                let first = TaskId { job, part, attempt, rank: 0 };
                let last = TaskId { rank: u32::MAX, ..first };
                for (_, wanted) in self.waiting.range_mut(first..=last) {
                    if let Wanted::Launch(Effect::Launch { replicas: waits, .. }) = wanted {
                        *waits = replicas;
                    }
                }
                self.resize(snapshot, job, part, attempt, replicas);
            }
            // Users are told by feeds of the journal, which has the same news.
            Effect::Notify { .. } => {}
        }
    }

    fn look_up(&mut self, user: UserId, task: TaskId, wanted: Wanted) {
        let launches = matches!(wanted, Wanted::Launch(_));
        self.waiting.insert(task, wanted);
        let (specs, driver, gate) = (self.specs.clone(), self.driver.clone(), self.gate.clone());
        self.lookups.spawn(async move {
            let found = look_up(specs, driver, user, task, launches).await;
            // Whoever was cut off for so long that another one runs tasks launches nothing.
            if let Some(mut gate) = gate
                && !gate.pass().await
            {
                std::future::pending::<()>().await;
            }
            found
        });
    }

    /// It is known what a task runs, or that it never will be.
    async fn found(&mut self, task: TaskId, spec: Result<Arc<TaskSpec>, String>) {
        // It was looked up to be staged, and is launched meanwhile: that has a look of its own.
        let staged = spec.as_ref().is_ok_and(|spec| spec.secrets.lack_values());
        if staged && matches!(self.waiting.get(&task), Some(Wanted::Launch(_))) {
            return;
        }
        let Some(wanted) = self.waiting.remove(&task) else { return };
        let snapshot = self.driver.snapshot();
        match (wanted, spec) {
            (Wanted::Launch(effect), spec) => {
                let Some(job) = current(&snapshot, task) else { return };
                match spec {
                    Ok(spec) => self.launch(&snapshot, &job, effect, spec),
                    Err(problem) => self.cannot_start(task, &problem).await,
                }
            }
            (Wanted::Stage, Ok(spec)) => {
                if let Some((engine, launch)) = self.soon_launched(&snapshot, task, spec) {
                    engine.carry_out(Order::Stage(launch));
                }
            }
            // What is wrong with it is told when it starts.
            (Wanted::Stage, Err(_)) => {}
        }
    }

    fn launch(&self, snapshot: &Snapshot, job: &Job, effect: Effect, spec: Arc<TaskSpec>) {
        let Effect::Launch { task, node: id, gpus, each, replicas, until } = effect else { return };
        let until = on_their_clock(until);
        let Ok(node) = snapshot.cluster().node(id) else { return };
        let part = &job.parts[usize::from(task.part)];
        let (master, peers) = self.met_at(snapshot, part, replicas);
        self.engines.of(node).carry_out(Order::Launch(Launch {
            task,
            node: id,
            node_name: node.name.to_string(),
            gpus,
            each,
            replicas,
            until,
            master,
            peers,
            spec,
        }));
    }

    /// Has a task staged that is promised to start soon.
    pub(super) fn stage(&mut self, snapshot: &Snapshot, task: TaskId) {
        let Ok(job) = snapshot.job(task.job) else { return };
        match self.specs.at_hand(job.user, job.id) {
            Some(spec) => {
                if let Some((engine, launch)) = self.soon_launched(snapshot, task, spec) {
                    engine.carry_out(Order::Stage(launch));
                }
            }
            None => self.look_up(job.user, task, Wanted::Stage),
        }
    }

    /// A task that is promised to start soon, as it will be launched, and who will launch it.
    fn soon_launched(
        &self,
        snapshot: &Snapshot,
        task: TaskId,
        spec: Arc<TaskSpec>,
    ) -> Option<(Arc<dyn Executor>, Launch)> {
        let part = snapshot.job(task.job).ok()?.parts.get(usize::from(task.part))?;
        let plan = part.plan()?;
        let seat = plan.seats.get(usize::try_from(task.rank).ok()?)?;
        let node = snapshot.cluster().node(seat.node).ok()?;
        let engine = self.engines.of(node).clone();
        if !engine.stages() {
            return None;
        }
        let replicas = u32::try_from(plan.seats.len()).ok()?;
        let (master, peers) = self.met_at(snapshot, part, replicas);
        let launch = Launch {
            task,
            node: seat.node,
            node_name: node.name.to_string(),
            gpus: (0..64).filter(|gpu| seat.gpus >> gpu & 1 == 1).collect(),
            each: part.each_of(plan, task.rank),
            replicas,
            until: on_their_clock(plan.to),
            master,
            peers,
            spec,
        };
        Some((engine, launch))
    }

    /// A task that cannot be started has ended, and its job with it.
    async fn cannot_start(&self, task: TaskId, problem: &str) {
        tracing::warn!(%task, problem, "a task cannot be started");
        let (folder, line) =
            (self.specs.folder(task.job), format!("the task was not started: {problem}"));
        let noted = tokio::task::spawn_blocking(move || era_cloud::log::note(&folder, task, &line));
        // What is wrong is told with its end in any case.
        let _ = noted.await;
        let at_ms = crate::clock::Clock::now(&crate::clock::SystemClock).0;
        let cause = Some(format!("not_started: {problem}"));
        let seen = Seen { at_ms, cause, ..Seen::default() };
        let note = Note { task: Some(seen), ..Note::default() }.write();
        let command = Command::Exited { task, code: NOT_STARTED, at: None };
        if let Err(error) = self.driver.hand_in_patiently(command, note).await {
            // The next start finds the launch outstanding, and tries again.
            tracing::warn!(%task, %error, "its end could not be handed in");
        }
    }

    /// Where rank 0 of a gang runs, and where each of its ranks does, as all of them reach it: by the
    /// addresses of their nodes, or on the loopback where all of them are on one node.
    fn met_at(&self, snapshot: &Snapshot, part: &Part, replicas: u32) -> (String, Vec<String>) {
        let nodes: BTreeMap<u32, NodeId> = seats(part).collect();
        let together = nodes.values().collect::<BTreeSet<_>>().len() < 2;
        let address = |rank: u32| {
            if together {
                return Some(LOOPBACK.to_owned());
            }
            let node = snapshot.cluster().node(*nodes.get(&rank)?).ok()?;
            let known = self.engines.of(node).address_of(node.name.as_str());
            Some(known.unwrap_or_else(|| node.name.to_string()))
        };
        let listed = 0..if replicas > PEERS_MAX { 0 } else { replicas };
        // Of a rank whose place is not known none is told a place.
        let peers = listed.map(address).collect::<Option<_>>().unwrap_or_default();
        (address(0).unwrap_or_else(|| LOOPBACK.to_owned()), peers)
    }

    fn order(&self, snapshot: &Snapshot, node: NodeId, order: Order) {
        if let Ok(node) = snapshot.cluster().node(node) {
            self.engines.of(node).carry_out(order);
        }
    }

    fn resize(&self, snapshot: &Snapshot, job: JobId, part: u16, attempt: u32, replicas: u32) {
        let order = || Order::Resize { job, part, attempt, replicas };
        for engine in self.engines.all() {
            let concerned = |node: NodeId| {
                let node = snapshot.cluster().node(node);
                node.is_ok_and(|node| Arc::ptr_eq(self.engines.of(node), engine))
            };
            let found = snapshot.job(job).ok().and_then(|job| job.parts.get(usize::from(part)));
            if found.is_some_and(|part| seats(part).any(|(_, node)| concerned(node))) {
                engine.carry_out(order());
            }
        }
    }
}

/// Looks up what a task runs, for as long as its store does not answer and its job is not over.
async fn look_up(
    specs: Arc<Specs>,
    driver: Handle,
    user: UserId,
    task: TaskId,
    launches: bool,
) -> Found {
    let mut wait = AGAIN_MIN;
    loop {
        let found = match specs.of(user, task.job).await {
            Ok(spec) if launches => specs.opened(spec).await,
            found => found,
        };
        let problem = match found {
            Ok(spec) => return (task, Ok(spec)),
            Err(Unstaged::ForGood(problem)) => return (task, Err(problem)),
            Err(Unstaged::ForNow(problem)) => problem,
        };
        if driver.snapshot().job(task.job).map_or(true, |job| job.ended.is_some()) {
            return (task, Err(problem));
        }
        tracing::warn!(%task, problem, "what a task runs cannot be read: trying again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AGAIN_MAX);
    }
}

/// The job of a task that is still to run.
fn current(snapshot: &Snapshot, task: TaskId) -> Option<Arc<Job>> {
    let job = snapshot.job(task.job).ok()?;
    let part = job.parts.get(usize::from(task.part))?;
    let live = job.ended.is_none() && part.is_active() && part.attempt == task.attempt;
    live.then(|| job.clone())
}

/// Every rank of a part with its node, growth included.
pub(super) fn seats(part: &Part) -> impl Iterator<Item = (u32, NodeId)> {
    let planned = part.plan().into_iter().flat_map(|plan| &plan.seats);
    let planned = (0u32..).zip(planned.map(|seat| seat.node));
    planned.chain(part.extras().iter().map(|extra| (extra.rank, extra.seat.node)))
}

/// An instant of the scheduler as those count who carry out orders: by the machine's clock, which
/// may have been set back.
fn on_their_clock(at: Time) -> Time {
    at - SystemClock.ahead()
}
