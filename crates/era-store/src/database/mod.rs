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

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::Migrator;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection as _};

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

/// What one process of a site does at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock {
    /// Bringing tables to a version.
    Migration = 1,
    /// Changing accounts.
    Accounts = 2,
}

/// A lock, until it is dropped: it is its connection's, which ends then.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held(#[allow(dead_code)] Option<AnyConnection>); // it is held, and not used

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
        // Of a damaged file a pool would only say, after a while, that it could not wait longer.
        let mut first = AnyConnection::connect(&url).await?;
        for statement in connect::set_up(Dialect::Sqlite, durability) {
            sqlx::raw_sql(*statement).execute(&mut first).await?;
        }
        first.close().await?;
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
        // The migrator's own lock waits for ever, which MariaDB takes for not at all.
        let _turn = self.lock(Lock::Migration).await?;
        Ok(migrator.run(&self.writer.connections).await?)
    }

    /// Waits until no other process has a lock, and takes it.
    pub(crate) async fn lock(&self, lock: Lock) -> Result<Held, StoreError> {
        let sql = match self.dialect() {
            // Its files have one server.
            Dialect::Sqlite => return Ok(Held(None)),
            Dialect::MySql => format!(
                "SELECT CAST(GET_LOCK(CONCAT('era {}.', DATABASE()), 60) AS SIGNED)",
                lock as u8
            ),
            // Locks of one database are not those of another; the first number is ours.
            Dialect::Postgres => {
                format!("SELECT CAST(1 AS BIGINT) FROM pg_advisory_lock(4543041, {})", lock as u8)
            }
        };
        let mut connection = self.readers.connections.acquire().await?.detach();
        // Made of constants alone.
        let taken = sqlx::query_scalar(AssertSqlSafe(sql));
        let _: Option<i64> = taken.fetch_one(&mut connection).await?;
        Ok(Held(Some(connection)))
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
    let options = AnyPoolOptions::new()
        .min_connections(1)
        .max_connections(most)
        // A server may have gone away since a connection was last used. A file has not, and to ask
        // its thread costs as much as a statement.
        .test_before_acquire(dialect != Dialect::Sqlite)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for statement in set_up {
                    sqlx::raw_sql(*statement).execute(&mut *connection).await?;
                }
                Ok(())
            })
        });
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
