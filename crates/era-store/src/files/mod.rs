//! Files: contents by their hash, trees of them, and data sets that name trees.
//!
//! A content (a *blob*) lies in a file of its own, written once and never changed. Trees and data
//! sets are rows. Whoever reads gives a [`Viewer`], and sees only what leads there: an own upload,
//! a data set or a job that may be seen. Sessions, roles and HTTP are not known here; what a job
//! writes into its folder is not either, beyond how much it is.
//!
//! ```text
//! blobs/ab/cdef…          contents, read-only
//! uploads/ACCOUNT/HASH    what has come so far of an upload
//! ```

mod access;
mod blob;
mod collect;
mod error;
mod hash;
mod path;
mod publish;
mod set;
mod set_key;
mod tree;
mod tree_rows;
mod upload;
mod usage;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use era_core::units::UserId;
use tokio::sync::RwLock;

pub use access::Viewer;
pub use collect::{Collected, StillKeepsFiles};
pub use error::FilesError;
pub use hash::{BadHash, ContentHash};
pub use path::{BadPath, DEPTH_MAX, PATH_BYTES_MAX, check_path};
pub use set::DataSet;
pub use set_key::{DataSetKey, DataSetVisibility};
pub use tree::{Edit, FileTree, TREE_FILES_MAX, TreeFile};
pub(crate) use tree_rows::contains;
pub use tree_rows::{FilesAsked, Listed, StagedFile};
pub use upload::{BLOB_BYTES_MAX, UPLOADS_MAX, Upload};
pub use usage::Outputs;

use crate::{ConnectionPool, Database, Store, StoreError};

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFor {
    /// An upload that nobody goes on with, and a content or tree that nothing names: this long.
    pub grace_ms: i64,
    /// The outputs of an ended job; for ever where nothing is said.
    pub outputs_ms: Option<i64>,
}

impl Default for KeepFor {
    fn default() -> KeepFor {
        KeepFor { grace_ms: 24 * 3_600_000, outputs_ms: None }
    }
}

/// Tells the time in milliseconds since 1970.
pub type MillisClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The files of a store. A clone shares.
#[derive(Clone)]
pub struct Files(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    database: Database,
    keep: KeepFor,
    clock: MillisClock,
    /// Writers of references share it, the collector has it alone: what is about to be named is
    /// not taken away meanwhile.
    naming: RwLock<()>,
    publisher: publish::Publisher,
    /// Uploads that somebody is writing to right now.
    writing: Mutex<BTreeSet<(UserId, ContentHash)>>,
    /// How many uploads there were whose hash was not known before.
    unnamed: AtomicU64,
    used: Mutex<BTreeMap<UserId, usage::Known>>,
    /// Puts of one tree come one after the other.
    tree_turns: Turns,
    /// Changes of one data set come one after the other. Taken before a turn for a tree.
    set_turns: Turns,
}

impl Files {
    pub fn open(store: &Store, keep: KeepFor, clock: MillisClock) -> Result<Files, StoreError> {
        let folder = store.folder().to_owned();
        for (name, mode) in [("blobs", blob::UNLISTED), ("uploads", blob::CLOSED)] {
            let folder = folder.join(name);
            blob::open_folder(&folder, mode)
                .map_err(|source| StoreError::Folder { folder, source })?;
        }
        let database = store.durable().clone();
        Ok(Files(Arc::new(Inner {
            publisher: publish::Publisher::new(database.clone()),
            folder,
            database,
            keep,
            clock,
            naming: RwLock::new(()),
            writing: Mutex::default(),
            unnamed: AtomicU64::default(),
            used: Mutex::default(),
            tree_turns: Turns::default(),
            set_turns: Turns::default(),
        })))
    }

    pub fn job_folder(&self, job: era_core::units::JobId) -> PathBuf {
        job.folder(&self.0.folder)
    }

    fn now(&self) -> i64 {
        (self.0.clock)()
    }

    fn folder(&self) -> &Path {
        &self.0.folder
    }

    fn readers(&self) -> &ConnectionPool {
        self.0.database.readers()
    }

    fn writer(&self) -> &ConnectionPool {
        self.0.database.writer()
    }
}

/// Locks for things with numbers. Two things may share one, so nobody takes two.
struct Turns([tokio::sync::Mutex<()>; 64]);

impl Default for Turns {
    fn default() -> Turns {
        Turns(std::array::from_fn(|_| tokio::sync::Mutex::new(())))
    }
}

impl Turns {
    async fn take(&self, of: u64) -> tokio::sync::MutexGuard<'_, ()> {
        self.0[(of % 64) as usize].lock().await
    }
}

/// A panic elsewhere leaves these plain values whole, so they are used on.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `?, ?, ?` for so many values.
fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Runs file operations where they may take their time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FilesError> + Send + 'static,
) -> Result<T, FilesError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| FilesError::Stopped)?
}
