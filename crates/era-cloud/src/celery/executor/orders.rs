//! Orders become messages and entries of streams.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::job::TaskId;
use era_core::units::Time;
use serde_json::Map;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::known::Waiting;
use super::waiting::Decided;
use super::{AGAIN, ExecutorCommand, LaunchesOut, Shared};
use crate::celery::body::BodyFormat;
use crate::celery::bus::{self, Bus, BusError, add_publish};
use crate::celery::handed;
use crate::celery::message::{BadMessage, TaskMessage};
use crate::celery::names::{self, CeleryId};
use crate::celery::{RUN, queue, result};
use crate::executor::{Ending, ExecutorReport, Launch, Order};

/// Most orders in one turn.
pub(super) const BATCH_MAX: usize = 256;
/// Most orders that are kept for a node.
const ORDERS_MAX: usize = 10_000;
/// The exit code of what was told to stop before it began.
const TERMINATED: i32 = 128 + 15;

/// The launches that are out, as Redis has them.
pub(super) async fn out(bus: &Bus, site: &str) -> Result<LaunchesOut, BusError> {
    let all: BTreeMap<String, Vec<u8>> =
        bus.run("show what is out", redis::cmd("HGETALL").arg(names::LAUNCHES)).await?;
    let (mut known, now) = (LaunchesOut::default(), Instant::now());
    for (id, launch) in all {
        let ours = CeleryId::read(&id).is_some_and(|id| id.site == site);
        match serde_json::from_slice::<Launch>(&launch) {
            Ok(launch) if ours => drop(known.insert(launch, now)),
            _ => tracing::warn!(id, "a launch in Redis is not ours, or cannot be read"),
        }
    }
    Ok(known)
}

/// Carries orders out until the executor is gone.
pub(super) async fn carry_out(
    shared: Arc<Shared>,
    mut says: mpsc::UnboundedReceiver<ExecutorCommand>,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while says.recv_many(&mut batch, BATCH_MAX).await > 0 {
        // Launches and acknowledgements in a row share one trip; whatever else comes in between
        // keeps its place.
        let mut together = redis::pipe();
        let mut some = false;
        for say in batch.drain(..) {
            match say {
                ExecutorCommand::Order(order) => match *order {
                    Order::Launch(launch) => some |= shared.add_launch(&mut together, launch).await,
                    other => {
                        flush(&shared, &mut together, &mut some).await;
                        patiently(|| shared.order(&other)).await;
                    }
                },
                ExecutorCommand::Acknowledge(task) => {
                    shared.add_acknowledge(&mut together, task);
                    some = true;
                }
            }
        }
        flush(&shared, &mut together, &mut some).await;
    }
}

async fn flush(shared: &Shared, together: &mut redis::Pipeline, some: &mut bool) {
    if std::mem::take(some) {
        patiently(|| shared.fence.write("take launches", together)).await;
    }
    *together = redis::pipe();
}

/// Tries until Redis has it: an order that was decided must not be lost.
async fn patiently<F: Future<Output = Result<(), BusError>>>(mut attempt: impl FnMut() -> F) {
    while let Err(error) = attempt().await {
        tracing::warn!(%error, "orders wait for Redis");
        tokio::time::sleep(AGAIN).await;
    }
}

/// A launch with secrets: they are in its job's folder before any worker hears of it. Where the
/// folder hangs nothing else waits for it.
pub(super) async fn hand_over(
    shared: Arc<Shared>,
    says: mpsc::UnboundedSender<ExecutorCommand>,
    launch: Launch,
    bare: Launch,
) {
    let task = launch.task;
    match shared.folders.ask(task, move || handed::put(&launch)).await {
        Some(Ok(())) => {
            // Whoever listens goes with the executor.
            let _ = says.send(ExecutorCommand::Order(Box::new(Order::Launch(bare))));
        }
        failed => {
            let error = match failed {
                Some(Err(error)) => error.to_string(),
                _ => "it hangs".to_owned(),
            };
            tracing::error!(%task, error, "secrets cannot be put into the folder of their job");
            let reason = "secrets-not-handed-over".to_owned();
            shared.tell(vec![ExecutorReport::Lost { task, reason }]).await;
        }
    }
}

impl Shared {
    /// Adds what makes a launch known and sends its message. Says whether anything was added.
    async fn add_launch(&self, all: &mut redis::Pipeline, launch: Launch) -> bool {
        let task = launch.task;
        // It may have been stopped and forgotten while its secrets were handed over.
        if !self.known().has(task) {
            return false;
        }
        let (id, text) = (self.id(task), serde_json::to_string(&launch));
        match (message(&id, &launch, self.bus.tag()), text) {
            (Ok(envelope), Ok(text)) => {
                all.cmd("HSET").arg(names::LAUNCHES).arg(&id).arg(text).ignore();
                add_publish(all, &envelope);
                true
            }
            (Err(error), _) => self.cannot(task, &error.to_string()).await,
            (_, Err(error)) => self.cannot(task, &error.to_string()).await,
        }
    }

    async fn cannot(&self, task: TaskId, problem: &str) -> bool {
        tracing::error!(%task, problem, "a launch cannot be written");
        let (code, ending) = (126, Ending::NotStarted);
        self.tell(vec![ExecutorReport::Exited { task, at: self.bus.now(), code, ending }]).await;
        false
    }

    /// Tells what is news of it.
    pub(super) async fn tell(&self, reports: Vec<ExecutorReport>) -> bool {
        let news = self.known().news(reports);
        self.report(news).await
    }

    /// Adds what makes a task forgotten.
    fn add_acknowledge(self: &Arc<Shared>, all: &mut redis::Pipeline, task: TaskId) {
        let id = self.id(task);
        let secret = self.known().launch(task).filter(|(of, _)| !of.spec.secrets.is_empty());
        if let Some((launch, _)) = secret {
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                shared.folders.ask(task, move || handed::remove(&launch)).await;
            });
        }
        all.cmd("HDEL").arg(names::LAUNCHES).arg(&id).ignore();
        all.cmd("HDEL").arg(names::CLAIMS).arg(&id).ignore();
        all.cmd("DEL").arg(result::key(&id)).ignore();
        self.known().remove(task);
    }

    async fn order(&self, order: &Order) -> Result<(), BusError> {
        match order {
            Order::Stop { task, .. } => self.stop(*task, order).await,
            Order::Prolong { task, until } => self.prolong(*task, *until, order).await,
            Order::Resize { job, part, attempt, .. } => {
                let nodes = self.known().nodes_of(*job, *part, *attempt);
                for node in nodes {
                    self.send(&node, order).await?;
                }
                Ok(())
            }
            // Workers share the data folder: there is nothing to bring.
            Order::Launch(_) | Order::Stage(_) => Ok(()),
        }
    }

    /// Cancels a launch that no worker has claimed. A running task is stopped by its node.
    async fn stop(&self, task: TaskId, order: &Order) -> Result<(), BusError> {
        let Some((launch, started)) = self.known().launch(task) else {
            let reason = "unknown-to-its-node".to_owned();
            self.report([ExecutorReport::Lost { task, reason }]).await;
            return Ok(());
        };
        let called_off = !started
            && !self.is_claimed(task).await?
            // A Redis that has lost its memory does not know who claimed what.
            && match self.never_starts(&launch, None).await {
                Decided::GivenUp => self.call_off(task).await.map(|_| true)?,
                Decided::Begun => false,
                Decided::Unknown => self.call_off(task).await?,
            };
        if !called_off {
            return self.send(&launch.node_name, order).await;
        }
        self.tell_stopped(task).await;
        Ok(())
    }

    /// Whether a worker has taken a launch, by the word of Redis.
    async fn is_claimed(&self, task: TaskId) -> Result<bool, BusError> {
        let mut claimed = redis::cmd("HEXISTS");
        claimed.arg(names::CLAIMS).arg(self.id(task));
        Ok(self.bus.run::<i64>("say what is claimed", &claimed).await? == 1)
    }

    /// Says whether nobody has claimed a launch, and nobody can from now on: wherever its message
    /// lies, it starts nothing.
    pub(super) async fn call_off(&self, task: TaskId) -> Result<bool, BusError> {
        let id = self.id(task);
        let called_off: u8 = self
            .fence
            .script("call a launch off", &bus::CALL_OFF, |call| {
                call.key(names::CLAIMS).key(names::LAUNCHES).arg(&id);
            })
            .await?;
        Ok(called_off == 1)
    }

    /// It was told to stop before it began.
    pub(super) async fn tell_stopped(&self, task: TaskId) {
        let (code, ending) = (TERMINATED, Ending::Stopped);
        self.tell(vec![ExecutorReport::Exited { task, at: self.bus.now(), code, ending }]).await;
    }

    async fn prolong(&self, task: TaskId, until: Time, order: &Order) -> Result<(), BusError> {
        let Some(launch) = self.known().prolong(task, until) else { return Ok(()) };
        if let Ok(text) = serde_json::to_string(&launch) {
            let mut set = redis::pipe();
            set.cmd("HSET").arg(names::LAUNCHES).arg(self.id(task)).arg(text);
            self.fence.write("prolong a launch", &set).await?;
        }
        self.send(&launch.node_name, order).await
    }

    /// An order for a node, kept until it reads it.
    async fn send(&self, node: &str, order: &Order) -> Result<(), BusError> {
        let Ok(text) = serde_json::to_string(order) else { return Ok(()) };
        let mut add = redis::pipe();
        add.cmd("XADD").arg(names::orders(node)).arg("MAXLEN").arg("~").arg(ORDERS_MAX).arg("*");
        add.arg("order").arg(text);
        self.fence.write("take an order", &add).await
    }

    /// Sends the messages of launches again whose first may be lost: nobody has claimed them. What
    /// nobody claims for long is given up.
    pub(super) async fn send_again(&self, unheard: Vec<Waiting>) -> Result<(), BusError> {
        for waits in unheard {
            let (task, id) = (waits.launch.task, self.id(waits.launch.task));
            self.known().sent(task, Instant::now());
            if self.is_claimed(task).await? || !self.is_wanted(&waits).await? {
                continue;
            }
            let text = serde_json::to_string(&waits.launch);
            if let (Ok(envelope), Ok(text)) = (message(&id, &waits.launch, self.bus.tag()), text) {
                tracing::warn!(id, "a launch that nobody took is sent again");
                let mut all = redis::pipe();
                // A Redis that is back from an older memory may not know it.
                all.cmd("HSETNX").arg(names::LAUNCHES).arg(&id).arg(text).ignore();
                add_publish(&mut all, &envelope);
                self.fence.write("take messages", &all).await?;
            }
        }
        Ok(())
    }
}

/// A launch as a message. It carries the id alone: whoever takes it fetches the rest, if it may
/// still start. Neither a time limit nor an expiry stands in it, since a launch may be prolonged:
/// the node keeps the one, and what is among the launches the other.
fn message(
    id: &str,
    launch: &Launch,
    tag: String,
) -> Result<crate::celery::envelope::Envelope, BadMessage> {
    let mut message = TaskMessage::new(RUN, id, vec![id.into()], Map::new());
    message.headers.shadow = Some(format!("{RUN} {}", launch.task));
    message.wrap(&queue::of_node(&launch.node_name), BodyFormat::Json, Some(0), tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::launch;

    #[test]
    fn a_launch_goes_to_the_queue_of_its_node_and_does_not_expire_since_it_may_be_prolonged() {
        let mut launch = launch(7, &["true"]);
        launch.until = Time(1_794_764_301_016);
        let sent = message("era-x", &launch, "t".into()).expect("a message");
        assert_eq!(sent.routing_key(), "eracompute.here");
        let read = TaskMessage::read(&sent).expect("a task");
        assert_eq!(read.headers.task, RUN);
        assert_eq!(read.args, ["era-x"]);
        assert_eq!(read.headers.ends(), Ok(None));
    }
}
