//! The laboratory behind the server: what is asked is done by itself, and read later.

use serde_json::{Value, json};

use crate::harness::{Platform, exchange};

/// Asks for a run and waits for its end.
fn run(platform: &Platform, asked: &Value) -> Value {
    let (status, run) = platform.send("POST", "/lab/runs", asked);
    assert_eq!(status, 201, "{run}");
    let over = |run: &Value| {
        let state = run["state"].as_str().unwrap();
        (state != "waiting" && state != "running").then(|| run.clone())
    };
    platform.wait_for("the end of a run", &format!("/lab/runs/{}", run["id"]), over)
}

#[test]
fn a_simulation_has_a_page_and_history_can_be_run_under_another_rule() {
    let platform = Platform::start();
    // As many as a history needs to be cut in two.
    for number in 0..300 {
        platform.submit(&json!({
            "work": {"command": ["true"]}, "queue": "default",
            "ask": {"resources": {"cpu": "500m"}, "duration_s": 60 + number % 7},
        }));
    }
    let simulated = json!({
        "kind": "simulate", "policies": ["fifo", "sjf"], "jobs": 300, "gpus": 32, "load": 0.9,
        "seed": 1,
    });
    let run_1 = run(&platform, &simulated);
    assert_eq!((&run_1["state"], &run_1["share"]), (&json!("done"), &json!(1.0)), "{run_1}");
    assert!(run_1["result"].is_object() && run_1["report"] == true, "{run_1}");
    let token = format!("authorization: Bearer {}\r\n", platform.token());
    let page = exchange(platform.address(), "GET", "/api/v1/lab/runs/1/report", &token, "");
    let (status, page) = page.unwrap();
    assert!(status == 200 && page.to_lowercase().contains("<!doctype html"), "{status}");

    let replayed = run(&platform, &json!({"kind": "replay", "policy": "sjf"}));
    assert_eq!(replayed["state"], "done", "{replayed}");

    let failed = run(&platform, &json!({"kind": "replay", "policy": "no-such-policy"}));
    assert_eq!(failed["state"], "failed");
    assert!(failed["problem"].as_str().unwrap().contains("no-such-policy"), "{failed}");

    let (status, refused) =
        platform.send("POST", "/lab/runs", &json!({"kind": "replay", "policy": "/etc/shadow"}));
    assert_eq!((status, &refused["code"]), (422, &json!("bad_run")), "{refused}");

    let tuned = json!({"kind": "tune", "objective": "mean_wait_s", "budget": 4, "seed": 1});
    let tuned = run(&platform, &tuned);
    assert_eq!(tuned["state"], "done", "{tuned}");
    let proposals = platform.get("/policies/proposals");
    let proposed = proposals["items"].as_array().unwrap().len();
    assert_eq!(proposed, usize::from(tuned["proposes"].is_object()), "{proposals}");
    assert_eq!(platform.get("/lab/runs")["items"].as_array().map(Vec::len), Some(4));
}
