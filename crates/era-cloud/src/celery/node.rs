//! One machine that serves launches: it holds a lease, runs what it is told by id through the
//! local supervisor or the machine's engine, and keeps the results.
//!
//! Where the ids come from (our own worker, or a Celery worker in Python) is not known here. Every
//! renewal of the lease lets the supervisor run the tasks for one lease more, so that tasks of a
//! machine that is cut off, or whose worker has died, are ended by the supervisor in time; a
//! container's guard does the same. Of several workers that have the same command, one runs it.

mod adopt;
mod behind;
mod claim;
mod exec;
mod heart;
mod orders;
mod running;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::Time;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::bus::{self, Bus, BusError};
use super::handed;
use super::names::{self, CeleryId};
use super::outcome::{TaskEnd, started_meta};
use super::result;
use super::verdict;
use crate::docker::DockerError;
use crate::executor::{Ending, ExecutorReport, FoundNode, Launch, Order};
use crate::local::LocalError;
use behind::Behind;
pub use behind::Runs;
use claim::Claims;
pub use claim::{CommandAck, CommandOutcome};
pub use exec::{Exec, ExecLimits};
pub(super) use heart::renew_messages;
use running::Running;
use tokio::time::Instant;

/// How long it is until something that Redis refused is tried again.
pub(super) const AGAIN: Duration = Duration::from_millis(300);
/// Most reports that wait to be handled.
const REPORTS_MAX: usize = 4096;

/// What a node needs to know.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// What it is called, and what it has.
    pub found: FoundNode,
    /// Where the worker keeps its own things.
    pub folder: PathBuf,
    /// What runs its tasks.
    pub runs: Runs,
}

/// Why a machine cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// An engine that is not this machine's.
    #[error(
        "{0} is not the engine of this machine: a worker's containers run where it does, so give a \
         socket (`docker:///run/docker.sock`) without `volumes`"
    )]
    Elsewhere(String),
    /// An engine that is many machines.
    #[error(
        "{0} manages a Swarm: give it to the server (`era up --executor {0}`), which knows its \
         nodes"
    )]
    Swarm(String),
    #[error("{path}: {source}")]
    Folder {
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another worker on this folder.
    #[error("another worker runs on {0}: stop it, or give this one a folder of its own")]
    Folded(PathBuf),
    /// Another worker for this node.
    #[error("another worker serves node `{0}`: give this one another name with --node")]
    Taken(String),
}

/// What becomes of a launch that a node is told to run.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchOutcome {
    /// It came to its end here, and its result is kept.
    Ended(TaskEnd),
    /// It must not start: it is over, or was called off.
    Over,
}

/// A machine at work. A clone shares.
#[derive(Clone)]
pub struct CeleryNode {
    inner: Arc<Inner>,
}

struct Inner {
    bus: Bus,
    behind: Behind,
    found: FoundNode,
    folder: PathBuf,
    /// By which this worker is known to be the same after a restart.
    generation: Mutex<String>,
    /// How long a lease is now.
    lease: Mutex<Duration>,
    running: Mutex<Running>,
    claims: Mutex<Claims>,
    /// Whether the node holds a lease.
    leased: watch::Sender<bool>,
    /// When the lease that Redis has confirmed is over. By the steady clock.
    lapses: Mutex<Instant>,
    /// One worker a folder; the lock goes with the process.
    _lock: std::fs::File,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

impl CeleryNode {
    /// Reaches what runs tasks here, finds out what runs already, and begins to serve.
    pub async fn start(options: NodeOptions, bus: Bus) -> Result<CeleryNode, NodeError> {
        let NodeOptions { found, folder, runs } = options;
        let lock = adopt::lock(&folder)?;
        let generation = adopt::generation(&folder)?;
        let (tell, told) = mpsc::channel(REPORTS_MAX);
        let behind = Behind::start(runs, &folder, bus.clock(), tell).await?;
        let lease = bus.address().lease;
        let inner = Inner {
            bus,
            behind,
            found,
            folder,
            generation: Mutex::new(generation),
            lease: Mutex::new(lease),
            running: Mutex::default(),
            claims: Mutex::default(),
            leased: watch::Sender::new(false),
            lapses: Mutex::new(Instant::now()),
            _lock: lock,
            tasks: Mutex::new(Vec::new()),
        };
        let node = CeleryNode { inner: Arc::new(inner) };
        node.adopt().await?;
        node.join_patiently().await?;
        node.restore_abandoned().await;
        node.spawn(told);
        Ok(node)
    }

    fn spawn(&self, told: mpsc::Receiver<ExecutorReport>) {
        // Each holds the node weakly between two turns, so that a node that is dropped ends.
        let weak = Arc::downgrade(&self.inner);
        let again = move || weak.upgrade().map(|inner| CeleryNode { inner });
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(tokio::spawn(heart::beat(again.clone())));
        tasks.push(tokio::spawn(orders::follow(again.clone())));
        tasks.push(tokio::spawn(take_reports(again, told)));
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.inner.found.name
    }

    pub fn bus(&self) -> &Bus {
        &self.inner.bus
    }

    /// How many tasks run.
    pub fn busy(&self) -> usize {
        self.running().len()
    }

    /// How long a lease is now.
    pub fn lease(&self) -> Duration {
        *self.inner.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a lease is from the next renewal on.
    pub fn set_lease(&self, lease: Duration) {
        *self.inner.lease.lock().unwrap_or_else(PoisonError::into_inner) = lease;
    }

    /// How long after a renewal this node may still run something, if it is never heard of again.
    fn announced(&self) -> Duration {
        self.lease() + self.inner.behind.late()
    }

    fn generation(&self) -> String {
        self.inner.generation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claims(&self) -> std::sync::MutexGuard<'_, Claims> {
        self.inner.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Redis has confirmed a lease of this length that was asked for then.
    fn confirmed(&self, asked: Instant, lease: Duration) {
        *self.inner.lapses.lock().unwrap_or_else(PoisonError::into_inner) = asked + lease;
    }

    /// How much is left of the lease that Redis has confirmed.
    fn lease_left(&self) -> Duration {
        let lapses = *self.inner.lapses.lock().unwrap_or_else(PoisonError::into_inner);
        lapses.saturating_duration_since(Instant::now())
    }

    /// Until when the supervisor may run what may run until `until`, if the lease is never renewed
    /// again.
    fn guarded(&self, until: Time) -> Time {
        let left = i64::try_from(self.lease_left().as_millis()).unwrap_or(i64::MAX);
        Time(until.0.min(self.bus().now().0.saturating_add(left)))
    }

    /// Waits until the node holds a lease of which something is left.
    async fn leased(&self) {
        if self.lease_left().is_zero() {
            self.inner.leased.send_replace(false);
        }
        let mut leased = self.inner.leased.subscribe();
        // The sender lives as long as the node.
        let _ = leased.wait_for(|leased| *leased).await;
    }

    /// Runs the launch of this id, once, and says how it ended. Asked again, it waits for the same
    /// run.
    pub async fn run(&self, id: &str) -> LaunchOutcome {
        let Some(celery) = CeleryId::read(id) else { return LaunchOutcome::Over };
        loop {
            let (first, ended) = self.running().wait(celery.task, Some(id));
            if !first {
                return self.end_of(ended).await;
            }
            let generation = self.generation();
            match self.claim(id, &generation).await {
                Ok(Claim::Run(launch)) => match self.may_begin(*launch, &generation).await {
                    // The folder may have answered only after the lease was gone.
                    Ok(Some(launch)) if self.generation() == generation => {
                        if self.begin(launch) {
                            return self.end_of(ended).await;
                        }
                        self.running().forget(celery.task);
                        self.leased().await;
                    }
                    Ok(_) => {
                        // Whoever gave it up may not have lived to say so.
                        tracing::info!(id, "a launch was given up before it began");
                        let lost = TaskEnd::Lost("given-up".to_owned());
                        settle(self.clone(), celery.task, lost).await;
                        return self.end_of(ended).await;
                    }
                    Err(error) => {
                        tracing::error!(%error, id, "a launch cannot begin in its job's folder");
                        let (code, ending) = (126, Ending::NotStarted);
                        let outcome =
                            self.running().outcome(celery.task, self.bus().now(), code, ending);
                        settle(self.clone(), celery.task, outcome).await;
                        return self.end_of(ended).await;
                    }
                },
                Ok(Claim::Over) => {
                    self.running().forget(celery.task);
                    return LaunchOutcome::Over;
                }
                Ok(Claim::NoLease) => {
                    self.running().forget(celery.task);
                    self.inner.leased.send_replace(false);
                    self.leased().await;
                }
                Err(error) => {
                    self.running().forget(celery.task);
                    tracing::warn!(%error, id, "a launch could not be claimed: trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn end_of(&self, mut ended: watch::Receiver<Option<TaskEnd>>) -> LaunchOutcome {
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().map_or(LaunchOutcome::Over, LaunchOutcome::Ended),
            // Forgotten without an end: it did not begin.
            Err(_) => LaunchOutcome::Over,
        }
    }

    async fn claim(&self, id: &str, generation: &str) -> Result<Claim, BusError> {
        let answer: Vec<Vec<u8>> = self
            .bus()
            .script("let us claim a launch", &bus::CLAIM, |call| {
                call.key(names::node(self.name())).key(names::LAUNCHES).key(names::CLAIMS);
                call.key(result::key(id)).arg(generation).arg(id);
                for state in result::FINAL {
                    call.arg(state.word());
                }
            })
            .await?;
        Ok(match &answer[..] {
            [word, launch] if word == b"run" => match serde_json::from_slice(launch) {
                Ok(launch) => Claim::Run(Box::new(launch)),
                Err(error) => {
                    tracing::error!(%error, id, "a launch cannot be read: is it of another version?");
                    Claim::Over
                }
            },
            [word] if word == b"lost" => Claim::NoLease,
            _ => Claim::Over,
        })
    }

    /// The launch with its secrets, if the server has not given it up meanwhile; from here on it
    /// cannot.
    async fn may_begin(
        &self,
        mut launch: Launch,
        generation: &str,
    ) -> std::io::Result<Option<Launch>> {
        let worker = format!("{} {generation}", self.name());
        let clock = self.bus().clock().clone();
        let decided = tokio::task::spawn_blocking(move || {
            if !verdict::begin(&launch, &worker)? {
                return Ok(None);
            }
            handed::take(&mut launch).inspect_err(|error| {
                let line = format!(
                    "the task was not started: its secrets cannot be read by the worker: {error}: \
                     run workers as root or as the server's user"
                );
                crate::log::note(&launch.spec.folder, launch.task, &line, clock.now());
            })?;
            Ok(Some(launch))
        });
        decided.await.map_err(std::io::Error::other)?
    }

    /// Has the supervisor start a task, for as long as the lease lasts. Without a lease nothing
    /// begins.
    fn begin(&self, mut launch: Launch) -> bool {
        if self.lease_left().is_zero() {
            return false;
        }
        let (task, until) = (launch.task, launch.until);
        let stop = self.running().begin(task, until);
        launch.until = self.guarded(until);
        self.inner.behind.carry_out(Order::Launch(launch));
        if let Some(until) = stop {
            // It was told to stop before it began.
            self.inner.behind.carry_out(Order::Stop { task, until });
        }
        true
    }

    /// Tells a task to end by `until`.
    pub fn stop(&self, task: TaskId, until: Time) {
        if self.running().stop(task, until) {
            self.inner.behind.carry_out(Order::Stop { task, until });
        }
    }

    /// Has the supervisor exit, if it looks after nothing.
    pub async fn leave(&self) {
        self.inner.behind.leave().await;
    }

    /// Takes messages back that earlier workers of this node held when they died.
    async fn restore_abandoned(&self) {
        match super::unacked::restore_held_by(self.bus(), self.name()).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "messages of an earlier worker are served again"),
            Err(error) => tracing::warn!(%error, "messages of an earlier worker wait"),
        }
    }
}

/// What Redis says to a claim.
enum Claim {
    Run(Box<Launch>),
    Over,
    NoLease,
}

/// Handles what the supervisor reports until the node is gone.
async fn take_reports(
    again: impl Fn() -> Option<CeleryNode>,
    mut told: mpsc::Receiver<ExecutorReport>,
) {
    while let Some(report) = told.recv().await {
        let Some(node) = again() else { return };
        match report {
            ExecutorReport::Started { task, at, prepared } => {
                let id = node.running().started(task, at, prepared);
                if let Some(id) = id {
                    let meta = started_meta(&id, node.name(), at, prepared);
                    // The end tells the start too, so this may be lost.
                    if let Err(error) = node.bus().store(&meta).await {
                        tracing::warn!(%error, id, "a start is told with its end");
                    }
                }
            }
            ExecutorReport::Exited { task, at, code, ending } => {
                let ended = node.running().outcome(task, at, code, ending);
                tokio::spawn(settle(node, task, ended));
            }
            ExecutorReport::Lost { task, reason } => {
                tokio::spawn(settle(node, task, TaskEnd::Lost(reason)));
            }
            ExecutorReport::Checkpointed { task, .. }
            | ExecutorReport::GpusIdle { task }
            | ExecutorReport::Samples { task, .. } => {
                let ours = node.running().id(task).is_some();
                if ours {
                    orders::tell(&node, &report).await;
                }
            }
            // What this node is, it tells by itself.
            ExecutorReport::Node(_)
            | ExecutorReport::NodeLost { .. }
            | ExecutorReport::NodeDrained { .. }
            | ExecutorReport::NodeResumed { .. }
            | ExecutorReport::NodesAre { .. } => {}
        }
    }
}

/// Keeps the end of a task until Redis has it, and only then lets the supervisor forget it. A task
/// that no launch describes is told to those who wait for it here, and to nobody else.
async fn settle(node: CeleryNode, task: TaskId, ended: TaskEnd) {
    let id = node.running().id(task);
    if let Some(id) = id {
        let meta = ended.meta(&id, node.bus().now());
        while let Err(error) = node.bus().store(&meta).await {
            tracing::warn!(%error, id, "an end waits for Redis");
            tokio::time::sleep(AGAIN).await;
        }
    }
    node.running().end(task, ended);
    node.inner.behind.acknowledge(task);
}
