//! What is kept: code for as long as a job may need it, outputs on their owner's account.

use serde_json::json;

use crate::harness::Platform;

#[test]
fn what_a_job_leaves_counts_on_its_owners_account() {
    let platform = Platform::start();
    let used = |user: &serde_json::Value| user["used"]["storage_bytes"].as_u64();
    assert_eq!(used(&platform.get("/users/admin")), Some(0));
    let write = "head -c 70000 /dev/zero > $ERA_OUTPUTS/model";
    platform.ok(&["run", "-y", "--no-code", "--time", "1m", "--", "sh", "-c", write]);
    let counted = |user: &serde_json::Value| (used(user) == Some(70_000)).then_some(());
    platform.wait_for("what was left is counted", "/users/admin", counted);
}

#[test]
fn code_that_nobody_sent_is_refused_before_the_job_is_taken() {
    let platform = Platform::start();
    let job = json!({
        "work": {"command": ["true"], "code": "0".repeat(64)},
        "ask": {"resources": {"cpu": "100m"}, "duration_s": 60},
    });
    let (status, refused) = platform.send("POST", "/jobs", &job);
    assert_eq!(status, 404, "{refused}");
    assert_eq!(platform.get("/jobs")["items"].as_array().map(Vec::len), Some(0));
}

#[test]
fn an_image_is_refused_before_the_job_is_taken_where_tasks_are_processes() {
    let platform = Platform::start();
    let job = json!({
        "work": {"command": ["true"], "image": "torch:2.9"},
        "ask": {"resources": {"cpu": "100m"}, "duration_s": 60},
    });
    let (status, refused) = platform.send("POST", "/jobs", &job);
    assert_eq!((status, &refused["field"]), (422, &json!("work.image")), "{refused}");
    assert_eq!(refused["parameters"]["problem"], "no_images", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("--executor docker://"), "{refused}");
    assert_eq!(platform.get("/jobs")["items"].as_array().map(Vec::len), Some(0));
}
