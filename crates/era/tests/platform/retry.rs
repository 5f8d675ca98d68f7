//! A job that is handed in again goes on from the checkpoints of the one before.

use serde_json::{Value, json};

use crate::harness::Platform;

/// Tells where it goes on from, and goes one step further; fails until the third.
const STEP: &str = "read -r at < checkpoints/at || at=0; echo from $at > outputs/told
echo $((at + 1)) > checkpoints/at; ln -sf at checkpoints/latest
mkfifo checkpoints/pipe 2> /dev/null; ln -sf /etc/passwd checkpoints/leak
echo \"era: checkpoint done=$((at + 1))\"; test $at = 2";

fn job(script: &str) -> Value {
    json!({ "work": { "command": ["sh", "-c", script] },
        "ask": { "resources": { "cpu": "100m", "memory": "32Mi" }, "duration_s": 60 } })
}

/// Hands a job in again: its number, and the job whose checkpoints it begins with.
fn again(platform: &Platform, of: u64, more: &[&str]) -> (u64, Option<u64>) {
    let said = platform.ok(&[&["retry", "-o", "json", &of.to_string()], more].concat());
    let said: Value = serde_json::from_str(&said).unwrap();
    (said["job"].as_u64().unwrap(), said["checkpoints_of"].as_u64())
}

fn told(platform: &Platform, job: u64) -> String {
    platform.ended(job);
    std::fs::read_to_string(platform.outputs(job).join("told")).unwrap()
}

#[test]
fn a_job_that_is_handed_in_again_goes_on_from_its_checkpoints_unless_it_begins_fresh() {
    let platform = Platform::start();
    let first = platform.submit(&job(STEP));
    assert_eq!(platform.ended(first)["state"], "failed");
    assert_eq!(told(&platform, first), "from 0\n");
    let said = platform.ok(&["retry", &first.to_string()]);
    assert!(said.contains(&format!("begins with the checkpoints of job {first}\n")), "{said}");
    let second = first + 1;
    assert_eq!(told(&platform, second), "from 1\n");
    // Each has its own, so the first can be gone on from again.
    let (third, from) = again(&platform, second, &[]);
    assert_eq!((told(&platform, third).as_str(), from), ("from 2\n", Some(second)));
    assert_eq!(platform.ended(third)["state"], "succeeded");
    let (other, from) = again(&platform, first, &[]);
    assert_eq!((told(&platform, other).as_str(), from), ("from 1\n", Some(first)));
    let (fresh, from) = again(&platform, third, &["--fresh"]);
    assert_eq!((told(&platform, fresh).as_str(), from), ("from 0\n", None));
    // It asks for as much as before: what it has saved is its own affair.
    for (field, job) in [("duration_s", second), ("resources", third)] {
        let of = |job: u64| platform.get(&format!("/jobs/{job}"))[field].clone();
        assert_eq!(of(job), of(first));
    }
    // What it cannot carry it does without; nothing that a link names comes along.
    let folder = platform.data().join(format!("jobs/{third}/checkpoints"));
    assert_eq!(std::fs::read_link(folder.join("leak")).unwrap().to_str(), Some("/etc/passwd"));
    let listed = platform.ok(&["outputs", &third.to_string(), "--checkpoints", "--list"]);
    assert!(listed.contains(" at ") && !listed.contains("leak"), "{listed}");
    platform.ok(&["outputs", &third.to_string(), "--checkpoints"]);
    let brought = platform.home().join(format!("checkpoints/{third}/at"));
    assert_eq!(std::fs::read_to_string(brought).unwrap(), "3\n");
}

#[test]
fn what_never_ran_passes_on_the_checkpoints_that_it_was_to_begin_with() {
    let platform = Platform::start();
    let nodes = platform.get("/nodes");
    let node = nodes["items"].as_array().or(nodes.as_array()).unwrap()[0]["name"].clone();
    let cordon = |action: &str| {
        let path = format!("/nodes/{}", node.as_str().unwrap());
        let (status, said) = platform.send("PATCH", &path, &json!({ "action": action }));
        assert_eq!(status, 204, "{said}");
    };
    let first = platform.submit(&job(STEP));
    platform.ended(first);
    cordon("cordon");
    let (waits, from) = again(&platform, first, &[]);
    assert_eq!(from, Some(first));
    // It is not over: what it has may still change.
    assert_eq!(again(&platform, waits, &[]).1, None);
    platform.ok(&["cancel", &waits.to_string(), &(waits + 1).to_string()]);
    let (last, from) = again(&platform, waits, &[]);
    assert_eq!(from, Some(first));
    cordon("resume");
    assert_eq!(told(&platform, last), "from 1\n");
}

#[test]
fn every_rank_of_a_gang_and_the_job_of_an_array_finds_what_the_job_before_kept() {
    let platform = Platform::start();
    let rank = "cat checkpoints/r$ERA_RANK >> outputs/r$ERA_RANK 2> /dev/null
        echo $ERA_ARRAY_INDEX-$ERA_RANK > checkpoints/r$ERA_RANK";
    let mut gang = job(rank);
    gang["ask"]["replicas"] = json!(2);
    gang["array"] = json!({ "from": 4, "to": 5 });
    let first = platform.submit(&gang);
    for job in [first, first + 1] {
        platform.ended(job);
    }
    let (second, _) = again(&platform, first + 1, &[]);
    platform.ended(second);
    for rank in ["r0", "r1"] {
        let kept = std::fs::read_to_string(platform.outputs(second).join(rank)).unwrap();
        assert_eq!(kept, format!("5-{}\n", &rank[1..]));
    }
}
