//! A job sees its data as they were when it was handed in, and keys and edits are all or nothing.

use era_app::launch::Staging;
use era_core::units::{JobId, UserId};
use era_store::Note;

use super::*;
use era_app::staging::FromFiles;

async fn put(server: &TestServer, token: &str, content: &str) {
    let request = request(token, "PUT", "/data/admin/d/files/a", None).0;
    let put = server.send(request.body(Body::from(content.to_owned())).unwrap()).await;
    assert_eq!(put.status, 200, "{}", put.body);
}

fn with_input(name: &str) -> Value {
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    json!({ "work": { "command": ["true"], "inputs": [{ "data": name }] }, "value": "1000",
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60, "deadline": deadline.to_string() } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_sees_its_data_as_they_were_when_it_was_handed_in() {
    let (server, admin) = with_a_node().await;
    let made = server.ask(&admin, "POST", "/data", Some(json!({ "name": "d" }))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    put(&server, &admin, "one").await;
    let made = server.ask(&admin, "POST", "/jobs", Some(with_input("d"))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    put(&server, &admin, "two").await;
    assert_eq!(server.ask(&admin, "DELETE", "/data/admin/d", None).await.status, 204);

    let job = JobId(made.body["job"].as_u64().unwrap());
    let (_, entry) = server.app.store.journal().submission(job).await.unwrap().unwrap();
    let note = Note::read(&entry.note.unwrap()).unwrap();
    let inputs = note.inputs.unwrap();
    let spec = note.spec.unwrap();
    let staging = FromFiles {
        files: server.app.files.clone(),
        driver: server.app.driver.clone(),
        catalogue: server.app.store.accounts(),
    };
    let user = server.app.driver.snapshot().job(job).unwrap().user;
    let staged = staging.stage(user, "admin", &spec.work, Some(&inputs)).await.ok().unwrap();
    assert_eq!(staged.inputs[0].to, "inputs/d/a");
    assert_eq!(std::fs::read(&staged.inputs[0].from).unwrap(), b"one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_data_its_owner_may_not_read_is_refused() {
    let (server, admin) = with_a_node().await;
    let bob = server.user(&admin, "bob", "user").await;
    assert_eq!(server.ask(&admin, "POST", "/data", Some(json!({ "name": "d" }))).await.status, 201);
    for (token, name) in [(&admin, "nosuch"), (&bob, "admin/d")] {
        let refused = server.ask(token, "POST", "/jobs", Some(with_input(name))).await;
        assert_eq!(refused.body["code"], "unknown_data_set", "{}", refused.body);
        assert_eq!(refused.body["field"], "work.inputs");
    }
    assert_eq!(server.app.driver.snapshot().jobs().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_does_not_stand_in_the_way_of_a_large_tree() {
    let server = server().await;
    let admin = server.administrator().await;
    let file = |n: u32| json!({ "path": format!("{n:0200}"), "hash": "0".repeat(64), "bytes": 0 });
    let tree = json!({ "files": (0..6000).map(file).collect::<Vec<_>>() });
    assert!(tree.to_string().len() > super::super::extract::JSON_BYTES_MAX);
    let asked = request(&admin, "POST", "/trees", Some(tree)).header(idempotency::HEADER, "k");
    let refused = server.send(asked.body_or_empty()).await;
    assert_eq!(refused.body["code"], "files_missing", "read to its end: {}", refused.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_handed_in_again_by_a_key_is_found_by_the_repetition() {
    let (server, admin) = with_a_node().await;
    let mut job = with_input("d");
    job["work"]["inputs"] = json!([]);
    let made = server.ask(&admin, "POST", "/jobs", Some(job)).await;
    let path = format!("/jobs/{}/retry", made.body["job"]);
    let again = async || {
        let asked = request(&admin, "POST", &path, None).header(idempotency::HEADER, "k");
        server.send(asked.body_or_empty()).await
    };
    let (first, second) = (again().await, again().await);
    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert_eq!(second.headers[header::LOCATION], first.headers[header::LOCATION]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_under_way_does_not_outlive_its_account() {
    let server = server().await;
    let admin = server.administrator().await;
    server.user(&admin, "ada", "user").await;
    let login = json!({ "user": "ada", "password": "a good password" });
    let disable = json!({ "enabled": false });
    let (logged, disabled) = tokio::join!(
        server.ask("", "POST", "/sessions", Some(login)),
        server.ask(&admin, "PATCH", "/users/ada", Some(disable)),
    );
    assert_eq!(disabled.status, 200, "{}", disabled.body);
    let ada = server.app.auth.directory().user_named("ada").unwrap().id;
    assert_eq!(server.app.auth.tokens_of(UserId(ada.0)).len(), 0, "{}", logged.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_node_is_refused_whole() {
    let (server, admin) = with_a_node().await;
    let node = async || server.ask(&admin, "GET", "/nodes/n", None).await.body;
    let (before, seq) = (node().await, server.app.driver.snapshot().seq());
    // An absence that ends before it begins.
    let edit = json!({ "domain": "", "action": "cordon", "maintenance": [
        { "from": "2030-01-02T00:00:00Z", "to": "2030-01-01T00:00:00Z" }] });
    let refused = server.ask(&admin, "PATCH", "/nodes/n", Some(edit)).await;
    assert!(refused.status.is_client_error(), "{}", refused.body);
    assert_eq!(node().await, before);
    assert_eq!(server.app.driver.snapshot().seq(), seq + 1, "all of it was one input");
}
