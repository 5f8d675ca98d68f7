//! Effects become orders, in the order in which they were decided.

use std::sync::Arc;

use era_cloud::{Executor, Launch, Order};
use era_core::job::{Job, Part, TaskId};
use era_core::units::{JobId, NodeId};
use era_core::{Command, Effect, Snapshot};
use era_store::note::{Note, Seen};

use super::Engines;
use super::ahead::{self, Ahead};
use super::specs::Specs;
use crate::driver::{Handle, Releases};

/// The exit code of what could not be started, as shells have it.
const NOT_STARTED: i32 = 126;

pub(super) struct Orders {
    pub(super) driver: Handle,
    pub(super) engines: Engines,
    pub(super) specs: Specs,
}

impl Orders {
    /// Carries out what is released until the driver is gone.
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
                _ = look.tick(), if stages => {
                    ahead.look(&mut self).await;
                    continue;
                }
            };
            for (first, note) in &released.accepted {
                self.specs.accepted(*first, note);
            }
            // At least as new as the decision: it was published before this was released.
            let snapshot = self.driver.snapshot();
            for effect in released.effects {
                self.carry_out(&snapshot, effect).await;
            }
        }
    }

    async fn carry_out(&mut self, snapshot: &Arc<Snapshot>, effect: Effect) {
        match effect {
            Effect::Launch { task, .. } => {
                // What has ended or was overtaken since needs no start.
                if let Some(job) = current(snapshot, task) {
                    self.launch(snapshot, &job, effect).await;
                }
            }
            Effect::Stop { task, node, until, .. } => {
                self.order(snapshot, node, Order::Stop { task, until });
            }
            Effect::Prolong { task, node, until } => {
                self.order(snapshot, node, Order::Prolong { task, until });
            }
            Effect::Resize { job, part, attempt, replicas } => {
                self.resize(snapshot, job, part, attempt, replicas);
            }
            // Users are told by feeds of the journal, which has the same news.
            Effect::Notify { .. } => {}
        }
    }

    async fn launch(&mut self, snapshot: &Arc<Snapshot>, job: &Job, effect: Effect) {
        let Effect::Launch { task, node: id, gpus, each, replicas, until } = effect else { return };
        let Ok(node) = snapshot.cluster().node(id) else { return };
        let spec = match self.specs.of(job.user, job.id).await {
            Ok(spec) => spec,
            Err(problem) => return self.cannot_start(task, &problem).await,
        };
        let part = &job.parts[usize::from(task.part)];
        self.engines.of(node).carry_out(Order::Launch(Launch {
            task,
            node: id,
            node_name: node.name.to_string(),
            gpus,
            each,
            replicas,
            until,
            master: master(snapshot, part, id),
            local_rank: local_rank(part, task.rank, id),
            spec,
        }));
    }

    /// A task that is promised to start soon, as it will be launched, and who will launch it.
    pub(super) async fn soon_launched(
        &mut self,
        snapshot: &Arc<Snapshot>,
        job: &Job,
        task: TaskId,
    ) -> Option<(Arc<dyn Executor>, Launch)> {
        let part = job.parts.get(usize::from(task.part))?;
        let plan = part.plan.as_ref()?;
        let seat = plan.seats.get(usize::try_from(task.rank).ok()?)?;
        let node = snapshot.cluster().node(seat.node).ok()?;
        let engine = self.engines.of(node).clone();
        if !engine.stages() {
            return None;
        }
        // What is wrong with it is told when it starts.
        let spec = self.specs.of(job.user, job.id).await.ok()?;
        let launch = Launch {
            task,
            node: seat.node,
            node_name: node.name.to_string(),
            gpus: (0..64).filter(|gpu| seat.gpus >> gpu & 1 == 1).collect(),
            each: part.each_of(plan, task.rank),
            replicas: u32::try_from(plan.seats.len()).ok()?,
            until: plan.to,
            master: master(snapshot, part, seat.node),
            local_rank: local_rank(part, task.rank, seat.node),
            spec,
        };
        Some((engine, launch))
    }

    /// A task that cannot be started has ended, and its job with it.
    async fn cannot_start(&self, task: TaskId, problem: &str) {
        tracing::warn!(%task, problem, "a task cannot be started");
        let at_ms = crate::clock::Clock::now(&crate::clock::SystemClock).0;
        let cause = Some(format!("not_started: {problem}"));
        let seen = Seen { at_ms, cause, ..Seen::default() };
        let note = Note { task: Some(seen), ..Note::default() }.write();
        let command = Command::Exited { task, code: NOT_STARTED };
        if let Err(error) = self.driver.hand_in_patiently(command, note).await {
            // The next start finds the launch outstanding, and tries again.
            tracing::warn!(%task, %error, "its end could not be handed in");
        }
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

/// The job of a task that is still to run.
fn current(snapshot: &Snapshot, task: TaskId) -> Option<Arc<Job>> {
    let job = snapshot.job(task.job).ok()?;
    let part = job.parts.get(usize::from(task.part))?;
    let live = job.ended.is_none() && part.is_active() && part.attempt == task.attempt;
    live.then(|| job.clone())
}

/// Every rank of a part with its node, growth included.
fn seats(part: &Part) -> impl Iterator<Item = (u32, NodeId)> {
    let planned = part.plan.iter().flat_map(|plan| &plan.seats);
    let planned = (0u32..).zip(planned.map(|seat| seat.node));
    planned.chain(part.extras.iter().map(|extra| (extra.rank, extra.seat.node)))
}

/// Where rank 0 runs, as a task on this node reaches it.
fn master(snapshot: &Snapshot, part: &Part, here: NodeId) -> String {
    let first = seats(part).find(|(rank, _)| *rank == 0).map_or(here, |(_, node)| node);
    if first == here {
        return "127.0.0.1".to_owned();
    }
    snapshot.cluster().node(first).map_or_else(|_| String::new(), |node| node.name.to_string())
}

/// The place of a rank among those on its node.
fn local_rank(part: &Part, rank: u32, here: NodeId) -> u32 {
    let before = seats(part).filter(|(other, node)| *other < rank && *node == here).count();
    u32::try_from(before).unwrap_or(u32::MAX)
}
