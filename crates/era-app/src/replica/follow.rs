//! The thread that keeps a replica's state at the end of the journal.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use era_core::Snapshot;
use era_drive::Released;
use era_store::journal::Follower;
use era_store::{StoreError, answered_within};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How often the journal is looked at while the leader tells of nothing new.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long it is until a database that does not answer is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long it may take to hand over a page of the journal.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(super) struct Following {
    pub(super) follower: Follower,
    pub(super) newest: Arc<ArcSwap<Snapshot>>,
    pub(super) committed: watch::Sender<u64>,
    pub(super) release: mpsc::UnboundedSender<Released<Box<RawValue>>>,
    /// The last entry that the leader told of.
    pub(super) hinted: watch::Receiver<u64>,
    pub(super) stop: CancellationToken,
}

impl Following {
    /// Follows until it is stopped, or until it cannot: this is not the binary that writes the
    /// journal, or the journal is damaged.
    pub(super) async fn run(mut self) -> Result<(), StoreError> {
        while !self.stop.is_cancelled() {
            let before = self.follower.state().seq();
            let mut released = Released::default();
            let followed = self.follower.advance(|entry, mut output| {
                let note = || RawValue::from_string(entry.note.clone()?).ok();
                released.add(&mut output, note);
            });
            match answered_within(ANSWER_MAX, followed).await {
                Ok(more) => {
                    self.tell(before, released);
                    if !more {
                        self.wait(LOOK_EVERY).await;
                    }
                }
                Err(error @ StoreError::Database(_)) => {
                    self.tell(before, released);
                    tracing::warn!(%error, "the journal cannot be followed: trying again");
                    self.wait(AGAIN).await;
                }
                Err(error) => {
                    tracing::error!(%error, "the journal cannot be followed any more");
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn tell(&self, before: u64, released: Released<Box<RawValue>>) {
        let state = self.follower.state();
        if state.seq() == before {
            return;
        }
        self.newest.store(Arc::new(state.snapshot()));
        if !released.is_empty() {
            // Whoever serves no tasks does not listen.
            let _ = self.release.send(released);
        }
        self.committed.send_replace(state.seq());
    }

    /// Waits until the leader tells of something that is not here yet, or for a while.
    async fn wait(&mut self, most: Duration) {
        let here = self.follower.state().seq();
        let told = self.hinted.wait_for(|last| *last > here);
        tokio::select! {
            () = self.stop.cancelled() => {}
            // Without a forwarder there is nobody to tell: looking now and then has to do.
            () = async { if told.await.is_err() { std::future::pending().await } } => {}
            () = tokio::time::sleep(most) => {}
        }
    }
}
