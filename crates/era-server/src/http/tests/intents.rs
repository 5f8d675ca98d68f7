//! What a job's owner leaves open: the server says it, whoever asks.

use super::*;

impl TestServer {
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
    let (server, admin) = with_a_node().await;
    let job = server.hand_in(&admin, json!({})).await.body;
    let ask = json!({ "resources": { "cpu": "1", "memory": "1Gi" }, "duration_s": 3600 });
    assert_eq!((&job["spec"]["ask"], &job["spec"]["priority"]), (&ask, &json!(0)), "{job}");
    assert_eq!(job["resources"], ask["resources"]);
    let said = json!({ "ask": { "resources": { "cpu": "2" }, "duration_s": 60 } });
    let job = server.hand_in(&admin, said).await.body;
    assert_eq!(job["resources"], json!({ "cpu": "2", "memory": "1Gi" }));
    let quoted = json!({ "ask": { "duration_s": 3600 } });
    let quoted = server.ask(&admin, "POST", "/quotes", Some(quoted)).await;
    assert_eq!(quoted.body["quote"]["price"], "0.50", "an hour of one core: {}", quoted.body);
}

#[tokio::test]
async fn a_deadline_or_a_word_takes_the_price_and_nothing_else_does() {
    let (server, admin) = with_a_node().await;
    let (soon, late) = (in_hours(2), in_hours(9));
    for takes in [
        json!({ "ask": { "deadline": late } }),
        json!({ "accept_price": true }),
        json!({ "most": "5" }),
        json!({ "accept_price": true, "ask": { "earliest": soon } }),
    ] {
        let job = server.hand_in(&admin, takes.clone()).await.body;
        assert!(job["promised_start"].is_string(), "{takes}: {job}");
        assert_eq!(job["price"], "0.50", "{takes}: {job}");
        assert!(job["spec"].get("value").is_none(), "nobody said a worth: {job}");
    }
    let queued = server.hand_in(&admin, json!({ "ask": { "earliest": soon } })).await.body;
    assert_eq!(queued["queue"], "default", "it waits, and begins later: {queued}");
    let dear = server.hand_in(&admin, json!({ "accept_price": true, "most": "0.01" })).await;
    assert_eq!(dear.body["code"], "too_dear", "{}", dear.body);
}

#[tokio::test]
async fn a_queue_and_a_promise_contradict_each_other() {
    let (server, admin) = with_a_node().await;
    for (said, other) in [
        (json!({ "value": "3" }), "value"),
        (json!({ "most": "3" }), "most"),
        (json!({ "accept_price": true }), "accept_price"),
        (json!({ "ask": { "deadline": in_hours(9) } }), "ask.deadline"),
    ] {
        let mut said = said;
        said["queue"] = json!("default");
        let refused = server.hand_in(&admin, said).await;
        assert_eq!((refused.status.as_u16(), &refused.body["field"]), (422, &json!("queue")));
        assert_eq!(refused.body["parameters"]["other"], other, "{}", refused.body);
    }
}

#[tokio::test]
async fn a_repeated_bid_at_the_price_is_the_same_bid() {
    let (server, admin) = with_a_node().await;
    let job = json!({ "work": { "command": ["true"] }, "ask": { "resources": { "cpu": "4" } },
        "accept_price": true });
    let submit = || {
        let asked = request(&admin, "POST", "/jobs", Some(job.clone()));
        server.send(asked.header(idempotency::HEADER, "k1").body_or_empty())
    };
    let first = submit().await;
    assert_eq!(first.status, 201, "{}", first.body);
    // The slot is taken by now, and another one has another price.
    let again = submit().await;
    assert_eq!((again.status, again.body), (first.status, first.body));
}

#[tokio::test]
async fn a_draft_is_told_its_defaults_and_whether_it_is_a_bid_and_nothing_is_handed_in() {
    let (server, admin) = with_a_node().await;
    let before = server.app.driver.snapshot().seq();
    let check = async |draft: Value| {
        let checked = server.ask(&admin, "POST", "/jobs/check", Some(draft)).await;
        assert_eq!(checked.status, 200, "{}", checked.body);
        checked.body
    };
    let blank = check(json!({})).await;
    let ask = json!({ "resources": { "cpu": "1", "memory": "1Gi" }, "duration_s": 3600 });
    assert_eq!((&blank["job"]["ask"], &blank["bid"]), (&ask, &json!(false)), "{blank}");
    assert_eq!(blank["problems"][0]["field"], "work.command", "{blank}");
    let bid = check(json!({ "work": { "command": ["true"] }, "accept_price": true,
        "ask": { "resources": { "gpu": 1 }, "duration_s": "1h30m", "replicas": "2..8" } }));
    let bid = bid.await;
    assert_eq!((&bid["bid"], &bid["problems"]), (&json!(true), &json!([])), "{bid}");
    assert_eq!(bid["job"]["ask"]["resources"]["memory"], "4Gi");
    assert_eq!(bid["job"]["ask"]["replicas"], json!({ "min": 2, "max": 8 }));
    let queued = check(json!({ "work": { "command": ["true"] }, "array": "0-99:2%10" })).await;
    assert_eq!((&queued["bid"], &queued["problems"]), (&json!(false), &json!([])), "{queued}");
    // 50 jobs of a core for an hour, of whose rate a queue pays half; a bid has a quote instead.
    assert_eq!((&queued["at_most"], &bid["at_most"]), (&json!("25.00"), &Value::Null), "{queued}");
    let elastic = check(json!({ "work": { "command": ["true"] }, "ask": { "replicas": "1..3" } }));
    assert_eq!(elastic.await["at_most"], "1.50");
    assert_eq!(server.app.driver.snapshot().seq(), before, "the core was asked nothing");
}

#[tokio::test]
async fn a_draft_of_nonsense_is_answered_in_few_words() {
    let (server, admin) = with_a_node().await;
    let unknown: Value = (0..20_000).map(|n| (format!("x{n}"), json!(0))).collect();
    let inputs: Vec<Value> = (0..2_000).map(|n| json!({ "data": format!("set{n}") })).collect();
    for draft in [
        unknown.clone(),
        json!({ "work": unknown, "ask": unknown }),
        json!({ "work": { "command": ["true"], "inputs": inputs } }),
    ] {
        let checked = server.ask(&admin, "POST", "/jobs/check", Some(draft)).await;
        assert_eq!(checked.status, 200, "{}", checked.body);
        let problems = checked.body["problems"].as_array().unwrap();
        assert!((60..=64).contains(&problems.len()), "{}", problems.len());
    }
}

#[tokio::test]
async fn all_that_is_wrong_with_a_draft_is_told_at_once_field_by_field() {
    let (server, admin) = with_a_node().await;
    let wrong = async |draft: Value| {
        let checked = server.ask(&admin, "POST", "/jobs/check", Some(draft)).await;
        let problems = checked.body["problems"].as_array().unwrap().clone();
        let told = |problem: &Value| {
            format!("{} {}", problem["field"].as_str().unwrap_or("-"), problem["code"])
                .replace('"', "")
        };
        problems.iter().map(told).collect::<Vec<_>>()
    };
    let nonsense = wrong(json!({ "name": "a\nb", "array": "9-1", "value": "lots", "quue": "x",
        "work": { "command": ["true"], "env": { "9A": "1" }, "code": "no-hash" },
        "ask": { "duration_s": "soon", "replicas": "8..2",
            "resources": { "cpu": "many", "memory": "1Gi", "gpu": "few" } } }))
    .await;
    for field in ["name", "array", "value", "quue", "ask.duration_s", "ask.replicas", "work.env"] {
        assert!(nonsense.contains(&format!("{field} bad_field")), "{field}: {nonsense:?}");
    }
    assert_eq!(nonsense.iter().filter(|told| told.starts_with("resources ")).count(), 2);
    assert!(nonsense.iter().any(|told| told.starts_with("work.code ")), "{nonsense:?}");

    let past = in_hours(-1);
    for (terms, told) in [
        (json!({ "ask": { "deadline": past } }), "window window_past"),
        (json!({ "queue": "default", "value": "3" }), "queue bad_field"),
        (json!({ "value": "3", "array": "0-3" }), "array not_with_bid"),
        (json!({ "queue": "nowhere" }), "queue unknown"),
        (json!({ "after": "77" }), "after unknown_before"),
        (json!({ "ask": { "resources": { "cpu": "64" } } }), "each never_fits"),
        (json!({ "hold": 77 }), "hold unknown_hold"),
    ] {
        let mut draft = json!({ "work": { "command": ["true"] } });
        draft.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        assert_eq!(wrong(draft.clone()).await, [told], "{draft}");
        // It is what a submission would be refused for.
        let refused = server.ask(&admin, "POST", "/jobs", Some(draft)).await.body;
        let said = format!("{} {}", refused["field"], refused["code"]).replace('"', "");
        assert_eq!(said, told, "{refused}");
    }
}

#[tokio::test]
async fn a_quote_keeps_to_the_terms_of_the_job_as_its_submission_does() {
    let (server, admin) = with_a_node().await;
    let ask = |more: Value| {
        let mut asked = json!({ "ask": { "duration_s": "1h" } });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked
    };
    for (terms, code) in [
        (json!({ "value": "3", "most": "0.1" }), "price_rose"),
        (json!({ "most": "0.1" }), "too_dear"),
        (json!({ "accept_price": true, "most": "0.1" }), "too_dear"),
    ] {
        let quoted = server.ask(&admin, "POST", "/quotes", Some(ask(terms.clone()))).await;
        assert_eq!(quoted.body["code"], code, "{terms}: {}", quoted.body);
        let held = json!({ "hold": true });
        let mut held = ask(held);
        held.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let held = server.ask(&admin, "POST", "/quotes", Some(held)).await;
        assert_eq!(held.body["code"], code, "{terms}: {}", held.body);
        let mut job = ask(terms.clone());
        job["work"] = json!({ "command": ["true"] });
        let refused = server.ask(&admin, "POST", "/jobs", Some(job)).await;
        assert_eq!(refused.body["code"], code, "{terms}: {}", refused.body);
    }
    assert!(server.app.driver.snapshot().holds().next().is_none(), "nothing is left held");
    let taken = ask(json!({ "accept_price": true, "value": "3", "most": "2" }));
    let quoted = server.ask(&admin, "POST", "/quotes", Some(taken)).await;
    assert_eq!(quoted.body["quote"]["price"], "0.50", "{}", quoted.body);
}
