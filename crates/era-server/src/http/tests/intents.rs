//! What a job's owner leaves open: the server says it, whoever asks.

use super::*;

impl House {
    /// Hands in a job that says this beside what it runs, and gives what became of it.
    async fn hand_in(&self, token: &str, said: Value) -> Answer {
        let mut job = json!({ "work": { "command": ["true"] } });
        job.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let made = self.ask(token, "POST", "/jobs", Some(job)).await;
        if made.status != 201 {
            return made;
        }
        self.app.wait_for(self.app.driver.snapshot().seq()).await;
        self.ask(token, "GET", &format!("/jobs/{}", made.body["job"]), None).await
    }
}

/// An hour that is to come.
fn in_hours(hours: i64) -> Value {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
    json!(at.to_string())
}

#[tokio::test]
async fn a_job_without_a_word_on_its_needs_gets_the_defaults_and_keeps_them() {
    let (house, admin) = with_a_node().await;
    let job = house.hand_in(&admin, json!({})).await.body;
    let ask = json!({ "resources": { "cpu": "1", "memory": "1Gi" }, "duration_s": 3600 });
    assert_eq!((&job["spec"]["ask"], &job["spec"]["priority"]), (&ask, &json!(0)), "{job}");
    assert_eq!(job["resources"], ask["resources"]);
    let said = json!({ "ask": { "resources": { "cpu": "2" }, "duration_s": 60 } });
    let job = house.hand_in(&admin, said).await.body;
    assert_eq!(job["resources"], json!({ "cpu": "2", "memory": "1Gi" }));
    let quoted = json!({ "ask": { "duration_s": 3600 } });
    let quoted = house.ask(&admin, "POST", "/quotes", Some(quoted)).await;
    assert_eq!(quoted.body["quote"]["price"], "0.50", "an hour of one core: {}", quoted.body);
}

#[tokio::test]
async fn a_deadline_or_a_word_takes_the_price_and_nothing_else_does() {
    let (house, admin) = with_a_node().await;
    let (soon, late) = (in_hours(2), in_hours(9));
    for takes in [
        json!({ "ask": { "deadline": late } }),
        json!({ "accept_price": true }),
        json!({ "most": "5" }),
        json!({ "accept_price": true, "ask": { "earliest": soon } }),
    ] {
        let job = house.hand_in(&admin, takes.clone()).await.body;
        assert!(job["promised_start"].is_string(), "{takes}: {job}");
        assert_eq!(job["price"], "0.50", "{takes}: {job}");
        assert!(job["spec"].get("value").is_none(), "nobody said a worth: {job}");
    }
    let queued = house.hand_in(&admin, json!({ "ask": { "earliest": soon } })).await.body;
    assert_eq!(queued["queue"], "default", "it waits, and begins later: {queued}");
    let dear = house.hand_in(&admin, json!({ "accept_price": true, "most": "0.01" })).await;
    assert_eq!(dear.body["code"], "too_dear", "{}", dear.body);
}

#[tokio::test]
async fn a_queue_and_a_promise_contradict_each_other() {
    let (house, admin) = with_a_node().await;
    for (said, other) in [
        (json!({ "value": "3" }), "value"),
        (json!({ "most": "3" }), "most"),
        (json!({ "accept_price": true }), "accept_price"),
        (json!({ "ask": { "deadline": in_hours(9) } }), "ask.deadline"),
    ] {
        let mut said = said;
        said["queue"] = json!("default");
        let refused = house.hand_in(&admin, said).await;
        assert_eq!((refused.status.as_u16(), &refused.body["field"]), (422, &json!("queue")));
        assert_eq!(refused.body["parameters"]["other"], other, "{}", refused.body);
    }
}

#[tokio::test]
async fn a_repeated_bid_at_the_price_is_the_same_bid() {
    let (house, admin) = with_a_node().await;
    let job = json!({ "work": { "command": ["true"] }, "ask": { "resources": { "cpu": "4" } },
        "accept_price": true });
    let submit = || {
        let asked = request(&admin, "POST", "/jobs", Some(job.clone()));
        house.send(asked.header(idempotency::HEADER, "k1").body_or_empty())
    };
    let first = submit().await;
    assert_eq!(first.status, 201, "{}", first.body);
    // The slot is taken by now, and another one has another price.
    let again = submit().await;
    assert_eq!((again.status, again.body), (first.status, first.body));
}
