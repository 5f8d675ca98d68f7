//! A site that moves from SQLite to a database server, and lives there.

use era_store::Dialect;
use era_store::trial::{PASSWORD, Server, make_database};
use serde_json::json;

use crate::harness::Platform;
use crate::skipped::skipped;

fn moves_to(dialect: Dialect) {
    let folder = tempfile::tempdir().unwrap();
    let server = match Server::start(dialect, folder.path(), false) {
        Ok(server) => server,
        Err(why) => return skipped(&format!("{dialect}: {why}")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(make_database(&server.url(), "era")).unwrap();
    let to = format!("{}/era", server.url());
    let mut platform = Platform::start();
    let job = json!({
        "work": {"command": ["true"]},
        "ask": {"resources": {"cpu": "100m"}, "duration_s": 60},
    });
    let first = platform.submit(&job);
    platform.ended(first);
    let secret = json!({"value": "open sesame"});
    assert_eq!(platform.send("PUT", "/secrets/PROBE", &secret).0, 200);
    let from = format!("sqlite:{}", platform.data().display());
    let copy = ["admin", "copy", "--from", &from, "--to", &to];
    let (_, held) = platform.fails(&copy);
    assert!(held.contains("is held by") && !held.contains(PASSWORD), "{held}");
    assert!(platform.stop());
    let copied = platform.ok(&copy);
    assert!(copied.contains("rows of 42 tables, each checked"), "{copied}");
    assert!(!copied.contains(PASSWORD), "{copied}");
    // The rows of the old place are not looked at any more.
    std::fs::remove_file(platform.data().join("era.db")).unwrap();
    platform.restart_with(&["--database", &to]);
    // Its secrets open there, by the key in its folder.
    let mut named = job;
    named["work"] = json!({
        "command": ["sh", "-c", "test \"$PROBE\" = 'open sesame'"],
        "secrets": ["PROBE"],
    });
    let second = platform.submit(&named);
    platform.ended(second);
    platform.kill();
    platform.restart();
    let jobs = platform.get("/jobs?state=succeeded");
    let numbers: Vec<u64> =
        jobs["items"].as_array().unwrap().iter().filter_map(|job| job["id"].as_u64()).collect();
    assert_eq!(numbers, [second, first], "{jobs}");
    assert!(!platform.data().join("era.db").exists());
    // Another server does not get at the same rows.
    let elsewhere = tempfile::tempdir().unwrap();
    let data = elsewhere.path().display().to_string();
    let (_, led) =
        platform.fails(&["up", "--data", &data, "--listen", "127.0.0.1:0", "--database", &to]);
    assert!(led.contains("is led by") && !led.contains(PASSWORD), "{led}");
    assert!(platform.stop());
}

#[test]
fn a_site_moves_to_mariadb_and_lives_there() {
    moves_to(Dialect::MySql);
}

#[test]
fn a_site_moves_to_postgres_and_lives_there() {
    moves_to(Dialect::Postgres);
}
