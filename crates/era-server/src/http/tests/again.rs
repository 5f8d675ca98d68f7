//! Jobs that are handed in again do the same work on terms that hold now, and arrays end as one.

use std::time::Duration;

use era_core::units::{JobId, UserId};

use super::*;

/// A server with one node of eight cores, and a token of its administrator.
async fn with_a_node() -> (TestServer, String) {
    let server = server().await;
    let admin = server.administrator().await;
    let rule = json!({ "order": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/policies/fifo", Some(rule)).await.status, 200);
    let queue = json!({ "name": "default", "policy": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/queues/default", Some(queue)).await.status, 204);
    let pool = json!({ "name": "main", "cpu_rate": "1", "memory_rate": "0", "gpu_rate": "0",
        "closed_share": 0 });
    assert_eq!(server.ask(&admin, "PUT", "/pools/main", Some(pool)).await.status, 204);
    let node = json!({ "type": "join", "nodes": [{ "name": "n", "pool": "main",
        "capacity": { "cpu": 8000, "memory": 65_536, "gpus": [] } }] });
    server.app.driver.ask(serde_json::from_value(node).unwrap(), None).await.unwrap();
    (server, admin)
}

/// The same, where everything has to wait.
async fn where_all_wait() -> (TestServer, String) {
    let (server, admin) = with_a_node().await;
    let cordon = json!({ "action": "cordon" });
    assert_eq!(server.ask(&admin, "PATCH", "/nodes/n", Some(cordon)).await.status, 204);
    (server, admin)
}

fn ask() -> Value {
    json!({ "resources": { "cpu": "1" }, "duration_s": 60 })
}

fn in_seconds(seconds: i64) -> String {
    let at = era_api::Timestamp::now().as_millisecond() + seconds * 1000;
    era_api::Timestamp::from_millisecond(at).unwrap().to_string()
}

impl TestServer {
    /// Hands in a job; its number.
    async fn submit(&self, token: &str, job: Value) -> u64 {
        let made = self.ask(token, "POST", "/jobs", Some(job)).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["job"].as_u64().unwrap()
    }

    async fn cancel(&self, token: &str, job: u64) {
        let done = self.ask(token, "POST", &format!("/jobs/{job}/cancel"), None).await;
        assert_eq!(done.status, 204, "{}", done.body);
    }

    /// Hands a job in again; what the new one was handed in as.
    async fn again(&self, token: &str, job: u64) -> Value {
        let made = self.ask(token, "POST", &format!("/jobs/{job}/retry"), None).await;
        assert_eq!(made.status, 201, "{}", made.body);
        self.ask(token, "GET", &format!("/jobs/{}", made.body["job"]), None).await.body
    }
}

#[tokio::test]
async fn a_job_of_an_array_keeps_its_index_when_it_is_handed_in_again() {
    let (server, admin) = where_all_wait().await;
    let array = json!({ "work": { "command": ["true"] }, "ask": ask(),
        "array": { "from": 10, "to": 30, "step": 10 } });
    let first = server.submit(&admin, array).await;
    server.cancel(&admin, first + 1).await;
    let again = server.again(&admin, first + 1).await;
    assert_eq!(again["array"]["index"], 20, "{again}");
    assert_eq!(again["spec"]["array"], json!({ "from": 20, "to": 20, "step": 1 }));
    let alone = json!({ "work": { "command": ["true"] }, "ask": ask() });
    let alone = server.submit(&admin, alone).await;
    server.cancel(&admin, alone).await;
    assert_eq!(server.again(&admin, alone).await["spec"].get("array"), None);
}

#[tokio::test]
async fn a_window_that_has_passed_is_moved_and_one_that_has_not_stays() {
    let (server, admin) = with_a_node().await;
    let bid = |deadline: &str| {
        json!({ "work": { "command": ["true"] }, "value": "900",
            "ask": { "resources": { "cpu": "1" }, "duration_s": 2, "deadline": deadline } })
    };
    let deadline = |job: &Value| -> era_api::Timestamp {
        job["spec"]["ask"]["deadline"].as_str().unwrap().parse().unwrap()
    };
    let (soon, late) = (in_seconds(10), in_seconds(36_000));
    let passes = server.submit(&admin, bid(&soon)).await;
    let stays = server.submit(&admin, bid(&late)).await;
    server.cancel(&admin, passes).await;
    server.cancel(&admin, stays).await;
    assert_eq!(deadline(&server.again(&admin, stays).await), late.parse().unwrap());
    server.pass(Span::from_s(9));
    let moved = deadline(&server.again(&admin, passes).await);
    let before: era_api::Timestamp = soon.parse().unwrap();
    assert!(moved.as_second() - before.as_second() >= 8, "{moved} is hardly after {before}");
}

#[tokio::test]
async fn a_job_that_took_a_hold_is_a_bid_again() {
    let (server, admin) = with_a_node().await;
    for (value, worth) in [(json!("7"), Some("7.00")), (Value::Null, None)] {
        let mut asked = json!({ "ask": ask(), "hold": true });
        if !value.is_null() {
            asked["value"] = value;
        }
        let quoted = server.ask(&admin, "POST", "/quotes", Some(asked)).await;
        assert!(quoted.status.is_success(), "{}", quoted.body);
        let taken = json!({ "work": { "command": ["true"] }, "ask": ask(),
            "hold": quoted.body["hold"]["id"] });
        let job = server.submit(&admin, taken).await;
        server.cancel(&admin, job).await;
        let again = server.again(&admin, job).await;
        assert_eq!(again["spec"].get("hold"), None, "{again}");
        assert_eq!(again["queue"], Value::Null, "a promise waits in no queue: {again}");
        let price = quoted.body["quote"]["price"].as_str().unwrap();
        let agreed = worth.map_or(&again["spec"]["most"], |_| &again["spec"]["value"]);
        assert_eq!(agreed, worth.unwrap_or(price), "{again}");
        server.cancel(&admin, again["id"].as_u64().unwrap()).await;
    }
}

#[tokio::test]
async fn what_a_job_waited_for_and_is_long_over_does_not_keep_it_from_being_handed_in_again() {
    let (server, admin) = where_all_wait().await;
    let job =
        |after: Value| json!({ "work": { "command": ["true"] }, "ask": ask(), "after": after });
    let before = server.submit(&admin, job(json!([]))).await;
    let any = server.submit(&admin, job(json!([{ "job": before, "when": "any" }]))).await;
    let ok = server.submit(&admin, job(json!([{ "job": before, "when": "ok" }]))).await;
    server.cancel(&admin, any).await;
    server.cancel(&admin, ok).await;
    server.cancel(&admin, before).await;
    // The core says why it would never start.
    let path = format!("/jobs/{ok}/retry");
    let refused = server.ask(&admin, "POST", &path, None).await;
    assert_eq!(refused.body["code"], "failed_before", "{}", refused.body);
    let short = json!({ "remember": 1 });
    assert_eq!(server.ask(&admin, "PATCH", "/settings", Some(short)).await.status, 204);
    let until = Instant::now() + Duration::from_secs(60);
    while server.app.driver.snapshot().job(JobId(before)).is_ok() {
        assert!(Instant::now() < until, "it is never forgotten");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.again(&admin, any).await["spec"].get("after"), None);
    let refused = server.ask(&admin, "POST", &path, None).await;
    assert_eq!(refused.body["code"], "unknown_before", "{}", refused.body);
}

#[tokio::test]
async fn a_key_that_cancelled_one_job_does_not_stand_for_its_array() {
    let (server, admin) = where_all_wait().await;
    let array = json!({ "work": { "command": ["true"] }, "ask": ask(),
        "array": { "from": 0, "to": 2 } });
    let first = server.submit(&admin, array).await;
    let cancel = async |query: &str| {
        let path = format!("/jobs/{first}/cancel{query}");
        let asked = request(&admin, "POST", &path, None).header(idempotency::HEADER, "k");
        server.send(asked.body_or_empty()).await
    };
    assert_eq!(cancel("").await.status, 204);
    let again = cancel("").await;
    assert_eq!(again.status, 204);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let other = cancel("?array=true").await;
    assert_eq!((other.status.as_u16(), &other.body["code"]), (422, &json!("key_reused")));
    let left = server.ask(&admin, "GET", "/jobs?state=active", None).await.body;
    assert_eq!(left["items"].as_array().map(Vec::len), Some(2), "{left}");
}

#[tokio::test]
async fn an_array_is_cancelled_whole_where_that_is_asked_for() {
    let (server, admin) = where_all_wait().await;
    let array = json!({ "work": { "command": ["true"] }, "ask": ask(),
        "array": { "from": 0, "to": 4 } });
    let first = server.submit(&admin, array).await;
    server.cancel(&admin, first).await;
    let path = format!("/jobs/{}/cancel?array=true", first + 3);
    let bob = server.user(&admin, "bob", "user").await;
    assert_eq!(server.ask(&bob, "POST", &path, None).await.status, 404, "not his");
    assert_eq!(server.ask(&admin, "POST", &path, None).await.status, 204);
    let left = server.ask(&admin, "GET", "/jobs?state=active", None).await.body;
    assert_eq!(left["items"], json!([]), "{left}");
    let alone =
        server.submit(&admin, json!({ "work": { "command": ["true"] }, "ask": ask() })).await;
    let path = format!("/jobs/{alone}/cancel?array=true");
    assert_eq!(server.ask(&admin, "POST", &path, None).await.body["code"], "no_array");
}

#[tokio::test]
async fn a_key_under_which_nothing_was_done_may_be_used_again() {
    use crate::http::Failure;
    use axum::response::IntoResponse as _;
    use era_app::driver::Unanswered;
    use era_app::idempotency::{KeyUse, claim};

    let server = server().await;
    let answers =
        [(Unanswered::NoLeader, true), (Unanswered::Busy, true), (Unanswered::Unknown, false)];
    for (index, (unanswered, free)) in answers.into_iter().enumerate() {
        let key = format!("key-{index}");
        let claimed = async || claim(&server.app, UserId(1), &key, "the same", "key").await;
        let Ok(KeyUse::First(first)) = claimed().await else { panic!("{key} is new") };
        let answer = Failure::from(unanswered).into_response();
        super::super::idempotency::remember(&server.app, first, answer).await.unwrap();
        assert_eq!(matches!(claimed().await, Ok(KeyUse::First(_))), free, "{key}");
    }
}

#[tokio::test]
async fn a_job_as_it_would_be_handed_in_again_has_a_worth_only_where_one_was_said() {
    let (server, admin) = with_a_node().await;
    let soon = in_seconds(120);
    let bid = |value: &str, most: &str| {
        json!({ "work": { "command": ["true"] }, "value": value, "most": most,
            "ask": { "resources": { "cpu": "1" }, "duration_s": 60, "deadline": soon } })
    };
    let priced = server.submit(&admin, bid("9", "9")).await;
    let stated = server.submit(&admin, bid("90", "9")).await;
    let queued = json!({ "work": { "command": ["true"] }, "ask": ask() });
    let queued = server.submit(&admin, queued).await;
    let told = async |job: u64| {
        let answer = server.ask(&admin, "GET", &format!("/jobs/{job}/again"), None).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        (answer.body["promise"].clone(), answer.body["job"]["value"].clone())
    };
    assert_eq!(told(priced).await, (json!(true), Value::Null));
    assert_eq!(told(stated).await, (json!(true), json!("90.00")));
    assert_eq!(told(queued).await, (json!(false), Value::Null));
    let bob = server.user(&admin, "bob", "user").await;
    let path = format!("/jobs/{priced}/again");
    assert_eq!(server.ask(&bob, "GET", &path, None).await.status, 404);
    // Less than it costs now is refused, and what it costs is not.
    let retry = |most: &str| format!("/jobs/{priced}/retry?most={most}");
    let refused = server.ask(&admin, "POST", &retry("0.000001"), None).await;
    assert_eq!(refused.body["code"], "too_dear", "{}", refused.body);
    let made = server.ask(&admin, "POST", &retry("8"), None).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let again = server.ask(&admin, "GET", &format!("/jobs/{}", made.body["job"]), None).await.body;
    let spec = &again["spec"];
    assert_eq!((&spec["accept_price"], &spec["most"]), (&json!(true), &json!("8.00")), "{spec}");
}

/// What came back to the administrator's wallet, in all.
async fn balance(server: &TestServer, token: &str) -> era_api::Credits {
    let wallet = server.ask(token, "GET", "/users/admin/wallet", None).await;
    serde_json::from_value(wallet.body["balance"].clone()).unwrap()
}

#[tokio::test]
async fn what_would_come_back_is_what_comes_back() {
    let (server, admin) = with_a_node().await;
    let refund = async |token: &str, job: u64| {
        server.ask(token, "GET", &format!("/jobs/{job}/refund"), None).await
    };
    let later = server
        .submit(
            &admin,
            json!({ "work": { "command": ["true"] }, "value": "900",
                "ask": { "resources": { "cpu": "2" }, "duration_s": 3600,
                    "earliest": in_seconds(7200) } }),
        )
        .await;
    let told = refund(&admin, later).await;
    assert_eq!((told.status.as_u16(), &told.body["runs"]), (200, &json!(false)), "{}", told.body);
    let bob = server.user(&admin, "bob", "user").await;
    assert_eq!(refund(&bob, later).await.status, 404, "not his");
    let before = balance(&server, &admin).await;
    server.cancel(&admin, later).await;
    let came = era_api::Credits(balance(&server, &admin).await.0 - before.0);
    assert_eq!(told.body["back"], came.to_string(), "{}", told.body);
    let kept: era_api::Credits = serde_json::from_value(told.body["kept"].clone()).unwrap();
    assert!(came.0 > 0 && (came.0 - 4 * kept.0).abs() <= 4, "four fifths: {}", told.body);
    assert_eq!(refund(&admin, later).await.body["code"], "wrong_state", "it is over");

    // Of what runs, what is left of its time; the preview touches nothing.
    let runs = server
        .submit(
            &admin,
            json!({ "work": { "command": ["true"] }, "value": "900",
                "ask": { "resources": { "cpu": "2" }, "duration_s": 3600 } }),
        )
        .await;
    let charged = server.ask(&admin, "GET", &format!("/jobs/{runs}"), None).await.body;
    let charged: era_api::Credits =
        serde_json::from_value(charged["cost"]["charged"].clone()).unwrap();
    let seq = server.app.driver.snapshot().seq();
    let told = refund(&admin, runs).await.body;
    assert_eq!(told["runs"], true, "{told}");
    let credits = |name: &str| -> i64 {
        serde_json::from_value::<era_api::Credits>(told[name].clone()).unwrap().0
    };
    assert_eq!(credits("back") + credits("kept"), charged.0);
    assert!((1..=charged.0 * 4 / 5).contains(&credits("back")), "{told}");
    assert_eq!(server.app.driver.snapshot().seq(), seq);
    assert!(server.app.driver.snapshot().job(JobId(runs)).unwrap().ended.is_none());

    // Where nothing was paid, nothing comes back.
    let queued = json!({ "work": { "command": ["true"] }, "ask": ask(),
        "array": { "from": 0, "to": 2 }, "after": [{ "job": runs }] });
    let queued = server.submit(&admin, queued).await;
    let told = server.ask(&admin, "GET", &format!("/jobs/{queued}/refund?array=true"), None).await;
    assert_eq!(told.body, json!({ "back": "0.00", "kept": "0.00", "runs": false }));
}
