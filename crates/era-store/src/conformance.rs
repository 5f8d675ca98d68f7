//! Every test of this crate once more, on MariaDB and on PostgreSQL: each starts a server, and
//! runs this same test binary with it. Where a server cannot be started they are
//! skipped, and say why.

#[path = "../../skipped.rs"]
mod skipped;

use std::process::Command;

use crate::Dialect;
use crate::testing::SERVER;
use crate::trial::Server;

/// What is measured, or is about SQLite's files alone, is left to SQLite.
const LEFT_OUT: [&str; 3] = ["conformance::", "backup::", "database::tests::"];

fn conforms(dialect: Dialect) {
    if std::env::var_os(SERVER).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = match Server::start(dialect, folder.path(), false) {
        Ok(server) => server,
        Err(why) => return skipped::skipped(&format!("{dialect}: {why}")),
    };
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.env(SERVER, server.url()).args(["--test-threads", "4"]);
    for left_out in LEFT_OUT {
        tests.args(["--skip", left_out]);
    }
    // Chance has had its say on SQLite.
    let done = tests.env("PROPTEST_CASES", "4").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{dialect}:\n{said}");
    assert!(said.contains("test journal::tests::") && !said.contains(" 0 passed"), "{said}");
}

#[test]
fn every_test_passes_on_mariadb() {
    conforms(Dialect::MySql);
}

#[test]
fn every_test_passes_on_postgres() {
    conforms(Dialect::Postgres);
}
