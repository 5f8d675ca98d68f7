//! What a look at the engine shows, and what follows from it: nodes that came and went, tasks that
//! run, are over, or are gone.

use std::collections::BTreeSet;

use era_core::job::TaskId;
use era_core::units::Span;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::super::failure::DockerError;
use super::super::follow::{self, LogTail};
use super::super::held::{ENGINE_AWAY, Held, Phase, SUPERSEDED};
use super::super::instance::{EngineNode, InstanceState, InstanceStatus};
use super::super::lease::Shared;
use super::super::nodes::{Nodes, Remembered};
use super::{
    LOOK_IDLE, LOOK_MAX, LOOK_MIN, LOOK_SHARE, LoopEvent, NODES_FILE, TaskLoop, WRITE_PATIENCE,
};
use crate::executor::ExecutorReport;
use crate::task::Places;

impl TaskLoop {
    pub(super) fn look(&mut self) {
        self.looking = true;
        let (engine, tell, begun) = (self.engine.clone(), self.news.0.clone(), Instant::now());
        tokio::spawn(async move {
            let looked = match engine.nodes().await {
                Ok(nodes) => engine.list().await.map(|sightings| (nodes, sightings)),
                Err(error) => Err(error),
            };
            let _ = tell.send(LoopEvent::Looked(looked, begun));
        });
    }

    pub(super) fn looked(&mut self, begun: Instant) {
        self.looking = false;
        let idle = !self.tasks.values().any(Held::is_live);
        let every = (begun.elapsed() * LOOK_SHARE).clamp(LOOK_MIN, LOOK_MAX);
        self.look_due = Instant::now() + if idle { LOOK_IDLE } else { every };
    }

    /// Nodes that went are told only after nothing renews the leases on them any more.
    pub(super) async fn see_nodes(&mut self, listed: &[EngineNode]) {
        let nodes = Nodes::of(listed, &self.remembered);
        let before = self.nodes_told.then_some(&self.nodes);
        let news = nodes.news(before, &self.remembered);
        let remembered = nodes.remembered(before, &self.remembered);
        (self.nodes, self.nodes_told) = (nodes, true);
        if remembered != self.remembered {
            self.remember(remembered).await;
        }
        for report in news {
            match &report {
                ExecutorReport::NodeLost { name } => self.cut_off(name).await,
                // On a plain engine what was found is there, whatever its machine is called now.
                ExecutorReport::NodesAre { names } if self.engine.is_swarm() => {
                    for node in self.nodes_but(names) {
                        self.cut_off(&node).await;
                    }
                }
                _ => {}
            }
            self.report(report).await;
        }
    }

    /// The nodes of tasks that are none of these.
    fn nodes_but(&self, names: &[String]) -> BTreeSet<String> {
        let nodes = self.tasks.values().map(|held| &held.launch.node_name);
        nodes.filter(|node| !names.contains(node)).cloned().collect()
    }

    /// Keeps what a server that starts anew must know of nodes, before any of it is told.
    async fn remember(&mut self, remembered: Remembered) {
        self.remembered = remembered.clone();
        let path = self.defaults.data.join(NODES_FILE);
        let (done, written) = oneshot::channel();
        let to = path.clone();
        self.write_down(path, Some(done), move || remembered.write(&to));
        if tokio::time::timeout(WRITE_PATIENCE, written).await.is_err() {
            tracing::warn!("the data folder hangs: what is known of nodes may be forgotten");
        }
    }

    pub(super) async fn cut_off(&mut self, node: &str) {
        let on = |held: &Held| held.launch.node_name == node && held.is_live();
        let there: Vec<TaskId> =
            self.tasks.iter().filter(|(_, held)| on(held)).map(|(task, _)| *task).collect();
        for task in there {
            let times = self.defaults.times;
            if let Some(held) = self.tasks.get_mut(&task) {
                held.cut_off(&times, Instant::now());
            }
            self.revoke(task).await;
        }
    }

    pub(super) async fn see(&mut self, sightings: Vec<InstanceStatus>, begun: Instant) {
        let mut absent: Vec<TaskId> = Vec::new();
        {
            let seen: BTreeSet<TaskId> = sightings.iter().map(|sighting| sighting.task).collect();
            for (task, held) in &self.tasks {
                if held.must_be_seen(begun) && !seen.contains(task) {
                    absent.push(*task);
                }
            }
        }
        for InstanceStatus { task, state, .. } in sightings {
            self.saw(task, state).await;
        }
        for task in absent {
            self.vanished(task).await;
        }
    }

    pub(super) async fn saw(&mut self, task: TaskId, state: InstanceState) {
        let Some(held) = self.tasks.get(&task) else {
            // It could not be removed while the engine was away.
            if state.is_over() {
                self.delete(task);
            }
            return;
        };
        if !matches!(held.phase, Phase::Waits | Phase::Runs(_)) {
            return;
        }
        if held.stray {
            if state.is_over() {
                self.stray_gone(task).await;
            }
            return;
        }
        if state == InstanceState::Runs
            && let Some(held) = self.tasks.get_mut(&task)
        {
            held.engine_away = false;
        }
        let Some(held) = self.tasks.get(&task) else { return };
        match state {
            InstanceState::Waits(says) if held.waits_in_vain(&says, Instant::now()) => {
                self.delete(task);
                self.not_started(task, &format!("its node has no room for it: {says}")).await;
            }
            InstanceState::Waits(_) => {}
            InstanceState::Runs => self.runs(task).await,
            over => self.over(task, over).await,
        }
    }

    pub(super) async fn stray_gone(&mut self, task: TaskId) {
        let asked_again = self.tasks.remove(&task).is_some_and(|held| held.asked_again);
        self.drop_tail(task);
        self.delete(task);
        if asked_again {
            self.report(ExecutorReport::Lost { task, reason: SUPERSEDED.into() }).await;
        }
        let blocked: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, held)| held.phase == Phase::Blocked)
            .map(|(task, _)| *task)
            .collect();
        blocked.into_iter().for_each(|task| self.unblock(task));
    }

    /// Its instance is gone, and nobody here removed it, unless it was killed or is in the way.
    pub(super) async fn vanished(&mut self, task: TaskId) {
        let times = self.defaults.times;
        let ready = |held: &Held| self.nodes.is_ready(&held.launch.node_name);
        let Some(held) = self.tasks.get(&task) else { return };
        // Where its node answers, what the engine no longer lists is gone.
        let gone = ready(held) || !self.engine.is_swarm();
        if held.stray && gone {
            return self.stray_gone(task).await;
        }
        if held.killed.is_some() && gone {
            return self.over(task, InstanceState::Removed).await;
        }
        if let Some(held) = self.tasks.get_mut(&task)
            && held.cut_off.is_none()
        {
            held.cut_off(&times, Instant::now());
            self.revoke(task).await;
        }
    }

    pub(super) async fn runs(&mut self, task: TaskId) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        if held.phase == Phase::Waits {
            let launch = held.launch.clone();
            let at = Shared::of(&launch.spec.folder, task)
                .started()
                .unwrap_or_else(|| self.engine.clock.now());
            held.phase = Phase::Runs(at);
            let prepared = Span(i64::try_from(held.ordered.elapsed().as_millis()).unwrap_or(0));
            let owner = self.defaults.isolation.uid(launch.spec.user).ok().flatten();
            self.report(ExecutorReport::Started { task, at, prepared }).await;
            let tail = LogTail::new(self.engine.clone(), &launch);
            let follow = tokio::spawn(tail.clone().follow(self.reports.clone()));
            let (engine, reports) = (self.engine.clone(), self.reports.clone());
            let watch = follow::watch(engine, launch, owner, reports, self.full.0.clone());
            let watch = tokio::spawn(watch);
            let handles = vec![follow.abort_handle(), watch.abort_handle()];
            self.tails.insert(task, (tail, handles));
        }
    }

    /// Its instance is over: the rest of its log is read, then its end is told.
    pub(super) async fn over(&mut self, task: TaskId, seen: InstanceState) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        let launch = held.launch.clone();
        let shared = Shared::of(&launch.spec.folder, task);
        if let InstanceState::Failed(why) = &seen
            && held.doom.is_none()
            && shared.started().is_none()
        {
            return self.failed(task, why.clone());
        }
        let told = shared.ended();
        let began = shared.started();
        if let (Phase::Waits, Some(at)) = (&held.phase, began) {
            // So short that it was never seen to run.
            let prepared = Span(i64::try_from(held.ordered.elapsed().as_millis()).unwrap_or(0));
            let _ = self.reports.send(ExecutorReport::Started { task, at, prepared }).await;
        }
        let report = held.end(&seen, told, self.engine.clock.now());
        let went_away =
            matches!(&report, ExecutorReport::Lost { reason, .. } if reason == ENGINE_AWAY);
        held.phase = Phase::Ending;
        let tail = match self.tails.remove(&task) {
            Some((tail, handles)) => {
                handles.iter().for_each(AbortHandle::abort);
                tail
            }
            None => LogTail::new(self.engine.clone(), &launch),
        };
        let (reports, tell) = (self.reports.clone(), self.news.0.clone());
        let place = self.engine.place.clone();
        let image = launch.spec.image.clone().or_else(|| self.image.clone()).unwrap_or_default();
        tokio::spawn(async move {
            match &seen {
                InstanceState::Failed(why) => {
                    let why = DockerError::of_start(&place, &image, why);
                    tail.note(&format!("the task was not started: {why}"));
                }
                InstanceState::Removed => {}
                _ => {
                    tail.rest(&reports).await;
                    if went_away {
                        let why = format!("the engine at {place} went away while it ran");
                        tail.note(&format!("the task is gone: {why}, and ended it"));
                    }
                }
            }
            let _ = tell.send(LoopEvent::Drained(task, Box::new(report)));
        });
    }

    pub(super) async fn end(&mut self, task: TaskId, report: ExecutorReport) {
        self.drop_tail(task);
        let Some(held) = self.tasks.get_mut(&task) else { return };
        held.phase = Phase::Ended(report.clone());
        let places = Places::of(&held.launch);
        tokio::task::spawn_blocking(move || places.tidy());
        if held.stray {
            return self.stray_gone(task).await;
        }
        self.report(report).await;
    }

    pub(super) fn drop_tail(&mut self, task: TaskId) {
        if let Some((_, handles)) = self.tails.remove(&task) {
            handles.iter().for_each(AbortHandle::abort);
        }
    }
}
