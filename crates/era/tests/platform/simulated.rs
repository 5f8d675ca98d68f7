//! The simulator against the real thing: one small workload, run by the laboratory and by the
//! platform, on the same core. What differs is that the platform must really start processes, which
//! takes the longer the busier the machine is. So nothing starts sooner than in the simulation; and
//! once it is known how long everything took, a replay comes to the very same waits.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Platform, exchange};

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
/// What instants are rounded to.
const ROUNDED_S: f64 = 0.002;

#[test]
fn a_simulated_and_a_real_run_of_the_same_work_agree() {
    let expected = simulate();
    let (platform, found) = run();
    for (job, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert!(
            found + ROUNDED_S >= *expected,
            "job {job} started after {found:.3} s, and after {expected:.2} s in the simulation\n\
             simulated {expected:?}, real {found:?}"
        );
    }
    let furthest = expected.iter().zip(&found).map(|(a, b)| b - a).fold(0.0, f64::max);
    eprintln!("no start is more than {furthest:.3} s later than the simulated one");
    let report = platform.get("/report?without=true");
    let waited = |of: &str| report[of]["start_up"]["queue_s"].as_f64().unwrap();
    let late = noticed_late_s(&platform);
    eprintln!("all passes together came {late:.3} s after what made them due");
    let more = waited("with") - waited("replayed");
    assert!((-ROUNDED_S..=late + ROUNDED_S).contains(&more), "{report}");
}

/// How much later than what made them due all scheduling passes together came: a replay passes at
/// once when a task ends, a server once its supervisor has told it and it has its turn.
fn noticed_late_s(platform: &Platform) -> f64 {
    let token = format!("authorization: Bearer {}\r\n", platform.token());
    let (status, journal) =
        exchange(platform.address(), "GET", "/api/v1/journal", &token, "").unwrap();
    assert_eq!(status, 200, "{journal}");
    let (mut due, mut late_ms) = (None::<i64>, 0);
    for line in journal.lines().filter(|line| line.starts_with("{\"input\"")) {
        let line: Value = serde_json::from_str(line).unwrap();
        let (input, command) = (&line["input"], &line["input"]["command"]);
        let at = input["at"].as_i64().unwrap();
        match command["type"].as_str().unwrap() {
            "pass" => late_ms += at - due.take().unwrap_or(at),
            "submit" | "exited" => {
                let since = command["at"].as_i64().unwrap_or(at);
                due = Some(due.map_or(since, |due| due.min(since)));
            }
            _ => {}
        }
    }
    late_ms as f64 / 1000.0
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
fn run() -> (Platform, Vec<f64>) {
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
    let starts = jobs.iter().map(started).collect();
    (platform, starts)
}
