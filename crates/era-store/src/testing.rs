//! A store for a test: SQLite, or a database of its own on the server that `ERA_TEST_DATABASE`
//! names. So every test of this crate is a test of all three databases; `conformance` runs them.

use std::path::Path;

use crate::database::ConnectionPool;
use crate::{Dialect, Place, Store};

/// What names the server: a URL without the name of a database.
pub(crate) const SERVER: &str = "ERA_TEST_DATABASE";

/// The store of a folder. The same folder has the same database.
pub(crate) async fn open(folder: &Path) -> Store {
    Store::open_at(folder, &place(folder).await, None).await.unwrap()
}

/// Where the rows of a folder's store are.
pub(crate) async fn place(folder: &Path) -> Place {
    let Ok(server) = std::env::var(SERVER) else { return Place::folder(folder) };
    let hash = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    let name = format!("era_{}", &hash[..16]);
    crate::trial::make_database(&server, &name).await.unwrap();
    format!("{server}/{name}").parse().unwrap()
}

/// How many rows the one connection of a pool has read, where that can be asked: on MariaDB, which
/// plans some statements so that they read all that is there.
pub(crate) async fn rows_read(pool: &ConnectionPool) -> Option<i64> {
    let sql = "SELECT CAST(SUM(VARIABLE_VALUE) AS SIGNED) FROM information_schema.SESSION_STATUS \
               WHERE VARIABLE_NAME LIKE 'HANDLER_READ%' AND VARIABLE_NAME NOT LIKE '%TMP%'";
    let is_mariadb = pool.dialect() == Dialect::MySql;
    if !is_mariadb {
        return None;
    }
    Some(sqlx::query_scalar(sql).fetch_one(pool).await.unwrap())
}
