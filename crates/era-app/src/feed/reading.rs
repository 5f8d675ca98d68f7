//! The feed where another process writes the tables: what is new in them is read and told.

use std::time::Duration;

use era_store::StoreError;
use era_store::tables::{EventQuery, VisibleJobs};
use tokio::sync::watch;

use super::{Feed, RETRY};

/// How often tables that are behind the journal are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The same once they have been behind for so many looks: whoever writes them is away.
const PATIENT_AFTER: u32 = 100;
const PATIENT: Duration = Duration::from_millis(200);
/// Most events that are read at a time.
const PAGE: u32 = 1_000;

pub(super) struct Reader {
    pub(super) feed: Feed,
    pub(super) committed: watch::Receiver<u64>,
    pub(super) applied: watch::Sender<u64>,
}

impl Reader {
    /// Reads until the replica is gone.
    pub(super) async fn run(mut self) {
        let mut failures = 0;
        let mut looks = 0;
        loop {
            let behind = *self.committed.borrow_and_update() > *self.applied.borrow();
            if !behind {
                looks = 0;
                if self.committed.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let wait = match self.look().await {
                Ok(moved) => {
                    failures = 0;
                    looks = if moved { 0 } else { looks + 1 };
                    if looks < PATIENT_AFTER { LOOK_EVERY } else { PATIENT }
                }
                Err(error) => {
                    tracing::error!(%error, "the tables cannot be read: trying again");
                    failures += 1;
                    RETRY[(failures - 1).min(RETRY.len() - 1)]
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes what is new, and says whether there was any.
    async fn look(&self) -> Result<bool, StoreError> {
        let before = *self.applied.borrow();
        let cursor = self.feed.tables.cursor().await?;
        if cursor <= before {
            return Ok(false);
        }
        let mut after = (before, u32::MAX);
        loop {
            let query = EventQuery::all(VisibleJobs::All, after, PAGE);
            let mut events = self.feed.tables.events(&query).await?;
            let full = events.len() == PAGE as usize;
            events.retain(|event| event.seq <= cursor);
            let more = full && events.len() == PAGE as usize;
            if let Some(last) = events.last() {
                after = (last.seq, last.place);
            }
            self.feed.learn_names(&events).await?;
            self.feed.tell_live(events);
            if !more {
                break;
            }
        }
        self.applied.send_replace(cursor);
        Ok(true)
    }
}
