//! Lists: page by page, and narrowed.

use super::*;

impl TestServer {
    /// The names of a list, read page by page, with how many pages it has.
    async fn names(&self, token: &str, path: &str, field: &str) -> (Vec<String>, usize) {
        let (mut names, mut pages, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let answer = self.ask(token, "GET", &format!("{path}{cursor}"), None).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let items = answer.body["items"].as_array().unwrap();
            names.extend(items.iter().map(|item| match &item[field] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }));
            pages += 1;
            match answer.body["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (names, pages),
            }
        }
    }

    async fn found(&self, token: &str, path: &str, field: &str) -> Vec<String> {
        self.names(token, path, field).await.0
    }
}

/// A server with five nodes of two kinds, and its administrator's token.
async fn with_nodes() -> (TestServer, String) {
    let (server, admin) = with_a_node().await;
    let pool = json!({ "name": "gpus", "cpu_rate": "1", "memory_rate": "0", "gpu_rate": "1",
        "closed_share": 0 });
    assert_eq!(server.ask(&admin, "PUT", "/pools/gpus", Some(pool)).await.status, 204);
    let node = |number: u32| {
        let model = if number < 2 { "a100" } else { "h100" };
        let labels = if number == 3 { json!({ "simulated": "true" }) } else { json!({}) };
        json!({ "name": format!("gpu-{number}"), "pool": "gpus", "labels": labels,
            "capacity": { "cpu": 4000, "memory": 65_536,
                "gpus": [{ "model": model, "memory": 40960 }] } })
    };
    let nodes: Vec<Value> = (0..4).map(node).collect();
    let join = json!({ "type": "join", "nodes": nodes });
    server.app.driver.ask(serde_json::from_value(join).unwrap(), None).await.unwrap();
    let domain = json!({ "name": "lab" });
    assert_eq!(server.ask(&admin, "PUT", "/domains/lab", Some(domain)).await.status, 204);
    for (node, edit) in
        [("gpu-1", json!({ "domain": "lab" })), ("n", json!({ "action": "cordon" }))]
    {
        let edited = server.ask(&admin, "PATCH", &format!("/nodes/{node}"), Some(edit)).await;
        assert_eq!(edited.status, 204, "{}", edited.body);
    }
    (server, admin)
}

#[tokio::test]
async fn nodes_come_in_pages_and_are_found_by_what_they_are() {
    let (server, admin) = with_nodes().await;
    let all = ["n", "gpu-0", "gpu-1", "gpu-2", "gpu-3"];
    for (limit, pages) in [(1, 5), (2, 3), (5, 1), (1000, 1)] {
        let path = format!("/nodes?limit={limit}");
        let (names, found) = server.names(&admin, &path, "name").await;
        assert_eq!((names.as_slice(), found), (&all.map(str::to_owned)[..], pages), "{limit}");
    }
    for (query, wanted) in [
        ("pool=main", &["n"][..]),
        ("pool=nowhere", &[]),
        ("domain=lab", &["gpu-1"]),
        ("domain=&pool=gpus", &["gpu-0", "gpu-2", "gpu-3"]),
        ("health=cordoned,lost", &["n"]),
        ("health=up&gpu_model=h100", &["gpu-2", "gpu-3"]),
        ("search=PU-2", &["gpu-2"]),
        ("simulated=true", &["gpu-3"]),
        ("simulated=false&gpu_model=h100&limit=1", &["gpu-2"]),
    ] {
        assert_eq!(
            server.found(&admin, &format!("/nodes?{query}"), "name").await,
            wanted,
            "{query}"
        );
    }
    let bad = server.ask(&admin, "GET", "/nodes?health=cordond", None).await;
    assert_eq!((bad.status.as_u16(), &bad.body["field"]), (422, &json!("health")));
    assert_eq!(bad.body["parameters"]["meant"], "cordoned", "{}", bad.body);
    for path in ["/nodes", "/pools", "/domains", "/queues", "/policies"] {
        for (query, field) in [("limit=0", "limit"), ("limit=1001", "limit")] {
            let bad = server.ask(&admin, "GET", &format!("{path}?{query}"), None).await;
            assert_eq!((bad.status.as_u16(), &bad.body["field"]), (400, &json!(field)), "{path}");
        }
    }
    for path in ["/nodes", "/queues"] {
        let bad = server.ask(&admin, "GET", &format!("{path}?cursor=x"), None).await;
        assert_eq!((bad.status.as_u16(), &bad.body["field"]), (400, &json!("cursor")), "{path}");
    }
}

#[tokio::test]
async fn what_an_administrator_names_comes_in_pages_and_is_found_by_name() {
    let (server, admin) = with_nodes().await;
    assert_eq!(server.names(&admin, "/pools?limit=1", "name").await.1, 2);
    assert_eq!(server.found(&admin, "/pools?search=PU", "name").await, ["gpus"]);
    assert_eq!(server.found(&admin, "/domains?search=a", "name").await, ["lab"]);
    assert_eq!(server.found(&admin, "/domains?search=x", "name").await, [""; 0]);
    for policy in ["fair", "fifo"] {
        let rule = json!({ "order": "fifo" });
        let path = format!("/policies/{policy}");
        assert_eq!(server.ask(&admin, "PUT", &path, Some(rule)).await.status, 200);
    }
    assert_eq!(server.found(&admin, "/policies?limit=1&search=fi", "name").await, ["fifo"]);
    // Lower levels are served first, and names decide between queues of a level.
    for (queue, level, policy) in [("b", 2, "fifo"), ("a", 2, "fair"), ("z", 0, "fifo")] {
        let put = json!({ "name": queue, "level": level, "policy": policy });
        let path = format!("/queues/{queue}");
        assert_eq!(server.ask(&admin, "PUT", &path, Some(put)).await.status, 204);
    }
    let (names, pages) = server.names(&admin, "/queues?limit=1", "name").await;
    assert_eq!((names, pages), (["default", "z", "a", "b"].map(str::to_owned).to_vec(), 4));
    assert_eq!(server.found(&admin, "/queues?policy=fair", "name").await, ["a"]);
    // A queue that is gone by the time that the next page is asked for loses none of the others.
    let first = server.ask(&admin, "GET", "/queues?limit=3", None).await.body;
    assert_eq!(server.ask(&admin, "DELETE", "/queues/a", None).await.status, 204);
    let path = format!("/queues?cursor={}", first["next"].as_str().unwrap());
    assert_eq!(server.found(&admin, &path, "name").await, ["b"]);
}

#[tokio::test]
async fn accounts_and_groups_are_found_by_name_role_and_group() {
    let server = server().await;
    let admin = server.administrator().await;
    server.user(&admin, "ada", "group_administrator").await;
    server.user(&admin, "bob", "user").await;
    let new = json!({ "name": "cleo", "role": "user", "group": "vision",
        "password": "a good password", "credits": "0" });
    assert_eq!(server.ask(&admin, "POST", "/users", Some(new)).await.status, 201);
    let off = json!({ "enabled": false });
    assert_eq!(server.ask(&admin, "PATCH", "/users/bob", Some(off)).await.status, 200);
    for (query, wanted) in [
        ("limit=1", &["ada", "admin", "bob", "cleo"][..]),
        ("search=AD", &["ada", "admin"]),
        ("role=user", &["bob", "cleo"]),
        ("role=user&enabled=true", &["cleo"]),
        ("group=vision", &["cleo"]),
        ("group=nobody", &[]),
    ] {
        assert_eq!(
            server.found(&admin, &format!("/users?{query}"), "name").await,
            wanted,
            "{query}"
        );
    }
    assert_eq!(server.found(&admin, "/groups?search=vis", "name").await, ["vision"]);
    let bad = server.ask(&admin, "GET", "/users?role=admin", None).await;
    assert_eq!((bad.status.as_u16(), &bad.body["code"]), (400, &json!("bad_query")));
}

#[tokio::test]
async fn events_and_statements_are_narrowed_to_what_they_are_about() {
    let (server, admin) = with_a_node().await;
    server.user(&admin, "ada", "user").await;
    for (amount, status) in [("5", 201), ("-2", 201)] {
        let grant = json!({ "amount": amount });
        let given = server.ask(&admin, "POST", "/users/ada/grants", Some(grant)).await;
        assert_eq!(given.status, status, "{}", given.body);
    }
    let reasons = async |query: &str| {
        server.found(&admin, &format!("/wallets/ada/statement?{query}"), "reason").await
    };
    assert_eq!(reasons("limit=1").await, ["withdraw", "grant", "grant"]);
    assert_eq!(reasons("reason=withdraw,charge").await, ["withdraw"]);
    assert_eq!(reasons("reason=grant&limit=1").await, ["grant", "grant"]);
    assert_eq!(reasons("job=7").await, [""; 0]);
    assert_eq!(reasons("until=2020-01-01T00:00:00Z").await, [""; 0]);
    assert_eq!(reasons("since=2020-01-01T00:00:00Z&reason=grant").await.len(), 2);
    let bad = server.ask(&admin, "GET", "/wallets/ada/statement?reason=refund", None).await;
    assert_eq!((bad.status.as_u16(), &bad.body["field"]), (422, &json!("reason")));
    let bid = json!({ "work": { "command": ["true"] }, "value": "9",
        "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } });
    let made = server.ask(&admin, "POST", "/jobs", Some(bid)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let job = &made.body["job"];
    let promised = server.found(&admin, "/events?event=promised", "job").await;
    assert_eq!(promised, [job.to_string()]);
    let of_job = server.found(&admin, &format!("/events?job={job}&limit=1"), "event").await;
    assert_eq!(of_job.first().map(String::as_str), Some("promised"), "{of_job:?}");
    let line = server.found(&admin, &format!("/jobs/{job}/timeline?event=promised"), "event").await;
    assert_eq!(line, ["promised"]);
    for path in ["/events".to_owned(), format!("/jobs/{job}/timeline")] {
        let bad = server.ask(&admin, "GET", &format!("{path}?event=promissed"), None).await;
        assert_eq!((bad.status.as_u16(), &bad.body["field"]), (422, &json!("event")), "{path}");
        assert_eq!(bad.body["parameters"]["meant"], "promised");
    }
    let bad = server.ask(&admin, "GET", "/events?job=9223372036854775808", None).await;
    assert_eq!((bad.status.as_u16(), &bad.body["field"]), (422, &json!("job")));
}

/// A queue named `default`, so that jobs may wait.
async fn put_queue(server: &TestServer, admin: &str) {
    let rule = json!({ "order": "fifo" });
    assert_eq!(server.ask(admin, "PUT", "/policies/fifo", Some(rule)).await.status, 200);
    let queue = json!({ "name": "default", "policy": "fifo" });
    assert_eq!(server.ask(admin, "PUT", "/queues/default", Some(queue)).await.status, 204);
}

#[tokio::test]
async fn jobs_are_counted_beyond_a_page_and_only_those_that_the_caller_may_see() {
    let (server, admin) = with_nodes().await;
    put_queue(&server, &admin).await;
    // Nothing starts, so that the counts stand still.
    let nodes = ["gpu-0", "gpu-1", "gpu-2", "gpu-3"];
    for node in nodes {
        let cordon = Some(json!({ "action": "cordon" }));
        let path = format!("/nodes/{node}");
        assert_eq!(server.ask(&admin, "PATCH", &path, cordon).await.status, 204);
    }
    let ada = server.user(&admin, "ada", "user").await;
    let bob = server.user(&admin, "bob", "user").await;
    let array = |most: u32| {
        json!({ "work": { "command": ["true"] }, "array": { "from": 1, "to": most },
            "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } })
    };
    for (token, most) in [(&ada, 300), (&bob, 7)] {
        let made = server.ask(token, "POST", "/jobs", Some(array(most))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        if most == 7 {
            let path = format!("/jobs/{}/cancel", made.body["job"]);
            assert_eq!(server.ask(token, "POST", &path, None).await.status, 204);
        }
    }
    let count = async |token: &str, query: &str| {
        let answer = server.ask(token, "GET", &format!("/jobs/counts{query}"), None).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body.get("at_least"), None);
        answer.body["counts"].clone()
    };
    let waiting = "?state=waiting,cancelled";
    assert_eq!(count(&ada, waiting).await, json!({ "waiting": 300, "cancelled": 0 }));
    assert_eq!(count(&bob, waiting).await, json!({ "waiting": 6, "cancelled": 1 }));
    assert_eq!(count(&admin, waiting).await, json!({ "waiting": 306, "cancelled": 1 }));
    let of_ada = "?state=waiting&user=ada";
    assert_eq!(count(&admin, of_ada).await, json!({ "waiting": 300 }));
    assert_eq!(count(&bob, of_ada).await, json!({ "waiting": 0 }));
    assert_eq!(count(&admin, "").await.as_object().unwrap().len(), 11);
    for bad in ["?state=done", "?queue=default"] {
        let refused = server.ask(&ada, "GET", &format!("/jobs/counts{bad}"), None).await;
        assert!(refused.status.is_client_error(), "{bad}: {}", refused.body);
    }
}

#[tokio::test]
async fn the_market_tells_what_work_without_a_promise_uses() {
    let (server, admin) = super::with_a_node().await;
    put_queue(&server, &admin).await;
    let job = json!({ "work": { "command": ["true"] },
        "ask": { "resources": { "cpu": "3", "memory": "32Gi" }, "duration_s": 600 } });
    let made = server.ask(&admin, "POST", "/jobs", Some(job)).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let pool = loop {
        let market = server.ask(&admin, "GET", "/market", None).await.body;
        let pool = market["pools"][0].clone();
        if pool["queue_work"][0] != json!(0.0) || std::time::Instant::now() > deadline {
            break pool;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(pool["queue_work"], json!([0.75, 0.5, 0.0]), "{pool}");
    assert_eq!(pool["now"]["promised"], json!([0.0, 0.0, 0.0]), "it is no promise: {pool}");
}
