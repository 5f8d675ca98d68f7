//! A replica of the scheduler's state in another process, and the road from there to the leader.
//!
//! The replica follows the journal in the shared database and carries out every entry on a state
//! of its own (`follow`), so that snapshots, quotes and effects are there as they are beside the
//! driver. What is asked of the scheduler goes to whoever leads (`forward`), and its answer is
//! told once this replica has what it is about: whoever wrote something reads it here. See
//! decision 0020.

mod follow;
mod forward;
pub mod inbox;
pub mod link;
mod seal;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use era_drive::Released;
use era_store::{Store, StoreError};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::driver::{Handle, INBOX_MAX, Releases};

/// How often it is looked whether a scheduler has begun a journal at all.
const FIRST_LOOK: Duration = Duration::from_millis(200);

/// A replica at work.
pub struct Replica {
    handle: Handle,
    stop: CancellationToken,
    thread: JoinHandle<Result<(), StoreError>>,
}

impl Replica {
    /// Follows the journal to its end, and then on. What is to be done outside comes out at the
    /// other end, and goes nowhere if that is dropped. Waits until there is a journal.
    pub async fn start(store: &Store) -> Result<(Replica, Releases), StoreError> {
        let mut follower = loop {
            match store.journal().follow().await {
                Ok(Some(follower)) => break follower,
                Ok(None) => {}
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "the journal cannot be read: trying again");
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(FIRST_LOOK).await;
        };
        follower.catch_up().await?;
        let state = follower.state();
        tracing::info!(seq = state.seq(), "the journal is followed");
        let (inbox, asked) = mpsc::channel(INBOX_MAX);
        let (release, releases) = mpsc::unbounded_channel();
        let (committed, word) = watch::channel(state.seq());
        let newest = Arc::new(ArcSwap::from_pointee(state.snapshot()));
        let handle = Handle { inbox, newest: newest.clone(), committed: word.clone() };
        // Nobody has had a chance to give up the other end.
        let _ = release.send(Released::outstanding(state));
        let stop = CancellationToken::new();
        let (hint, hinted) = watch::channel(state.seq());
        let lease = store.lease();
        tokio::spawn(forward::run(lease, asked, word, hint, stop.clone()));
        let state = follow::ReplicaState { follower, newest, committed, release };
        let followed = crate::follow::follow(state, follow::RULES, hinted, Arc::default());
        let (runtime, stopped) = (tokio::runtime::Handle::current(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("replica".to_owned())
            .spawn(move || {
                // Nothing is left half done where it stops: only reads are waited for.
                let followed = runtime.block_on(stopped.run_until_cancelled(followed));
                followed.unwrap_or(Ok(()))
            })
            .map_err(|source| StoreError::File { path: "the replica's thread".into(), source })?;
        Ok((Replica { handle, stop, thread }, releases))
    }

    /// The road through it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops following; says why it had stopped by itself, if it had.
    pub async fn stop(self) -> Result<(), StoreError> {
        self.stop.cancel();
        let Replica { thread, .. } = self;
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(ended)) => ended,
            // The thread has written why to the log.
            _ => Err(StoreError::Damaged {
                what: "the replica".to_owned(),
                problem: "its thread ended by a fault of its own".to_owned(),
            }),
        }
    }
}
