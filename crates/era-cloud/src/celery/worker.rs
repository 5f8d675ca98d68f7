//! A worker that takes messages from the queues and has its [`Node`] run them.
//!
//! It behaves towards Celery's clients as a Celery worker does: messages are held until they are
//! served, results are kept where clients look, `eta`, `expires` and time limits count, revoked
//! tasks do not start, callbacks, chains and chords go on, and commands such as `ping` are
//! answered. What it cannot serve is put with the dead, with the reason, and its sender is told.

mod control;
mod held;
mod scale;
mod sequel;
mod serve;
pub mod sweep;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::bus::{BLOCK_TIME, Bus, BusError, Taken};
use super::node::{AGAIN, Node};
use super::queue;
use held::Held;
pub use scale::{BadScale, Scale};

/// Most messages that are taken in one step.
const BATCH_MAX: usize = 64;
/// Most messages that wait for their time without taking a place.
const WAITING_MAX: usize = 10_000;
/// Most ids that are remembered as revoked, as in Celery.
const REVOKED_MAX: usize = 50_000;
/// How often the number of places is looked at.
const SCALE_EVERY: Duration = Duration::from_secs(1);

/// A worker at work.
pub struct Worker {
    inner: Arc<Inner>,
    /// Those that take messages, until they are told to stop and all that they took is served.
    takers: Vec<JoinHandle<()>>,
    loops: Vec<JoinHandle<()>>,
}

pub(super) struct Inner {
    pub(super) node: Node,
    /// What clients of Celery call it.
    pub(super) name: String,
    scale: Scale,
    places: Arc<Semaphore>,
    /// How many places there are now.
    limit: Mutex<usize>,
    /// Messages that are held.
    held: Mutex<Held>,
    /// Messages that wait for their time.
    waiting: Arc<Semaphore>,
    revoked: Mutex<Revoked>,
    stopping: tokio::sync::watch::Sender<bool>,
    served: Mutex<u64>,
}

#[derive(Default)]
struct Revoked {
    order: VecDeque<String>,
    all: BTreeSet<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Sets and counts are right whoever panicked beside them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// Begins to take messages.
    pub fn start(node: Node, scale: Scale) -> Worker {
        let name = format!("era@{}", node.name());
        let inner = Arc::new(Inner {
            name,
            scale,
            places: Arc::new(Semaphore::new(scale.least())),
            limit: Mutex::new(scale.least()),
            held: Mutex::default(),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            revoked: Mutex::default(),
            stopping: tokio::sync::watch::Sender::new(false),
            served: Mutex::new(0),
            node,
        });
        let urgent = [queue::EAGER.to_owned(), queue::of_node(inner.node.name())];
        let takers = vec![
            tokio::spawn(consume(Arc::clone(&inner), queue::keys(&urgent), false)),
            tokio::spawn(consume(Arc::clone(&inner), queue::keys(&[queue::COMPUTE.into()]), true)),
        ];
        let loops = vec![
            tokio::spawn(sweep::keep_on(Arc::clone(&inner))),
            tokio::spawn(control::listen(Arc::clone(&inner))),
            tokio::spawn(scale_on(Arc::clone(&inner))),
        ];
        Worker { inner, takers, loops }
    }

    /// The node that it feeds.
    pub fn node(&self) -> &Node {
        &self.inner.node
    }

    /// How many messages were served.
    pub fn served(&self) -> u64 {
        *lock(&self.inner.served)
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
        self.takers.iter().chain(&self.loops).for_each(JoinHandle::abort);
    }
}

impl Inner {
    pub(super) fn bus(&self) -> &Bus {
        self.node.bus()
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn revoke(&self, ids: &[String]) {
        let mut revoked = lock(&self.revoked);
        for id in ids {
            if revoked.all.insert(id.clone()) {
                revoked.order.push_back(id.clone());
            }
            if revoked.order.len() > REVOKED_MAX
                && let Some(oldest) = revoked.order.pop_front()
            {
                revoked.all.remove(&oldest);
            }
        }
    }

    /// What was revoked, the oldest first.
    fn revoked(&self) -> Vec<String> {
        lock(&self.revoked).order.iter().cloned().collect()
    }

    fn is_revoked(&self, id: &str) -> bool {
        lock(&self.revoked).all.contains(id)
    }

    fn held(&self) -> Vec<String> {
        lock(&self.held).tags()
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
async fn hold_patiently(worker: &Inner, keys: &[String], key: &str, raw: &[u8]) -> Vec<Taken> {
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

async fn begin(worker: &Arc<Inner>, message: Taken, counted: bool, tasks: &mut JoinSet<()>) {
    if message.tag.is_empty() {
        tracing::warn!(key = message.key, "what is no message was put with the dead");
        return;
    }
    lock(&worker.held).insert(&message.tag);
    let place = if counted { Arc::clone(&worker.places).acquire_owned().await.ok() } else { None };
    let worker = Arc::clone(worker);
    tasks.spawn(async move {
        serve::serve(&worker, &message, place).await;
        lock(&worker.held).remove(&message.tag);
        *lock(&worker.served) += 1;
    });
}

/// Looks from time to time whether there are too few places, or too many.
async fn scale_on(worker: Arc<Inner>) {
    let keys = queue::keys(&[queue::COMPUTE.to_owned()]);
    let mut idle_since = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(SCALE_EVERY).await;
        let limit = *lock(&worker.limit);
        let busy = limit.saturating_sub(worker.places.available_permits());
        let waiting = if busy >= limit { backlog(worker.bus(), &keys).await } else { 0 };
        if busy >= limit {
            idle_since = tokio::time::Instant::now();
        }
        let next = worker.scale.next(limit, busy, waiting, idle_since.elapsed());
        if next > limit {
            worker.places.add_permits(next - limit);
        } else if next < limit {
            // Only those that are free now can go.
            let gone = worker.places.forget_permits(limit - next);
            *lock(&worker.limit) = limit - gone;
            continue;
        }
        *lock(&worker.limit) = next;
    }
}

async fn backlog(bus: &Bus, keys: &[String]) -> usize {
    let mut all = redis::pipe();
    for key in keys {
        all.cmd("LLEN").arg(key);
    }
    // Without an answer nothing changes.
    bus.run_all::<Vec<usize>>("count messages", &all).await.map_or(0, |counts| counts.iter().sum())
}
