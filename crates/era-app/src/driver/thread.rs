//! The thread itself: waits, lets the engine carry out a batch, commits, then tells.
//!
//! What a batch is and what comes of it is decided by [`era_drive::Engine`].

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use era_core::{Input, Output, Snapshot, State};
use era_drive::{Answer, Engine, EntryWriter, Released};
use era_store::StoreError;
use era_store::journal::{Journal, JournalEntry, Restored, Segment};
use serde_json::value::RawValue;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{BATCH_MAX, DriverRequest, Handle, INBOX_MAX, Releases, TaskEndReport, Unanswered};
use crate::clock::Clock;

/// Longest sleep: a clock that was set, or a machine that was suspended, is noticed after it.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Who waits for an answer.
type Caller = oneshot::Sender<Result<Answer, Unanswered>>;
type Batch = era_drive::Batch<Entries, Caller>;

/// A batch as the journal has it.
#[derive(Debug, Default)]
pub(super) struct Entries(pub(super) Vec<JournalEntry>);

impl EntryWriter for Entries {
    type Note = Box<RawValue>;

    fn input(&mut self, input: &Input, note: Option<Box<RawValue>>) {
        self.0.push(JournalEntry::of(input, note));
    }

    fn output(&mut self, output: &Output, _: &State) {
        if let Some(entry) = self.0.last_mut() {
            entry.decided(output);
        }
    }
}

/// When segments begin.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRules {
    /// After so many inputs.
    pub segment_every: u64,
    /// When the driver stops after so many inputs. One, so that a newer release can go on from
    /// there; more only to leave behind what a crash would.
    pub segment_at_stop: u64,
}

impl Default for SegmentRules {
    fn default() -> SegmentRules {
        SegmentRules { segment_every: 50_000, segment_at_stop: 1 }
    }
}

/// A driver at work.
pub struct Driver {
    handle: Handle,
    stop: CancellationToken,
    thread: JoinHandle<Result<(), StoreError>>,
}

impl Driver {
    /// Loads the newest state, brought to this version where an older one closed it, and replays
    /// what came after it; `fresh` where nothing was ever written.
    pub async fn restore(journal: &Journal, fresh: State) -> Result<Restored, StoreError> {
        journal.migrate().await?;
        if let Some(restored) = journal.restore().await? {
            return Ok(restored);
        }
        journal.begin_segment(&Segment::of(&fresh)).await?;
        Ok(Restored { state: Box::new(fresh), replayed: 0 })
    }

    /// The state after the last entry, from which it goes on.
    pub async fn start(
        journal: Journal,
        clock: Arc<dyn Clock>,
        rules: SegmentRules,
        fresh: State,
    ) -> Result<(Driver, Releases), StoreError> {
        let restored = Driver::restore(&journal, fresh).await?;
        Driver::start_from(journal, clock, rules, restored, Vec::new())
    }

    /// The same, from a state that was restored. What ended while nobody was here comes before
    /// time goes on. The first thing released is what was sent out before and not confirmed.
    pub fn start_from(
        journal: Journal,
        clock: Arc<dyn Clock>,
        rules: SegmentRules,
        restored: Restored,
        ended: Vec<TaskEndReport>,
    ) -> Result<(Driver, Releases), StoreError> {
        let Restored { state, replayed } = restored;
        tracing::info!(seq = state.seq(), replayed, "the journal was read");
        let (inbox, asked) = mpsc::channel(INBOX_MAX);
        let (release, releases) = mpsc::unbounded_channel();
        let (committed, word) = watch::channel(state.seq());
        let newest = Arc::new(ArcSwap::from_pointee(state.snapshot()));
        let handle = Handle { inbox, newest: newest.clone(), committed: word };
        // Nobody has had a chance to give up the other end.
        let _ = release.send(Released::outstanding(&state));
        let stop = CancellationToken::new();
        let thread = Thread {
            engine: Engine::new(state),
            journal,
            clock,
            runtime: runtime::Handle::current(),
            rules,
            since_segment: replayed,
            segment: None,
            ended,
            asked,
            newest,
            release,
            committed,
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("driver".to_owned())
            .spawn(move || thread.run())
            .map_err(|source| StoreError::File { path: "the driver's thread".into(), source })?;
        Ok((Driver { handle, stop, thread }, releases))
    }

    /// The road to it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Answers what was asked so far, closes the segment if anything happened in it, and stops.
    pub async fn stop(self) -> Result<(), StoreError> {
        self.stop.cancel();
        let Driver { handle, thread, .. } = self;
        handle.stopped().await;
        drop(handle);
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(ended)) => ended,
            // The thread has written why to the log.
            _ => Err(StoreError::Damaged {
                what: "the scheduler".to_owned(),
                problem: "its thread ended by a fault of its own".to_owned(),
            }),
        }
    }
}

/// What the thread owns.
struct Thread {
    engine: Engine,
    journal: Journal,
    clock: Arc<dyn Clock>,
    runtime: runtime::Handle,
    rules: SegmentRules,
    since_segment: u64,
    /// A segment that is being written.
    segment: Option<tokio::task::JoinHandle<()>>,
    /// What ended before it started.
    ended: Vec<TaskEndReport>,
    asked: mpsc::Receiver<DriverRequest>,
    newest: Arc<ArcSwap<Snapshot>>,
    release: mpsc::UnboundedSender<Released<Box<RawValue>>>,
    committed: watch::Sender<u64>,
    stop: CancellationToken,
}

impl Thread {
    fn run(mut self) -> Result<(), StoreError> {
        let runtime = self.runtime.clone();
        let ended = std::mem::take(&mut self.ended);
        let first = self.engine.catch_up(self.clock.now(), ended, Entries::default());
        self.commit(first)?;
        let mut asked = Vec::with_capacity(BATCH_MAX);
        while runtime.block_on(self.wait(&mut asked)) {
            let record = Entries(Vec::with_capacity(asked.len() + 2));
            let asked = asked.drain(..).map(|it| (it.answer, it.command, it.note));
            let batch = self.engine.carry_out(self.clock.now(), asked, record);
            self.commit(batch)?;
        }
        // One that is being written has a state of before the last inputs.
        self.wait_for_segment();
        self.begin_segment_if_due(self.rules.segment_at_stop.max(1));
        self.wait_for_segment();
        Ok(())
    }

    /// Makes a batch durable, then tells of it.
    fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        if batch.record.0.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.runtime.block_on(self.journal.append(&batch.record.0)) {
            // The state is ahead of the journal: it is given up with this thread, and whoever
            // waits is told by the end of his channel.
            tracing::error!(%error, "the journal cannot be written: the scheduler stops");
            return Err(error);
        }
        self.tell(batch);
        self.begin_segment_if_due(self.rules.segment_every);
        Ok(())
    }

    fn wait_for_segment(&mut self) {
        if let Some(segment) = self.segment.take() {
            // What went wrong was told where it did.
            let _ = self.runtime.block_on(segment);
        }
    }

    /// Waits for inputs, or until something is due; `false` when it is time to stop.
    async fn wait(&mut self, asked: &mut Vec<DriverRequest>) -> bool {
        let idle = self.engine.idle_for(self.clock.now());
        let idle = idle.map_or(SLEEP_MAX, |span| Duration::from_millis(span.0.unsigned_abs()));
        tokio::select! {
            biased;
            count = self.asked.recv_many(asked, BATCH_MAX) => count > 0,
            () = self.stop.cancelled(), if !self.asked.is_closed() => {
                // What is in the channel is still answered; then it is empty and closed.
                self.asked.close();
                true
            }
            () = tokio::time::sleep(idle.min(SLEEP_MAX)) => true,
        }
    }

    /// All that may leave once a batch is durable.
    fn tell(&mut self, batch: Batch) {
        self.newest.store(Arc::new(self.engine.state().snapshot()));
        let seq = batch.record.0.last().map(|entry| entry.seq);
        self.since_segment += batch.record.0.len() as u64;
        for (caller, answer) in batch.answers {
            // A caller that no longer waits has gone away; what it asked has happened all the same.
            let _ = caller.send(Ok(answer));
        }
        if !batch.released.is_empty() {
            // After the launcher has stopped, what is outstanding is found again at the next start.
            let _ = self.release.send(batch.released);
        }
        if let Some(seq) = seq {
            self.committed.send_replace(seq);
        }
    }

    /// Begins a segment with the state as it is, written off this thread.
    fn begin_segment_if_due(&mut self, every: u64) {
        let writing = self.segment.as_ref().is_some_and(|task| !task.is_finished());
        if self.since_segment < every || writing {
            return;
        }
        self.since_segment = 0;
        let (state, journal) = (self.engine.state().snapshot(), self.journal.clone());
        self.segment = Some(self.runtime.spawn(async move {
            let serialised = tokio::task::spawn_blocking(move || Segment::of(&state)).await;
            let Ok(segment) = serialised else { return };
            // Without it a restart takes longer, and a newer release cannot go on from here.
            if let Err(error) = journal.begin_segment(&segment).await {
                tracing::warn!(%error, "a segment of the journal could not be begun");
            }
        }));
    }
}
