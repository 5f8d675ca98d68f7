//! The feed where another process writes the tables: what is new in them is read and told.

use std::time::Duration;

use era_drive::FollowRules;
use era_store::StoreError;
use tokio::sync::watch;

use super::{Feed, RETRY};
use crate::follow::Following;

/// What is new is taken together with what comes soon after it.
pub(super) const RULES: FollowRules =
    FollowRules { load: 0, gather: Duration::from_millis(10), ..FollowRules::at_once(&RETRY) };

pub(super) struct TableReader {
    pub(super) feed: Feed,
    pub(super) applied: watch::Sender<u64>,
}

impl Following for TableReader {
    type Error = StoreError;

    async fn locate(&mut self) -> Result<u64, StoreError> {
        Ok(*self.applied.borrow())
    }

    async fn take(&mut self, after: u64) -> Result<Option<u64>, StoreError> {
        let cursor = self.feed.tables.cursor().await?;
        if cursor <= after {
            return Ok(Some(after));
        }
        self.feed.tell_stored(after, cursor).await?;
        self.applied.send_replace(cursor);
        Ok(Some(cursor))
    }

    fn failed(&mut self, error: StoreError) -> Result<(), StoreError> {
        tracing::error!(%error, "the tables cannot be read: trying again");
        Ok(())
    }
}
