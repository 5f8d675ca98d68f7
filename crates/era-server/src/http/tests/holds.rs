//! Quotes that are held: once for a key, with their menu, and counted as asked for.

use era_core::units::{Span, Time};

use super::*;

fn wish(cpu: &str) -> Value {
    json!({ "hold": true, "ask": { "resources": { "cpu": cpu }, "duration_s": 600 } })
}

impl TestServer {
    async fn hold(&self, token: &str, key: &str, asked: Value) -> Answer {
        let asked = request(token, "POST", "/quotes", Some(asked)).header(idempotency::HEADER, key);
        self.send(asked.body_or_empty()).await
    }

    /// Questions that were left alone by now.
    async fn asked_for(&self) -> usize {
        let later = self.app.clock.now() + Span::from_min(5);
        self.app.asks.write(&self.app.store.asks(), later).await.unwrap()
    }
}

#[tokio::test]
async fn a_repeated_hold_is_the_same_hold_and_another_with_its_key_is_refused() {
    let (server, admin) = with_a_node().await;
    let first = server.hold(&admin, "k1", wish("1")).await;
    assert_eq!(first.status, 200, "{}", first.body);
    let again = server.hold(&admin, "k1", wish("1")).await;
    assert_eq!((again.status.as_u16(), &again.body["hold"]), (200, &first.body["hold"]));
    assert_eq!(server.app.driver.snapshot().holds().count(), 1);
    let other = server.hold(&admin, "k1", wish("2")).await;
    assert_eq!((other.status.as_u16(), &other.body["code"]), (422, &json!("key_reused")));
    let new = server.hold(&admin, "k2", wish("1")).await;
    assert_ne!(new.body["hold"]["id"], first.body["hold"]["id"]);
    assert_eq!(server.app.driver.snapshot().holds().count(), 2);
    let bad = server.hold(&admin, &"x".repeat(300), wish("1")).await;
    assert_eq!((bad.status.as_u16(), &bad.body["code"]), (400, &json!("bad_key")));
}

#[tokio::test]
async fn a_held_quote_comes_with_its_menu_or_not_at_all() {
    let (server, admin) = with_a_node().await;
    let mut asked = wish("1");
    asked["menu"] = json!(true);
    let held = server.hold(&admin, "k1", asked.clone()).await;
    assert!(held.body["hold"]["id"].is_u64(), "{}", held.body);
    assert!(!held.body["menu"].as_array().unwrap().is_empty(), "{}", held.body);
    let several = json!({ "hold": true, "menu": true, "one_of": [
        { "all_of": [{ "resources": { "cpu": "1" }, "duration_s": 600 }] },
        { "all_of": [{ "resources": { "cpu": "2" }, "duration_s": 600 }] }] });
    let refused = server.hold(&admin, "k2", several).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(server.app.driver.snapshot().holds().count(), 1, "nothing is half done");
}

#[tokio::test]
async fn what_is_held_counts_as_asked_for_once() {
    let (server, admin) = with_a_node().await;
    for _ in 0..2 {
        assert_eq!(server.hold(&admin, "k1", wish("1")).await.status, 200);
    }
    assert_eq!(server.asked_for().await, 1);
    let told = server.app.store.asks().read(Time(0), Time::LATEST, 10).await.unwrap();
    assert!(told[0].price.is_some(), "{told:?}");
    let refused = server.hold(&admin, "k2", wish("64")).await;
    assert!(refused.status.is_client_error(), "{}", refused.body);
    assert_eq!(server.asked_for().await, 1, "what was refused is wanted all the same");
    let told = server.app.store.asks().read(Time(0), Time::LATEST, 10).await.unwrap();
    assert_eq!((told.len(), told[1].price), (2, None));
}

#[tokio::test]
async fn a_hold_that_is_taken_was_no_question_left_alone_and_its_job_knows_how_long_the_quote_took()
{
    let (server, admin) = with_a_node().await;
    let held = server.hold(&admin, "k1", wish("1")).await;
    let mut job = wish("1");
    job["work"] = json!({ "command": ["true"] });
    job["hold"] = held.body["hold"]["id"].clone();
    let made = server.ask(&admin, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(server.asked_for().await, 1);
    let job = era_core::units::JobId(made.body["job"].as_u64().unwrap());
    let (_, first) = server.app.store.journal().submission(job).await.unwrap().unwrap();
    let note = era_store::Note::read(first.note.as_deref().unwrap()).unwrap();
    assert!(note.quote_us.is_some_and(|us| us > 0), "{note:?}");
}

#[tokio::test]
async fn ones_own_hold_makes_nothing_dearer_where_it_is_named() {
    let (server, admin) = with_a_node().await;
    let surge = json!({ "name": "surge", "low": 1, "high": 10, "floor": 0.1, "ceiling": 10 });
    let done = server.ask(&admin, "PUT", "/market/mechanism", Some(surge)).await;
    assert!(done.status.is_success(), "{}", done.body);
    // So narrow a window that nothing later could be cheaper.
    let by = era_api::Timestamp::now().as_millisecond() + 900_000;
    let by = era_api::Timestamp::from_millisecond(by).unwrap().to_string();
    let ask = json!({ "resources": { "cpu": "2" }, "duration_s": 600, "deadline": by });
    let held = server.hold(&admin, "k1", json!({ "hold": true, "ask": ask })).await.body;
    let (hold, price) = (held["hold"]["id"].clone(), held["quote"]["price"].clone());
    let asked = |instead_of: &Value| json!({ "ask": ask, "menu": true, "instead_of": instead_of });
    let told = async |token: &str, asked| server.ask(token, "POST", "/quotes", Some(asked)).await;
    let beside = told(&admin, asked(&Value::Null)).await.body;
    assert_ne!(beside["quote"]["price"], price, "a second one is dearer");
    let own = told(&admin, asked(&hold)).await.body;
    assert_eq!((&own["quote"]["price"], &own["menu"][0]["price"]), (&price, &price), "{own}");
    assert_eq!(server.app.driver.snapshot().holds().count(), 1, "it is held all the same");
    let bob = server.user(&admin, "bob", "user").await;
    assert_eq!(told(&bob, asked(&hold)).await.body["code"], "unknown_hold", "not his");
    let mut both = asked(&hold);
    both["hold"] = json!(true);
    assert_eq!(told(&admin, both).await.body["code"], "bad_field");
}
