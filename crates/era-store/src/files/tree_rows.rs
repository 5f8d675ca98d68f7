//! Trees as rows: put, read, listed, staged for a launch, and used by jobs.

use std::path::PathBuf;

use era_core::units::{JobId, UserId};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::{ContentHash, DataSetKey, FileTree, Files, FilesError, TreeFile, Viewer};
use crate::StoreError;

/// Files in one statement: five values each.
const ROWS_MAX: usize = 100;
/// Files in one commit: a tree of many must not keep other writers from theirs.
const COMMIT_ROWS_MAX: usize = 4000;
/// How often a tree is written before its putting fails.
const TRIES: u32 = 3;
/// Sorts behind every path that begins with what it is appended to.
const LAST: char = char::MAX;

/// Which files of a tree are wanted.
#[derive(Clone, Debug, Default)]
pub struct FilesAsked {
    /// Whose path begins so.
    pub prefix: String,
    /// Whose path has this in it, in upper or lower case.
    pub search: Option<String>,
    /// After this path.
    pub after: Option<String>,
    pub limit: u32,
}

/// What a folder of a tree has in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A folder, by its path without a `/` at the end.
    Folder(String),
    File(TreeFile),
}

/// A file that is there before a task starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// Where its content is. Never changed.
    pub from: PathBuf,
    /// Its path in the tree.
    pub path: String,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Files {
    /// Puts a tree whose contents are all there and all open to the viewer, and makes it the
    /// viewer's to use.
    pub async fn put_tree(
        &self,
        viewer: &Viewer,
        tree: &FileTree,
    ) -> Result<ContentHash, FilesError> {
        let _naming = self.0.naming.read().await;
        self.put_changed_tree(viewer, tree, &FileTree::default()).await?;
        Ok(tree.hash())
    }

    /// The same for a tree that was made from another one, whose contents are known to be there.
    /// Whoever calls it holds the naming lock, until the tree that it gives is named.
    pub(super) async fn put_changed_tree(
        &self,
        viewer: &Viewer,
        tree: &FileTree,
        from: &FileTree,
    ) -> Result<i64, FilesError> {
        let hash = tree.hash();
        let _turn = self.0.tree_turns.take(hash.number()).await;
        self.check_contents(viewer, tree, from).await?;
        let id = match self.tree_id(hash).await? {
            Some(id) => id,
            None => self.insert_whole_tree(hash, tree).await?,
        };
        sqlx::query(
            "INSERT INTO tree_claims (tree, account, at) VALUES (?, ?, ?) \
             ON CONFLICT (tree, account) DO UPDATE SET at = excluded.at",
        )
        .bind(id)
        .bind(i64::from(viewer.account.0))
        .bind(self.now())
        .execute(self.writer())
        .await?;
        Ok(id)
    }

    async fn check_contents(
        &self,
        viewer: &Viewer,
        tree: &FileTree,
        from: &FileTree,
    ) -> Result<(), FilesError> {
        let known: std::collections::BTreeMap<ContentHash, u64> =
            from.files().iter().map(|file| (file.hash, file.bytes)).collect();
        let mut wanted: Vec<ContentHash> = tree.files().iter().map(|file| file.hash).collect();
        wanted.retain(|hash| !known.contains_key(hash));
        wanted.sort_unstable();
        wanted.dedup();
        let there = self.known_sizes(viewer, &wanted).await?;
        wanted.retain(|hash| !there.contains_key(hash));
        if !wanted.is_empty() {
            return Err(FilesError::Missing(wanted));
        }
        for TreeFile { path, hash, bytes, .. } in tree.files() {
            match there.get(hash).or_else(|| known.get(hash)) {
                Some(is) if is == bytes => {}
                is => {
                    let (path, is) = (path.clone(), is.copied().unwrap_or(0));
                    return Err(FilesError::WrongSize { path, said: *bytes, is });
                }
            }
        }
        Ok(())
    }

    /// Writes a tree, again where a server that kept files before took it for what a crash left.
    async fn insert_whole_tree(
        &self,
        hash: ContentHash,
        tree: &FileTree,
    ) -> Result<i64, FilesError> {
        for _ in 0..TRIES {
            let id = self.insert_tree(hash, tree).await?;
            if self.complete_tree(id).await? {
                return Ok(id);
            }
        }
        Err(FilesError::Stopped)
    }

    /// Makes a tree count whose rows are all there; `false` where it was removed meanwhile.
    pub(super) async fn complete_tree(&self, id: i64) -> Result<bool, FilesError> {
        let complete = sqlx::query("UPDATE trees SET complete = 1 WHERE id = ?").bind(id);
        let there = complete.execute(self.writer()).await?.rows_affected() == 1;
        if !there {
            // What came after the removal belongs to nothing.
            sqlx::query("DELETE FROM tree_files WHERE tree = ?")
                .bind(id)
                .execute(self.writer())
                .await?;
        }
        Ok(there)
    }

    /// Writes the rows of a tree, some at a time; it counts once it is said to be complete.
    pub(super) async fn insert_tree(
        &self,
        hash: ContentHash,
        tree: &FileTree,
    ) -> Result<i64, FilesError> {
        let text = hash.to_string();
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        sqlx::query(
            "INSERT INTO trees (hash, files, bytes, complete) VALUES (?, ?, ?, 0) \
             ON CONFLICT (hash) DO NOTHING",
        )
        .bind(&text)
        .bind(number(tree.files().len() as u64))
        .bind(number(tree.bytes()))
        .execute(self.writer())
        .await?;
        let id: i64 = sqlx::query_scalar("SELECT id FROM trees WHERE hash = ?")
            .bind(&text)
            .fetch_one(self.writer())
            .await?;
        // What a crash left of an earlier try.
        sqlx::query("DELETE FROM tree_files WHERE tree = ?")
            .bind(id)
            .execute(self.writer())
            .await?;
        for commit in tree.files().chunks(COMMIT_ROWS_MAX) {
            let mut transaction = self.writer().begin().await?;
            for rows in commit.chunks(ROWS_MAX) {
                let values = vec!["(?, ?, ?, ?, ?)"; rows.len()].join(", ");
                let insert = format!(
                    "INSERT INTO tree_files (tree, path, hash, bytes, executable) VALUES {values}"
                );
                let mut insert = sqlx::query(AssertSqlSafe(insert));
                for file in rows {
                    insert = insert
                        .bind(id)
                        .bind(file.path.clone())
                        .bind(file.hash.to_string())
                        .bind(number(file.bytes))
                        .bind(i32::from(file.executable));
                }
                insert.execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
        }
        Ok(id)
    }

    pub(super) async fn tree_id(&self, hash: ContentHash) -> Result<Option<i64>, FilesError> {
        Ok(sqlx::query_scalar("SELECT id FROM trees WHERE hash = ? AND complete = 1")
            .bind(hash.to_string())
            .fetch_optional(self.readers())
            .await?)
    }

    /// A tree that the viewer may read.
    pub async fn tree(&self, viewer: &Viewer, hash: ContentHash) -> Result<FileTree, FilesError> {
        let id = self.readable_tree(viewer, hash).await?;
        self.tree_by_id(id).await
    }

    pub(super) async fn tree_by_id(&self, id: i64) -> Result<FileTree, FilesError> {
        let rows = sqlx::query(
            "SELECT path, hash, bytes, executable FROM tree_files WHERE tree = ? ORDER BY path",
        )
        .bind(id)
        .fetch_all(self.readers())
        .await?;
        FileTree::new(rows.iter().map(read_file).collect::<Result<_, _>>()?)
    }

    pub(super) async fn tree_file(&self, id: i64, path: &str) -> Result<TreeFile, FilesError> {
        let row = sqlx::query(
            "SELECT path, hash, bytes, executable FROM tree_files WHERE tree = ? AND path = ?",
        )
        .bind(id)
        .bind(path)
        .fetch_optional(self.readers())
        .await?;
        read_file(&row.ok_or_else(|| FilesError::UnknownFile(path.to_owned()))?)
    }

    /// Files of a tree, by path.
    pub(super) async fn list(
        &self,
        id: i64,
        asked: &FilesAsked,
    ) -> Result<Vec<TreeFile>, FilesError> {
        let from = asked.after.clone().unwrap_or_default();
        let sql = format!(
            "SELECT path, hash, bytes, executable FROM tree_files \
             WHERE tree = ? AND path > ? AND path >= ? AND path < ? \
             AND {} LIKE lower(?) ESCAPE '!' ORDER BY path LIMIT ?",
            self.0.database.dialect().lower_path()
        );
        // Made of constants alone; what the caller gave is bound.
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(id)
            .bind(from)
            .bind(asked.prefix.clone())
            .bind(format!("{}{LAST}", asked.prefix))
            .bind(contains(asked.search.as_deref().unwrap_or_default()))
            .bind(i64::from(asked.limit))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_file).collect()
    }

    /// What is directly in a folder of a tree (`""` is the whole), after a name in it.
    pub(super) async fn browse(
        &self,
        id: i64,
        folder: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Listed>, FilesError> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut listed = Vec::new();
        let mut asked = FilesAsked {
            prefix: prefix.clone(),
            // Behind a file of that name, and behind all that is in a folder of that name.
            after: after.map(|name| format!("{prefix}{name}/{LAST}")),
            limit,
            search: None,
        };
        while listed.len() < limit as usize {
            let files = self.list(id, &asked).await?;
            if files.is_empty() {
                break;
            }
            for file in files {
                let rest = &file.path[prefix.len()..];
                asked.after = Some(file.path.clone());
                if let Some((name, _)) = rest.split_once('/') {
                    let folder = format!("{prefix}{name}");
                    asked.after = Some(format!("{folder}/{LAST}"));
                    listed.push(Listed::Folder(folder));
                    break;
                }
                listed.push(Listed::File(file));
                if listed.len() == limit as usize {
                    break;
                }
            }
        }
        Ok(listed)
    }

    /// The files of a tree as a launch needs them. For the scheduler, which has checked before
    /// who may use the tree.
    pub async fn stage(&self, hash: ContentHash) -> Result<Vec<StagedFile>, FilesError> {
        let id = self.tree_id(hash).await?.ok_or(FilesError::UnknownTree(hash))?;
        let tree = self.tree_by_id(id).await?;
        let staged = |file: &TreeFile| StagedFile {
            from: self.blob_path(file.hash),
            path: file.path.clone(),
            executable: file.executable,
        };
        Ok(tree.files().iter().map(staged).collect())
    }

    /// Keeps a tree for as long as a job is kept: as its code, or as data that it sees.
    pub async fn pin(
        &self,
        job: JobId,
        owner: UserId,
        tree: ContentHash,
        code: bool,
    ) -> Result<(), FilesError> {
        let _naming = self.0.naming.read().await;
        let id = self.tree_id(tree).await?.ok_or(FilesError::UnknownTree(tree))?;
        sqlx::query(
            "INSERT INTO job_trees (job, tree, account, code) VALUES (?, ?, ?, ?) \
             ON CONFLICT (job, tree) DO NOTHING",
        )
        .bind(i64::try_from(job.0).unwrap_or(i64::MAX))
        .bind(id)
        .bind(i64::from(owner.0))
        .bind(i32::from(code))
        .execute(self.writer())
        .await?;
        self.forget_used(owner);
        Ok(())
    }

    /// Whether the viewer may use this tree for a job; renews its claim, so that the tree is there
    /// until the job is.
    pub async fn check_usable(&self, viewer: &Viewer, tree: ContentHash) -> Result<(), FilesError> {
        let _naming = self.0.naming.read().await;
        let id = self.readable_tree(viewer, tree).await?;
        self.claim_tree(viewer, id).await
    }

    /// Whether the viewer may use this tree for a job, as things are now.
    pub async fn check_readable(
        &self,
        viewer: &Viewer,
        tree: ContentHash,
    ) -> Result<(), FilesError> {
        self.readable_tree(viewer, tree).await.map(|_| ())
    }

    /// The tree of a data set as it is now, for a job of the viewer's; none where it is empty. It
    /// is there until the job is, whatever becomes of the data set.
    pub async fn usable_data(
        &self,
        viewer: &Viewer,
        key: &DataSetKey,
    ) -> Result<Option<ContentHash>, FilesError> {
        let _naming = self.0.naming.read().await;
        let Some(tree) = self.data_set(viewer, key).await?.tree else { return Ok(None) };
        let id = self.tree_id(tree).await?.ok_or(FilesError::UnknownTree(tree))?;
        self.claim_tree(viewer, id).await?;
        Ok(Some(tree))
    }

    async fn claim_tree(&self, viewer: &Viewer, id: i64) -> Result<(), FilesError> {
        sqlx::query(
            "INSERT INTO tree_claims (tree, account, at) VALUES (?, ?, ?) \
             ON CONFLICT (tree, account) DO UPDATE SET at = excluded.at",
        )
        .bind(id)
        .bind(i64::from(viewer.account.0))
        .bind(self.now())
        .execute(self.writer())
        .await?;
        Ok(())
    }

    /// The job is no longer kept, nor what it used.
    pub async fn unpin(&self, job: JobId) -> Result<(), FilesError> {
        sqlx::query("DELETE FROM job_trees WHERE job = ?")
            .bind(i64::try_from(job.0).unwrap_or(i64::MAX))
            .execute(self.writer())
            .await?;
        Ok(())
    }
}

/// A pattern that finds this text anywhere.
pub(crate) fn contains(text: &str) -> String {
    let plain = text.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{plain}%")
}

fn read_file(row: &AnyRow) -> Result<TreeFile, FilesError> {
    Ok(TreeFile {
        path: read_path(row)?,
        hash: row.try_get::<String, _>("hash")?.parse()?,
        bytes: u64::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0),
        executable: row.try_get::<i64, _>("executable")? != 0,
    })
}

/// A path is text, but for MySQL, which has it as bytes.
fn read_path(row: &AnyRow) -> Result<String, FilesError> {
    if let Ok(path) = row.try_get::<String, _>("path") {
        return Ok(path);
    }
    let bytes: Vec<u8> = row.try_get("path")?;
    String::from_utf8(bytes).map_err(|e| {
        let problem = e.to_string();
        StoreError::Damaged { what: "a path of a tree".to_owned(), problem }.into()
    })
}
