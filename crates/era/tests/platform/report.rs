//! The report of a period, beside a replay of it.

use serde_json::{Value, json};

use crate::harness::Platform;

fn job(command: &[&str], more: &Value) -> Value {
    let mut ask = json!({"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 600});
    for (name, value) in more.as_object().unwrap() {
        ask[name] = value.clone();
    }
    let mut job = json!({"work": {"command": command}, "ask": ask});
    if job["ask"].get("deadline").is_some() {
        job["value"] = json!("50");
    }
    job
}

/// Some of what was asked for has not happened yet: what a replay makes of it has not either.
#[test]
fn the_rules_that_were_in_force_replayed_come_to_what_happened() {
    let platform = Platform::start();
    let in_hours =
        |hours: i64| (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours)).to_string();
    let later = json!({"earliest": in_hours(2), "deadline": in_hours(4)});
    let promised = platform.submit(&job(&["true"], &later));
    let waits = platform.submit(&job(&["true"], &json!({"earliest": in_hours(3)})));
    let now = json!({});
    let soon = json!({"deadline": in_hours(1)});
    let gang = json!({"replicas": 2});
    let asked = [(&["true"][..], &now), (&["false"], &now), (&["true"], &soon), (&["true"], &gang)];
    for (command, more) in asked {
        let ended = platform.ended(platform.submit(&job(command, more)));
        assert!(ended["started"].is_string(), "{ended}");
    }
    let mut array = job(&["true"], &now);
    array["array"] = json!({"from": 0, "to": 3});
    let first = platform.submit(&array);
    (first..first + 4).for_each(|job| drop(platform.ended(job)));
    for job in [promised, waits] {
        let seen = platform.get(&format!("/jobs/{job}"));
        assert!(seen["started"].is_null(), "{seen}");
    }
    let report = platform.get("/report?without=true");
    let (with, again) = (&report["with"], &report["replayed"]);
    for name in ["jobs", "refusals", "run_success"] {
        assert_eq!(again[name], with[name], "{name}: {report}");
    }
    assert_eq!((&with["jobs"], &with["run_success"]), (&json!(10), &json!(0.875)), "{report}");
    // Nothing waited, but for the start that it was promised.
    let waited = |of: &Value| of["start_up"]["queue_s"].as_f64().unwrap();
    assert!((waited(with) - waited(again)).abs() <= 0.1 * waited(with), "{report}");
    assert_eq!(report.get("withheld"), None, "{report}");
}
