//! One database: a writer, some readers, and how sure a commit is.
//!
//! SQL is written with `?` and kept to what SQLite, MySQL/MariaDB and PostgreSQL all understand,
//! but for a few words that [`Dialect`] puts in: times and money as BIGINT, JSON as TEXT, booleans
//! as SMALLINT. On every one of them a database has one connection that writes, so writers of one
//! process wait in order; another process is kept off by the lease.

mod connect;
mod dialect;
mod executor;
mod place;

use std::path::Path;

use sqlx::AnyPool;
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::Migrator;

use crate::StoreError;

pub(crate) use connect::Service;
pub use dialect::Dialect;
pub use executor::{Connection, Pool, Transaction};
pub use place::{BadPlace, Place};

/// Connections that read.
const READERS: u32 = 4;

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
    writer: Pool,
    readers: Pool,
    replica: Option<Pool>,
}

impl Database {
    /// Opens an SQLite file, and makes it where it is not there.
    pub async fn open(file: &Path, durability: Durability) -> Result<Database, StoreError> {
        sqlx::any::install_default_drivers();
        let url = format!("sqlite://{}?mode=rwc", file.display());
        Database::connect(&url, Dialect::Sqlite, durability).await
    }

    /// Connects to a server that was found to be there. Reads that may be a little behind go to
    /// the replica, where there is one.
    pub(crate) async fn of(
        service: &Service,
        replica: Option<&Service>,
        durability: Durability,
    ) -> Result<Database, StoreError> {
        let mut database = Database::connect(service.url(), service.dialect(), durability).await?;
        if let Some(replica) = replica {
            let readers = pool(replica.url(), replica.dialect(), durability, READERS).await?;
            database.replica = Some(readers);
        }
        Ok(database)
    }

    async fn connect(
        url: &str,
        dialect: Dialect,
        durability: Durability,
    ) -> Result<Database, StoreError> {
        // SQLite has one writer at a time: one connection, so that writers wait in order.
        let writer = pool(url, dialect, durability, 1).await?;
        let readers = pool(url, dialect, durability, READERS).await?;
        Ok(Database { writer, readers, replica: None })
    }

    /// Which database it is.
    pub fn dialect(&self) -> Dialect {
        self.writer.dialect
    }

    /// The connection that writes.
    pub fn writer(&self) -> &Pool {
        &self.writer
    }

    /// Connections that read what was written.
    pub fn readers(&self) -> &Pool {
        &self.readers
    }

    /// Connections for reads that may be a little behind: lists, reports, curves.
    pub fn replica(&self) -> &Pool {
        self.replica.as_ref().unwrap_or(&self.readers)
    }

    /// Brings the tables to this version. Servers that are started together do so one after the
    /// other.
    pub async fn migrate(&self, migrator: &Migrator) -> Result<(), StoreError> {
        if self.dialect() != Dialect::MySql {
            return Ok(migrator.run(&self.writer.connections).await?);
        }
        // The migrator's own lock waits for ever, which MariaDB takes for not at all.
        let mut turn = self.readers.connections.acquire().await?;
        let lock = "SELECT CAST(GET_LOCK(CONCAT('era ', DATABASE()), 60) AS SIGNED)";
        let _: Option<i64> = sqlx::query_scalar(lock).fetch_one(&mut *turn).await?;
        let migrated = migrator.run(&self.writer.connections).await;
        let unlock = "SELECT CAST(RELEASE_LOCK(CONCAT('era ', DATABASE())) AS SIGNED)";
        let _: Option<i64> = sqlx::query_scalar(unlock).fetch_one(&mut *turn).await?;
        Ok(migrated?)
    }

    /// Ends every connection.
    pub async fn close(&self) {
        if let Some(replica) = &self.replica {
            replica.connections.close().await;
        }
        self.readers.connections.close().await;
        self.writer.connections.close().await;
    }
}

async fn pool(
    url: &str,
    dialect: Dialect,
    durability: Durability,
    most: u32,
) -> Result<Pool, StoreError> {
    let set_up = connect::set_up(dialect, durability);
    let options = AnyPoolOptions::new().min_connections(1).max_connections(most).after_connect(
        move |connection, _| {
            Box::pin(async move {
                for statement in set_up {
                    sqlx::raw_sql(*statement).execute(&mut *connection).await?;
                }
                Ok(())
            })
        },
    );
    let connections: AnyPool = options.connect(url).await?;
    Ok(Pool { connections, dialect })
}

#[cfg(test)]
mod tests {
    use sqlx::Executor;

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
