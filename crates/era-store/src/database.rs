//! One database: a writer, some readers, and how sure a commit is.
//!
//! SQL is written with `?` and kept to what SQLite, MySQL/MariaDB and PostgreSQL all understand:
//! times and money as BIGINT, JSON as TEXT, booleans as SMALLINT.

use std::path::Path;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::Migrator;
use sqlx::{AnyPool, Executor};

use crate::StoreError;

/// How sure a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On the disk before it is answered.
    Full,
    /// Consistent after a crash, but perhaps without the last commits.
    Rebuildable,
}

/// A database. A clone shares its connections.
#[derive(Clone, Debug)]
pub struct Database {
    writer: AnyPool,
    readers: AnyPool,
}

impl Database {
    /// Opens an SQLite file, and makes it where it is not there.
    pub async fn open(file: &Path, durability: Durability) -> Result<Database, StoreError> {
        sqlx::any::install_default_drivers();
        let synchronous = match durability {
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Rebuildable => "PRAGMA synchronous = NORMAL",
        };
        let connect = |most: u32| {
            AnyPoolOptions::new().min_connections(1).max_connections(most).after_connect(
                move |connection, _| {
                    Box::pin(async move {
                        connection.execute("PRAGMA busy_timeout = 10000").await?;
                        connection.execute("PRAGMA journal_mode = WAL").await?;
                        connection.execute(synchronous).await?;
                        connection.execute("PRAGMA foreign_keys = ON").await?;
                        connection.execute("PRAGMA temp_store = MEMORY").await?;
                        Ok(())
                    })
                },
            )
        };
        let url = format!("sqlite://{}?mode=rwc", file.display());
        // SQLite has one writer at a time: one connection, so that writers wait in order.
        let writer = connect(1).connect(&url).await?;
        let readers = connect(4).connect(&url).await?;
        Ok(Database { writer, readers })
    }

    /// The connection that writes.
    pub fn writer(&self) -> &AnyPool {
        &self.writer
    }

    /// Connections that read.
    pub fn readers(&self) -> &AnyPool {
        &self.readers
    }

    /// Brings the tables to this version.
    pub async fn migrate(&self, migrator: &Migrator) -> Result<(), StoreError> {
        Ok(migrator.run(&self.writer).await?)
    }

    /// Ends every connection.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_by_others_and_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.db");
        let database = Database::open(&file, Durability::Full).await.unwrap();
        database.writer().execute("CREATE TABLE t (n BIGINT)").await.unwrap();
        sqlx::query("INSERT INTO t VALUES (?)")
            .bind(7_i64)
            .execute(database.writer())
            .await
            .unwrap();
        let read = |database: Database| async move {
            sqlx::query_scalar::<_, i64>("SELECT n FROM t").fetch_one(database.readers()).await
        };
        assert_eq!(read(database.clone()).await.unwrap(), 7);
        database.close().await;
        assert_eq!(read(Database::open(&file, Durability::Full).await.unwrap()).await.unwrap(), 7);
    }
}
