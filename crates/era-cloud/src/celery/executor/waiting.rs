//! Launches that nobody takes: what they wait for is in their log, and in time they are given up,
//! so that their jobs are planned anew or refunded.
//!
//! A launch is given up only once it is certain that it never starts. While Redis answers, it is
//! called off there in one step. While Redis is away, a word in the job's folder decides
//! ([`verdict`]): whoever took the message in the last moment has written it before.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::Shared;
use super::known::Waiting;
use crate::celery::bus::BusError;
use crate::celery::{names, queue, verdict};
use crate::executor::{ExecutorReport, Launch};
use crate::log;

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
pub(super) struct RedisAway {
    since: Instant,
    /// What became of the last question.
    why: String,
}

/// Whether a launch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    /// No worker has begun it, and none ever will.
    GivenUp,
    /// A worker has begun it.
    Begun,
    /// Its job's folder does not say.
    Unknown,
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
        let waiting = waiting.into_iter().map(|waits| shared.wait_without_redis(waits, &away));
        join_all(waiting).await;
    }
}

impl Shared {
    fn away(&self) -> std::sync::MutexGuard<'_, Option<RedisAway>> {
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
        *away = Some(RedisAway { since, why: error.to_string() });
        now.saturating_duration_since(since)
    }

    /// Redis answers: whatever waited for it is on its way.
    pub(super) fn is_back(&self, now: Instant) {
        if self.away().take().is_some() {
            tracing::info!("Redis is back");
            self.known().begin_anew(now);
        }
    }

    async fn wait_without_redis(&self, waits: Waiting, away: &RedisAway) {
        let waited = waits.waited.min(away.since.elapsed());
        let task = waits.launch.task;
        if waits.stop {
            if self.never_starts(&waits.launch, Some(&away.why)).await == Decided::GivenUp {
                self.tell_stopped(task).await;
            }
        } else if waited >= NOTE_AFTER && !waits.noted {
            self.note_if_open(waits.launch, format!("the task waits to be started: {}", away.why))
                .await;
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
        let late = here.iter().filter(|waits| !busy || waits.waited >= AWAY_PATIENCE);
        let given_up = late.map(async |waits| {
            let decided = self.never_starts(&waits.launch, Some(why)).await;
            (decided == Decided::GivenUp).then_some(waits.launch.task)
        });
        join_all(given_up).await.into_iter().flatten().collect()
    }

    /// Gives a launch up by a word in its job's folder, unless a worker has begun it, and says why
    /// in its log.
    pub(super) async fn never_starts(&self, launch: &Launch, why: Option<&str>) -> Decided {
        // Redis refuses whoever does not lead any more; a folder refuses nobody.
        if !self.fence.leads().await {
            return Decided::Unknown;
        }
        let (own, task) = (launch.clone(), launch.task);
        let line = why.map(|why| format!("the task was not started: {why}"));
        let clock = self.bus.clock().clone();
        let decide = move || {
            let given_up = verdict::give_up(&own)?;
            if let (true, Some(line)) = (given_up, line) {
                log::note(&own.spec.folder, own.task, &line, clock.now());
            }
            Ok(given_up)
        };
        match self.folders.ask(task, decide).await {
            Some(Ok(true)) => Decided::GivenUp,
            Some(Ok(false)) => Decided::Begun,
            Some(Err(error)) => {
                let error: std::io::Error = error;
                tracing::error!(%task, %error, "a launch cannot be given up in its job's folder");
                Decided::Unknown
            }
            None => Decided::Unknown,
        }
    }

    /// A launch that nobody has claimed: its log says so, and in time it is given up, and its node
    /// is sent nothing more. Says whether its message is to be sent again.
    pub(super) async fn is_wanted(&self, waits: &Waiting) -> Result<bool, BusError> {
        let (task, node) = (waits.launch.task, &waits.launch.node_name);
        let queue = queue::of_node(node);
        let why = format!("the worker of node {node} does not take from {queue}: is it stuck?");
        if waits.waited < UNTAKEN_PATIENCE {
            if !waits.noted {
                let line = format!("the task waits to be started: {why}");
                self.note_if_open(waits.launch.clone(), line).await;
            }
            return Ok(true);
        }
        match self.never_starts(&waits.launch, Some(&why)).await {
            Decided::GivenUp => drop(self.call_off(task).await?),
            // Redis has forgotten who claimed it, and perhaps its message.
            Decided::Begun => return self.claim_again(&waits.launch).await.map(|()| true),
            Decided::Unknown if self.call_off(task).await? => {}
            Decided::Unknown => return Ok(false),
        }
        self.untaken().insert(node.clone());
        // Kept there, since the node stays drained whoever looks after it.
        let mut remember = redis::pipe();
        remember.cmd("SADD").arg(names::UNTAKEN).arg(node);
        self.fence.write("remember a node that takes nothing", &remember).await?;
        self.report([ExecutorReport::NodeDrained { name: node.clone() }]).await;
        let reason = "its-worker-did-not-take-it".to_owned();
        self.tell(vec![ExecutorReport::Lost { task, reason }]).await;
        Ok(false)
    }

    /// A worker has begun this launch, whatever Redis says.
    async fn claim_again(&self, launch: &Launch) -> Result<(), BusError> {
        let id = self.id(launch.task);
        tracing::warn!(id, "a launch that Redis has forgotten was begun: it is claimed again");
        let mut claim = redis::pipe();
        claim.cmd("HSETNX").arg(names::CLAIMS).arg(id).arg(&launch.node_name);
        self.fence.write("remember a claim", &claim).await
    }

    /// Writes a line of our own into the log of a task that nobody has decided about.
    async fn note_if_open(&self, launch: Launch, line: String) {
        let (task, clock) = (launch.task, self.bus.clock().clone());
        let note = move || {
            let open = verdict::is_open(&launch);
            if open {
                log::note(&launch.spec.folder, launch.task, &line, clock.now());
            }
            open
        };
        if self.folders.ask(task, note).await == Some(true) {
            self.known().noted(task);
        }
    }
}
