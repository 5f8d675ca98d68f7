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
}
