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

mod cluster_change;
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
use era_drive::FollowRules;
use era_store::tables::{EventQuery, EventRow, Projector, Tables, VisibleJobs};
use era_store::{Store, StoreError};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::follow::{Following, follow};

pub use cluster_change::{ClusterChange, Pulse};
pub use listener::Listener;
pub use names::NameIndex;
pub use particulars::particulars;
use sentence::sentence;

/// What is said of an event that this version does not know.
const UNKNOWN: &str = "something that this version has no words for";
/// How many batches a listener may be behind before it reads the tables instead.
const BEHIND_MAX: usize = 256;
/// Most events that are read at a time.
const PAGE: u32 = 1_000;
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
const LARGE: u64 = 256;

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
    clock: Arc<dyn Clock>,
    tables: Tables,
    applied: watch::Receiver<u64>,
    /// Somebody waits for the tables.
    wanted: Arc<Notify>,
    live: broadcast::Sender<Arc<[FeedEvent]>>,
    changes: broadcast::Sender<(ClusterChange, Arc<Message>)>,
    names: Arc<ArcSwap<NameIndex>>,
    permits: Arc<Semaphore>,
}

impl Feed {
    /// Starts to follow a journal whose last durable entry is watched, with tables that are so far
    /// behind at most while nobody looks. It ends when the watched is gone.
    pub async fn start(
        store: &Store,
        committed: watch::Receiver<u64>,
        unseen_max: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<(Feed, JoinHandle<()>), StoreError> {
        let projector = Projector::open(store).await?;
        let (feed, applied) = Feed::over(store, clock).await?;
        let rules = FollowRules {
            linger: unseen_max,
            load: LOAD,
            gather: GATHER_TIME,
            full: LARGE,
            ..FollowRules::at_once(&RETRY)
        };
        let writer = TableWriter { projector, applied, feed: feed.clone(), unseen_max };
        Ok((feed.clone(), feed.spawn(writer, rules, committed)))
    }

    /// The same where another process writes the tables.
    pub async fn read(
        store: &Store,
        committed: watch::Receiver<u64>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Feed, JoinHandle<()>), StoreError> {
        let (feed, applied) = Feed::over(store, clock).await?;
        let reader = reading::TableReader { feed: feed.clone(), applied };
        Ok((feed.clone(), feed.spawn(reader, reading::RULES, committed)))
    }

    /// Follows until the watched is gone.
    fn spawn<F>(
        &self,
        follower: F,
        rules: FollowRules,
        committed: watch::Receiver<u64>,
    ) -> JoinHandle<()>
    where
        F: Following<Error = StoreError> + 'static,
    {
        let followed = follow(follower, rules, committed, Arc::clone(&self.wanted));
        tokio::spawn(async {
            // Whatever fails is tried again.
            let _ = followed.await;
        })
    }

    /// One over the tables as they are, and what says how far they are told.
    async fn over(
        store: &Store,
        clock: Arc<dyn Clock>,
    ) -> Result<(Feed, watch::Sender<u64>), StoreError> {
        let tables = Tables::new(store);
        let (told, applied) = watch::channel(tables.cursor().await?);
        let names = Arc::new(ArcSwap::from_pointee(NameIndex::load(&tables).await?));
        let feed = Feed {
            clock,
            tables,
            applied,
            wanted: Arc::default(),
            live: broadcast::channel(BEHIND_MAX).0,
            changes: broadcast::channel(BEHIND_MAX).0,
            names,
            permits: Arc::new(Semaphore::new(LISTENERS_MAX)),
        };
        Ok((feed, told))
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

    /// Changes that are not in the journal, from now on.
    pub fn listen_to_changes(&self) -> broadcast::Receiver<(ClusterChange, Arc<Message>)> {
        self.changes.subscribe()
    }

    /// Tells of a change that is not in the journal.
    pub fn tell(&self, change: Option<ClusterChange>) {
        if let Some(change) = change {
            // Nobody listens: nobody misses it.
            let _ = self.changes.send((change, Message::of(change.event(self.clock.machine()))));
        }
    }

    /// A permit for a listener from outside; `None` where all are taken.
    pub fn permit(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
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

    /// Tells what the tables have after one entry and up to another.
    async fn tell_stored(&self, after: u64, until: u64) -> Result<(), StoreError> {
        let mut last = (after, u32::MAX);
        loop {
            let query = EventQuery::all(VisibleJobs::All, last, PAGE);
            let mut events = self.tables.events(&query).await?;
            let full = events.len() == PAGE as usize;
            events.retain(|event| event.seq <= until);
            let more = full && events.len() == PAGE as usize;
            if let Some(event) = events.last() {
                last = (event.seq, event.place);
            }
            self.learn_names(&events).await?;
            self.tell_live(events);
            if !more {
                return Ok(());
            }
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

/// Writes the tables, and tells of what they have.
struct TableWriter {
    projector: Projector,
    applied: watch::Sender<u64>,
    feed: Feed,
    unseen_max: Duration,
}

impl Following for TableWriter {
    type Error = StoreError;

    async fn locate(&mut self) -> Result<u64, StoreError> {
        let at = self.projector.locate().await?;
        let told = *self.applied.borrow();
        if at > told {
            // Written, but it failed before it was told.
            self.feed.tell_stored(told, at).await?;
            self.applied.send_replace(at);
        }
        Ok(at)
    }

    async fn take(&mut self, after: u64) -> Result<Option<u64>, StoreError> {
        let Some(batch) = self.projector.take(after).await? else { return Ok(None) };
        self.feed.learn_names(&batch.events).await?;
        self.applied.send_replace(batch.seq);
        self.feed.tell_live(batch.events);
        Ok(Some(batch.seq))
    }

    fn failed(&mut self, error: StoreError) -> Result<(), StoreError> {
        tracing::error!(%error, "the tables cannot be written: trying again");
        Ok(())
    }

    fn is_attended(&self) -> bool {
        self.unseen_max.is_zero() || self.feed.live.receiver_count() > 0
    }
}
