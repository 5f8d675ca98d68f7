//! How much an account keeps, for its storage quota.
//!
//! What counts: contents of own data sets and of own jobs' code, recent uploads, and outputs of
//! own jobs, each content once. Counting reads many rows, so the sum is remembered for a minute
//! and uploads are added to it meanwhile.

use std::collections::BTreeSet;

use era_core::units::{JobId, UserId};
use sqlx::AssertSqlSafe;

use super::access::BINDS_MAX;
use super::{Files, FilesError, locked, marks};

const REMEMBERED_MS: i64 = 60_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    bytes: u64,
    at: i64,
}

/// What an ended job left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outputs {
    pub job: JobId,
    /// Whose it was.
    pub account: UserId,
    /// How many files.
    pub files: u64,
    pub bytes: u64,
}

impl Files {
    /// How many bytes an account keeps.
    pub async fn used(&self, account: UserId) -> Result<u64, FilesError> {
        let now = self.now();
        let known = locked(&self.0.used).get(&account).copied();
        if let Some(known) = known.filter(|known| (0..REMEMBERED_MS).contains(&(now - known.at))) {
            return Ok(known.bytes);
        }
        let id = i64::from(account.0);
        // Joined, and each tree once: MariaDB would ask `hash IN (...)` of all jobs for each blob.
        let (bytes,): (i64,) = sqlx::query_as(
            "SELECT CAST(COALESCE((SELECT SUM(b.bytes) FROM ( \
                 SELECT hash FROM blob_claims WHERE account = ? \
                 UNION SELECT f.hash FROM tree_files f JOIN ( \
                     SELECT tree FROM data_sets WHERE owner = ? \
                     UNION SELECT tree FROM job_trees WHERE account = ? AND code = 1 \
                 ) own ON own.tree = f.tree) kept JOIN blobs b ON b.hash = kept.hash), 0) \
                 + COALESCE((SELECT SUM(bytes) FROM job_outputs WHERE account = ?), 0) AS BIGINT)",
        )
        .bind(id)
        .bind(id)
        .bind(id)
        .bind(id)
        .fetch_one(self.readers())
        .await?;
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let mut used = locked(&self.0.used);
        // Accounts that were asked about long ago need not be remembered.
        used.retain(|_, known| now - known.at < REMEMBERED_MS);
        used.insert(account, Known { bytes, at: now });
        Ok(bytes)
    }

    /// An account has brought something new.
    pub(super) fn uses_more(&self, account: UserId, bytes: u64) {
        if let Some(known) = locked(&self.0.used).get_mut(&account) {
            known.bytes = known.bytes.saturating_add(bytes);
        }
    }

    /// Something was removed: count anew when asked next.
    pub(super) fn forget_used(&self, account: UserId) {
        locked(&self.0.used).remove(&account);
    }

    /// Remembers what ended jobs left, for their owners' quotas and for retention, and how far the
    /// ends of jobs were looked through: both or neither.
    pub async fn record_outputs(
        &self,
        left: &[Outputs],
        looked_at: (u64, u32),
    ) -> Result<(), FilesError> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let now = self.now();
        let mut transaction = self.writer().begin().await?;
        for outputs in left {
            sqlx::query(
                "INSERT INTO job_outputs (job, account, bytes, files, ended) \
                 VALUES (?, ?, ?, ?, ?) ON CONFLICT (job) DO UPDATE SET bytes = excluded.bytes, \
                 files = excluded.files, ended = excluded.ended",
            )
            .bind(number(outputs.job.0))
            .bind(i64::from(outputs.account.0))
            .bind(number(outputs.bytes))
            .bind(number(outputs.files))
            .bind(now)
            .execute(&mut *transaction)
            .await?;
        }
        sqlx::query(
            "INSERT INTO outputs_cursor (id, seq, place) VALUES (1, ?, ?) \
             ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, place = excluded.place",
        )
        .bind(number(looked_at.0))
        .bind(i64::from(looked_at.1))
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        for outputs in left {
            self.forget_used(outputs.account);
        }
        Ok(())
    }

    /// These jobs are kept as if they had ended just now.
    pub async fn keep_longer(&self, jobs: &BTreeSet<JobId>) -> Result<(), FilesError> {
        let jobs: Vec<i64> = jobs.iter().filter_map(|job| i64::try_from(job.0).ok()).collect();
        for some in jobs.chunks(BINDS_MAX) {
            let query =
                format!("UPDATE job_outputs SET ended = ? WHERE job IN ({})", marks(some.len()));
            let mut query = sqlx::query(AssertSqlSafe(query)).bind(self.now());
            for job in some {
                query = query.bind(job);
            }
            query.execute(self.writer()).await?;
        }
        Ok(())
    }

    /// The last end of a job whose outputs were recorded: its entry, and its place there.
    pub async fn outputs_cursor(&self) -> Result<(u64, u32), FilesError> {
        let cursor: Option<(i64, i64)> =
            sqlx::query_as("SELECT seq, place FROM outputs_cursor WHERE id = 1")
                .fetch_optional(self.readers())
                .await?;
        let (seq, place) = cursor.unwrap_or_default();
        Ok((seq.unsigned_abs(), u32::try_from(place).unwrap_or(0)))
    }
}
