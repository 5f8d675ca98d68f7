//! What administrators see and end that is others', who waits, what was in force before, and the
//! news that are not in the journal.

use std::time::Duration;

use era_api::account::UserEdit;
use era_app::feed;
use era_app::launch::nodes;
use era_store::tables::VisibleJobs;

use super::*;

/// How long a word of news may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_administrator_lists_and_revokes_the_tokens_of_others_and_nobody_else_does() {
    let server = server().await;
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let bob = server.user(&admin, "bob", "user").await;
    let listed = server.ask(&admin, "GET", "/users/ada/tokens", None).await;
    let id = listed.body["items"][0]["id"].as_str().unwrap().to_owned();
    assert!(ada.starts_with(&id), "{id}");
    for path in ["/users/ada/tokens", "/users/admin/tokens"] {
        assert_eq!(server.ask(&bob, "GET", path, None).await.status, 403);
    }
    let path = format!("/users/ada/tokens/{id}");
    assert_eq!(server.ask(&bob, "DELETE", &path, None).await.status, 403);
    assert_eq!(server.ask(&ada, "GET", "/sessions", None).await.status, 200);
    assert_eq!(server.ask(&admin, "DELETE", &path, None).await.status, 204);
    assert_eq!(server.ask(&ada, "GET", "/sessions", None).await.status, 401);
    assert_eq!(server.ask(&admin, "DELETE", &path, None).await.status, 404);
    let who = server.ask(&admin, "GET", "/audit?who=admin&what=token", None).await;
    let lines = who.body["items"].as_array().unwrap();
    assert_eq!(lines.len(), 1, "{}", who.body);
    assert_eq!((&lines[0]["what"], &lines[0]["target"]), (&json!("token.revoke"), &json!(id)));
}

#[tokio::test]
async fn every_version_of_a_policy_can_be_read_and_gone_back_to() {
    let server = server().await;
    let admin = server.administrator().await;
    for formula in ["wait", "wait + priority"] {
        let rule = json!({ "order": "priority", "formula": formula });
        assert_eq!(server.ask(&admin, "PUT", "/policies/mine", Some(rule)).await.status, 200);
    }
    let versions = server.ask(&admin, "GET", "/policies/mine/versions", None).await.body;
    let told = |at: usize| {
        let one = &versions["items"][at];
        (one["version"].clone(), one["rule"]["formula"].clone(), one["in_force"].clone())
    };
    assert_eq!(told(0), (json!(2), json!("wait + priority"), json!(true)));
    assert_eq!(told(1), (json!(1), json!("wait"), json!(false)));
    let one = server.ask(&admin, "GET", "/policies/mine/versions/1", None).await;
    assert_eq!(one.body["rule"]["formula"], "wait");
    assert_eq!(server.ask(&admin, "GET", "/policies/mine/versions/3", None).await.status, 404);
    let back = json!({ "version": 1 });
    server.ask(&admin, "POST", "/policies/mine/rollback", Some(back)).await;
    let one = server.ask(&admin, "GET", "/policies/mine/versions/1", None).await;
    assert_eq!(one.body["in_force"], true);
    let page = server.ask(&admin, "GET", "/policies/mine/versions?limit=1", None).await.body;
    assert_eq!((&page["items"][0]["version"], &page["next"]), (&json!(2), &json!("2")));
}

#[tokio::test]
async fn a_mechanism_keeps_its_parameters_and_refuses_those_of_another() {
    let server = server().await;
    let admin = server.administrator().await;
    let put =
        async |rules: Value| server.ask(&admin, "PUT", "/market/mechanism", Some(rules)).await;
    let surge = json!({ "name": "surge", "low": 0.25, "high": 8, "floor": 0.1, "ceiling": 10 });
    assert_eq!(put(surge).await.status, 204);
    let told = server.ask(&admin, "GET", "/market", None).await.body["mechanism"].clone();
    assert_eq!((&told["low"], &told["high"]), (&json!(0.25), &json!(8.0)), "{told}");
    let wrong = put(json!({ "name": "surge", "density": 1, "floor": 0, "ceiling": 9 })).await;
    assert_eq!((wrong.status, &wrong.body["field"]), (422.try_into().unwrap(), &json!("density")));
    let upside_down =
        put(json!({ "name": "surge", "low": 3, "high": 2, "floor": 0, "ceiling": 9 }));
    assert_eq!(upside_down.await.status, 422);
}

#[tokio::test]
async fn a_queue_hides_the_jobs_of_others_but_not_their_places() {
    let server = server().await;
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let bob = server.user(&admin, "bob", "user").await;
    let rule = json!({ "order": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/policies/fifo", Some(rule)).await.status, 200);
    let queue = json!({ "name": "default", "policy": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/queues/default", Some(queue)).await.status, 204);
    let pool = json!({ "name": "main", "cpu_rate": "1", "memory_rate": "0", "gpu_rate": "0",
        "closed_share": 0 });
    assert_eq!(server.ask(&admin, "PUT", "/pools/main", Some(pool)).await.status, 204);
    let node = json!({ "type": "join", "nodes": [{ "name": "n", "pool": "main",
        "capacity": { "cpu": 1000, "memory": 1024, "gpus": [] } }] });
    server.app.driver.ask(serde_json::from_value(node).unwrap(), None).await.unwrap();
    // So that both wait.
    let cordon = json!({ "action": "cordon" });
    assert_eq!(server.ask(&admin, "PATCH", "/nodes/n", Some(cordon)).await.status, 204);
    assert_eq!(server.ask(&bob, "GET", "/nodes/n", None).await.body["health"], "cordoned");
    for (token, name) in [(&ada, "hers"), (&bob, "his")] {
        let job = json!({ "name": name, "project": "thesis", "work": { "command": ["true"] },
            "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } });
        let made = server.ask(token, "POST", "/jobs", Some(job)).await;
        assert_eq!(made.status, 201, "{}", made.body);
    }
    let page = server.ask(&bob, "GET", "/queues/default/waiting", None).await.body;
    let items = page["items"].as_array().unwrap();
    assert_eq!(
        items.iter().map(|one| &one["position"]).collect::<Vec<_>>(),
        [&json!(1), &json!(2)]
    );
    assert_eq!((items[0].get("about"), items[0].get("explanation")), (None, None));
    assert_eq!(items[1]["about"]["name"], "his");
    assert!(items[1]["explanation"]["why"].is_string(), "{page}");
    let first = server.ask(&admin, "GET", "/queues/default/waiting?limit=1", None).await.body;
    assert_eq!((&first["items"][0]["about"]["user"], &first["next"]), (&json!("ada"), &json!("1")));
    let of_project = server.ask(&bob, "GET", "/jobs?project=thesis", None).await.body;
    assert_eq!(of_project["items"][0]["project"], "thesis");
    let bad = json!({ "project": "a\u{202e}b", "work": { "command": ["true"] },
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } });
    let bad = server.ask(&bob, "POST", "/jobs", Some(bad)).await;
    assert_eq!((bad.status, &bad.body["field"]), (422.try_into().unwrap(), &json!("project")));
}

#[tokio::test]
async fn a_group_administrator_cancels_and_retries_what_members_handed_in() {
    let (server, admin) = with_a_node().await;
    for name in ["vision", "speech"] {
        let group = Some(json!({ "name": name }));
        assert_eq!(server.ask(&admin, "POST", "/groups", group).await.status, 201);
    }
    let (ada, chief, other) = (
        server.user(&admin, "ada", "user").await,
        server.user(&admin, "chief", "group_administrator").await,
        server.user(&admin, "other", "group_administrator").await,
    );
    for (name, group) in [("ada", "vision"), ("chief", "vision"), ("other", "speech")] {
        let moved = Some(json!({ "group": group }));
        let path = format!("/users/{name}");
        assert_eq!(server.ask(&admin, "PATCH", &path, moved).await.status, 200);
    }
    let rule = json!({ "order": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/policies/fifo", Some(rule)).await.status, 200);
    let queue = json!({ "name": "default", "policy": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/queues/default", Some(queue)).await.status, 204);
    let job = json!({ "name": "hers", "work": { "command": ["true"] },
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } });
    let made = server.ask(&ada, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let of_job = |what: &str| format!("/jobs/{}/{what}", made.body["job"]);
    for what in ["cancel", "retry"] {
        assert_eq!(server.ask(&other, "POST", &of_job(what), None).await.status, 404, "{what}");
    }
    assert_eq!(server.ask(&chief, "POST", &of_job("cancel"), None).await.status, 204);
    let again = server.ask(&chief, "POST", &of_job("retry"), None).await;
    assert_eq!(again.status, 201, "{}", again.body);
    assert_ne!(again.body["job"], made.body["job"]);
    let job = era_core::units::JobId(again.body["job"].as_u64().unwrap());
    let owner = server.app.auth.directory().user_named("ada").unwrap().id;
    assert_eq!(server.app.driver.snapshot().job(job).unwrap().user, owner, "it is hers still");
}

#[tokio::test]
async fn a_queue_that_is_gone_has_nobody_waiting_in_it() {
    let (server, admin) = with_a_node().await;
    // So that what is handed in waits.
    let cordon = json!({ "action": "cordon" });
    assert_eq!(server.ask(&admin, "PATCH", "/nodes/n", Some(cordon)).await.status, 204);
    let rule = json!({ "order": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/policies/fifo", Some(rule)).await.status, 200);
    let queue = json!({ "name": "passing", "policy": "fifo" });
    assert_eq!(server.ask(&admin, "PUT", "/queues/passing", Some(queue)).await.status, 204);
    let job = json!({ "work": { "command": ["true"] }, "queue": "passing",
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } });
    let made = server.ask(&admin, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let waiting = async || {
        let get = Request::builder().uri("/metrics").body(Body::empty()).unwrap();
        let text = server.send(get).await.body.as_str().unwrap().to_owned();
        let line =
            text.lines().find(|line| line.starts_with("era_queue_waiting{queue=\"passing\""));
        line.map(|line| line.rsplit(' ').next().unwrap().to_owned())
    };
    assert_eq!(waiting().await.as_deref(), Some("1"));
    let cancel = format!("/jobs/{}/cancel", made.body["job"]);
    // Nobody looked in between: one waits as far as anybody was told.
    assert_eq!(server.ask(&admin, "POST", &cancel, None).await.status, 204);
    assert_eq!(server.ask(&admin, "DELETE", "/queues/passing", None).await.status, 204);
    assert_eq!(waiting().await.as_deref(), Some("0"));
}

#[tokio::test]
async fn spending_and_chargeback_are_for_those_whose_money_it_is() {
    let server = server().await;
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let own = server.ask(&ada, "GET", "/wallets/ada/spending", None).await;
    assert_eq!((own.status, &own.body["step_s"]), (StatusCode::OK, &json!(86_400)));
    assert_eq!(server.ask(&ada, "GET", "/wallets/admin/spending", None).await.status, 404);
    let group = server.ask(&ada, "GET", "/users/ada", None).await.body["group"].clone();
    let path = format!("/groups/{}/chargeback", group.as_str().unwrap());
    assert_eq!(server.ask(&ada, "GET", &path, None).await.status, 404);
    assert_eq!(server.ask(&admin, "GET", &path, None).await.status, 200);
    for query in [
        "from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
    ] {
        let refused = server.ask(&admin, "GET", &format!("{path}?{query}"), None).await;
        assert_eq!(
            (refused.status, &refused.body["field"]),
            (422.try_into().unwrap(), &json!("from"))
        );
    }
    let wallet = server.ask(&ada, "GET", "/users/ada/wallet", None).await.body;
    let (from, to) =
        (wallet["period_from"].as_str().unwrap(), wallet["period_to"].as_str().unwrap());
    assert!(from < to, "{wallet}");
}

#[tokio::test]
async fn the_budgets_that_bind_an_account_are_told_with_what_is_left_of_them() {
    let server = server().await;
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let group = server.ask(&ada, "GET", "/users/ada", None).await.body["group"].clone();
    let budgets =
        async || server.ask(&ada, "GET", "/users/ada/wallet", None).await.body["budgets"].clone();
    assert_eq!(budgets().await, json!([]), "none is set");
    let shared = format!("/groups/{}/quota", group.as_str().unwrap());
    server.ask(&admin, "PUT", &shared, Some(json!({ "credits": "20" }))).await;
    server.ask(&admin, "PUT", "/users/ada/quota", Some(json!({ "credits": "5" }))).await;
    let whole = |of: &str, name: &serde_json::Value, limit: &str| json!({ "of": of, "name": name, "limit": limit, "spent": "0.00", "left": limit });
    let both = json!([whole("account", &json!("ada"), "5.00"), whole("group", &group, "20.00")]);
    assert_eq!(budgets().await, both);
}

#[tokio::test]
async fn what_is_wrong_with_a_field_has_a_code_and_its_numbers() {
    let server = server().await;
    let admin = server.administrator().await;
    let cases = [
        (
            "POST",
            "/users",
            json!({ "name": "two words" }),
            "name",
            json!({ "problem": "account_name", "given": "two words" }),
        ),
        (
            "PUT",
            "/users/admin/quota",
            json!({ "gpu": "1.0001" }),
            "gpu",
            json!({ "problem": "out_of_range" }),
        ),
        (
            "POST",
            "/tokens",
            json!({ "label": "", "scopes": ["read"], "valid_s": 9 }),
            "label",
            json!({ "problem": "text", "most": 100 }),
        ),
        (
            "POST",
            "/lab/runs",
            json!({ "kind": "tune", "objective": "x", "budget": 0, "seed": 1 }),
            "budget",
            json!({ "problem": "range", "least": 1, "most": 10_000 }),
        ),
    ];
    for (method, path, body, field, expected) in cases {
        let refused = server.ask(&admin, method, path, Some(body)).await;
        assert_eq!((refused.status.as_u16(), &refused.body["field"]), (422, &json!(field)));
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&refused.body["parameters"][key], value, "{}", refused.body);
        }
    }
}

#[tokio::test]
async fn changes_that_the_journal_does_not_have_are_told_to_those_they_concern() {
    let server = server().await;
    let admin = server.administrator().await;
    let ada = server.user(&admin, "ada", "user").await;
    let mut news = server.app.feed.listen_to_changes();
    let grant = json!({ "amount": "5" });
    assert_eq!(server.ask(&admin, "POST", "/users/ada/grants", Some(grant)).await.status, 201);
    let (told, _) = tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap();
    let caller = server.app.auth.directory().user_named("ada").cloned().unwrap();
    assert!(told.is_for(VisibleJobs::Own(caller.id)) && told.is_for(VisibleJobs::All), "{told:?}");
    assert!(!told.is_for(VisibleJobs::Own(era_core::units::UserId(999))));
    let set = json!({ "name": "mnist" });
    assert_eq!(server.ask(&ada, "POST", "/data", Some(set)).await.status, 201);
    let (told, message) = tokio::time::timeout(PATIENCE, news.recv()).await.unwrap().unwrap();
    assert_eq!(told, feed::ClusterChange::Data);
    assert_eq!(message.event.event, "data_changed");
    assert_eq!(server.ask(&ada, "GET", "/data", None).await.status, 200);
    assert!(news.try_recv().is_err(), "looking changes nothing");
}

#[tokio::test]
async fn where_jobs_would_run_as_one_user_there_is_no_second_account() {
    let server = server_with(Wishes { one_account: true, ..Wishes::default() }).await;
    let admin = server.administrator().await;
    let new = || Some(json!({ "name": "ada", "password": "a good password" }));
    let refused = server.ask(&admin, "POST", "/users", new()).await;
    assert_eq!((refused.status.as_u16(), &refused.body["code"]), (403, &json!("shared_user")));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("--insecure-shared-user"), "{detail}");
    assert_eq!(server.app.auth.directory().users().count(), 1);
    // One that is there from before, and off, stays off.
    let open = Auth::open(&server.app.store, server.app.clock.clone()).await.unwrap();
    let wanted = serde_json::from_value(new().unwrap()).unwrap();
    open.add_user(&server.app.driver, &wanted).await.unwrap();
    let many = Auth::open(&server.app.store, server.app.clock.clone()).await.unwrap().for_one();
    assert!(matches!(many, Err(era_app::auth::AccountError::SharedUser)));
    let off = |enabled: bool| UserEdit { enabled: Some(enabled), ..UserEdit::default() };
    open.edit_user(&server.app.driver, "ada", &off(false)).await.unwrap();
    let one =
        Auth::open(&server.app.store, server.app.clock.clone()).await.unwrap().for_one().unwrap();
    let on = one.edit_user(&server.app.driver, "ada", &off(true)).await;
    assert!(matches!(on, Err(era_app::auth::AccountError::SharedUser)));
}

#[tokio::test]
async fn an_engine_that_resumes_a_node_does_not_undo_what_an_administrator_said() {
    let (server, admin) = with_a_node().await;
    let (driver, rows) = (&server.app.driver, server.app.store.accounts());
    let health = async || server.ask(&admin, "GET", "/nodes/n", None).await.body["health"].clone();
    let say = async |action: &str| {
        let edit = json!({ "action": action });
        assert_eq!(server.ask(&admin, "PATCH", "/nodes/n", Some(edit)).await.status, 204);
    };
    // Whichever of the two drained it first.
    for engine_first in [true, false] {
        if engine_first {
            nodes::drained(driver, "n").await.unwrap();
        }
        say("drain").await;
        nodes::drained(driver, "n").await.unwrap();
        // Of other changes nobody is held.
        let domain = Some(json!({ "domain": "" }));
        server.ask(&admin, "PATCH", "/nodes/n", domain).await;
        nodes::resumed(driver, &rows, "n").await.unwrap();
        assert_eq!(health().await, "draining");
        say("resume").await;
        assert_eq!(health().await, "up");
    }
    // What the engine alone drained is the engine's to resume.
    nodes::drained(driver, "n").await.unwrap();
    assert_eq!(health().await, "draining");
    nodes::resumed(driver, &rows, "n").await.unwrap();
    assert_eq!(health().await, "up");
    say("cordon").await;
    nodes::drained(driver, "n").await.unwrap();
    nodes::resumed(driver, &rows, "n").await.unwrap();
    assert_eq!(health().await, "cordoned");
}

#[tokio::test]
async fn a_lost_node_comes_back_as_an_administrator_left_it() {
    let (server, admin) = with_a_node().await;
    let (driver, rows) = (&server.app.driver, server.app.store.accounts());
    let health = async || server.ask(&admin, "GET", "/nodes/n", None).await.body["health"].clone();
    let capacity = driver.snapshot().cluster().nodes().next().unwrap().capacity.clone();
    let here = era_cloud::FoundNode {
        name: "n".into(),
        capacity,
        labels: std::collections::BTreeMap::new(),
        address: None,
        simulated: false,
    };
    for (word, is) in [("drain", "draining"), ("cordon", "cordoned"), ("resume", "up")] {
        let edit = json!({ "action": word });
        assert_eq!(server.ask(&admin, "PATCH", "/nodes/n", Some(edit)).await.status, 204);
        nodes::lost(driver, "n").await.unwrap();
        assert_eq!(health().await, "lost");
        let before = driver.snapshot().seq();
        nodes::found(driver, &rows, std::slice::from_ref(&here)).await.unwrap();
        assert_eq!(health().await, is);
        let told = driver.snapshot().seq() - before;
        assert_eq!(told, if is == "cordoned" { 2 } else { 1 }, "it was never up in between");
    }
}
