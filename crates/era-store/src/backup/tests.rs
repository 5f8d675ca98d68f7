use std::fs;
use std::path::Path;

use super::{BackupError, backup, restore};
use crate::Store;

/// A folder with an entry in the journal, a content that a tree needs, and a job's output.
async fn a_server(folder: &Path) -> String {
    let store = Store::open(folder).await.unwrap();
    let hash = blake3::hash(b"weights").to_hex().to_string();
    let blob = folder.join("blobs").join(&hash[..2]);
    fs::create_dir_all(&blob).unwrap();
    fs::write(blob.join(&hash[2..]), b"weights").unwrap();
    let queries = [
        "INSERT INTO journal (seq, at, input, events) VALUES \
         (1, 5, '{\"seq\":1,\"at\":5,\"command\":{\"type\":\"tick\"}}', '[]')"
            .to_owned(),
        format!("INSERT INTO blobs (hash, bytes, touched) VALUES ('{hash}', 7, 0)"),
        "INSERT INTO trees (id, hash, files, bytes, complete) VALUES (1, 'x', 1, 7, 1)".to_owned(),
        format!(
            "INSERT INTO tree_files (tree, path, hash, bytes, executable) \
             VALUES (1, 'w.bin', '{hash}', 7, 0)"
        ),
    ];
    for query in queries {
        let query = sqlx::query(sqlx::AssertSqlSafe(query));
        query.execute(store.durable().writer()).await.unwrap();
    }
    let outputs = folder.join("jobs/1/outputs");
    fs::create_dir_all(&outputs).unwrap();
    fs::write(outputs.join("model.txt"), "fine").unwrap();
    store.close().await;
    hash
}

#[tokio::test]
async fn what_was_backed_up_comes_back_with_tables_made_anew() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept, again] = ["server", "kept", "again"].map(|name| temp.path().join(name));
    let hash = a_server(&server).await;
    let made = backup(&server, &kept).await.unwrap();
    assert_eq!((made.seq, made.files), (1, 4), "two databases, a content and an output");
    let told = restore(&kept, &again).await.unwrap();
    assert_eq!(told, made);
    assert_eq!(fs::read_to_string(again.join("jobs/1/outputs/model.txt")).unwrap(), "fine");
    let blob = again.join("blobs").join(&hash[..2]).join(&hash[2..]);
    assert_eq!(fs::read(blob).unwrap(), b"weights");
    let store = Store::open(&again).await.unwrap();
    assert_eq!(crate::tables::Tables::new(&store).cursor().await.unwrap(), 1);
}

#[tokio::test]
async fn secrets_still_open_after_a_restore() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept, again] = ["server", "kept", "again"].map(|name| temp.path().join(name));
    a_server(&server).await;
    let store = Store::open(&server).await.unwrap();
    for sql in [
        "INSERT INTO account_groups (id, name, level, created) VALUES (1, 'lab', 3, 5)",
        "INSERT INTO account_users (id, name, group_id, role, level, enabled, password, one_time, \
         created) VALUES (1, 'ada', 1, 2, 3, 1, 'hash', 0, 5)",
    ] {
        sqlx::query(sql).execute(store.durable().writer()).await.unwrap();
    }
    store.secrets().set(1, "HF_TOKEN", "hf_1", 5, 64).await.unwrap();
    store.close().await;
    let job = server.join("jobs/1");
    fs::create_dir_all(job.join("guard/p0-a1-r0")).unwrap();
    let open = ["secrets-p0-a1-r0", "guard/p0-a1-r0/secrets"];
    for path in open.iter().chain(&["outputs/secrets"]) {
        fs::write(job.join(path), "hf_1").unwrap();
    }
    backup(&server, &kept).await.unwrap();
    let copied = |path: &str| kept.join("data/jobs/1").join(path).exists();
    assert!(!open.into_iter().any(copied), "those of tasks that run are not left open in it");
    assert!(copied("outputs/secrets"), "what a job keeps is its own");
    restore(&kept, &again).await.unwrap();
    let restored = Store::open(&again).await.unwrap().secrets();
    let opened = restored.open(1, &["HF_TOKEN".to_owned()]).await.unwrap();
    assert_eq!(opened["HF_TOKEN"], "hf_1");
    #[cfg(unix)]
    for folder in [kept.join("data"), again] {
        use std::os::unix::fs::PermissionsExt as _;
        let key = folder.join("secrets.key").metadata().unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_backup_can_be_taken_while_the_server_has_its_databases_open() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept] = ["server", "kept"].map(|name| temp.path().join(name));
    a_server(&server).await;
    let open = Store::open(&server).await.unwrap();
    let late = "INSERT INTO journal (seq, at, input, events) VALUES (2, 5, '{}', '[]')";
    sqlx::query(late).execute(open.durable().writer()).await.unwrap();
    assert_eq!(backup(&server, &kept).await.unwrap().seq, 2, "what is in the log is in it too");
}

#[tokio::test]
async fn a_folder_that_is_not_empty_is_refused_and_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept] = ["server", "kept"].map(|name| temp.path().join(name));
    a_server(&server).await;
    assert!(matches!(backup(&server, &server).await, Err(BackupError::NotEmpty(_))));
    backup(&server, &kept).await.unwrap();
    assert!(matches!(restore(&kept, &server).await, Err(BackupError::NotEmpty(_))));
    let nothing = temp.path().join("nothing");
    assert!(matches!(backup(&nothing, &nothing).await, Err(BackupError::NoServer(_))));
    assert!(matches!(restore(&server, &nothing).await, Err(BackupError::NoBackup { .. })));
    assert!(!nothing.exists());
}

#[tokio::test]
async fn a_byte_that_changed_is_found_and_nothing_is_restored() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept, again] = ["server", "kept", "again"].map(|name| temp.path().join(name));
    a_server(&server).await;
    backup(&server, &kept).await.unwrap();
    fs::write(kept.join("data/jobs/1/outputs/model.txt"), "mine").unwrap();
    let refused = restore(&kept, &again).await.unwrap_err();
    assert!(refused.to_string().contains("model.txt"), "{refused}");
    assert!(!again.exists() && !temp.path().join("again.restoring").exists());
}

#[tokio::test]
async fn a_list_that_leads_out_of_the_folder_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept, again] = ["server", "kept", "again"].map(|name| temp.path().join(name));
    a_server(&server).await;
    let mut made = backup(&server, &kept).await.unwrap();
    let line = format!("{} 4 ../outside\n", blake3::hash(b"fine").to_hex());
    made.list = blake3::hash(line.as_bytes()).to_hex().to_string();
    fs::write(kept.join("files"), line).unwrap();
    fs::write(kept.join("backup.json"), serde_json::to_vec(&made).unwrap()).unwrap();
    assert!(matches!(restore(&kept, &again).await, Err(BackupError::NoBackup { .. })));
}

#[tokio::test]
async fn a_content_that_a_tree_needs_and_that_is_gone_makes_no_backup() {
    let temp = tempfile::tempdir().unwrap();
    let [server, kept] = ["server", "kept"].map(|name| temp.path().join(name));
    let hash = a_server(&server).await;
    fs::remove_file(server.join("blobs").join(&hash[..2]).join(&hash[2..])).unwrap();
    let refused = backup(&server, &kept).await.unwrap_err();
    assert!(refused.to_string().contains("needs it"), "{refused}");
    assert!(!kept.join("backup.json").exists());
}
