//! What can be wrong with a request for files.

use std::io::ErrorKind;
use std::path::Path;

use super::hash::{BadHash, ContentHash};
use super::path::BadPath;
use crate::StoreError;

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error(transparent)]
    BadHash(#[from] BadHash),
    /// A path that no tree may have.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// A name that no data set may have.
    #[error(
        "`{0}` is no name for a data set: use 1 to 63 characters out of a-z, A-Z, 0-9, `.`, `_` \
         and `-`, the first one a letter or a digit"
    )]
    BadName(String),
    /// Too many files in one tree.
    #[error("{given} files are too many for one tree: at most {most}; pack small ones")]
    TooManyFiles { given: usize, most: usize },
    /// A content that is larger than any may be.
    #[error("a file of {bytes} bytes is too large: at most {limit}")]
    TooLarge {
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// Somebody else's request writes the same upload.
    #[error("this file is being uploaded by another request: wait until that is over")]
    Busy,
    /// Too many unfinished uploads.
    #[error("{0} uploads are unfinished: finish some of them, or let them lapse")]
    TooManyUploads(usize),
    /// The upload does not go on where it stopped.
    #[error("{have} bytes of this file are there, so it cannot go on at {asked}: go on at {have}")]
    Offset {
        /// What is there.
        have: u64,
        /// Where it should have gone on.
        asked: u64,
    },
    /// What came is not what was announced.
    #[error(
        "what came has the hash {found}, not {wanted}: the file was damaged or changed on the way; send it again"
    )]
    Mismatch {
        /// What was announced.
        wanted: ContentHash,
        found: ContentHash,
    },
    /// The storage quota does not allow it.
    #[error(
        "{used} of {limit} bytes are used, and this needs more: remove data sets or outputs, or ask for more"
    )]
    Quota {
        used: u64,
        /// What may be used.
        limit: u64,
    },
    /// The disk is full.
    #[error("the server's disk is full: try again later, or tell the administrator")]
    DiskFull,
    /// Contents that are not there, or that the account has not shown to have.
    #[error("{} of the files are not there yet, such as {}: upload them first", .0.len(), .0.first().map(ToString::to_string).unwrap_or_default())]
    Missing(Vec<ContentHash>),
    /// A size that is not the content's.
    #[error("`{path}` is said to have {said} bytes, but its content has {is}")]
    WrongSize {
        path: String,
        said: u64,
        /// What is true.
        is: u64,
    },
    /// No such content, or none that the account may read.
    #[error("there is no file with the hash {0} that you may read")]
    UnknownBlob(ContentHash),
    /// No such tree, or none that the account may read.
    #[error("there is no tree with the hash {0} that you may read")]
    UnknownTree(ContentHash),
    /// No such data set, or none that the account may see.
    #[error("there is no data set `{0}` that you may see: `era data ls` lists them")]
    UnknownData(String),
    /// No such file in a tree.
    #[error("there is no file `{0}` in it")]
    UnknownFile(String),
    /// A data set of that name is there.
    #[error("the data set `{0}` is there already")]
    Taken(String),
    /// It is somebody else's.
    #[error("the data set `{0}` is not yours: only its owner may change it")]
    NotYours(String),
    /// Too many accounts.
    #[error("{0} accounts are too many to share with: at most 1000; share with the group instead")]
    TooManyShares(usize),
    /// The server is going down.
    #[error("the server is stopping: try again in a moment")]
    Stopped,
    /// The store does not do what it is asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for FilesError {
    fn from(error: sqlx::Error) -> FilesError {
        FilesError::Store(StoreError::Database(error))
    }
}

impl FilesError {
    /// What the system says about a file.
    pub(super) fn of(path: &Path) -> impl Fn(std::io::Error) -> FilesError + use<> {
        let path = path.to_owned();
        move |source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FilesError::DiskFull,
            _ => FilesError::Store(StoreError::File { path: path.clone(), source }),
        }
    }
}
