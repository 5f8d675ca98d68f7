//! A worker that takes messages from the queues and has its [`CeleryNode`] run them.
//!
//! It serves ERA's own tasks, as a Celery worker would: messages are held until they are served,
//! results are kept where Celery's clients look, `eta`, `expires` and time limits count. What it
//! cannot serve is put with the dead, with the reason, and its sender is told. It knows no other
//! task, nothing of what is to be called after one, and no remote control.

mod serve;
pub mod sweep;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::bus::{BLOCK_TIME, Bus, BusError, Delivery};
use super::node::{AGAIN, CeleryNode};
use super::queue;

/// Most messages that are taken in one step.
const BATCH_MAX: usize = 64;
/// Most messages that wait for their time without taking a place.
const WAITING_MAX: usize = 10_000;

/// A worker at work.
pub struct Worker {
    inner: Arc<Inner>,
    /// Those that take messages, until they are told to stop and all that they took is served.
    takers: Vec<JoinHandle<()>>,
    sweeper: JoinHandle<()>,
}

pub(super) struct Inner {
    pub(super) node: CeleryNode,
    /// For messages of the shared queue: how many of them may be served at once.
    places: Arc<Semaphore>,
    /// The tags of messages that are held.
    held: Mutex<BTreeSet<String>>,
    /// Messages that wait for their time.
    waiting: Semaphore,
    stopping: tokio::sync::watch::Sender<bool>,
    served: AtomicU64,
}

impl Worker {
    /// Begins to take messages: of the shared queue, so many at once.
    pub fn start(node: CeleryNode, concurrency: usize) -> Worker {
        let inner = Arc::new(Inner {
            places: Arc::new(Semaphore::new(concurrency)),
            held: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
            stopping: tokio::sync::watch::Sender::new(false),
            served: AtomicU64::new(0),
            node,
        });
        let urgent = [queue::EAGER.to_owned(), queue::of_node(inner.node.name())];
        let takers = vec![
            tokio::spawn(consume(Arc::clone(&inner), queue::keys(&urgent), false)),
            tokio::spawn(consume(Arc::clone(&inner), queue::keys(&[queue::COMPUTE.into()]), true)),
        ];
        let sweeper = tokio::spawn(sweep::keep_on(Arc::clone(&inner)));
        Worker { inner, takers, sweeper }
    }

    /// The node that it feeds.
    pub fn node(&self) -> &CeleryNode {
        &self.inner.node
    }

    /// How many messages were served.
    pub fn served(&self) -> u64 {
        self.inner.served.load(Ordering::Relaxed)
    }

    /// Takes no more messages, and comes back when those that it has are served.
    pub async fn drain(&self) {
        self.inner.stopping.send_replace(true);
        // Those that take messages end last of all: one may have a message that nobody else knows.
        while self.inner.node.busy() > 0 || !self.takers.iter().all(JoinHandle::is_finished) {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.takers.iter().chain([&self.sweeper]).for_each(JoinHandle::abort);
    }
}

impl Inner {
    pub(super) fn bus(&self) -> &Bus {
        self.node.bus()
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        // A set of tags is right whoever panicked beside it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes messages from these lists until the worker stops. Where places count, a message is taken
/// only when there is one for it.
async fn consume(worker: Arc<Inner>, keys: Vec<String>, counted: bool) {
    let mut tasks = JoinSet::new();
    while !worker.is_stopping() {
        if let Err(error) = take_on(&worker, &keys, counted, &mut tasks).await {
            tracing::warn!(%error, "messages cannot be taken: trying again");
            tokio::time::sleep(AGAIN).await;
        }
    }
    while tasks.join_next().await.is_some() {}
}

async fn take_on(
    worker: &Arc<Inner>,
    keys: &[String],
    counted: bool,
    tasks: &mut JoinSet<()>,
) -> Result<(), BusError> {
    let mut waiting = worker.bus().waiting().await?;
    let name = worker.node.name();
    while !worker.is_stopping() {
        while tasks.try_join_next().is_some() {}
        let most = if counted { room(&worker.places).await } else { BATCH_MAX };
        let mut taken = worker.bus().take(keys, most, name, None).await?;
        if taken.is_empty() {
            let popped = pop(&mut waiting, keys).await;
            let popped = popped.map_err(|e| worker.bus().broken("give a message", e))?;
            let Some((key, raw)) = popped else { continue };
            taken = hold_patiently(worker, keys, &key, &raw).await;
        }
        for message in taken {
            begin(worker, message, counted, tasks).await;
        }
    }
    Ok(())
}

/// Waits for a place, and says how many there are.
async fn room(places: &Arc<Semaphore>) -> usize {
    // Never closed.
    drop(places.acquire().await);
    places.available_permits().clamp(1, BATCH_MAX)
}

/// Waits a while for a message, as Celery's transport does. What it gives is in nobody's hands but
/// ours, so it must be recorded at once.
async fn pop(
    waiting: &mut redis::aio::MultiplexedConnection,
    keys: &[String],
) -> Result<Option<(String, Vec<u8>)>, redis::RedisError> {
    let mut pop = redis::cmd("BRPOP");
    for key in keys {
        pop.arg(key);
    }
    pop.arg(BLOCK_TIME.as_secs_f64()).query_async(waiting).await
}

/// Records a message that was popped, however long Redis takes to come back.
async fn hold_patiently(worker: &Inner, keys: &[String], key: &str, raw: &[u8]) -> Vec<Delivery> {
    loop {
        match worker.bus().take(keys, 1, worker.node.name(), Some((key, raw))).await {
            Ok(taken) => return taken,
            Err(error) => {
                tracing::warn!(%error, "a message waits to be recorded");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

async fn begin(worker: &Arc<Inner>, message: Delivery, counted: bool, tasks: &mut JoinSet<()>) {
    if message.tag.is_empty() {
        tracing::warn!(key = message.key, "what is no message was put with the dead");
        return;
    }
    worker.held().insert(message.tag.clone());
    let place = if counted { Arc::clone(&worker.places).acquire_owned().await.ok() } else { None };
    let worker = Arc::clone(worker);
    tasks.spawn(async move {
        serve::serve(&worker, &message, place).await;
        worker.held().remove(&message.tag);
        worker.served.fetch_add(1, Ordering::Relaxed);
    });
}
