//! A look at what a server keeps, for whoever asks why it does not start.
//!
//! Nothing is made, and no table is brought to another version. What to do about what is found is
//! for others to say.

use std::path::{Path, PathBuf};

use era_core::units::Time;

use crate::database::Service;
use crate::journal::Journal;
use crate::{Database, Durability, Generation, Place, StoreError};

/// SQLite's files, the one with the journal first.
const FILES: [&str; 3] = ["era.db", "tables.db", "metrics.db"];

/// What was found.
#[derive(Debug)]
pub struct Examined {
    /// Each database by name, and whether it is whole.
    pub databases: Vec<(String, Result<(), StoreError>)>,
    /// The journal, where its database is whole; nothing where nothing was ever written.
    pub journal: Option<Result<Option<JournalFound>, StoreError>>,
}

/// A journal that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalFound {
    /// The number of its last entry.
    pub seq: u64,
    /// Entries after the newest state, which were carried out again.
    pub replayed: u64,
    /// When the last of them happened.
    pub last: Time,
}

/// Looks at the rows of a place.
pub async fn examine(place: &Place) -> Examined {
    let (databases, durable) = match place.as_folder() {
        Some(folder) => of_files(folder).await,
        None => of_server(place).await,
    };
    let journal = match durable {
        Some(durable) => Some(journal(&durable).await),
        None => None,
    };
    Examined { databases, journal }
}

type Found = (Vec<(String, Result<(), StoreError>)>, Option<Database>);

async fn of_files(folder: &Path) -> Found {
    let (mut found, mut durable) = (Vec::new(), None);
    for name in FILES {
        let whole = whole(folder.join(name)).await;
        let whole = match whole {
            Ok(database) if durable.is_none() && name == FILES[0] => {
                durable = Some(database);
                Ok(())
            }
            Ok(database) => {
                database.close().await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        found.push((name.to_owned(), whole));
    }
    (found, durable)
}

/// Opens a file that is there, and has SQLite look whether it is whole.
async fn whole(file: PathBuf) -> Result<Database, StoreError> {
    let absent = |source| StoreError::File { path: file.clone(), source };
    std::fs::metadata(&file).map_err(absent)?;
    let damaged = |problem| StoreError::Damaged { what: file.display().to_string(), problem };
    let opened = Database::open(&file, Durability::Rebuildable).await;
    let database = opened.map_err(|error| damaged(error.to_string()))?;
    let checked: Result<String, sqlx::Error> =
        sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(database.readers()).await;
    let problem = match checked {
        Ok(said) if said == "ok" => return Ok(database),
        Ok(said) => said,
        Err(error) => error.to_string(),
    };
    database.close().await;
    Err(damaged(problem))
}

async fn of_server(place: &Place) -> Found {
    let reached = async {
        match Service::reach(place).await? {
            Some(service) => Ok(Some(Database::of(&service, None, Durability::Full).await?)),
            None => Ok(None),
        }
    };
    match reached.await {
        Ok(database) => (vec![(place.to_string(), Ok(()))], database),
        Err(error) => (vec![(place.to_string(), Err(error))], None),
    }
}

async fn journal(durable: &Database) -> Result<Option<JournalFound>, StoreError> {
    let read = async {
        let generation = Generation::read(durable).await?;
        Journal::new(durable.clone(), generation).restore().await
    };
    let restored = read.await;
    durable.close().await;
    Ok(restored?.map(|restored| JournalFound {
        seq: restored.state.seq(),
        replayed: restored.replayed,
        last: restored.state.now(),
    }))
}

#[cfg(test)]
mod tests {
    use era_core::State;

    use super::*;
    use crate::Store;
    use crate::journal::Segment;

    #[tokio::test]
    async fn what_is_whole_is_read_and_what_is_not_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::folder(folder.path());
        let nothing = examine(&place).await;
        assert!(nothing.databases.iter().all(|(_, found)| found.is_err()));
        assert!(nothing.journal.is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is made");

        let store = Store::open(folder.path()).await.unwrap();
        assert!(matches!(examine(&place).await.journal, Some(Ok(None))), "nothing was written");
        store.journal().begin_segment(&Segment::of(&State::default())).await.unwrap();
        store.close().await;
        let good = examine(&place).await;
        assert!(good.databases.iter().all(|(_, found)| found.is_ok()), "{good:?}");
        let found = good.journal.unwrap().unwrap().unwrap();
        assert_eq!((found.seq, found.replayed), (0, 0));

        std::fs::write(folder.path().join("tables.db"), b"this is no database at all").unwrap();
        let bad = examine(&place).await;
        let broken: Vec<_> = bad.databases.iter().filter(|(_, found)| found.is_err()).collect();
        assert_eq!((broken.len(), broken[0].0.as_str()), (1, "tables.db"), "{bad:?}");
        assert!(matches!(bad.journal, Some(Ok(Some(_)))), "{bad:?}");
    }
}
