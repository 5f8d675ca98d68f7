//! Between the scheduler and the executors: effects become orders, reports become inputs.
//!
//! An order is given only after the decision behind it is durable, and a report is acknowledged
//! only after the input that it became is. So a crash anywhere in between loses nothing: what was
//! ordered is found again in the state, what was reported is told again, and both are harmless
//! twice. What is to be done about an effect is decided by [`era_drive::Reconciler`], how a task is
//! run by its executor.

pub mod nodes;
mod orders;
mod reports;
mod specs;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use era_api::job::Work;
use era_cloud::{Executor, ExecutorReport, Sample, Staged, TaskLimits};
use era_core::Snapshot;
use era_core::cluster::Node;
use era_core::job::TaskId;
use era_core::units::{JobId, UserId};
use era_drive::tasks;
use era_store::StoreError;
use era_store::accounts::AccountTables;
use era_store::files::FilesError;
use era_store::journal::Journal;
use era_store::secrets::SecretStore;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::driver::{Handle, Releases, TaskEndReport};
use crate::lead::LeaseGate;
use crate::wire::SIMULATED;

/// The executors side by side.
#[derive(Clone)]
pub struct Engines {
    /// The one that runs what is not simulated: this machine's processes, or an engine.
    pub local: Arc<dyn Executor>,
    /// That of nodes whose tasks only sleep.
    pub simulated: Option<Arc<dyn Executor>>,
}

impl Engines {
    /// The one that carries out orders on a node.
    fn of(&self, node: &Node) -> &Arc<dyn Executor> {
        let simulated = node.labels.keys().any(|label| label.as_str() == SIMULATED);
        self.simulated.as_ref().filter(|_| simulated).unwrap_or(&self.local)
    }

    /// What ended by itself while no scheduler was here, as inputs: whatever time has come for
    /// since, these ended before it. The first to end comes first: how a gang ended is how the
    /// first of it did that failed.
    ///
    /// Only of jobs of which nothing is left: what else runs of a job is told to stop by whoever
    /// knows what time it is, with its grace.
    pub fn ended_before(&self, snapshot: &Snapshot, clock: &dyn Clock) -> Vec<TaskEndReport> {
        let known = self.all().filter(|engine| engine.shares_clock());
        let mut reports: Vec<ExecutorReport> =
            known.flat_map(|engine| engine.ended_before()).collect();
        ExecutorReport::put_in_order(&mut reports);
        let by_itself = reports.iter().filter(|report| reports::is_end_by_itself(report));
        let over: BTreeSet<TaskId> = by_itself.filter_map(ExecutorReport::task).collect();
        let is_over = |task: TaskId| {
            over.contains(&task)
                && snapshot.job(task.job).is_ok_and(|job| tasks::nothing_left(job, &over))
        };
        let told = reports.into_iter().filter(|report| report.task().is_some_and(is_over));
        told.filter_map(|report| reports::late(report, snapshot, clock)).collect()
    }

    /// Whether a task can run in an image on any of them.
    pub fn run_images(&self) -> bool {
        self.all().any(|engine| engine.runs_images())
    }

    /// Whether a task can have a terminal on any of them.
    pub fn have_terminals(&self) -> bool {
        self.all().any(|engine| engine.has_terminals())
    }

    /// The task of this rank that may be running of a job, and who runs it.
    pub fn running(
        &self,
        snapshot: &Snapshot,
        job: JobId,
        rank: u32,
    ) -> Option<(&Arc<dyn Executor>, TaskId)> {
        let part = snapshot.job(job).ok()?.parts.first().filter(|part| part.is_active())?;
        let task = TaskId { job, part: 0, attempt: part.attempt, rank };
        let node = tasks::seat(snapshot, task)?.node;
        Some((self.of(snapshot.cluster().node(node).ok()?), task))
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn Executor>> {
        std::iter::once(&self.local).chain(&self.simulated)
    }
}

/// How many tasks were sent out and may still run. Simulated ones are not counted: they end with
/// their server.
pub fn out(snapshot: &Snapshot) -> usize {
    let simulated = |node| {
        let node = snapshot.cluster().node(node);
        node.is_ok_and(|node| node.labels.keys().any(|label| label.as_str() == SIMULATED))
    };
    tasks::live(snapshot).filter(|(_, node)| !node.is_some_and(simulated)).count()
}

/// Code and data of a job as files to copy and link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    /// The code, which becomes the working folder.
    pub code: Vec<Staged>,
    /// What it sees read-only.
    pub inputs: Vec<Staged>,
    /// The full reference of the image that it runs in, or a Dockerfile of its code.
    pub image: Option<String>,
}

/// Why it is not known what a job runs, as a sentence for its owner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unstaged {
    /// For now: what keeps it does not answer. The job has no part in it, and waits.
    #[error("{0}")]
    ForNow(String),
    /// For good: it is not there, or makes no sense. The job cannot be run.
    #[error("{0}")]
    ForGood(String),
}

impl From<StoreError> for Unstaged {
    fn from(error: StoreError) -> Unstaged {
        let sentence = error.to_string();
        if error.may_pass() { Unstaged::ForNow(sentence) } else { Unstaged::ForGood(sentence) }
    }
}

impl From<FilesError> for Unstaged {
    fn from(error: FilesError) -> Unstaged {
        match error {
            FilesError::Store(error) => error.into(),
            FilesError::Busy | FilesError::Stopped => Unstaged::ForNow(error.to_string()),
            lasting => Unstaged::ForGood(lasting.to_string()),
        }
    }
}

/// What finds code and data by what a job says of them.
pub trait Staging: Send + Sync {
    /// The files of this work, for this account; of its inputs the trees that were noted when it
    /// was handed in, where any were.
    fn stage<'a>(
        &'a self,
        user: UserId,
        user_name: &'a str,
        work: &'a Work,
        inputs: Option<&'a [Option<String>]>,
    ) -> Pin<Box<dyn Future<Output = Result<Material, Unstaged>> + Send + 'a>>;
}

/// What the launcher needs.
pub struct Launching {
    /// The road to the scheduler.
    pub driver: Handle,
    /// The scheduler's clock, where it reads that of this machine.
    pub clock: Arc<dyn Clock>,
    /// Where it stands what administrators did.
    pub rows: AccountTables,
    /// Where a job's note is found when it is not at hand.
    pub journal: Journal,
    /// What users' jobs find in their environment and nobody else sees.
    pub secrets: SecretStore,
    /// Where tasks are run.
    pub engines: Engines,
    /// Where code and data are found.
    pub staging: Arc<dyn Staging>,
    /// The folder that files are kept under: each job has its own there.
    pub folder: PathBuf,
    /// What each task may have beside what it asks for.
    pub limits: TaskLimits,
    /// Where values that jobs tell go; what cannot be taken at once is dropped.
    pub samples: Option<mpsc::Sender<(TaskId, Vec<Sample>)>>,
    /// Where another server may run tasks instead of this one: what a launch that had to wait
    /// waits for as well, so that it is not launched by both.
    pub gate: Option<LeaseGate>,
    /// Whether the scheduler reads the clock of this machine.
    pub one_clock: bool,
}

/// A launcher at work.
pub struct Launcher {
    engines: Engines,
    orders: JoinHandle<()>,
    reports: JoinHandle<()>,
}

/// How long a supervisor may take to go.
const LEAVE_TIME: Duration = Duration::from_secs(2);

impl Launcher {
    /// Finds out what was lost while nobody looked, then carries out what is released and takes
    /// what is reported.
    pub fn start(
        launching: Launching,
        releases: Releases,
        reports: mpsc::Receiver<ExecutorReport>,
    ) -> Launcher {
        let Launching { driver, clock, rows, engines, samples, gate, one_clock, .. } = launching;
        let Launching { journal, secrets, staging, folder, limits, .. } = launching;
        let specs = specs::Specs::new(journal, secrets, staging, folder, limits);
        let orders =
            orders::Orders::new(driver.clone(), engines.clone(), clock.clone(), specs, gate);
        let (reconciled, ready) = tokio::sync::oneshot::channel();
        let orders = tokio::spawn(async move {
            reports::reconcile(&orders.driver, &orders.engines).await;
            // Reports of tasks that are known are taken from here on.
            let _ = reconciled.send(());
            orders.run(releases).await;
        });
        let taker =
            reports::Taker { driver, clock, rows, engines: engines.clone(), samples, one_clock };
        let reports = tokio::spawn(async move {
            let _ = ready.await;
            taker.run(reports).await;
        });
        Launcher { engines, orders, reports }
    }

    /// Stops giving orders and taking reports. What runs goes on.
    pub async fn stop(self) {
        self.orders.abort();
        self.reports.abort();
        // Both were told to end; that they did so by force is no news.
        let _ = self.orders.await;
        let _ = self.reports.await;
        for engine in self.engines.all() {
            if tokio::time::timeout(LEAVE_TIME, engine.leave()).await.is_err() {
                tracing::warn!("a supervisor does not answer: the next start finds it");
            }
        }
    }
}
