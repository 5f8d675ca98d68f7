//! Opening a store: what is refused, and how that is said.

use era_core::units::{JobId, Time};

use crate::database::Lock;
use crate::samples::{NewSample, SeriesAsk};
use crate::tables::{JobRow, Tables};
use crate::trial::{PASSWORD, USER};
use crate::{Dialect, Place, Store, StoreError, testing};

async fn refusal(place: &Place) -> String {
    let folder = tempfile::tempdir().unwrap();
    let error = Store::open_at(folder.path(), place, None).await.err().unwrap();
    assert!(!error.may_pass(), "waiting would not help: {error}");
    let error = error.to_string();
    assert!(!error.contains(PASSWORD), "{error}");
    error
}

#[tokio::test]
async fn a_server_that_does_not_let_us_in_is_named_with_what_it_says_and_what_to_do() {
    let Ok(server) = std::env::var(testing::SERVER) else { return };
    let wrong = server.replace(PASSWORD, "not-it");
    let error = refusal(&format!("{wrong}/era").parse().unwrap()).await;
    assert!(error.contains("see whether user and password are right"), "{error}");
    assert!(error.contains(&format!("{USER}@127.0.0.1")) && !error.contains("not-it"), "{error}");
    let error = refusal(&format!("{server}/nowhere").parse().unwrap()).await;
    assert!(error.contains("make that database") && error.contains("nowhere"), "{error}");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = testing::open(folder.path()).await;
    let newer = "UPDATE _sqlx_migrations SET version = 9999 WHERE version = 500";
    sqlx::query(newer).execute(store.durable().writer()).await.unwrap();
    store.close().await;
    let place = testing::place(folder.path()).await;
    let error = Store::open_at(folder.path(), &place, None).await.err().unwrap();
    assert!(matches!(error, StoreError::Newer(9999)), "{error}");
    assert!(error.to_string().contains("start that version"), "{error}");
}

#[tokio::test]
async fn a_database_that_is_half_migrated_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = testing::open(folder.path()).await;
    let half = match store.durable().dialect() {
        Dialect::Postgres => "UPDATE _sqlx_migrations SET success = false WHERE version = 500",
        _ => "UPDATE _sqlx_migrations SET success = 0 WHERE version = 500",
    };
    sqlx::query(half).execute(store.durable().writer()).await.unwrap();
    store.close().await;
    let place = testing::place(folder.path()).await;
    let error = Store::open_at(folder.path(), &place, None).await.err().unwrap();
    assert!(matches!(error, StoreError::HalfMigrated(500)), "{error}");
    assert!(error.to_string().contains("restore the backup"), "{error}");
}

#[tokio::test]
async fn a_replica_serves_lists_and_must_be_of_the_same_kind() {
    let folder = tempfile::tempdir().unwrap();
    testing::open(folder.path()).await.close().await;
    let place = testing::place(folder.path()).await;
    let files = Place::folder(folder.path());
    let refused = Store::open_at(folder.path(), &place, Some(&files)).await.err().unwrap();
    assert!(refused.to_string().contains("SQLite has no replicas"), "{refused}");
    if place.dialect() == Dialect::Sqlite {
        return;
    }
    // One that has what the database has not: so it is seen who was asked.
    let other = tempfile::tempdir().unwrap();
    let day = crate::tables::tests::a_day(other.path()).await;
    let value = |value: f64| NewSample {
        job: JobId(1),
        part: 0,
        rank: 0,
        name: "loss".into(),
        step: 1,
        at: Time(1000),
        value,
    };
    day.samples().append(&[value(2.0)]).await.unwrap();
    let jobs = crate::tables::JobQuery::all(crate::tables::VisibleJobs::All, 5);
    let there = Tables::new(&day).jobs(&jobs, None).await.unwrap().rows;
    assert!(!there.is_empty());
    day.close().await;

    let replica = testing::place(other.path()).await;
    let store = Store::open_at(folder.path(), &place, Some(&replica)).await.unwrap();
    store.samples().append(&[value(1.0)]).await.unwrap();
    let tables = Tables::new(&store);
    let listed = tables.jobs(&jobs, None).await.unwrap().rows;
    let numbers = |rows: &[JobRow]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(numbers(&listed), numbers(&there), "lists are the replica's");
    let all = SeriesAsk::default();
    let curve = store.samples().lines(JobId(1), &all, 10).await.unwrap();
    assert_eq!(curve[0].points[0].value, 2.0, "curves are the replica's");
    // Whoever wrote something reads it.
    assert_eq!(tables.job(there[0].id).await.unwrap().map(|row| row.id), None);
    assert_eq!(store.journal().last_seq().await.unwrap(), 0);
}

#[tokio::test]
async fn servers_that_are_started_together_make_the_tables_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = crate::testing::place(folder.path()).await;
    if place.as_folder().is_some() {
        return; // Files have one server; the databases that have several come by conformance.
    }
    let open = || {
        let (folder, place) = (folder.path().to_owned(), place.clone());
        tokio::spawn(async move { crate::Store::open_at(&folder, &place, None).await.map(drop) })
    };
    for opened in [open(), open(), open(), open()] {
        opened.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_lock_that_another_process_keeps_is_refused_and_not_taken_for_held() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (testing::open(folder.path()).await, testing::open(folder.path()).await);
    if first.durable().dialect() == Dialect::Sqlite {
        return;
    }
    let held = first.durable().lock(Lock::Migration).await.unwrap();
    let error = second.durable().lock_within(Lock::Migration, 1).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { waited_s: 1, .. }), "{error}");
    assert!(error.to_string().contains("wait until it is done"), "{error}");
    // Another lock is another's.
    drop(second.durable().lock_within(Lock::Accounts, 1).await.unwrap());
    drop(held);
    drop(second.durable().lock_within(Lock::Migration, 10).await.unwrap());
}

#[tokio::test]
async fn a_replica_that_is_away_is_read_past_and_used_once_it_is_there() {
    let Ok(server) = std::env::var(testing::SERVER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = testing::place(folder.path()).await;
    // Nothing listens there, and then a way to the database itself does.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (scheme, at) = server.rsplit_once(':').unwrap();
    let name = place.to_string();
    let there = format!("{scheme}:{port}/{}", name.rsplit('/').next().unwrap());
    let store = Store::open_at(folder.path(), &place, Some(&there.parse().unwrap())).await.unwrap();
    let tables = Tables::new(&store);
    let jobs = crate::tables::JobQuery::all(crate::tables::VisibleJobs::All, 5);
    let lists = async || tables.jobs(&jobs, None).await;
    assert!(lists().await.is_ok(), "it is read from the database itself");
    assert!(!store.tables().replica_answers());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let target: u16 = at.parse().unwrap();
    let way = tokio::spawn(async move {
        let mut lines = tokio::task::JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            lines.spawn(async move {
                let mut far = tokio::net::TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let until = async |answers: bool| {
        for _ in 0..200 {
            if store.tables().replica_answers() == answers {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the replica is not noticed");
    };
    until(true).await;
    assert!(lists().await.is_ok());
    way.abort();
    until(false).await;
    assert!(lists().await.is_ok());
    store.close().await;
}
