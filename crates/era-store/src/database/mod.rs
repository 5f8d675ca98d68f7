//! One database: a writer, some readers, and how sure a commit is.
//!
//! SQL is written with `?` and kept to what SQLite, MySQL/MariaDB and PostgreSQL all understand,
//! but for a few words that [`Dialect`] puts in: times and money as BIGINT, JSON as TEXT, booleans
//! as SMALLINT. On every one of them a database has one connection that writes, so writers of one
//! process wait in order; another process is kept off by the lease.

mod connect;
mod dialect;
mod error;
mod executor;
mod place;
mod replica;

use std::path::Path;

use sqlx::any::AnyPoolOptions;
use sqlx::migrate::Migrator;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection as _};

pub(crate) use connect::Service;
pub use dialect::Dialect;
pub use error::{StoreError, answered_within};
pub use executor::{Connection, ConnectionPool, Transaction};
pub use place::{BadPlace, Place};
use replica::Replica;

/// Connections that read.
const READERS: u32 = 4;

/// How long another process is waited for that has a lock.
const LOCK_S_MAX: u32 = 60;
/// What PostgreSQL says where a lock was not to be had in time.
const NOT_IN_TIME: &str = "55P03";

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
    Accounts = 2,
}

impl Lock {
    fn is_taken(self, waited_s: u32) -> StoreError {
        let what = match self {
            Lock::Migration => "bringing the tables to its version",
            Lock::Accounts => "changing accounts",
        };
        StoreError::Locked { what, waited_s }
    }
}

/// A lock, until it is dropped: it is its connection's, which ends then.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held(#[allow(dead_code)] Option<AnyConnection>); // it is held, and not used

/// A database. A clone shares its connections.
#[derive(Clone, Debug)]
pub struct Database {
    writer: ConnectionPool,
    readers: ConnectionPool,
    replica: Option<Replica>,
}

impl Database {
    /// Opens an SQLite file, and makes it where it is not there.
    pub async fn open(file: &Path, durability: Durability) -> Result<Database, StoreError> {
        sqlx::any::install_default_drivers();
        keep_private(file);
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
    /// the replica, where there is one and while it answers.
    pub(crate) async fn of(
        service: &Service,
        replica: Option<&Place>,
        durability: Durability,
    ) -> Result<Database, StoreError> {
        let mut database = Database::connect(service.url(), service.dialect(), durability).await?;
        if let Some(place) = replica {
            database.replica = Some(Replica::watched(place, durability).await?);
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
    pub fn writer(&self) -> &ConnectionPool {
        &self.writer
    }

    /// Connections that read what was written.
    pub fn readers(&self) -> &ConnectionPool {
        &self.readers
    }

    /// Connections for what is long to write and must keep nobody waiting. SQLite has one writer
    /// whatever is asked.
    pub(crate) fn beside(&self) -> &ConnectionPool {
        match self.dialect() {
            Dialect::Sqlite => &self.writer,
            Dialect::MySql | Dialect::Postgres => &self.readers,
        }
    }

    /// Connections for reads that may be a little behind: lists, reports, curves.
    pub fn replica(&self) -> &ConnectionPool {
        self.replica.as_ref().and_then(Replica::answering).unwrap_or(&self.readers)
    }

    /// How many statements it and its replica were handed.
    pub fn statements(&self) -> u64 {
        let replica = self.replica.as_ref().map_or(0, Replica::statements);
        self.writer.statements() + self.readers.statements() + replica
    }

    /// Whether there is a replica that answers.
    #[cfg(test)]
    pub(crate) fn replica_answers(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.answering().is_some())
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
        self.lock_within(lock, LOCK_S_MAX).await
    }

    /// The same, for at most so many seconds.
    pub(crate) async fn lock_within(&self, lock: Lock, most_s: u32) -> Result<Held, StoreError> {
        let number = lock as u8;
        let (limit, take) = match self.dialect() {
            // Its files have one server.
            Dialect::Sqlite => return Ok(Held(None)),
            Dialect::MySql => (
                None,
                format!(
                    "SELECT CAST(GET_LOCK(CONCAT('era {number}.', DATABASE()), {most_s}) AS SIGNED)"
                ),
            ),
            // Locks of one database are not those of another; the first number is ours.
            Dialect::Postgres => (
                Some(format!("SET lock_timeout = '{most_s}s'")),
                format!("SELECT CAST(1 AS BIGINT) FROM pg_advisory_lock(4543041, {number})"),
            ),
        };
        let mut connection = self.readers.connections.acquire().await?.detach();
        // Made of constants alone.
        if let Some(limit) = limit {
            sqlx::raw_sql(AssertSqlSafe(limit)).execute(&mut connection).await?;
        }
        let taken = sqlx::query_scalar::<_, Option<i64>>(AssertSqlSafe(take));
        match taken.fetch_one(&mut connection).await {
            Ok(Some(1)) => Ok(Held(Some(connection))),
            Ok(_) => Err(lock.is_taken(most_s)),
            Err(sqlx::Error::Database(told)) if told.code().as_deref() == Some(NOT_IN_TIME) => {
                Err(lock.is_taken(most_s))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Ends every connection.
    pub async fn close(&self) {
        if let Some(replica) = &self.replica {
            replica.close().await;
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
) -> Result<ConnectionPool, StoreError> {
    let options = options(dialect, durability).min_connections(1).max_connections(most);
    let connections: AnyPool = options.connect(url).await?;
    Ok(ConnectionPool::new(connections, dialect))
}

fn options(dialect: Dialect, durability: Durability) -> AnyPoolOptions {
    let set_up = connect::set_up(dialect, durability);
    AnyPoolOptions::new()
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
        })
}

/// Lets nobody but the server's user read a file of SQLite's: there are hashes of passwords in it,
/// and what everybody ran. Its companions have the permissions that it has.
fn keep_private(file: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
        // Where it cannot be made or changed, SQLite says why, or it stays as it is.
        let _ = std::fs::File::options().append(true).create(true).mode(0o600).open(file);
        for end in ["", "-wal", "-shm"] {
            let mut path = file.as_os_str().to_owned();
            path.push(end);
            let open =
                std::fs::metadata(&path).is_ok_and(|it| it.permissions().mode() & 0o077 != 0);
            if open {
                let _ = std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600));
            }
        }
    }
    #[cfg(not(unix))]
    let _ = file;
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

    #[cfg(unix)]
    #[tokio::test]
    async fn only_the_servers_user_reads_what_is_kept_also_of_a_file_that_was_open_before() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
        std::fs::write(&old, "").unwrap();
        std::fs::set_permissions(&old, PermissionsExt::from_mode(0o644)).unwrap();
        for file in [new, old] {
            let database = Database::open(&file, Durability::Full).await.unwrap();
            database.writer().execute("CREATE TABLE t (n BIGINT)").await.unwrap();
            for found in std::fs::read_dir(folder.path()).unwrap() {
                let found = found.unwrap();
                let name = found.file_name().into_string().unwrap();
                if name.starts_with(file.file_name().unwrap().to_str().unwrap()) {
                    let mode = found.metadata().unwrap().permissions().mode();
                    assert_eq!(mode & 0o777, 0o600, "{name}");
                }
            }
            database.close().await;
        }
    }
}
