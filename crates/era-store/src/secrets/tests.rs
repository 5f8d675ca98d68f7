use std::path::Path;

use super::{KEY_FILE, SecretRow, SecretStore};
use crate::accounts::{GroupRow, UserRow};
use crate::{Store, testing};

/// A store with the users 1 and 2.
async fn users(folder: &Path) -> Store {
    let store = testing::open(folder).await;
    let rows = store.accounts();
    let group = GroupRow { id: 1, name: "lab".into(), level: 0, storage_bytes: None, created: 0 };
    rows.add_group(&group).await.unwrap();
    for (id, name) in [(1, "ada"), (2, "bob")] {
        let user = UserRow {
            id,
            name: name.into(),
            group: 1,
            role: 0,
            level: 0,
            enabled: true,
            password: String::new(),
            one_time: false,
            storage_bytes: None,
            created: 0,
        };
        rows.add_user(&user).await.unwrap();
    }
    store
}

async fn opened(secrets: &SecretStore, user: u32, names: &[&str]) -> Vec<(String, String)> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    secrets.open(user, &names).await.unwrap().into_iter().collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_secret_is_found_by_its_user_and_its_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = users(folder.path()).await.secrets();
    assert!(secrets.set(1, "HF_TOKEN", "hf_1", 5, 64).await.unwrap());
    assert!(secrets.set(1, "A", "zwei\nZeilen ü", 6, 64).await.unwrap());
    assert!(secrets.set(2, "HF_TOKEN", "hf_2", 7, 64).await.unwrap());
    assert!(secrets.set(1, "HF_TOKEN", "hf_3", 8, 64).await.unwrap(), "another value");
    let names = ["A", "HF_TOKEN", "NONE"];
    let own = [pair("A", "zwei\nZeilen ü"), pair("HF_TOKEN", "hf_3")];
    assert_eq!(opened(&secrets, 1, &names).await, own);
    assert_eq!(opened(&secrets, 2, &names).await, [pair("HF_TOKEN", "hf_2")]);
    let row = |name: &str, changed| SecretRow { name: name.to_owned(), changed };
    assert_eq!(secrets.of(1, "", 10).await.unwrap(), [row("A", 6), row("HF_TOKEN", 8)]);
    assert_eq!(secrets.of(1, "A", 10).await.unwrap(), [row("HF_TOKEN", 8)]);
    assert!(secrets.remove(1, "HF_TOKEN").await.unwrap());
    assert!(!secrets.remove(1, "HF_TOKEN").await.unwrap());
    assert_eq!(opened(&secrets, 1, &names).await, own[..1]);
    assert_eq!(opened(&secrets, 2, &names).await, [pair("HF_TOKEN", "hf_2")]);
}

#[tokio::test]
async fn a_user_has_so_many_secrets_at_most_and_may_change_each() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = users(folder.path()).await.secrets();
    for name in ["A", "B"] {
        assert!(secrets.set(1, name, "x", 0, 2).await.unwrap());
    }
    assert!(!secrets.set(1, "C", "x", 0, 2).await.unwrap());
    assert!(secrets.set(1, "B", "y", 0, 2).await.unwrap());
    assert!(secrets.set(2, "C", "x", 0, 2).await.unwrap());
    assert_eq!(opened(&secrets, 1, &["A", "B", "C"]).await, [pair("A", "x"), pair("B", "y")]);
}

#[tokio::test]
async fn the_database_alone_tells_nothing_and_a_row_opens_only_where_it_was_put() {
    let folder = tempfile::tempdir().unwrap();
    let store = users(folder.path()).await;
    let secrets = store.secrets();
    let value = "a value that nobody may read";
    secrets.set(1, "A", value, 0, 64).await.unwrap();
    secrets.set(1, "B", value, 0, 64).await.unwrap();
    let sealed = "SELECT sealed FROM secrets ORDER BY name";
    let rows: Vec<String> =
        sqlx::query_scalar(sealed).fetch_all(store.durable().readers()).await.unwrap();
    assert_ne!(rows[0], rows[1], "equal values do not look equal");
    assert!(rows.iter().all(|row| !row.contains(value)));
    for forged in
        ["UPDATE secrets SET name = 'C' WHERE name = 'A'", "UPDATE secrets SET user_id = 2"]
    {
        sqlx::query(forged).execute(store.durable().writer()).await.unwrap();
    }
    for (user, name) in [(2, "C"), (2, "B")] {
        let refused = secrets.open(user, &[name.to_owned()]).await.unwrap_err().to_string();
        assert!(refused.contains("is damaged") && refused.contains(name), "{refused}");
    }
}

#[tokio::test]
async fn another_key_opens_nothing_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = users(folder.path()).await.secrets();
    secrets.set(1, "A", "x", 0, 64).await.unwrap();
    let file = folder.path().join(KEY_FILE);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let key = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let refusal = async || secrets.open(1, &["A".to_owned()]).await.unwrap_err().to_string();
    assert!(refusal().await.contains("key is gone: set it again: `era secret set A`"));
    secrets.set(1, "B", "y", 0, 64).await.unwrap();
    assert!(refusal().await.contains("another key than when it was set"));
    std::fs::write(&file, "no key").unwrap();
    assert!(refusal().await.contains(KEY_FILE));
    assert!(secrets.set(1, "B", "z", 0, 64).await.is_err(), "it is not written over");
    std::fs::write(&file, key).unwrap();
    assert_eq!(opened(&secrets, 1, &["A"]).await, [pair("A", "x")]);
}

#[tokio::test]
async fn servers_that_begin_at_once_have_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = users(folder.path()).await;
    let both = [store.secrets(), store.secrets()];
    let set = |at: usize, name: &'static str| {
        let secrets = both[at].clone();
        async move { secrets.set(1, name, "x", 0, 64).await }
    };
    let set = tokio::join!(set(0, "A"), set(1, "B"), set(0, "C"), set(1, "D"));
    assert!([set.0, set.1, set.2, set.3].into_iter().all(|set| set.unwrap()));
    assert_eq!(opened(&both[0], 1, &["A", "B", "C", "D"]).await.len(), 4);
    let files = std::fs::read_dir(folder.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let keys: Vec<String> = names.filter(|name| name.starts_with("secrets")).collect();
    assert_eq!(keys, [KEY_FILE], "no draft is left");
}
