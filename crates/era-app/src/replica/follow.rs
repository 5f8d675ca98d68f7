//! Keeping a replica's state at the end of the journal.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use era_core::Snapshot;
use era_drive::{FollowRules, Released};
use era_store::journal::{Follower, PAGE};
use era_store::{StoreError, answered_within};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use crate::follow::Following;

/// The leader tells of what is new; the journal is looked at without that too, and again once a
/// database answers that did not.
pub(super) const RULES: FollowRules = FollowRules {
    unprompted: Some(Duration::from_millis(100)),
    full: PAGE as u64,
    ..FollowRules::at_once(&[Duration::from_millis(500)])
};
/// How long it may take to hand over a page of the journal.
const ANSWER_MAX: Duration = Duration::from_secs(10);

pub(super) struct ReplicaState {
    pub(super) follower: Follower,
    pub(super) newest: Arc<ArcSwap<Snapshot>>,
    pub(super) committed: watch::Sender<u64>,
    pub(super) release: mpsc::UnboundedSender<Released<Box<RawValue>>>,
}

impl Following for ReplicaState {
    type Error = StoreError;

    async fn locate(&mut self) -> Result<u64, StoreError> {
        Ok(self.follower.state().seq())
    }

    async fn take(&mut self, after: u64) -> Result<Option<u64>, StoreError> {
        let mut released = Released::default();
        let followed = self.follower.advance(|entry, mut output| {
            let note = || RawValue::from_string(entry.note.clone()?).ok();
            released.add(&mut output, note);
        });
        let followed = answered_within(ANSWER_MAX, followed).await;
        // Whatever was carried out before something failed.
        self.tell(after, released);
        followed.map(|_| Some(self.follower.state().seq()))
    }

    /// It ends where this is not the binary that writes the journal, or the journal is damaged.
    fn failed(&mut self, error: StoreError) -> Result<(), StoreError> {
        if error.may_pass() {
            tracing::warn!(%error, "the journal cannot be followed: trying again");
            return Ok(());
        }
        tracing::error!(%error, "the journal cannot be followed any more");
        Err(error)
    }
}

impl ReplicaState {
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
}
