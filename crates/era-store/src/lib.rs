//! What is kept: the journal, the tables and the files.
//!
//! The journal is the truth: inputs with what was decided about them, in segments that each begin
//! with a state. Tables that are read are projections of it and can be made anew; accounts, data
//! sets and files are kept beside it. What any of it means to a user is not known here.

pub mod accounts;
pub mod backup;
mod database;
mod error;
pub mod files;
pub mod journal;
pub mod note;
pub mod prices;
pub mod samples;
pub mod tables;

use std::path::{Path, PathBuf};

pub use database::{Database, Durability};
pub use error::StoreError;
pub use note::{Indices, Note};

/// All that is kept, under one folder. A clone shares.
#[derive(Clone)]
pub struct Store {
    folder: PathBuf,
    /// Journal, accounts, data sets: acknowledged means on the disk.
    durable: Database,
    /// Projections of the journal, which can be made anew.
    tables: Database,
    /// What jobs told and used: many small values, none of them precious.
    metrics: Database,
}

impl Store {
    /// Opens what is kept under a folder, and makes it where there is nothing yet.
    pub async fn open(folder: &Path) -> Result<Store, StoreError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::Folder { folder: folder.to_owned(), source })?;
        let file = |name: &str| folder.join(name);
        let durable = Database::open(&file("era.db"), Durability::Full).await?;
        let tables = Database::open(&file("tables.db"), Durability::Rebuildable).await?;
        let metrics = Database::open(&file("metrics.db"), Durability::Rebuildable).await?;
        durable.migrate(&sqlx::migrate!("migrations/sqlite/durable")).await?;
        tables.migrate(&sqlx::migrate!("migrations/sqlite/tables")).await?;
        metrics.migrate(&sqlx::migrate!("migrations/sqlite/metrics")).await?;
        Ok(Store { folder: folder.to_owned(), durable, tables, metrics })
    }

    /// The folder that it is under.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Journal, accounts, data sets.
    pub fn durable(&self) -> &Database {
        &self.durable
    }

    /// The journal.
    pub fn journal(&self) -> journal::Journal {
        journal::Journal::new(self.durable.clone())
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

    /// Ends every connection, so that what was written is in the main files.
    pub async fn close(&self) {
        for database in [&self.durable, &self.tables, &self.metrics] {
            database.close().await;
        }
    }
}
