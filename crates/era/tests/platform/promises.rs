//! What was promised against what ran, for a mixed day of jobs.
//!
//! The day is a quarter of a minute long. Jobs of many sizes are promised a slot on this machine,
//! where they tell what they found themselves in, or GPUs of simulated nodes, whose tasks the
//! platform tells of. How busy the machine is decides nothing here: a task may start late, and never
//! before it was promised or noted to.

use serde_json::{Value, json};

use crate::harness::Platform;

/// What a task's group has on top for its keeper, which lives in it.
const KEEPER_MIB: u64 = 16;

/// Between two submissions.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(700);

/// Tells when it started, who it is, and what its control groups allow.
const LOOK: &str = r#"
import json, os, time
at = time.time()
def first(*paths):
    for path in paths:
        try:
            with open(path) as file: return file.read().split()
        except OSError: pass
groups = dict((part[1], part[2]) for part in (line.strip().split(":", 2) for line in open("/proc/self/cgroup")))
cpu = first("/sys/fs/cgroup/cpu" + groups.get("cpu", "") + "/cpu.cfs_quota_us", "/sys/fs/cgroup" + groups.get("", "") + "/cpu.max")
memory = first("/sys/fs/cgroup/memory" + groups.get("memory", "") + "/memory.limit_in_bytes", "/sys/fs/cgroup" + groups.get("", "") + "/memory.max")
limited = any("era-" in path for path in groups.values())
print(json.dumps({"at": at, "rank": int(os.environ["ERA_RANK"]), "world": int(os.environ["ERA_WORLD_SIZE"]),
    "cpu": int(cpu[0]) if limited and cpu and cpu[0].isdigit() else None,
    "memory": int(memory[0]) if limited and memory and memory[0].isdigit() else None}))
time.sleep(0.2)
"#;

struct Asked {
    job: u64,
    cpu_milli: u64,
    memory_mib: u64,
    gpus: u64,
    replicas: u64,
}

/// Hands in the day's jobs. Every one of them names a deadline, so that it is promised a slot.
fn hand_in(platform: &Platform) -> Vec<Asked> {
    let mut asked = Vec::new();
    for number in 0..16_u64 {
        let on_gpus = number % 3 == 2;
        let (cpu_milli, memory_mib) = (100 + 100 * (number % 4), 32 + 32 * (number % 3));
        let gpus = if on_gpus { 1 + number % 4 } else { 0 };
        let replicas = 1 + u64::from(number % 5 == 4);
        std::thread::sleep(PAUSE);
        // Promises start at once or at a full minute; a deadline leaves room for either.
        let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(120);
        let mut resources = json!({
            "cpu": format!("{cpu_milli}m"), "memory": format!("{memory_mib}Mi"),
        });
        if on_gpus {
            resources["gpu"] = json!(gpus.to_string());
        }
        let job = json!({
            "name": format!("job-{number}"),
            "work": {"command": ["python3", "-c", LOOK]},
            "ask": {
                "resources": resources, "replicas": replicas, "duration_s": 30 + number % 3,
                "deadline": deadline.to_string(),
            },
            "value": "50",
        });
        let job = platform.submit(&job);
        asked.push(Asked { job, cpu_milli, memory_mib, gpus, replicas });
    }
    asked
}

fn ms(stamp: &Value) -> i64 {
    let stamp: jiff::Timestamp = stamp.as_str().unwrap_or_default().parse().unwrap();
    stamp.as_millisecond()
}

#[test]
fn what_was_promised_is_what_ran() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = folder.path().join("nodes.yaml");
    let text = "nodes:\n- name: gpu\n  count: 2\n  capacity: {cpu: 16, memory: 64Gi, gpu: 4}\n";
    std::fs::write(&nodes, text).unwrap();
    let platform = Platform::start_in(folder, &["--nodes", nodes.to_str().unwrap()]);
    let nodes = |nodes: &Value| (nodes["items"].as_array()?.len() == 3).then_some(());
    platform.wait_for("all nodes", "/nodes", nodes);
    let (mut limited, mut here) = (0, 0);
    for asked in hand_in(&platform) {
        let job = platform.ended(asked.job);
        let tasks = job["tasks"].as_array().unwrap();
        assert_eq!(job["state"], "succeeded", "{job}");
        assert_eq!(tasks.len() as u64, asked.replicas, "all replicas, once: {job}");
        let promised = ms(&job["promised_start"]);
        for task in tasks {
            assert!(promised <= ms(&task["started"]), "before it was promised: {job}");
            assert!(ms(&task["started"]) <= ms(&task["ended"]), "{job}");
            assert_eq!(task["gpus"].as_array().unwrap().len() as u64, asked.gpus, "{job}");
        }
        let simulated = job["simulated"] == true;
        assert!(simulated || asked.gpus == 0, "this machine was promised GPUs: {job}");
        if !simulated {
            here += asked.replicas;
            limited += told(&platform, &asked, &job);
        }
    }
    let market = platform.get("/market");
    assert_eq!((&market["promises_due"], &market["promises_kept"]), (&json!(16), &json!(16)));
    // All of them are limited by groups, or none where that is not permitted.
    let expected = if may_make_groups() { here } else { 0 };
    assert_eq!(limited, expected, "of {here} tasks that ran here");
    queued_as_asked(&platform);
}

/// What waits in a queue, alone or as an array, runs with what it asked for as well.
fn queued_as_asked(platform: &Platform) {
    let ask = json!({"resources": {"cpu": "200m", "memory": "48Mi"}, "duration_s": 60});
    let work = json!({"command": ["python3", "-c", LOOK]});
    let alone = platform.submit(&json!({"work": work, "ask": ask}));
    let first = platform.submit(&json!({"work": work, "ask": ask, "array": {"from": 0, "to": 2}}));
    for job in std::iter::once(alone).chain(first..first + 3) {
        let seen = platform.ended(job);
        assert_eq!(seen["state"], "succeeded", "{seen}");
        let asked = Asked { job, cpu_milli: 200, memory_mib: 48, gpus: 0, replicas: 1 };
        let limited = told(platform, &asked, &seen);
        assert_eq!(limited, u64::from(may_make_groups()), "{seen}");
    }
}

/// Whether this user may make control groups, of either version.
fn may_make_groups() -> bool {
    let name = format!("era-test-{}", std::process::id());
    ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].into_iter().any(|root| {
        let group = std::path::Path::new(root).join(&name);
        // An ordinary folder, which is no group, has no such file in it.
        let made = std::fs::create_dir(&group).is_ok();
        let is_group = made && group.join("cgroup.procs").exists();
        if made {
            std::fs::remove_dir(&group).unwrap();
        }
        is_group
    })
}

/// What a job's replicas told of themselves; how many of them could see their limits.
fn told(platform: &Platform, asked: &Asked, job: &Value) -> u64 {
    let log = platform.ok(&["logs", &asked.job.to_string()]);
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| line.find('{').and_then(|at| serde_json::from_str(&line[at..]).ok()))
        .collect();
    assert_eq!(lines.len() as u64, asked.replicas, "{log}");
    let mut limited = 0;
    for line in &lines {
        assert_eq!(line["world"].as_u64(), Some(asked.replicas), "{log}");
        let at = (line["at"].as_f64().unwrap() * 1000.0) as i64;
        let mut tasks = job["tasks"].as_array().unwrap().iter();
        let noted = ms(&tasks.find(|task| task["rank"] == line["rank"]).unwrap()["started"]);
        assert!(noted <= at, "noted {} ms too late: {log} {job}", noted - at);
        if let (Some(cpu), Some(memory)) = (line["cpu"].as_u64(), line["memory"].as_u64()) {
            limited += 1;
            assert_eq!(cpu, asked.cpu_milli * 100, "of 100 ms, in microseconds");
            assert_eq!(memory, (asked.memory_mib + KEEPER_MIB) << 20);
        }
    }
    limited
}
