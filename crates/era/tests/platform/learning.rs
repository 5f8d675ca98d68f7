//! What a platform learns by itself: how long jobs take and what they use, from its own history.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Platform;

#[test]
fn jobs_that_ended_teach_what_others_will_take_and_use() {
    let platform = Platform::start_with(&["--learn-every", "10s"]);
    // More than a learner wants at least, and long enough to be looked at.
    let jobs: Vec<u64> = (0..64)
        .map(|_| {
            platform.submit(&json!({
                "work": {"command": ["sleep", "2.5"]}, "queue": "default",
                "ask": {"resources": {"cpu": "50m", "memory": "64Mi"}, "duration_s": 60},
            }))
        })
        .collect();
    for job in &jobs {
        assert_eq!(platform.ended(*job)["state"], "succeeded");
    }
    let journal = platform.home().join("journal.ndjson");
    let path = journal.to_str().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let published = loop {
        platform.ok(&["admin", "journal", path]);
        let text = std::fs::read_to_string(&journal).unwrap();
        let published = text.lines().filter_map(estimates).next_back();
        match published {
            Some(estimates) if estimates["used"]["memory"].is_object() => break estimates,
            _ => assert!(Instant::now() < until, "nothing was learned: {published:?}"),
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    assert!(published["duration"]["middle"].is_object(), "{published}");
    assert!(published["used"]["cpu"].is_object(), "{published}");
    // What was published decides nothing that a replay would not decide again.
    platform.ok(&["replay", path]);
    let learned = platform.ok(&["sim", "estimate", "--journal", path, "--json"]);
    let learned: Value = serde_json::from_str(&learned).unwrap();
    assert_eq!(learned["jobs"], 64, "{learned}");
}

/// What a line of a journal publishes about jobs, if it does.
fn estimates(line: &str) -> Option<Value> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let command = &entry["input"]["command"];
    (command["type"] == "publish_estimates").then(|| command["estimates"].clone())
}
