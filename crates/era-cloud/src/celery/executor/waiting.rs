//! Launches that nobody takes: what they wait for is in their log, and in time they are given up,
//! so that their jobs are planned anew or refunded.
//!
//! A launch is given up only once it is certain that it never starts. While Redis answers, it is
//! called off there in one step. While Redis is away, a word in the job's folder decides
//! ([`verdict`]): whoever took the message in the last moment has written it before.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use era_core::job::TaskId;

use super::Shared;
use super::known::Waiting;
use crate::celery::bus::{self, BusError};
use crate::celery::{names, queue, verdict};
use crate::executor::{Launch, Report};
use crate::log::{LogWriter, Stream};

/// How long Redis may be away before what waits for it is given up.
pub(super) const AWAY_PATIENCE: Duration = Duration::from_secs(30);
/// How long a worker that is there may leave a launch where it is.
const UNTAKEN_PATIENCE: Duration = Duration::from_secs(60);
/// How long a launch waits before its log says so.
const NOTE_AFTER: Duration = Duration::from_secs(2);
/// How often what waits is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A Redis that does not answer.
#[derive(Clone, Debug)]
pub(super) struct Away {
    since: Instant,
    /// What became of the last question.
    why: String,
}

/// Looks after what waits until the executor is gone.
pub(super) async fn watch(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = shared.stops.notified() => {}
        }
        let Some(away) = shared.away().clone() else { continue };
        let waiting = shared.known().waiting(Instant::now());
        for waits in waiting {
            shared.wait_without_redis(waits, &away).await;
        }
    }
}

impl Shared {
    fn away(&self) -> std::sync::MutexGuard<'_, Option<Away>> {
        // One value, replaced as a whole.
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Redis did not answer. Says since how long it has not.
    pub(super) fn is_away(&self, error: &BusError, now: Instant) -> Duration {
        let mut away = self.away();
        let since = away.as_ref().map_or(now, |away| away.since);
        if away.is_none() {
            tracing::warn!(%error, "nothing can be started while Redis is away");
        }
        *away = Some(Away { since, why: error.to_string() });
        now.saturating_duration_since(since)
    }

    /// Redis answers: whatever waited for it is on its way.
    pub(super) fn is_back(&self, now: Instant) {
        if self.away().take().is_some() {
            tracing::info!("Redis is back");
            self.known().begin_anew(now);
        }
    }

    async fn wait_without_redis(&self, waits: Waiting, away: &Away) {
        let waited = waits.waited.min(away.since.elapsed());
        let task = waits.launch.task;
        if waits.stop {
            if self.never_starts(&waits.launch, &away.why).await {
                self.tell_stopped(task).await;
            }
        } else if waited >= NOTE_AFTER && !waits.noted && verdict::is_open(&waits.launch) {
            self.note(&waits.launch, &format!("the task waits to be started: {}", away.why));
        }
    }

    /// Nothing can be started without Redis, and it has been away for long: gives up what waits for
    /// a node, and says which. Where something else may run there the node stays, and what was sent
    /// to it since then has its time.
    pub(super) async fn give_up_waiting(&self, node: &str, why: &str) -> Vec<TaskId> {
        let (waiting, out) = {
            let known = self.known();
            (known.waiting(Instant::now()), known.on_node(node).len())
        };
        let here: Vec<Waiting> =
            waiting.into_iter().filter(|waits| waits.launch.node_name == node).collect();
        let busy = out > here.len();
        let mut given_up = Vec::new();
        for waits in here.iter().filter(|waits| !busy || waits.waited >= AWAY_PATIENCE) {
            if self.never_starts(&waits.launch, why).await {
                given_up.push(waits.launch.task);
            }
        }
        given_up
    }

    /// Gives a launch up without Redis, and says why in its log, unless a worker has begun it.
    pub(super) async fn never_starts(&self, launch: &Launch, why: &str) -> bool {
        let (own, task) = (launch.clone(), launch.task);
        let decided = tokio::task::spawn_blocking(move || verdict::give_up(&own)).await;
        match decided.map_err(std::io::Error::other).flatten() {
            Ok(true) => {
                self.note(launch, &format!("the task was not started: {why}"));
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::error!(%task, %error, "a launch cannot be given up in its job's folder");
                false
            }
        }
    }

    /// A launch that nobody has claimed: its log says so, and in time it is given up, and its node
    /// is sent nothing more. Says whether it is given up.
    pub(super) async fn is_untaken(&self, waits: &Waiting) -> Result<bool, BusError> {
        let (task, node) = (waits.launch.task, &waits.launch.node_name);
        let queue = queue::of_node(node);
        let why = format!("the worker of node {node} does not take from {queue}: is it stuck?");
        if waits.waited < UNTAKEN_PATIENCE {
            if !waits.noted {
                self.note(&waits.launch, &format!("the task waits to be started: {why}"));
            }
            return Ok(false);
        }
        if !self.call_off(task).await? {
            return Ok(true);
        }
        self.note(&waits.launch, &format!("the task was not started: {why}"));
        // Kept there, since the node stays drained whoever looks after it.
        let mut remember = redis::cmd("SADD");
        remember.arg(names::UNTAKEN).arg(node);
        self.bus.run::<i64>("remember a node that takes nothing", &remember).await?;
        self.report([Report::NodeDrained { name: node.clone() }]).await;
        let reason = "its-worker-did-not-take-it".to_owned();
        self.tell(vec![Report::Lost { task, reason }]).await;
        Ok(true)
    }

    /// Writes a line of our own into the log of a task that has not begun.
    pub(super) fn note(&self, launch: &Launch, line: &str) {
        let spec = &launch.spec;
        let logs = spec.folder.join("logs");
        let mut log = LogWriter::open(&logs, launch.task, spec.limits.log_bytes);
        log.write(Stream::Err, format!("{line}\n").as_bytes(), bus::now());
        log.flush(bus::now());
        self.known().noted(launch.task);
    }
}
