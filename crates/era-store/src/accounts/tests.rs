//! Accounts are as they were written, also by another connection.

use super::*;

async fn accounts() -> (tempfile::TempDir, AccountTables) {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path()).await;
    let accounts = store.accounts();
    let group = GroupRow { id: 1, name: "lab".into(), level: 3, storage_bytes: None, created: 5 };
    accounts.add_group(&group).await.unwrap();
    accounts.add_user(&user(1, "ada")).await.unwrap();
    (folder, accounts)
}

fn user(id: u32, name: &str) -> UserRow {
    UserRow {
        id,
        name: name.into(),
        group: 1,
        role: 2,
        level: 255,
        enabled: true,
        password: "hash".into(),
        one_time: true,
        storage_bytes: Some(u64::MAX >> 1),
        created: 7,
    }
}

fn token(id: &str, expires: i64) -> TokenRow {
    TokenRow {
        id: id.into(),
        hash: format!("hash of {id}"),
        user: 1,
        label: "laptop".into(),
        scopes: 3,
        csrf: Some("back".into()),
        limited: true,
        created: 1,
        expires,
        used: None,
    }
}

#[tokio::test]
async fn users_and_groups_are_read_as_they_were_written() {
    let (_folder, accounts) = accounts().await;
    assert!(accounts.users().await.unwrap() == [user(1, "ada")]);
    let changed = UserRow { enabled: false, storage_bytes: None, role: 0, ..user(1, "ada") };
    accounts.set_user(&changed).await.unwrap();
    assert!(accounts.users().await.unwrap() == [changed]);
    let groups = accounts.groups().await.unwrap();
    let raised = GroupRow { level: 4, storage_bytes: Some(9), ..groups[0].clone() };
    accounts.set_group(&raised).await.unwrap();
    assert_eq!(accounts.groups().await.unwrap(), [raised]);
}

#[tokio::test]
async fn every_change_that_servers_hold_in_memory_leaves_word() {
    let (_folder, accounts) = accounts().await;
    let mut before = accounts.revision().await.unwrap();
    let mut changed = async |what: &str| {
        let now = accounts.revision().await.unwrap();
        assert!(now > std::mem::replace(&mut before, now), "{what}");
    };
    accounts.set_user(&user(1, "ada")).await.unwrap();
    changed("a user").await;
    accounts.add_token(&token("a", 50)).await.unwrap();
    changed("a new token").await;
    accounts.remove_token("a").await.unwrap();
    changed("a revoked token").await;
    accounts.remove_tokens_of(1, None, None).await.unwrap();
    changed("all tokens").await;
}

#[tokio::test]
async fn one_server_changes_accounts_at_a_time() {
    let (folder, here) = accounts().await;
    let there = crate::testing::open(folder.path()).await.accounts();
    let alone = here.alone().await.unwrap();
    // Who holds the right can write.
    here.add_user(&user(2, "bob")).await.unwrap();
    let waits = std::time::Duration::from_millis(200);
    let shared = here.database.dialect() != crate::Dialect::Sqlite;
    assert_eq!(tokio::time::timeout(waits, there.alone()).await.is_err(), shared);
    drop(alone);
    drop(there.alone().await.unwrap());
}

#[tokio::test]
async fn a_name_is_given_once_and_a_group_must_exist() {
    let (_folder, accounts) = accounts().await;
    assert!(accounts.add_user(&user(2, "ada")).await.is_err());
    assert!(accounts.add_user(&UserRow { group: 9, ..user(2, "bob") }).await.is_err());
    assert_eq!(accounts.users().await.unwrap().len(), 1);
}

#[tokio::test]
async fn expired_tokens_are_not_listed_and_then_forgotten() {
    let (_folder, accounts) = accounts().await;
    accounts.add_token(&token("old", 10)).await.unwrap();
    accounts.add_token(&token("new", 20)).await.unwrap();
    assert_eq!(accounts.tokens(10).await.unwrap(), [token("new", 20)]);
    accounts.tend_tokens(&[("new".into(), 12)], 10).await.unwrap();
    let used = TokenRow { used: Some(12), ..token("new", 20) };
    assert_eq!(accounts.tokens(0).await.unwrap(), [used]);
}

#[tokio::test]
async fn a_new_password_ends_all_tokens_but_the_one_that_set_it() {
    let (_folder, accounts) = accounts().await;
    for id in ["a", "b", "c"] {
        accounts.add_token(&token(id, 10)).await.unwrap();
    }
    accounts.remove_tokens_of(1, Some("b"), None).await.unwrap();
    let left = accounts.tokens(0).await.unwrap();
    assert_eq!(left, [TokenRow { limited: false, ..token("b", 10) }]);
    let own = TokenRow { label: "own".into(), limited: false, ..token("d", 10) };
    accounts.add_token(&own).await.unwrap();
    accounts.remove_tokens_of(1, None, Some("own")).await.unwrap();
    assert_eq!(accounts.tokens(0).await.unwrap(), [own]);
    accounts.remove_tokens_of(1, None, None).await.unwrap();
    assert_eq!(accounts.tokens(0).await.unwrap(), []);
}

#[tokio::test]
async fn a_key_gives_the_same_answer_to_the_same_request_for_a_day() {
    let (_folder, accounts) = accounts().await;
    let claim = |print: &'static str, now: i64| {
        let accounts = accounts.clone();
        async move { accounts.claim_key(1, "k", print, now).await.unwrap() }
    };
    assert_eq!(claim("one", 0).await, Claim::New);
    assert_eq!(claim("one", 1).await, Claim::Unanswered);
    let answer = KeyedAnswer { status: 201, body: "{}".into() };
    accounts.answer_key(1, "k", &answer).await.unwrap();
    assert_eq!(claim("one", 2).await, Claim::Answered(answer));
    assert_eq!(claim("two", 3).await, Claim::Other);
    assert_eq!(claim("two", KEY_KEPT_MS).await, Claim::New);
    accounts.free_key(1, "k").await.unwrap();
    assert_eq!(claim("three", KEY_KEPT_MS + 1).await, Claim::New);
}

#[tokio::test]
async fn audit_lines_are_numbered_and_come_newest_first() {
    let (_folder, accounts) = accounts().await;
    for (at, what) in (1..).zip(["user.create", "login.failed", "user.edit"]) {
        let line = AuditRow {
            id: 0,
            at,
            who: if at == 2 { "eve" } else { "ada" }.into(),
            origin: "127.0.0.1".into(),
            what: what.into(),
            target: "bob".into(),
            done: true,
        };
        accounts.audit(&line).await.unwrap();
    }
    let ids = async |ask: AuditAsk| -> Vec<u64> {
        accounts.audit_lines(&ask, 2).await.unwrap().iter().map(|line| line.id).collect()
    };
    let all = AuditAsk::default();
    assert_eq!(ids(all.clone()).await, [3, 2]);
    assert_eq!(ids(AuditAsk { before: 2, ..all.clone() }).await, [1]);
    assert_eq!(ids(AuditAsk { who: Some("eve".into()), ..all.clone() }).await, [2]);
    assert_eq!(ids(AuditAsk { what: Some("user".into()), ..all.clone() }).await, [3, 1]);
    assert_eq!(ids(AuditAsk { what: Some("user.e".into()), ..all.clone() }).await, [3]);
    assert_eq!(ids(AuditAsk { what: Some("%".into()), ..all.clone() }).await, [0; 0]);
    assert_eq!(ids(AuditAsk { since: Some(2), until: Some(3), ..all.clone() }).await, [2]);
    assert_eq!(ids(AuditAsk { target: Some("ann".into()), ..all }).await, [0; 0]);
}

fn hook(user: u32) -> WebhookRow {
    WebhookRow {
        id: 0,
        user,
        url: "https://example.org/".into(),
        events: "job_started".into(),
        pool: None,
        below: None,
        was_below: false,
        secret: "s".into(),
        last: None,
        created: 1,
    }
}

fn delivery(webhook: u64, origin: &str) -> DeliveryRow {
    let (origin, body) = (origin.into(), "{}".into());
    DeliveryRow { id: 0, webhook, origin, body, tries: 0, due: 5, created: 5 }
}

#[tokio::test]
async fn the_outbox_tells_each_thing_once_and_forgets_with_its_webhook() {
    let (_folder, accounts) = accounts().await;
    let id = accounts.add_webhook(&hook(1)).await.unwrap();
    assert_eq!(accounts.webhook_cursor(41).await.unwrap(), 41);
    let twice = [delivery(id, "7.0"), delivery(id, "7.0"), delivery(id, "7.1"), delivery(99, "8")];
    accounts.post(&twice, Some(43)).await.unwrap();
    assert_eq!(accounts.webhook_cursor(0).await.unwrap(), 43);
    assert_eq!(accounts.webhooks_due().await.unwrap(), [(id, 5)]);
    let first = accounts.first_due(id).await.unwrap().unwrap();
    assert_eq!(first.origin, "7.0");
    accounts.delivered(&first, "200").await.unwrap();
    let second = accounts.first_due(id).await.unwrap().unwrap();
    assert_eq!(second.origin, "7.1");
    accounts.try_again(&second, 100, "503").await.unwrap();
    assert_eq!(accounts.webhooks_due().await.unwrap(), [(id, 100)]);
    assert_eq!(accounts.first_due(id).await.unwrap().unwrap().tries, 1);
    assert_eq!(accounts.webhook(id).await.unwrap().unwrap().last.as_deref(), Some("503"));
    accounts.give_up(id, 5).await.unwrap();
    assert_eq!(accounts.webhooks_due().await.unwrap().len(), 1, "not so old");
    accounts.give_up(id, 6).await.unwrap();
    assert_eq!(accounts.webhooks_due().await.unwrap(), []);
    accounts.post(&[delivery(id, "9")], None).await.unwrap();
    accounts.remove_webhook(id).await.unwrap();
    assert_eq!(accounts.webhooks_due().await.unwrap(), []);
}

#[tokio::test]
async fn a_webhooks_number_is_not_given_to_another() {
    let (_folder, accounts) = accounts().await;
    let first = accounts.add_webhook(&hook(1)).await.unwrap();
    let second = accounts.add_webhook(&hook(1)).await.unwrap();
    accounts.remove_webhook(second).await.unwrap();
    let third = accounts.add_webhook(&hook(1)).await.unwrap();
    assert_eq!([second, third], [first + 1, first + 2]);
    assert_eq!(accounts.webhook_cursor(7).await.unwrap(), 7, "the journal's place is its own");
}

#[tokio::test]
async fn an_image_is_replaced_by_its_name() {
    let (_folder, accounts) = accounts().await;
    let image = |name: &str, details: &str| ImageRow {
        name: name.into(),
        details: details.into(),
        published_by: "ada".into(),
        published: 1,
    };
    for (name, details) in [("b", "1"), ("a", "1"), ("b", "2")] {
        let before = accounts.images_revision().await.unwrap();
        accounts.put_image(&image(name, details)).await.unwrap();
        assert!(accounts.images_revision().await.unwrap() > before, "word of it is left");
    }
    let before = accounts.images_revision().await.unwrap();
    assert_eq!(accounts.images_after("", 9).await.unwrap(), [image("a", "1"), image("b", "2")]);
    assert_eq!(accounts.images_after("a", 9).await.unwrap(), [image("b", "2")]);
    assert_eq!(accounts.images_with("B", "", 9).await.unwrap(), [image("b", "2")]);
    assert_eq!(accounts.images_with("%", "", 9).await.unwrap(), []);
    accounts.remove_image("a").await.unwrap();
    assert_eq!(accounts.image("a").await.unwrap(), None);
    assert!(accounts.images_revision().await.unwrap() > before);
}
