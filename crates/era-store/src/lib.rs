//! What is kept: the journal, the tables and the files.
//!
//! The journal is the truth: inputs with what was decided about them, in segments that each begin
//! with a state. Tables that are read are projections of it and can be made anew; accounts, data
//! sets and files are kept beside it. What any of it means to a user is not known here.

pub mod accounts;
pub mod backup;
#[cfg(test)]
mod conformance;
pub mod copy;
mod database;
pub mod examine;
pub mod files;
pub mod journal;
mod lease;
pub mod note;
pub mod prices;
pub mod samples;
mod schema;
pub mod secrets;
pub mod tables;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(unix)]
pub mod trial;

use std::path::{Path, PathBuf};

pub use database::{
    BadPlace, Connection, ConnectionPool, Database, Dialect, Durability, Place, StoreError,
    Transaction, answered_within,
};
pub use lease::{Generation, Leader, Lease, LeaseRole};
pub use note::Note;

use database::{Held, Lock, Service};

/// All that is kept: rows in a database, files under one folder. A clone shares.
#[derive(Clone)]
pub struct Store {
    folder: PathBuf,
    place: Place,
    /// Journal, accounts, data sets: acknowledged means on the disk.
    durable: Database,
    /// Projections of the journal, which can be made anew.
    tables: Database,
    /// What jobs told and used: many small values, none of them precious.
    metrics: Database,
    generation: Generation,
}

impl Store {
    /// Opens what is kept under a folder, and makes it where there is nothing yet: rows in SQLite
    /// files of the same folder.
    pub async fn open(folder: &Path) -> Result<Store, StoreError> {
        Store::open_at(folder, &Place::folder(folder), None).await
    }

    /// The same with the rows elsewhere, and perhaps a replica of them for reads that may be a
    /// little behind.
    pub async fn open_at(
        folder: &Path,
        place: &Place,
        replica: Option<&Place>,
    ) -> Result<Store, StoreError> {
        let store = Store::open_unfinished(folder, place, replica).await?;
        match store.half_copied().await? {
            Some(from) => {
                store.close().await;
                Err(StoreError::HalfCopied { from })
            }
            None => Ok(store),
        }
    }

    /// The same, even if it is half a copy.
    async fn open_unfinished(
        folder: &Path,
        place: &Place,
        replica: Option<&Place>,
    ) -> Result<Store, StoreError> {
        make_folder(folder)?;
        if let Some(replica) = replica
            && (place.as_folder().is_some() || replica.dialect() != place.dialect())
        {
            return Err(StoreError::Replica { place: place.clone(), replica: replica.clone() });
        }
        let [durable, tables, metrics] = match Service::reach(place).await? {
            Some(service) => of_server(&service, replica).await?,
            None => of_files(place.as_folder().map_or(folder, PathBuf::as_path)).await?,
        };
        let generation = Generation::read(&durable).await?;
        Ok(Store {
            folder: folder.to_owned(),
            place: place.clone(),
            durable,
            tables,
            metrics,
            generation,
        })
    }

    /// Of what this is half a copy, if it is one.
    async fn half_copied(&self) -> Result<Option<String>, StoreError> {
        let source = sqlx::query_scalar("SELECT source FROM copying WHERE id = 1");
        Ok(source.fetch_optional(self.durable.readers()).await?)
    }

    /// The folder that files are under.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the rows are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Journal, accounts, data sets.
    pub fn durable(&self) -> &Database {
        &self.durable
    }

    pub fn journal(&self) -> journal::Journal {
        journal::Journal::new(self.durable.clone(), self.generation.clone())
    }

    /// The lead of whoever writes here, as this store knows it.
    pub fn lease(&self) -> Lease {
        Lease::new(self.durable.clone(), self.generation.clone())
    }

    /// The lease of another role than the scheduler's.
    pub fn lease_of(&self, role: LeaseRole) -> Lease {
        Lease::of(self.durable.clone(), role)
    }

    /// Quotes that were asked.
    pub fn asks(&self) -> journal::Asks {
        journal::Asks::new(self.metrics.clone())
    }

    /// What pools have cost.
    pub fn prices(&self) -> prices::Prices {
        prices::Prices::new(self.durable.clone())
    }

    /// Projections of the journal.
    pub fn tables(&self) -> &Database {
        &self.tables
    }

    /// What jobs told and used.
    pub fn metrics(&self) -> &Database {
        &self.metrics
    }

    /// What jobs told and used, by name.
    pub fn samples(&self) -> samples::Samples {
        samples::Samples::new(self.metrics.clone())
    }

    /// How many statements its databases were handed.
    pub fn statements(&self) -> u64 {
        [&self.durable, &self.tables, &self.metrics].map(Database::statements).iter().sum()
    }

    /// Ends every connection, so that what was written is in the main files.
    pub async fn close(&self) {
        for database in [&self.durable, &self.tables, &self.metrics] {
            database.close().await;
        }
    }
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(folder)
        .map_err(|source| StoreError::Folder { folder: folder.to_owned(), source })
}

/// Three files, so that what is precious and what is not have a commit of their own.
async fn of_files(folder: &Path) -> Result<[Database; 3], StoreError> {
    make_folder(folder)?;
    let file = |name: &str| folder.join(name);
    let durable = Database::open(&file("era.db"), Durability::Full).await?;
    let tables = Database::open(&file("tables.db"), Durability::Rebuildable).await?;
    let metrics = Database::open(&file("metrics.db"), Durability::Rebuildable).await?;
    let [durable_steps, tables_steps, metrics_steps] = schema::files();
    durable.migrate(&durable_steps).await?;
    tables.migrate(&tables_steps).await?;
    metrics.migrate(&metrics_steps).await?;
    Ok([durable, tables, metrics])
}

/// One database, and connections of its own for each of the three, so that a projection does not
/// wait for the journal.
async fn of_server(
    service: &Service,
    replica: Option<&Place>,
) -> Result<[Database; 3], StoreError> {
    if let Some(place) = replica
        && let Err(error) = Service::reach(place).await
    {
        tracing::warn!(%error, "the replica cannot be read: the database itself is, meanwhile");
    }
    let durable = Database::of(service, None, Durability::Full).await?;
    durable.migrate(&schema::server(service)).await?;
    let tables = Database::of(service, replica, Durability::Rebuildable).await?;
    let metrics = Database::of(service, replica, Durability::Rebuildable).await?;
    Ok([durable, tables, metrics])
}
