//! Actions become orders of executors, in the order in which they were decided.
//!
//! What is to be done because of an effect is decided by [`Reconciler`]; here it is looked up what
//! a task runs, and executors are told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use era_cloud::{Launch, Order, PEERS_MAX, TaskSpec};
use era_core::job::{Job, TaskId};
use era_core::units::{NodeId, Time, UserId};
use era_core::{Command, Snapshot};
use era_drive::{Action, Assignment, LookedUp, Reconciler};
use era_store::note::{Note, Observation};
use tokio::task::JoinSet;

use super::specs::Specs;
use super::{Engines, Unstaged};
use crate::clock::Clock;
use crate::driver::{Handle, Releases};
use crate::lead::LeaseGate;

/// The exit code of what could not be started, as shells have it.
const NOT_STARTED: i32 = 126;
/// Where a gang meets that is on one node.
const LOOPBACK: &str = "127.0.0.1";
/// How long it is until a store that did not answer is asked again, at first and at most.
const AGAIN_MIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// How often promises are looked through for what starts soon.
const STAGE_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Orders {
    pub(super) driver: Handle,
    pub(super) engines: Engines,
    clock: Arc<dyn Clock>,
    specs: Arc<Specs>,
    gate: Option<LeaseGate>,
    reconciler: Reconciler,
    lookups: JoinSet<Looked>,
}

/// What a lookup came to.
type Looked = (TaskId, LookedUp<Arc<TaskSpec>>);

impl Orders {
    pub(super) fn new(
        driver: Handle,
        engines: Engines,
        clock: Arc<dyn Clock>,
        specs: Specs,
        gate: Option<LeaseGate>,
    ) -> Orders {
        let (reconciler, lookups) = (Reconciler::default(), JoinSet::new());
        Orders { driver, engines, clock, specs: Arc::new(specs), gate, reconciler, lookups }
    }

    /// Carries out what is released until the driver is gone.
    pub(super) async fn run(mut self, mut releases: Releases) {
        let mut look = tokio::time::interval(STAGE_EVERY);
        let stages = self.engines.all().any(|engine| engine.stages());
        loop {
            let released = tokio::select! {
                released = releases.recv() => match released {
                    Some(released) => released,
                    None => return,
                },
                Some(looked) = self.lookups.join_next() => {
                    if let Ok((task, found)) = looked {
                        let snapshot = self.driver.snapshot();
                        if let Some(action) = self.reconciler.found(&snapshot, task, found) {
                            self.act(&snapshot, action).await;
                        }
                    }
                    continue;
                }
                _ = look.tick(), if stages => {
                    let (snapshot, specs) = (self.driver.snapshot(), self.specs.clone());
                    let at_hand = |job: &Job| specs.at_hand(job.user, job.id);
                    for action in self.reconciler.stage(&snapshot, at_hand) {
                        self.act(&snapshot, action).await;
                    }
                    continue;
                }
            };
            for (first, note) in &released.accepted {
                self.specs.accepted(*first, note);
            }
            // At least as new as the decision: it was published before this was released.
            let (snapshot, specs) = (self.driver.snapshot(), self.specs.clone());
            let at_hand = |job: &Job| {
                specs.at_hand(job.user, job.id).filter(|spec| !spec.secrets.lack_values())
            };
            for effect in released.effects {
                if let Some(action) = self.reconciler.released(&snapshot, effect, at_hand) {
                    self.act(&snapshot, action).await;
                }
            }
        }
    }

    async fn act(&mut self, snapshot: &Snapshot, action: Action<Arc<TaskSpec>>) {
        match action {
            Action::LookUp { user, task, with_secrets } => self.look_up(user, task, with_secrets),
            Action::Launch(assignment, spec) => {
                let node = assignment.node;
                if let Some(launch) = self.launch(snapshot, assignment, spec) {
                    self.order(snapshot, node, Order::Launch(launch));
                }
            }
            Action::Stage(assignment, spec) => {
                let Ok(node) = snapshot.cluster().node(assignment.node) else { return };
                let engine = self.engines.of(node);
                if engine.stages()
                    && let Some(launch) = self.launch(snapshot, assignment, spec)
                {
                    engine.carry_out(Order::Stage(launch));
                }
            }
            Action::Stop { task, node, until } => {
                let until = self.on_their_clock(until);
                self.order(snapshot, node, Order::Stop { task, until });
            }
            Action::Prolong { task, node, until } => {
                let until = self.on_their_clock(until);
                self.order(snapshot, node, Order::Prolong { task, until });
            }
            Action::Resize { job, part, attempt, replicas, nodes } => {
                let nodes = || nodes.iter().filter_map(|id| snapshot.cluster().node(*id).ok());
                for engine in self.engines.all() {
                    if nodes().any(|node| Arc::ptr_eq(self.engines.of(node), engine)) {
                        engine.carry_out(Order::Resize { job, part, attempt, replicas });
                    }
                }
            }
            Action::Decline { task, problem } => self.decline(task, &problem).await,
        }
    }

    fn look_up(&mut self, user: UserId, task: TaskId, with_secrets: bool) {
        let (specs, driver, gate) = (self.specs.clone(), self.driver.clone(), self.gate.clone());
        self.lookups.spawn(async move {
            let found = look_up(specs, driver, user, task, with_secrets).await;
            // Whoever was cut off for so long that another one runs tasks launches nothing.
            if let Some(mut gate) = gate
                && !gate.pass().await
            {
                std::future::pending::<()>().await;
            }
            found
        });
    }

    /// A task as its executor is told of it.
    fn launch(
        &self,
        snapshot: &Snapshot,
        assignment: Assignment,
        spec: Arc<TaskSpec>,
    ) -> Option<Launch> {
        let Assignment { task, node, gpus, each, replicas, until, ranks } = assignment;
        let node_name = snapshot.cluster().node(node).ok()?.name.to_string();
        let (master, peers) = self.met_at(snapshot, &ranks, replicas);
        let until = self.on_their_clock(until);
        Some(Launch { task, node, node_name, gpus, each, replicas, until, master, peers, spec })
    }

    /// A task that cannot be started has ended, and its job with it.
    async fn decline(&self, task: TaskId, problem: &str) {
        tracing::warn!(%task, problem, "a task cannot be started");
        let (folder, line) =
            (self.specs.folder(task.job), format!("the task was not started: {problem}"));
        let now = self.clock.machine();
        let noted =
            tokio::task::spawn_blocking(move || era_cloud::log::note(&folder, task, &line, now));
        // What is wrong is told with its end in any case.
        let _ = noted.await;
        let at_ms = self.clock.now().0;
        let cause = Some(format!("not_started: {problem}"));
        let seen = Observation { at_ms, cause, ..Observation::default() };
        let note = Note { task: Some(seen), ..Note::default() }.write();
        let command = Command::Exited { task, code: NOT_STARTED, at: None };
        if let Err(error) = self.driver.hand_in_patiently(command, note).await {
            // The next start finds the launch outstanding, and tries again.
            tracing::warn!(%task, %error, "its end could not be handed in");
        }
    }

    /// Where rank 0 of a gang runs, and where each of its ranks does, as all of them reach it: by the
    /// addresses of their nodes, or on the loopback where all of them are on one node.
    fn met_at(
        &self,
        snapshot: &Snapshot,
        ranks: &BTreeMap<u32, NodeId>,
        replicas: u32,
    ) -> (String, Vec<String>) {
        let together = ranks.values().collect::<BTreeSet<_>>().len() < 2;
        let address = |rank: u32| {
            if together {
                return Some(LOOPBACK.to_owned());
            }
            let node = snapshot.cluster().node(*ranks.get(&rank)?).ok()?;
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

    /// An instant of the scheduler as those count who carry out orders: by the machine's clock,
    /// which may have been set back.
    fn on_their_clock(&self, at: Time) -> Time {
        at - self.clock.ahead()
    }
}

/// Looks up what a task runs, for as long as its store does not answer and its job is not over.
async fn look_up(
    specs: Arc<Specs>,
    driver: Handle,
    user: UserId,
    task: TaskId,
    with_secrets: bool,
) -> Looked {
    let mut wait = AGAIN_MIN;
    loop {
        let found = match specs.of(user, task.job).await {
            Ok(spec) if with_secrets => specs.opened(spec).await,
            found => found,
        };
        let problem = match found {
            Ok(spec) if spec.secrets.lack_values() => {
                return (task, LookedUp::WithoutSecrets(spec));
            }
            Ok(spec) => return (task, LookedUp::Whole(spec)),
            Err(Unstaged::ForGood(problem)) => return (task, LookedUp::Never(problem)),
            Err(Unstaged::ForNow(problem)) => problem,
        };
        if driver.snapshot().job(task.job).map_or(true, |job| job.ended.is_some()) {
            return (task, LookedUp::Never(problem));
        }
        tracing::warn!(%task, problem, "what a task runs cannot be read: trying again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AGAIN_MAX);
    }
}
