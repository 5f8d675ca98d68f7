//! What can go wrong with what is kept.

use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be made or used.
    #[error("{}: {source}: give a folder that can be written", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The database does not do what it is asked.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// The database cannot be brought to this version.
    #[error("database: {0}: back it up, and start the version that wrote it")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What is kept makes no sense.
    #[error("{what} is damaged: {problem}: restore a backup, or run `era admin doctor`")]
    Damaged {
        /// What.
        what: String,
        /// How.
        problem: String,
    },
    /// The journal was written by another version.
    #[error(
        "segment {segment} of the journal was written by {what} version {found}, and this binary \
         reads version {ours}: start the release that wrote it, or restore a backup of its time"
    )]
    OtherVersion {
        /// Which segment.
        segment: u64,
        /// The version of what.
        what: &'static str,
        /// Its version.
        found: u32,
        /// Ours.
        ours: u32,
    },
    /// An input leads to other decisions than were written down.
    #[error(
        "entry {seq} of the journal was decided otherwise than this binary decides: start the \
         binary that wrote it, or restore a backup"
    )]
    Differs {
        /// Which entry.
        seq: u64,
    },
}
