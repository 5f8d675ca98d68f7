//! What is done to a server's rows and folder from outside: tables made anew, backups, restores,
//! a move to another database.
//!
//! None of it needs the server, and a backup or a rebuild does not mind one that runs.

use std::path::Path;

use era_store::tables::Projector;
use era_store::{Place, Store};

pub use era_store::backup::{Backup, BackupError, backup, restore};
pub use era_store::copy::{Copied, CopyError, CopyProgress, copy};

/// Makes the tables anew from the journal's first entry; says how many entries it has.
pub async fn rebuild(folder: &Path, database: &Place) -> Result<u64, BackupError> {
    if let Some(files) = database.as_folder()
        && !files.join("era.db").is_file()
    {
        return Err(BackupError::NoServer(files.to_owned()));
    }
    let store = Store::open_at(folder, database, None).await?;
    let rebuilt = Projector::rebuild(&store).await;
    store.close().await;
    Ok(rebuilt?)
}
