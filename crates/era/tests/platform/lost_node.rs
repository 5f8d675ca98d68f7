//! A node behind Redis that dies under one rank of a gang, with a program like most: it ends with
//! an error as soon as its peer is gone, long before anybody knows that the node is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::Platform;
use crate::layers::redis::Redis;

/// How long nodes are silent before they are lost.
const LEASE_S: u64 = 4;
/// How long whoever is told to stop may take. It is no part of what a node has to be found lost.
const GRACE_S: u64 = 1;

/// A node, in a folder of its own.
struct Worker {
    process: Child,
    data: PathBuf,
}

impl Worker {
    fn start(folder: &Path, redis: &Redis, name: &str) -> Worker {
        let data = folder.join(name);
        let log = std::fs::File::create(folder.join(format!("{name}.log"))).unwrap();
        let broker = format!("{}?lease={LEASE_S}", redis.url());
        let process = Command::new(env!("CARGO_BIN_EXE_era"))
            .args(["worker", "--node", name, "--broker", &broker, "--data"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Worker { process, data }
    }

    /// Power is cut: neither the worker nor what looks after its tasks says a word.
    fn cut(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let shim = self.data.join("shim");
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&str> = line.split('\0').collect();
            let ours = words.contains(&"shim") && words.iter().any(|word| shim == Path::new(word));
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(pid) = pid.filter(|_| ours).and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

/// Rank 1 holds a lock for as long as it lives, and rank 0 ends with an error when it does not.
const PROGRAM: &str = r#"
cd "$ERA_OUTPUTS"
echo "$ERA_NODE" > "on.$ERA_ATTEMPT.$ERA_RANK"
[ "$ERA_ATTEMPT" = 1 ] || exit 0
exec 9>> lock
case "$ERA_RANK" in
1) flock 9; touch held; until [ -e never ]; do sleep 1 9>&-; done ;;
0) until [ -e held ]; do sleep 0.1; done; flock 9; echo 'connection closed by peer'; exit 1 ;;
esac
"#;

#[test]
fn a_promise_to_a_gang_survives_a_node_that_its_peer_misses_first() {
    let redis = Redis::start();
    let engine = redis.url().replace("redis://", "celery://");
    let platform = Platform::start_with(&["--executor", &format!("{engine}?lease={LEASE_S}")]);
    let settings = json!({"lease": LEASE_S, "grace": GRACE_S});
    let (status, answer) = platform.send("PATCH", "/settings", &settings);
    assert_eq!(status, 204, "{answer}");
    let folder = platform.home().join("nodes");
    std::fs::create_dir_all(&folder).unwrap();
    let names = ["one", "two", "three"];
    let mut workers = names.map(|name| Worker::start(&folder, &redis, name));
    let up = |answer: &Value| {
        let nodes = answer["items"].as_array()?;
        (nodes.iter().filter(|node| node["health"] == "up").count() == names.len()).then_some(())
    };
    platform.wait_for("three nodes", "/nodes", up);

    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(30);
    let job = platform.submit(&json!({
        "work": {"command": ["sh", "-c", PROGRAM]},
        "ask": {
            "resources": {"cpu": "100m", "memory": "32Mi"}, "replicas": 2,
            "constraints": {"per_node_max": 1}, "duration_s": 300,
            "deadline": deadline.to_string(),
        },
        "value": "1000",
    }));
    let outputs = platform.outputs(job);
    platform.wait_for("both ranks", &format!("/jobs/{job}"), |_| {
        outputs.join("held").exists().then_some(())
    });
    let on = |attempt: u32, rank: u32| {
        let text = std::fs::read_to_string(outputs.join(format!("on.{attempt}.{rank}")));
        text.unwrap().trim().to_owned()
    };
    let (first, lost) = (on(1, 0), on(1, 1));
    assert_ne!(first, lost);
    let at = names.iter().position(|name| *name == lost).unwrap();
    workers[at].cut();

    let ended = platform.ended(job);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["attempts"], 2, "{ended}");
    assert!(platform.ok(&["logs", &job.to_string()]).contains("connection closed by peer"));
    assert!([on(2, 0), on(2, 1)].iter().all(|node| *node != lost));
}
