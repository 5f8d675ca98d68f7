//! What is done to a server's folder from outside: tables made anew, backups, restores.
//!
//! None of it needs the server, and a backup or a rebuild does not mind one that runs.

use std::path::Path;

use era_store::Store;
use era_store::tables::Projector;

pub use era_store::backup::{Backup, BackupError, backup, restore};

/// Makes the tables anew from the journal's first entry; says how many entries it has.
pub async fn rebuild(folder: &Path) -> Result<u64, BackupError> {
    if !folder.join("era.db").is_file() {
        return Err(BackupError::NoServer(folder.to_owned()));
    }
    let store = Store::open(folder).await?;
    let rebuilt = Projector::rebuild(&store).await;
    store.close().await;
    Ok(rebuilt?.cursor())
}
