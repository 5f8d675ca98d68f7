//! A store for a test: SQLite, or a database of its own on the server that `ERA_TEST_DATABASE`
//! names. So every test of this crate is a test of all three databases; `conformance` runs them.

use std::path::Path;

use crate::{Place, Store};

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
