//! A job sees its data as they were when it was handed in, and keys and edits are all or nothing.

use era_core::units::JobId;
use era_store::Note;

use super::*;
use crate::boot::staging::FromFiles;
use crate::launch::Staging;

async fn put(house: &House, token: &str, content: &str) {
    let request = request(token, "PUT", "/data/admin/d/files/a", None).0;
    let put = house.send(request.body(Body::from(content.to_owned())).unwrap()).await;
    assert_eq!(put.status, 200, "{}", put.body);
}

fn with_input(name: &str) -> Value {
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
    json!({ "work": { "command": ["true"], "inputs": [{ "data": name }] }, "value": "1000",
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60, "deadline": deadline.to_string() } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_sees_its_data_as_they_were_when_it_was_handed_in() {
    let (house, admin) = with_a_node().await;
    let made = house.ask(&admin, "POST", "/data", Some(json!({ "name": "d" }))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    put(&house, &admin, "one").await;
    let made = house.ask(&admin, "POST", "/jobs", Some(with_input("d"))).await;
    assert_eq!(made.status, 201, "{}", made.body);
    put(&house, &admin, "two").await;
    assert_eq!(house.ask(&admin, "DELETE", "/data/admin/d", None).await.status, 204);

    let job = JobId(made.body["job"].as_u64().unwrap());
    let (_, entry) = house.app.store.journal().submission(job).await.unwrap().unwrap();
    let note = Note::read(&entry.note.unwrap()).unwrap();
    let inputs = note.inputs.unwrap();
    let spec: era_api::job::NewJob = serde_json::from_str(note.spec.unwrap().get()).unwrap();
    let staging = FromFiles {
        files: house.app.files.clone(),
        driver: house.app.driver.clone(),
        catalogue: house.app.store.accounts(),
    };
    let user = house.app.driver.snapshot().job(job).unwrap().user;
    let staged = staging.stage(user, "admin", &spec.work, Some(&inputs)).await.ok().unwrap();
    assert_eq!(staged.inputs[0].to, "inputs/d/a");
    assert_eq!(std::fs::read(&staged.inputs[0].from).unwrap(), b"one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_data_its_owner_may_not_read_is_refused() {
    let (house, admin) = with_a_node().await;
    let bob = house.user(&admin, "bob", "user").await;
    assert_eq!(house.ask(&admin, "POST", "/data", Some(json!({ "name": "d" }))).await.status, 201);
    for (token, name) in [(&admin, "nosuch"), (&bob, "admin/d")] {
        let refused = house.ask(token, "POST", "/jobs", Some(with_input(name))).await;
        assert_eq!(refused.body["code"], "unknown_data_set", "{}", refused.body);
        assert_eq!(refused.body["field"], "work.inputs");
    }
    assert_eq!(house.app.driver.snapshot().jobs().count(), 0);
}
