//! Everything that is kept, brought to one point: a copy of the durable database at one entry of
//! the journal, the contents that it names, and the folders of jobs.
//!
//! ```text
//! backup.json     what it is: version, entry, the hash of `files`
//! files           a line for each file: its hash, its size, its path
//! data/           the files, as they lie in the folder of a server
//! ```
//!
//! It can be taken while a server runs. Contents never change, so they are linked where the disk
//! allows; the tables are not in it, since they follow from the journal. Restoring believes
//! nothing: every file's hash is checked before a server may use the folder.
//!
//! The key of users' secrets is in it: whoever has a backup has all that the server had.

mod copy;
mod restore;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};

use era_core::units::JOBS_FOLDER;
use serde::{Deserialize, Serialize};
use sqlx::Row;

pub use restore::restore;

use crate::files::ContentHash;
use crate::secrets::KEY_FILE;
use crate::{ConnectionPool, Database, Durability, StoreError};
use copy::{Listed, copied, copied_file, file_error, linked};

/// The form of a backup.
const VERSION: u32 = 1;

/// What a backup is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// The form in which it is written.
    pub version: u32,
    /// The last entry of the journal that is in it.
    pub seq: u64,
    /// How many files it has.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// The hash of the list of files.
    pub list: String,
}

/// Why there is no backup, or it cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder has something in it.
    #[error("{} is not empty: give a folder that is empty or is not there", .0.display())]
    NotEmpty(PathBuf),
    /// The folder is no server's.
    #[error("{} has no era.db: give the folder of a server; rows that are kept in a database server are \
         backed up by its own tools, or by `era admin copy --to sqlite:DIR`", .0.display())]
    NoServer(PathBuf),
    /// The folder is no backup.
    #[error("{} is no backup: {problem}: give a folder that `era admin backup` made", folder.display())]
    NoBackup { folder: PathBuf, problem: String },
    /// A file is not what it was.
    #[error("{path} of the backup is damaged: {problem}: restore another backup")]
    Damaged { path: String, problem: String },
    /// What is kept cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A database does not do what it is asked.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
}

/// Copies what a server keeps under `folder` into an empty folder.
pub async fn backup(folder: &Path, to: &Path) -> Result<Backup, BackupError> {
    let database = folder.join("era.db");
    if !database.is_file() {
        return Err(BackupError::NoServer(folder.to_owned()));
    }
    copy::make_empty(to)?;
    let data = to.join("data");
    let mut list = vec![snapshot(&database, &data, "era.db").await?];
    let metrics = folder.join("metrics.db");
    if metrics.is_file() {
        list.push(snapshot(&metrics, &data, "metrics.db").await?);
    }
    let copy = Database::open(&data.join("era.db"), Durability::Full).await?;
    let named = named(copy.readers()).await;
    let seq = sqlx::query_scalar::<_, Option<i64>>("SELECT MAX(seq) FROM journal");
    let seq = seq.fetch_one(copy.readers()).await;
    copy.close().await;
    for (hash, needed) in named? {
        let path = format!("blobs/{}/{}", &hash[..2], &hash[2..]);
        match linked(folder, &data, &path, &hash)? {
            Some(listed) => list.push(listed),
            // Collected since: nothing needs it, and whoever brings it again is asked for it.
            None if !needed => {}
            None => {
                let problem = "a data set or job needs it, and it is not there".to_owned();
                return Err(StoreError::Damaged { what: path, problem }.into());
            }
        }
    }
    copied(folder, &data, Path::new(JOBS_FOLDER), &mut list)?;
    // Without it nobody could open users' secrets after a restore. After the rows, so that the key
    // of each is there.
    list.extend(copied_file(folder, &data, KEY_FILE)?);
    // Opening the copy has left a few marks in it.
    list[0] = copy::listed(&data, "era.db")?;
    let seq = seq?.unwrap_or(0).max(0).unsigned_abs();
    write(to, seq, &list)
}

/// A database as it is at one moment, while others write.
async fn snapshot(database: &Path, data: &Path, name: &str) -> Result<Listed, BackupError> {
    std::fs::create_dir_all(data).map_err(file_error(data))?;
    let open = Database::open(database, Durability::Full).await?;
    let target = data.join(name).display().to_string();
    let made = sqlx::query("VACUUM INTO ?").bind(target).execute(open.readers()).await;
    open.close().await;
    made?;
    Ok(copy::listed(data, name)?)
}

/// The contents that a database names, and whether a tree needs them.
async fn named(database: &ConnectionPool) -> Result<Vec<(String, bool)>, BackupError> {
    let sql = "SELECT hash, EXISTS (SELECT 1 FROM tree_files WHERE tree_files.hash = blobs.hash) \
               FROM blobs ORDER BY hash";
    let rows = sqlx::query(sql).fetch_all(database).await?;
    let named = |row: &sqlx::any::AnyRow| {
        let hash: String = row.try_get(0)?;
        let needed: i64 = row.try_get(1)?;
        let well_formed = hash.parse::<ContentHash>().is_ok();
        if !well_formed {
            let problem = "its name is no hash".to_owned();
            return Err(StoreError::Damaged { what: "a content".to_owned(), problem }.into());
        }
        Ok((hash, needed != 0))
    };
    rows.iter().map(named).collect()
}

fn write(to: &Path, seq: u64, list: &[Listed]) -> Result<Backup, BackupError> {
    let mut text = Vec::new();
    for listed in list {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{} {} {}", listed.hash, listed.bytes, listed.path);
    }
    let backup = Backup {
        version: VERSION,
        seq,
        files: list.len() as u64,
        bytes: list.iter().map(|listed| listed.bytes).sum(),
        list: blake3::hash(&text).to_hex().to_string(),
    };
    copy::write_whole(&to.join("files"), &text)?;
    let told = serde_json::to_vec_pretty(&backup).map_err(|e| StoreError::Damaged {
        what: "backup.json".to_owned(),
        problem: e.to_string(),
    })?;
    // Last of all: without it a folder is no backup.
    copy::write_whole(&to.join("backup.json"), &told)?;
    Ok(backup)
}
