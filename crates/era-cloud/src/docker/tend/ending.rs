//! How tasks are ended: told to stop, killed, given up for lost, removed; and the last words in
//! their leases.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::Time;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::held::{Act, Phase};
use super::super::lease::{LeaseOrder, Shared};
use super::{TaskLoop, WRITE_PATIENCE, Write};
use crate::executor::{Ending, ExecutorReport};

impl TaskLoop {
    pub(super) async fn stop(&mut self, task: TaskId, until: Time) {
        let Some(held) = self.tasks.get_mut(&task) else {
            let reason = "unknown-to-its-node".into();
            return self.report(ExecutorReport::Lost { task, reason }).await;
        };
        match &held.phase {
            Phase::Ended(report) => {
                let report = report.clone();
                return self.report(report).await;
            }
            // Nothing of it runs yet, and nothing will: what is made of it all the same finds that
            // its lease is over.
            Phase::Blocked | Phase::Beginning => {
                if let Some(start) = self.starts.remove(&task) {
                    start.abort();
                    self.revoke(task).await;
                    self.delete(task);
                }
                let at = self.engine.clock.now();
                let report =
                    ExecutorReport::Exited { task, at, code: 128 + 15, ending: Ending::Stopped };
                return self.end(task, report).await;
            }
            _ => {}
        }
        held.doom.get_or_insert(Ending::Stopped);
        // Its own end may come before that of its grace, and an earlier stop's may.
        let until = until.min(held.until).min(held.stop.unwrap_or(until));
        held.stop = Some(until);
        let left = u64::try_from(until.since(self.engine.clock.now()).ms() / 1000).unwrap_or(0);
        // A guard that has begun to count does not hear of a shorter grace.
        held.stop_by = held.stop_by.max(Instant::now().checked_add(Duration::from_secs(left)));
        self.say(task, LeaseOrder::Stop(left));
        if !self.engine.is_swarm() {
            let engine = self.engine.clone();
            tokio::spawn(async move {
                if let Err(error) = engine.signal(task, "TERM").await {
                    tracing::warn!(%task, %error, "a task could not be signalled");
                }
            });
        }
    }

    pub(super) async fn filled(&mut self, task: TaskId) {
        if let Some(held) = self.tasks.get_mut(&task) {
            held.doom.get_or_insert(Ending::OutOfDisk);
        }
        if let Some((tail, _)) = self.tails.get(&task) {
            tail.note("the task is ended: it filled more disk than it may");
        }
        self.kill(task).await;
    }

    pub(super) async fn kill(&mut self, task: TaskId) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        held.doom.get_or_insert(Ending::Limit);
        held.killed.get_or_insert((Instant::now(), false));
        self.say(task, LeaseOrder::Over);
        if !self.engine.is_swarm() {
            let engine = self.engine.clone();
            tokio::spawn(async move {
                if let Err(error) = engine.signal(task, "KILL").await {
                    tracing::warn!(%task, %error, "a task could not be killed");
                }
            });
        }
    }

    pub(super) async fn tick(&mut self) {
        if !self.looking && self.look_due <= Instant::now() {
            self.look();
        }
        let (at, instant, times) = (self.engine.clock.now(), Instant::now(), self.defaults.times);
        let due: Vec<(TaskId, Act)> = self
            .tasks
            .iter()
            .filter_map(|(task, held)| Some((*task, held.due(&times, at, instant)?)))
            .collect();
        for (task, act) in due {
            match act {
                Act::Say(word) => self.say(task, word),
                Act::Kill => self.kill(task).await,
                Act::Remove => {
                    if let Some(held) = self.tasks.get_mut(&task)
                        && let Some((_, removed)) = &mut held.killed
                    {
                        *removed = true;
                    }
                    self.delete(task);
                }
                Act::Lost(reason) => self.lost(task, reason).await,
            }
        }
    }

    pub(super) async fn lost(&mut self, task: TaskId, reason: &str) {
        if self.tasks.get(&task).is_some_and(|held| held.stray) {
            return self.stray_gone(task).await;
        }
        self.end(task, ExecutorReport::Lost { task, reason: reason.to_owned() }).await;
    }

    pub(super) fn acknowledged(&mut self, task: TaskId) {
        if let Some(held) = self.tasks.get(&task)
            && matches!(held.phase, Phase::Ended(_))
        {
            self.tasks.remove(&task);
            self.delete(task);
        }
    }

    /// Removes an instance, and with the last of a gang its network.
    pub(super) fn delete(&self, task: TaskId) {
        let shared = Shared::of(&self.job_folder(task), task);
        self.write_down(shared.folder.clone(), None, move || shared.remove_secrets());
        let gang = TaskId { rank: 0, ..task };
        let mut others = self.tasks.range(gang..).map(|(other, _)| *other);
        let last = !others.any(|other| TaskId { rank: 0, ..other } == gang && other != task);
        let engine = self.engine.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.delete(task).await {
                tracing::warn!(%task, %error, "an instance stays: the next start removes it");
            }
            // A network is in use until the last container has left it.
            for pause_ms in [0, 200, 1000, 5000] {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                if !last || engine.delete_network(gang).await.unwrap_or(false) {
                    return;
                }
            }
        });
    }

    pub(super) fn say(&mut self, task: TaskId, word: LeaseOrder) {
        self.write(task, word, None);
    }

    /// Says that a lease is over, and waits until that is written: what comes next relies on it.
    pub(super) async fn revoke(&mut self, task: TaskId) {
        let (done, written) = oneshot::channel();
        self.write(task, LeaseOrder::Over, Some(done));
        if tokio::time::timeout(WRITE_PATIENCE, written).await.is_err() {
            tracing::warn!(%task, "the shared folder hangs: a lease lapses unrevoked");
        }
    }

    pub(super) fn write(
        &mut self,
        task: TaskId,
        word: LeaseOrder,
        done: Option<oneshot::Sender<()>>,
    ) {
        let Some(held) = self.tasks.get_mut(&task) else { return };
        // Nothing is said after the last word: it is what a restarted server finds.
        let last = word == LeaseOrder::Over;
        if held.said_over && !last {
            return;
        }
        held.said_over |= last;
        held.generation += 1;
        if matches!(word, LeaseOrder::Run(_)) {
            held.renewed = Some(Instant::now());
        }
        let shared = Shared::of(&held.launch.spec.folder, task);
        let (generation, path) = (held.generation, shared.folder.clone());
        self.write_down(path, done, move || shared.say(generation, word));
    }

    /// Has something written beside the loop, after all that is to be written already.
    pub(super) fn write_down(
        &self,
        path: PathBuf,
        done: Option<oneshot::Sender<()>>,
        write: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) {
        let write = Write { path, write: Box::new(write), done };
        if let Err(unwritten) = self.writes.send(write) {
            tracing::error!(path = %unwritten.0.path.display(), "nothing is written any more");
        }
    }
}
