//! Who may read what.
//!
//! A content is read by whoever can reach it: through an own recent upload, or through a tree that
//! is an own recent one, a data set's that may be seen, or a job's that may be seen. Knowing a
//! hash alone opens nothing: else a hash in a log would be the file.

use std::sync::Arc;

use era_core::units::UserId;
use sqlx::{AssertSqlSafe, Row};

use super::{ContentHash, DataSetVisibility, Files, FilesError, marks};

/// Rows that name a content or tree are looked at up to this many; beyond that it is not found.
const WAYS_MAX: i64 = 1000;
/// Most values in one statement.
pub(super) const BINDS_MAX: usize = 500;

/// Who wants to see something.
#[derive(Clone)]
pub struct Viewer {
    pub account: UserId,
    /// What it is called.
    pub name: String,
    /// Whether it sees everything.
    pub administrator: bool,
    /// Whether it sees its group's jobs.
    pub group_administrator: bool,
    /// Whether another account is in its group.
    pub same_group: Arc<dyn Fn(UserId) -> bool + Send + Sync>,
}

impl Viewer {
    /// Whether it may see what a data set holds.
    pub fn sees_data(&self, owner: UserId, visibility: DataSetVisibility, shared: bool) -> bool {
        self.administrator
            || owner == self.account
            || shared
            || match visibility {
                DataSetVisibility::Private => false,
                DataSetVisibility::Group => (self.same_group)(owner),
                DataSetVisibility::Public => true,
            }
    }

    /// Whether it may see this account's jobs.
    pub fn sees_jobs_of(&self, owner: UserId) -> bool {
        self.administrator
            || owner == self.account
            || (self.group_administrator && (self.same_group)(owner))
    }
}

impl Files {
    /// How many bytes a content has, if the viewer may read it.
    pub async fn readable_blob(
        &self,
        viewer: &Viewer,
        hash: ContentHash,
    ) -> Result<u64, FilesError> {
        let bytes: Option<i64> = sqlx::query_scalar("SELECT bytes FROM blobs WHERE hash = ?")
            .bind(hash.to_string())
            .fetch_optional(self.readers())
            .await?;
        let bytes = bytes.ok_or(FilesError::UnknownBlob(hash))?;
        if self.may_read_blob(viewer, hash).await? {
            Ok(u64::try_from(bytes).unwrap_or(0))
        } else {
            Err(FilesError::UnknownBlob(hash))
        }
    }

    async fn may_read_blob(&self, viewer: &Viewer, hash: ContentHash) -> Result<bool, FilesError> {
        if viewer.administrator {
            return Ok(true);
        }
        let claimed: Option<i64> =
            sqlx::query_scalar("SELECT at FROM blob_claims WHERE hash = ? AND account = ?")
                .bind(hash.to_string())
                .bind(i64::from(viewer.account.0))
                .fetch_optional(self.readers())
                .await?;
        if claimed.is_some() {
            return Ok(true);
        }
        let trees = "SELECT tree FROM tree_files WHERE hash = ?";
        self.reaches(viewer, trees, hash).await
    }

    /// The number of a complete tree, if the viewer may read it.
    pub(super) async fn readable_tree(
        &self,
        viewer: &Viewer,
        hash: ContentHash,
    ) -> Result<i64, FilesError> {
        let id = self.tree_id(hash).await?.ok_or(FilesError::UnknownTree(hash))?;
        let itself = "SELECT id FROM trees WHERE hash = ?";
        if viewer.administrator || self.reaches(viewer, itself, hash).await? {
            Ok(id)
        } else {
            Err(FilesError::UnknownTree(hash))
        }
    }

    /// Whether one of the trees that a query gives is open to the viewer.
    async fn reaches(
        &self,
        viewer: &Viewer,
        trees: &'static str,
        hash: ContentHash,
    ) -> Result<bool, FilesError> {
        let claims =
            format!("SELECT 1 FROM tree_claims WHERE account = ? AND tree IN ({trees}) LIMIT 1");
        let claimed = sqlx::query(AssertSqlSafe(claims))
            .bind(i64::from(viewer.account.0))
            .bind(hash.to_string())
            .fetch_optional(self.readers())
            .await?;
        if claimed.is_some() {
            return Ok(true);
        }
        let jobs =
            format!("SELECT DISTINCT account FROM job_trees WHERE tree IN ({trees}) LIMIT ?");
        let owners: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(jobs))
            .bind(hash.to_string())
            .bind(WAYS_MAX)
            .fetch_all(self.readers())
            .await?;
        if owners.into_iter().any(|owner| viewer.sees_jobs_of(account(owner))) {
            return Ok(true);
        }
        let sets = format!(
            "SELECT d.owner, d.visibility, (SELECT COUNT(*) FROM data_shares s \
             WHERE s.data_set = d.id AND s.account_name = ?) AS shared \
             FROM data_sets d WHERE d.tree IN ({trees}) LIMIT ?"
        );
        let rows = sqlx::query(AssertSqlSafe(sets))
            .bind(&viewer.name)
            .bind(hash.to_string())
            .bind(WAYS_MAX)
            .fetch_all(self.readers())
            .await?;
        for row in rows {
            let visibility =
                DataSetVisibility::read(row.try_get::<String, _>("visibility")?.as_str())?;
            let shared = row.try_get::<i64, _>("shared")? > 0;
            if viewer.sees_data(account(row.try_get("owner")?), visibility, shared) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Which of these contents the viewer has to send: those that are not there, and those that
    /// it cannot reach, since to name a hash is not to have the file. What is there is kept for
    /// another grace period, so that it is still there when the tree comes.
    pub async fn missing(
        &self,
        viewer: &Viewer,
        hashes: &[ContentHash],
    ) -> Result<Vec<ContentHash>, FilesError> {
        let there = self.known_sizes(viewer, hashes).await?;
        let found: Vec<ContentHash> =
            hashes.iter().copied().filter(|hash| there.contains_key(hash)).collect();
        self.claim(viewer, &found).await?;
        Ok(hashes.iter().copied().filter(|hash| !there.contains_key(hash)).collect())
    }

    /// The sizes of those contents that are there and that the viewer may read.
    pub(super) async fn known_sizes(
        &self,
        viewer: &Viewer,
        hashes: &[ContentHash],
    ) -> Result<std::collections::BTreeMap<ContentHash, u64>, FilesError> {
        let mut sizes = std::collections::BTreeMap::new();
        for some in hashes.chunks(BINDS_MAX) {
            let query = format!(
                "SELECT b.hash, b.bytes, (SELECT COUNT(*) FROM blob_claims c \
                 WHERE c.hash = b.hash AND c.account = ?) AS claimed \
                 FROM blobs b WHERE b.hash IN ({})",
                marks(some.len())
            );
            let mut query = sqlx::query(AssertSqlSafe(query)).bind(i64::from(viewer.account.0));
            for hash in some {
                query = query.bind(hash.to_string());
            }
            for row in query.fetch_all(self.readers()).await? {
                let hash: ContentHash = row.try_get::<String, _>("hash")?.parse()?;
                let claimed = row.try_get::<i64, _>("claimed")? > 0;
                if claimed || self.may_read_blob(viewer, hash).await? {
                    sizes.insert(hash, u64::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0));
                }
            }
        }
        Ok(sizes)
    }

    /// Renews the viewer's claim to contents that it may read.
    async fn claim(&self, viewer: &Viewer, hashes: &[ContentHash]) -> Result<(), FilesError> {
        let now = self.now();
        for some in hashes.chunks(BINDS_MAX) {
            let touch =
                format!("UPDATE blobs SET touched = ? WHERE hash IN ({})", marks(some.len()));
            let mut touch = sqlx::query(AssertSqlSafe(touch)).bind(now);
            for hash in some {
                touch = touch.bind(hash.to_string());
            }
            let mut transaction = self.writer().begin().await?;
            touch.execute(&mut *transaction).await?;
            let renew = format!(
                "UPDATE blob_claims SET at = ? WHERE account = ? AND hash IN ({})",
                marks(some.len())
            );
            let mut renew =
                sqlx::query(AssertSqlSafe(renew)).bind(now).bind(i64::from(viewer.account.0));
            for hash in some {
                renew = renew.bind(hash.to_string());
            }
            renew.execute(&mut *transaction).await?;
            transaction.commit().await?;
        }
        Ok(())
    }
}

/// An account's number as the database has it.
pub(super) fn account(number: i64) -> UserId {
    UserId(u32::try_from(number).unwrap_or(u32::MAX))
}
