//! The simulator against the real thing: one small workload, run by the laboratory and by the
//! platform, on the same core. What differs is that the platform must really start processes.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Platform;

/// A job: when it is handed in and how long it runs, in seconds, on how many quarters of the
/// machine.
const WORKLOAD: [(u64, u64, u64); 12] = [
    (0, 2, 2),
    (0, 3, 1),
    (0, 1, 4),
    (0, 2, 1),
    (1, 1, 2),
    (1, 2, 3),
    (2, 1, 1),
    (2, 1, 1),
    (3, 2, 2),
    (3, 1, 4),
    (4, 1, 1),
    (5, 2, 2),
];
/// What every job says of itself: far more than it takes, as people do.
const STATED_S: u64 = 60;
/// How far a start may be from the simulated one: processes take their time, and on a machine
/// that is busy with other tests they take more. It adds up along a queue.
const TOLERANCE: Duration = Duration::from_millis(900);

#[test]
fn a_simulated_and_a_real_run_of_the_same_work_agree() {
    let expected = simulate();
    let found = run();
    for (job, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let apart = (found - expected).abs();
        assert!(
            apart <= TOLERANCE.as_secs_f64(),
            "job {job} started after {found:.2} s, and after {expected:.2} s in the simulation\n\
             simulated {expected:?}, real {found:?}"
        );
    }
    let furthest = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    eprintln!("no start is more than {furthest:.3} s from the simulated one");
}

/// When each job starts, by the simulator.
fn simulate() -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = "job_id,submit_s,duration_s,gpus,user,group,status,stated_s\n".to_owned();
    for (job, (submit, duration, quarters)) in WORKLOAD.iter().enumerate() {
        trace += &format!("{job},{submit},{duration},{quarters},u,g,COMPLETED,{STATED_S}\n");
    }
    std::fs::write(folder.path().join("trace.csv"), trace).unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(["sim", "run", "--trace", "trace.csv", "--gpus", "4", "--gpus-per-node", "4"])
        .args(["--policy", "fifo", "--backfill", "none", "--estimates", "stated"])
        .args(["--starts", "starts.csv", "--json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let starts = std::fs::read_to_string(folder.path().join("starts.csv")).unwrap();
    let mut found = BTreeMap::new();
    for line in starts.lines().skip(1) {
        let mut fields = line.split(',');
        let job: usize = fields.next().unwrap().parse().unwrap();
        found.insert(job, fields.nth(1).unwrap().parse::<f64>().unwrap());
    }
    assert_eq!(found.len(), WORKLOAD.len(), "{starts}");
    found.into_values().collect()
}

/// When each job starts, in earnest: from when the first could have.
fn run() -> Vec<f64> {
    let platform = Platform::start();
    let (status, answer) = platform.send("PUT", "/policies/fifo", &json!({"order": "fifo"}));
    assert_eq!(status, 200, "{answer}");
    // Whether a job may start around another hangs on milliseconds when both say the same; in
    // order, what a process takes to start only adds up.
    let (status, answer) = platform.send("PATCH", "/settings", &json!({"backfill": "none"}));
    assert_eq!(status, 204, "{answer}");
    let queue = json!({"name": "default", "policy": "fifo", "ages": false});
    let (status, answer) = platform.send("PUT", "/queues/default", &queue);
    assert_eq!(status, 204, "{answer}");
    let cores: u64 =
        platform.get("/nodes")["items"][0]["capacity"]["cpu"].as_str().unwrap().parse().unwrap();
    let begun = Instant::now();
    let zero = jiff::Timestamp::now();
    let mut jobs = Vec::new();
    for (submit, duration, quarters) in WORKLOAD {
        let due = begun + Duration::from_secs(submit);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        jobs.push(platform.submit(&json!({
            "work": {"command": ["sleep", duration.to_string()]}, "queue": "default",
            "ask": {
                "resources": {"cpu": format!("{}m", cores * 250 * quarters), "memory": "16Mi"},
                "duration_s": STATED_S,
            },
        })));
    }
    let started = |job: &u64| {
        let job = platform.ended(*job);
        assert_eq!(job["state"], "succeeded", "{job}");
        let started: &Value = &job["started"];
        let started: jiff::Timestamp = started.as_str().unwrap().parse().unwrap();
        started.duration_since(zero).as_secs_f64()
    };
    jobs.iter().map(started).collect()
}
