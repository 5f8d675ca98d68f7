//! Rows of contents, many in one commit.
//!
//! Folders of many small files come as many uploads side by side. A commit of its own for each
//! would cost a sync each; so whoever comes while a commit is under way waits for the next one,
//! which takes all that wait.

use std::sync::Mutex;

use era_core::units::UserId;
use tokio::sync::oneshot;

use super::{ContentHash, FilesError, locked};
use crate::Database;

/// Most rows of a commit.
const BATCH_MAX: usize = 256;

pub(super) struct Publisher {
    database: Database,
    waiting: Mutex<Vec<Waiting>>,
    /// Whoever has it commits for all that wait.
    committing: tokio::sync::Mutex<()>,
}

struct Waiting {
    hash: ContentHash,
    bytes: u64,
    account: UserId,
    at: i64,
    done: oneshot::Sender<bool>,
}

impl Publisher {
    pub(super) fn new(database: Database) -> Publisher {
        Publisher { database, waiting: Mutex::default(), committing: tokio::sync::Mutex::default() }
    }

    /// Records a content and the account's claim to it; says whether the claim is new.
    pub(super) async fn publish(
        &self,
        hash: ContentHash,
        bytes: u64,
        account: UserId,
        at: i64,
    ) -> Result<bool, FilesError> {
        let (done, mut answer) = oneshot::channel();
        locked(&self.waiting).push(Waiting { hash, bytes, account, at, done });
        loop {
            let _committing = self.committing.lock().await;
            match answer.try_recv() {
                Ok(new) => return Ok(new),
                // The one who committed for us failed: each is told of its own failure.
                Err(oneshot::error::TryRecvError::Closed) => return Err(FilesError::Stopped),
                Err(oneshot::error::TryRecvError::Empty) => self.commit().await?,
            }
        }
    }

    async fn commit(&self) -> Result<(), FilesError> {
        let batch: Vec<Waiting> = {
            let mut waiting = locked(&self.waiting);
            let most = waiting.len().min(BATCH_MAX);
            waiting.drain(..most).collect()
        };
        let mut transaction = self.database.writer().begin().await?;
        let mut new = Vec::with_capacity(batch.len());
        for Waiting { hash, bytes, account, at, .. } in &batch {
            let hash = hash.to_string();
            sqlx::query(
                "INSERT INTO blobs (hash, bytes, touched) VALUES (?, ?, ?) \
                 ON CONFLICT (hash) DO UPDATE SET touched = excluded.touched",
            )
            .bind(&hash)
            .bind(i64::try_from(*bytes).unwrap_or(i64::MAX))
            .bind(at)
            .execute(&mut *transaction)
            .await?;
            let claimed = sqlx::query(
                "INSERT INTO blob_claims (hash, account, at) VALUES (?, ?, ?) \
                 ON CONFLICT (hash, account) DO NOTHING",
            )
            .bind(&hash)
            .bind(i64::from(account.0))
            .bind(at)
            .execute(&mut *transaction)
            .await?;
            new.push(claimed.rows_affected() > 0);
        }
        transaction.commit().await?;
        for (waiting, new) in batch.into_iter().zip(new) {
            // Who has gone meanwhile does not hear it; the row is there all the same.
            let _ = waiting.done.send(new);
        }
        Ok(())
    }
}
