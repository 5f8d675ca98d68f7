//! Collection: what nothing names is removed once a grace period is over.
//!
//! Uploads lapse, then claims, then trees that no data set, claim or job names, then contents that
//! no tree or claim names, then files that have no row (a crash left them). Work is done some
//! rows at a time under the writing half of the naming lock, so an upload or a tree that is about
//! to name something never finds it half removed, and nobody waits long.
//!
//! Of several servers one keeps files, but it may be paused until another one does. So rows go by
//! statements that say once more why they may, files go only after their rows, and the question
//! whether this server still keeps them is asked before each.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use era_core::units::{JobId, UserId};
use sqlx::AssertSqlSafe;

use super::upload::UNNAMED;
use super::{ContentHash, Files, FilesError, blocking, marks};

/// Rows that are removed under one lock.
const BATCH: usize = 500;

/// A tree that no data set, claim or job names, or that a crash left: whoever puts one holds the
/// naming lock.
const UNUSED_TREE: &str = "complete = 0 OR ( \
    NOT EXISTS (SELECT 1 FROM data_sets d WHERE d.tree = trees.id) \
    AND NOT EXISTS (SELECT 1 FROM tree_claims c WHERE c.tree = trees.id) \
    AND NOT EXISTS (SELECT 1 FROM job_trees j WHERE j.tree = trees.id))";
/// A content that no tree and no claim names, and that nobody has sent for a while.
const UNNAMED_BLOB: &str = "touched < ? \
    AND NOT EXISTS (SELECT 1 FROM tree_files f WHERE f.hash = blobs.hash) \
    AND NOT EXISTS (SELECT 1 FROM blob_claims c WHERE c.hash = blobs.hash)";

/// Whether this server is, right now, the one that keeps files.
pub type StillKeepsFiles<'a> = &'a (dyn Fn() -> bool + Send + Sync);

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub uploads: u64,
    pub trees: u64,
    pub blobs: u64,
    /// Bytes of these contents.
    pub bytes: u64,
    /// Files without a row.
    pub strays: u64,
    /// Jobs whose outputs were removed.
    pub outputs: u64,
}

impl Files {
    /// Removes what has lapsed. May be run at any time, and beside everything else.
    pub async fn collect(&self) -> Result<Collected, FilesError> {
        self.collect_while(&|| true).await
    }

    /// The same for as long as this server is the one that keeps files.
    pub async fn collect_while(
        &self,
        still_keeps: StillKeepsFiles<'_>,
    ) -> Result<Collected, FilesError> {
        let before = self.now() - self.0.keep.grace_ms;
        let outputs = match self.0.keep.outputs_ms {
            Some(kept) => self.retire_outputs(self.now() - kept, still_keeps).await?,
            None => 0,
        };
        let uploads = self.collect_uploads(before).await?;
        self.lapse_claims(before).await?;
        let trees = self.collect_trees(still_keeps).await?;
        let (blobs, bytes) = self.collect_blobs(before, still_keeps).await?;
        let strays = self.collect_strays(before, still_keeps).await?;
        Ok(Collected { uploads, trees, blobs, bytes, strays, outputs })
    }

    async fn collect_uploads(&self, before: i64) -> Result<u64, FilesError> {
        let (files, folder) = (self.clone(), self.folder().join("uploads"));
        blocking(move || {
            let mut count = 0;
            for account in names(&folder)? {
                let Ok(number) = account.parse::<u32>() else { continue };
                for upload in names(&folder.join(&account))? {
                    let hash = upload.parse::<ContentHash>();
                    if hash.is_err() && !upload.starts_with(UNNAMED) {
                        continue;
                    }
                    let idle = hash.is_ok_and(|hash| files.is_idle(UserId(number), hash));
                    let path = folder.join(&account).join(&upload);
                    // Whoever begins to write between the question and the removal has the file
                    // open, and is told at the end that it is gone; that upload then starts anew.
                    let lapsed = changed_before(&path, before)?;
                    if lapsed && (idle || upload.starts_with(UNNAMED)) && remove(&path)? {
                        count += 1;
                    }
                }
            }
            Ok(count)
        })
        .await
    }

    pub(super) async fn lapse_claims(&self, before: i64) -> Result<(), FilesError> {
        for statement in
            ["DELETE FROM blob_claims WHERE at < ?", "DELETE FROM tree_claims WHERE at < ?"]
        {
            let _naming = self.0.naming.write().await;
            sqlx::query(statement).bind(before).execute(self.writer()).await?;
        }
        Ok(())
    }

    async fn collect_trees(&self, still_keeps: StillKeepsFiles<'_>) -> Result<u64, FilesError> {
        let mut count = 0;
        while still_keeps() {
            let _naming = self.0.naming.write().await;
            // Made of constants alone, as below.
            let tree = format!("SELECT id FROM trees WHERE {UNUSED_TREE} LIMIT 1");
            let tree: Option<i64> =
                sqlx::query_scalar(AssertSqlSafe(tree)).fetch_optional(self.writer()).await?;
            let Some(tree) = tree else { break };
            count += u64::from(self.remove_tree(tree).await?);
        }
        Ok(count)
    }

    /// Whether it was still there to be removed. Whoever writes its rows meanwhile, elsewhere, finds
    /// its own gone.
    pub(super) async fn remove_tree(&self, tree: i64) -> Result<bool, FilesError> {
        let mut transaction = self.writer().begin().await?;
        let delete = format!("DELETE FROM trees WHERE id = ? AND ({UNUSED_TREE})");
        let delete = sqlx::query(AssertSqlSafe(delete)).bind(tree);
        if delete.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query("DELETE FROM tree_files WHERE tree = ?")
            .bind(tree)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn collect_blobs(
        &self,
        before: i64,
        still_keeps: StillKeepsFiles<'_>,
    ) -> Result<(u64, u64), FilesError> {
        let (mut count, mut bytes) = (0, 0);
        while still_keeps() {
            let _naming = self.0.naming.write().await;
            let unnamed =
                format!("SELECT hash, bytes FROM blobs WHERE {UNNAMED_BLOB} LIMIT {BATCH}");
            let unnamed: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(unnamed))
                .bind(before)
                .fetch_all(self.writer())
                .await?;
            if unnamed.is_empty() {
                break;
            }
            // Rows first: a crash in between leaves files without rows, which are strays, and
            // never rows without files.
            let gone = self.remove_blob_rows(unnamed, before).await?;
            count += gone.len() as u64;
            bytes += gone.iter().map(|(_, bytes)| bytes.unsigned_abs()).sum::<u64>();
            let paths = gone
                .iter()
                .map(|(hash, _)| Ok(self.blob_path(hash.parse()?)))
                .collect::<Result<Vec<_>, FilesError>>()?;
            if !still_keeps() {
                // Who keeps them now finds them as strays.
                break;
            }
            blocking(move || paths.iter().try_for_each(|path| remove(path).map(drop))).await?;
        }
        Ok((count, bytes))
    }

    /// Removes the rows of contents that still are named by nothing, and says which these were.
    pub(super) async fn remove_blob_rows(
        &self,
        mut unnamed: Vec<(String, i64)>,
        before: i64,
    ) -> Result<Vec<(String, i64)>, FilesError> {
        let these = format!("hash IN ({})", marks(unnamed.len()));
        let delete = format!("DELETE FROM blobs WHERE {UNNAMED_BLOB} AND {these}");
        let mut delete = sqlx::query(AssertSqlSafe(delete)).bind(before);
        let left = format!("SELECT hash FROM blobs WHERE {these}");
        let mut left = sqlx::query_scalar::<_, String>(AssertSqlSafe(left));
        for (hash, _) in &unnamed {
            delete = delete.bind(hash.clone());
            left = left.bind(hash.clone());
        }
        let deleted = delete.execute(self.writer()).await?.rows_affected();
        if deleted < unnamed.len() as u64 {
            let left: BTreeSet<String> = left.fetch_all(self.writer()).await?.into_iter().collect();
            unnamed.retain(|(hash, _)| !left.contains(hash));
        }
        Ok(unnamed)
    }

    /// Files that have no row, folder by folder.
    async fn collect_strays(
        &self,
        before: i64,
        still_keeps: StillKeepsFiles<'_>,
    ) -> Result<u64, FilesError> {
        let root = self.folder().join("blobs");
        let mut count = 0;
        for folder in blocking({
            let root = root.clone();
            move || names(&root)
        })
        .await?
        {
            let _naming = self.0.naming.write().await;
            let path = root.join(&folder);
            let old = blocking(move || {
                let mut old = Vec::new();
                for name in names(&path)? {
                    let file = path.join(&name);
                    if changed_before(&file, before)? {
                        old.push((name, file));
                    }
                }
                Ok(old)
            })
            .await?;
            for some in old.chunks(BATCH) {
                let query = format!("SELECT hash FROM blobs WHERE hash IN ({})", marks(some.len()));
                let mut query = sqlx::query_scalar::<_, String>(AssertSqlSafe(query));
                for (name, _) in some {
                    query = query.bind(format!("{folder}{name}"));
                }
                let known: BTreeSet<String> =
                    query.fetch_all(self.writer()).await?.into_iter().collect();
                if !still_keeps() {
                    return Ok(count);
                }
                for (name, file) in some {
                    if !known.contains(&format!("{folder}{name}")) && remove(file)? {
                        count += 1;
                    }
                }
            }
        }
        Ok(count)
    }

    /// Removes the outputs of jobs that ended long ago, and what they used.
    async fn retire_outputs(
        &self,
        before: i64,
        still_keeps: StillKeepsFiles<'_>,
    ) -> Result<u64, FilesError> {
        let mut count = 0;
        while still_keeps() {
            let retired = self.retire_some_outputs(before).await?;
            count += retired;
            if retired < BATCH as u64 {
                break;
            }
        }
        Ok(count)
    }

    async fn retire_some_outputs(&self, before: i64) -> Result<u64, FilesError> {
        let jobs: Vec<(i64, i64)> =
            sqlx::query_as("SELECT job, account FROM job_outputs WHERE ended < ? LIMIT ?")
                .bind(before)
                .bind(BATCH as i64)
                .fetch_all(self.readers())
                .await?;
        for (job, account) in &jobs {
            let id = JobId(job.unsigned_abs());
            let folder = self.job_folder(id);
            blocking(move || match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(FilesError::of(&folder)(error))
                }
                _ => Ok(()),
            })
            .await?;
            self.unpin(id).await?;
            sqlx::query("DELETE FROM job_outputs WHERE job = ?")
                .bind(job)
                .execute(self.writer())
                .await?;
            self.forget_used(super::access::account(*account));
        }
        Ok(jobs.len() as u64)
    }
}

fn names(folder: &Path) -> Result<Vec<String>, FilesError> {
    let read = || {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<Vec<_>>>()
    };
    read().map_err(FilesError::of(folder))
}

fn changed_before(path: &Path, before: i64) -> Result<bool, FilesError> {
    let limit = UNIX_EPOCH + Duration::from_millis(before.max(0).unsigned_abs());
    match fs::metadata(path).and_then(|found| found.modified()) {
        Ok(changed) => Ok(changed < limit),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FilesError::of(path)(error)),
    }
}

/// Whether it was there.
fn remove(path: &Path) -> Result<bool, FilesError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FilesError::of(path)(error)),
    }
}
