use std::path::Path;

use super::{CopyError, CopyProgress, TABLES, copy, of, read_all};
use crate::tables::tests::a_day;
use crate::{Place, Store, StoreError, testing};

async fn rows(store: &Store) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for (part, table, keys) in TABLES {
        let rows = read_all(of(store, part).readers(), table, keys).await.unwrap();
        all.push((table, format!("{rows:?}")));
    }
    all
}

/// A site with a day behind it, and rows of every kind beside it.
async fn site(folder: &Path) -> Store {
    let store = a_day(folder).await;
    for sql in [
        "INSERT INTO account_groups (id, name, level, created) VALUES (1, 'lab', 3, 5)",
        "INSERT INTO account_users (id, name, group_id, role, level, enabled, password, one_time, \
         created) VALUES (1, 'ada', 1, 2, 3, 1, 'hash', 0, 5)",
        "INSERT INTO secrets (user_id, name, sealed, changed) VALUES (1, 'HF_TOKEN', 'c2VhbGVk', 5)",
        "INSERT INTO trees (id, hash, files, bytes, complete) VALUES (41, 'x', 1, 7, 1)",
        "INSERT INTO tree_files (tree, path, hash, bytes, executable) \
         VALUES (41, 'Übung/a.txt ', 'y', 7, 0)",
    ] {
        sqlx::query(sql).execute(store.durable().writer()).await.unwrap();
    }
    for sql in [
        "INSERT INTO series (id, job, name, replica, told, kept, last_step, last_at, last_value) \
         VALUES (9, 1, 'loss', 0, 1, 1, 3, 4, 0.1)",
        "INSERT INTO samples (series, number, step, at, value) VALUES (9, 0, 3, 4, -0.30000000001)",
        // Databases do not agree which of these comes first.
        "INSERT INTO asks (at, account, bid, price) VALUES (5, 1, '{\"B\": 1}', NULL), \
         (5, 1, '{\"B\": 1}', 7), (5, 1, '{\"a\": 1}', 7), (5, 1, '{\"ä\": 1}', 7), \
         (5, 1, '[]', NULL)",
    ] {
        sqlx::query(sql).execute(store.metrics().writer()).await.unwrap();
    }
    store
}

#[tokio::test]
async fn a_site_goes_there_and_back_with_every_row_and_the_same_state() {
    let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    // From the database under test to SQLite, and back into a new one.
    let store = site(first.path()).await;
    let before = rows(&store).await;
    let state = store.journal().restore().await.unwrap().unwrap().state;
    store.close().await;
    let places = [
        testing::place(first.path()).await,
        Place::folder(second.path()),
        testing::place(third.path()).await,
    ];
    for (from, to) in places.iter().zip(&places[1..]) {
        let mut told = Vec::new();
        let copied = copy(from, to, &mut |progress| told.push(progress)).await.unwrap();
        assert!(copied.rows > 50 && copied.seq == state.seq(), "{copied:?}");
        assert!(told.contains(&CopyProgress::Verified("journal")), "{told:?}");
        assert_eq!(told.last(), Some(&CopyProgress::Replaying));
    }
    let store = Store::open_at(third.path(), &places[2], None).await.unwrap();
    assert_eq!(rows(&store).await, before);
    assert_eq!(store.journal().restore().await.unwrap().unwrap().state, state);
    // The database goes on numbering after what came.
    let next = "INSERT INTO trees (hash, files, bytes, complete) VALUES ('z', 0, 0, 1)";
    sqlx::query(next).execute(store.durable().writer()).await.unwrap();
}

#[tokio::test]
async fn what_is_half_a_copy_is_not_used_and_is_copied_anew() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    site(first.path()).await.close().await;
    let from = Place::folder(second.path());
    copy(&testing::place(first.path()).await, &from, &mut |_| ()).await.unwrap();
    // As a crash would leave it: the mark, and some of the rows.
    let third = tempfile::tempdir().unwrap();
    let half = testing::open(third.path()).await;
    for sql in [
        "INSERT INTO copying (id, source) VALUES (1, 'sqlite:/old')",
        "INSERT INTO journal (seq, at, input, events) VALUES (1, 5, '{}', '[]')",
    ] {
        sqlx::query(sql).execute(half.durable().writer()).await.unwrap();
    }
    half.close().await;
    let to = testing::place(third.path()).await;
    let refused = Store::open_at(third.path(), &to, None).await.err().unwrap();
    assert!(matches!(refused, StoreError::HalfCopied { .. }), "{refused}");
    assert!(refused.to_string().contains("half a copy of sqlite:/old"), "{refused}");
    copy(&from, &to, &mut |_| ()).await.unwrap();
    let store = Store::open_at(third.path(), &to, None).await.unwrap();
    assert!(store.journal().last_seq().await.unwrap() > 1);
    // And what is whole is not written over.
    let error = copy(&from, &to, &mut |_| ()).await.unwrap_err();
    assert!(matches!(error, CopyError::NotEmpty { .. }), "{error}");
}

#[tokio::test]
async fn what_a_server_holds_or_what_is_nothing_is_not_copied() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let store = site(first.path()).await;
    store.lease().acquire("a server", std::time::Duration::from_secs(60)).await.unwrap();
    let from = testing::place(first.path()).await;
    let to = Place::folder(second.path());
    let error = copy(&from, &to, &mut |_| ()).await.unwrap_err().to_string();
    assert!(error.contains("is held by a server for another"), "{error}");
    store.lease().release().await.unwrap();
    copy(&from, &to, &mut |_| ()).await.unwrap();
    let empty = Place::folder(first.path().join("nothing"));
    for (from, to, why) in [(&empty, &to, "has no site"), (&to, &to, "into itself")] {
        let error = copy(from, to, &mut |_| ()).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
