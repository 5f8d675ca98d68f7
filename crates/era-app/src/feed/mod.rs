//! The feed: follows the journal, keeps the tables up to date, and tells whoever listens.
//!
//! It wakes when the driver has committed something, carries it out on the tables, and only then
//! tells of it: whoever hears of an event finds it in the tables. If the tables cannot be written
//! it tries again; nothing is lost, since the journal has it. It never calls the core.
//!
//! While nobody looks it takes its time: a short job that was submitted, started and settled within
//! a few milliseconds is then written once and not three times. Whoever reads what has just
//! happened asks for it ([`Feed::wait_for`]), and it is written at once.
//!
//! Where another process leads, that one writes the tables, and what is new in them is told here
//! (`reading`).

mod house;
mod listener;
mod names;
mod particulars;
mod reading;
mod sentence;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use era_api::event::EventView;
use era_core::units::{GroupId, UserId};
use era_store::tables::{EventRow, Projector, Tables};
use era_store::{Store, StoreError};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::gather::Gathering;

pub use house::{ClusterChange, Pulse};
pub use listener::Listener;
pub use names::NameIndex;
pub use particulars::particulars;
use sentence::sentence;

/// What is said of an event that this version does not know.
const UNKNOWN: &str = "something that this version has no words for";
/// How many batches a listener may be behind before it reads the tables instead.
const BEHIND_MAX: usize = 256;
/// Most listeners at a time.
pub const LISTENERS_MAX: usize = 1024;
/// How long somebody waits for the tables to have what they wrote themselves.
const OWN_WRITES_MAX: Duration = Duration::from_secs(2);
/// How long it is until a failed write of the tables is tried again.
const RETRY: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// How long the tables may be behind while nobody looks, where all who read them can ask.
pub const UNSEEN_MAX: Duration = Duration::from_millis(50);
/// So many entries in 50 ms are a load, under which they are gathered for so long.
const LOAD: usize = 64;
const GATHER_TIME: Duration = Duration::from_millis(15);
/// A batch of so many is large enough: more would not make an entry cheaper.
const LARGE: usize = 256;

/// What listeners get: written once, and shared by all of them.
#[derive(Debug)]
pub struct Message {
    pub event: EventView,
    /// The same as JSON, on one line.
    pub json: String,
}

impl Message {
    fn of(event: EventView) -> Arc<Message> {
        // Strings and numbers only: writing cannot fail.
        let json = serde_json::to_string(&event).unwrap_or_default();
        Arc::new(Message { event, json })
    }
}

/// An event of the journal for listeners, with who may see it. A clone shares the message.
#[derive(Clone, Debug)]
pub struct FeedEvent {
    /// Its input's number, and its place there.
    pub place: (u64, u32),
    /// Whose job it is about.
    pub account: Option<UserId>,
    pub team: Option<GroupId>,
    /// Whether what everybody may look at is no longer as it was.
    pub changes_cluster: bool,
    pub message: Arc<Message>,
}

/// The feed, to listen to. A clone shares.
#[derive(Clone)]
pub struct Feed {
    tables: Tables,
    applied: watch::Receiver<u64>,
    /// Somebody waits for the tables.
    wanted: Arc<Notify>,
    live: broadcast::Sender<Arc<[FeedEvent]>>,
    house: broadcast::Sender<(ClusterChange, Arc<Message>)>,
    names: Arc<ArcSwap<NameIndex>>,
    seats: Arc<Semaphore>,
}

impl Feed {
    /// Starts to follow a journal whose last durable entry is watched, with tables that are so far
    /// behind at most while nobody looks. It ends when the watched is gone.
    pub async fn start(
        store: &Store,
        committed: watch::Receiver<u64>,
        unseen_max: Duration,
    ) -> Result<(Feed, JoinHandle<()>), StoreError> {
        let projector = Projector::open(store).await?;
        let (applied, watched) = watch::channel(projector.cursor());
        let feed = Feed::over(store, watched).await?;
        let follower = Follower { projector, committed, applied, feed: feed.clone(), unseen_max };
        Ok((feed, tokio::spawn(follower.run())))
    }

    /// The same where another process writes the tables.
    pub async fn read(
        store: &Store,
        committed: watch::Receiver<u64>,
    ) -> Result<(Feed, JoinHandle<()>), StoreError> {
        let (applied, watched) = watch::channel(Tables::new(store).cursor().await?);
        let feed = Feed::over(store, watched).await?;
        let reader = reading::Reader { feed: feed.clone(), committed, applied };
        Ok((feed, tokio::spawn(reader.run())))
    }

    async fn over(store: &Store, applied: watch::Receiver<u64>) -> Result<Feed, StoreError> {
        let tables = Tables::new(store);
        let names = Arc::new(ArcSwap::from_pointee(NameIndex::load(&tables).await?));
        Ok(Feed {
            tables,
            applied,
            wanted: Arc::default(),
            live: broadcast::channel(BEHIND_MAX).0,
            house: broadcast::channel(BEHIND_MAX).0,
            names,
            seats: Arc::new(Semaphore::new(LISTENERS_MAX)),
        })
    }

    /// The tables that it writes.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What things are called.
    pub fn names(&self) -> Arc<NameIndex> {
        self.names.load_full()
    }

    /// The last entry that the tables have.
    pub fn applied(&self) -> u64 {
        *self.applied.borrow()
    }

    /// Waits until the tables have an entry, for a short while: whoever wrote it reads it then.
    /// Says whether they have it.
    pub async fn wait_for(&self, seq: u64) -> bool {
        if self.applied() >= seq {
            return true;
        }
        self.wanted.notify_one();
        let mut applied = self.applied.clone();
        let there = applied.wait_for(|applied| *applied >= seq);
        matches!(tokio::time::timeout(OWN_WRITES_MAX, there).await, Ok(Ok(_)))
    }

    /// Whatever happens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<[FeedEvent]>> {
        self.live.subscribe()
    }

    /// News that are not in the journal, from now on.
    pub fn listen_to_house(&self) -> broadcast::Receiver<(ClusterChange, Arc<Message>)> {
        self.house.subscribe()
    }

    /// Tells news that are not in the journal.
    pub fn tell(&self, news: Option<ClusterChange>) {
        if let Some(news) = news {
            // Nobody listens: nobody misses it.
            let _ = self.house.send((news, Message::of(news.event())));
        }
    }

    /// A seat for a listener from outside; `None` where all are taken.
    pub fn seat(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.seats).try_acquire_owned().ok()
    }

    /// Reads names again where these events may have changed one.
    async fn learn_names(&self, events: &[EventRow]) -> Result<(), StoreError> {
        use era_core::Event::{Changed, NodesChanged};
        let renames = |event| matches!(event, &Changed { .. } | &NodesChanged { .. });
        if events.iter().any(|row| row.event.as_ref().is_none_or(renames)) {
            self.names.store(Arc::new(NameIndex::load(&self.tables).await?));
        }
        Ok(())
    }

    /// Tells events to whoever listens.
    fn tell_live(&self, events: Vec<EventRow>) {
        if !events.is_empty() && self.live.receiver_count() > 0 {
            let names = self.names.load();
            let told: Arc<[FeedEvent]> = events.into_iter().map(|row| told(row, &names)).collect();
            // Nobody listens any more: nobody misses it.
            let _ = self.live.send(told);
        }
    }

    /// An event of the tables as it is told.
    pub fn event(&self, row: EventRow) -> EventView {
        event(row, &self.names.load())
    }

    /// The same for a listener.
    fn told(&self, row: EventRow) -> FeedEvent {
        told(row, &self.names.load())
    }
}

fn told(row: EventRow, names: &NameIndex) -> FeedEvent {
    FeedEvent {
        place: (row.seq, row.place),
        account: row.account,
        team: row.team,
        // What a newer version's event means is not known here: a look does no harm.
        changes_cluster: row.event.as_ref().is_none_or(era_core::Event::changes_cluster),
        message: Message::of(event(row, names)),
    }
}

fn event(row: EventRow, names: &NameIndex) -> EventView {
    let said = row.event.as_ref();
    let said = said.map(|event| (sentence(event, names), particulars(event, names)));
    // A newer version's event is still an event.
    let (sentence, parameters) = said.unwrap_or_else(|| (UNKNOWN.to_owned(), Default::default()));
    EventView {
        id: format!("{}.{}", row.seq, row.place),
        at: crate::wire::stamp(row.at),
        job: row.job.map(|job| job.0),
        user: row.account.map(|account| names.account(account)),
        sentence,
        parameters,
        event: row.kind,
    }
}

struct Follower {
    projector: Projector,
    committed: watch::Receiver<u64>,
    applied: watch::Sender<u64>,
    feed: Feed,
    unseen_max: Duration,
}

impl Follower {
    async fn run(mut self) {
        let mut failures = 0;
        let mut gathering = Gathering::new(LOAD, GATHER_TIME);
        loop {
            let cursor = self.projector.cursor();
            let behind = *self.committed.borrow_and_update() > cursor;
            let done = if behind { self.advance().await } else { Ok(false) };
            match done {
                Ok(true) => {
                    failures = 0;
                    let count = self.projector.cursor().saturating_sub(cursor);
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    let wait = gathering.came(count, Instant::now());
                    if let Some(wait) = wait.filter(|_| count < LARGE) {
                        tokio::time::sleep(wait).await;
                        self.linger().await;
                    }
                }
                Ok(false) => {
                    if self.committed.changed().await.is_err() {
                        // The driver is gone: take what it committed last, and end.
                        while matches!(self.advance().await, Ok(true)) {}
                        return;
                    }
                    self.linger().await;
                }
                Err(error) => {
                    let wait = RETRY[failures.min(RETRY.len() - 1)];
                    tracing::error!(%error, "the tables cannot be written: trying again");
                    failures += 1;
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// Leaves time for more while nobody looks, and until the driver is gone.
    async fn linger(&mut self) {
        if !self.unseen_max.is_zero() && self.feed.live.receiver_count() == 0 {
            tokio::select! {
                () = self.feed.wanted.notified() => {}
                () = tokio::time::sleep(self.unseen_max) => {}
                _ = self.committed.wait_for(|_| false) => {}
            }
        }
    }

    async fn advance(&mut self) -> Result<bool, StoreError> {
        let Some(batch) = self.projector.advance().await? else { return Ok(false) };
        self.feed.learn_names(&batch.events).await?;
        self.applied.send_replace(batch.seq);
        self.feed.tell_live(batch.events);
        Ok(true)
    }
}
