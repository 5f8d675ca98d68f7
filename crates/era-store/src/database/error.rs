//! What can go wrong with what is kept.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use super::Place;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be made or used.
    #[error("{}: {source}: give a folder that can be written", folder.display())]
    Folder {
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The database does not do what it is asked.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A database server cannot be used.
    #[error("{service} answered {answer}: {advice}")]
    Service {
        /// Which, without its password.
        service: String,
        /// What it said.
        answer: String,
        advice: &'static str,
        /// Whether it may be that nothing but time is needed: it is away, starting or full.
        may_pass: bool,
    },
    /// What is given as a replica cannot be one.
    #[error(
        "{replica} cannot be a replica of {place}: give a server of the same kind that follows it; \
         SQLite has no replicas"
    )]
    Replica {
        place: Place,
        /// What should follow it.
        replica: Place,
    },
    /// The database cannot be brought to this version.
    #[error("database: {0}: back it up, and start the version that wrote it")]
    Migration(sqlx::migrate::MigrateError),
    /// A newer version has been at the database.
    #[error(
        "the database was changed by a newer version of ERA (step {0} is not known here): start \
         that version, or restore a backup of its time"
    )]
    Newer(i64),
    /// Something ended while the database was brought to this version.
    #[error(
        "the database is half-way through step {0} of an upgrade that was interrupted: restore \
         the backup from before it, or, if it was new, make it empty and start again"
    )]
    HalfMigrated(i64),
    /// Another process does what only one may do at a time.
    #[error(
        "another process has been {what} for {waited_s} s: wait until it is done, or end it if it \
         hangs, and try again"
    )]
    Locked {
        /// What it does.
        what: &'static str,
        /// How long it was waited for.
        waited_s: u32,
    },
    /// A copy into the database was interrupted.
    #[error(
        "the database is half a copy of {from}: make it empty and copy again, and go on with \
         {from} meanwhile"
    )]
    HalfCopied {
        /// Of what, without its password.
        from: String,
    },
    /// Somebody else leads now.
    #[error(
        "another server has taken the lead (generation {newer}, ours was {ours}): nothing more is \
         written from here"
    )]
    Deposed {
        /// The generation that was ours.
        ours: u64,
        /// The generation of now.
        newer: u64,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A user's secret cannot be opened.
    #[error("secret `{name}` cannot be opened, since {why}: set it again: `era secret set {name}`")]
    Unopened { name: String, why: String },
    /// What is kept makes no sense.
    #[error(
        "{what} is damaged: {problem}: see `era admin doctor --data DIR`, or restore a \
             backup"
    )]
    Damaged { what: String, problem: String },
    /// The journal was written by another version.
    #[error(
        "segment {segment} of the journal was written by {what} version {found}, and this binary \
         reads version {ours}: start the release that wrote it, or restore a backup of its time"
    )]
    OtherVersion {
        segment: u64,
        /// The version of what.
        what: &'static str,
        found: u32,
        ours: u32,
    },
    /// The journal was written by an older version, which has not closed it.
    #[error(
        "segment {segment} of the journal was written by an older release, and {behind} inputs \
         came after it, as after a crash: start and stop the release that wrote it once, then \
         start this one"
    )]
    Unclosed {
        segment: u64,
        /// How many inputs came after its beginning.
        behind: u64,
    },
    /// An input leads to other decisions than were written down.
    #[error(
        "entry {seq} of the journal was decided otherwise than this binary decides: start the \
         binary that wrote it, or restore a backup"
    )]
    Differs { seq: u64 },
}

impl StoreError {
    /// Whether the same question may be answered later, without anybody's doing here: the database
    /// is away, busy or starting. What is kept and makes no sense will make none then.
    pub fn may_pass(&self) -> bool {
        use sqlx::Error::{ColumnDecode, ColumnIndexOutOfBounds, ColumnNotFound, Decode, Encode};
        match self {
            StoreError::Database(
                ColumnDecode { .. }
                | ColumnIndexOutOfBounds { .. }
                | ColumnNotFound(_)
                | Decode(_)
                | Encode(_),
            ) => false,
            StoreError::Database(_) | StoreError::Locked { .. } => true,
            StoreError::Service { may_pass, .. } => *may_pass,
            _ => false,
        }
    }
}

/// Waits for an answer of the database, but not for ever: a host that vanished says nothing.
pub async fn answered_within<T>(
    most: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(most, asked).await.unwrap_or_else(|_| {
        let silent = format!("it has not answered for {} s", most.as_secs());
        Err(sqlx::Error::Io(std::io::Error::new(ErrorKind::TimedOut, silent)).into())
    })
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> StoreError {
        match error {
            sqlx::migrate::MigrateError::VersionMissing(step) => StoreError::Newer(step),
            sqlx::migrate::MigrateError::Dirty(step) => StoreError::HalfMigrated(step),
            other => StoreError::Migration(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_that_says_nothing_is_not_waited_for() {
        let nothing = std::future::pending::<Result<(), StoreError>>();
        let error = answered_within(Duration::from_millis(10), nothing).await.unwrap_err();
        assert!(matches!(error, StoreError::Database(_)) && error.may_pass(), "{error}");
        assert_eq!(answered_within(Duration::from_secs(9), async { Ok(7) }).await.unwrap(), 7);
    }
}
