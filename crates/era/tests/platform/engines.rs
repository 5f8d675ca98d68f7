//! The platform on engines beyond its own processes: a Swarm that loses a node in the middle of a
//! promise, and images from a Dockerfile to a job.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Platform;

#[allow(dead_code)] // what the tests of the executor alone use too
#[path = "../../../era-cloud/tests/docker/bed.rs"]
pub(crate) mod bed;
#[path = "../../../era-cloud/tests/docker/registry.rs"]
pub(crate) mod registry;
#[path = "../../../era-cloud/tests/docker/three.rs"]
mod three;

use crate::skipped;
use bed::{Daemon, IMAGE, can};
use registry::{LOGIN, Registry, write_private};
use three::Swarm;

/// A rank that says five times a second that it lives, until it is told to go.
const RANK: &str = "while ! nslookup rank-0 >/dev/null || ! nslookup rank-1 >/dev/null; do \
    sleep 0.2; done; echo met; while ! test -e $ERA_OUTPUTS/go; do \
    date +%s >> $ERA_OUTPUTS/beats-$ERA_ATTEMPT-$ERA_RANK; sleep 0.2; done; echo done";

fn wait(what: &str, most: Duration, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < most, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_promised_gang_is_planned_anew_when_its_node_is_cut_off_and_nothing_runs_twice() {
    let Some(swarm) = Swarm::start() else { return };
    let address = swarm.address();
    let platform = Platform::start_with(&["--executor", &address]);
    let names = platform.wait_for("three nodes", "/nodes", |answer| {
        let items = answer["items"].as_array()?;
        let name = |node: &Value| node["name"].as_str().map(str::to_owned);
        (items.len() == 3).then(|| items.iter().filter_map(name).collect::<Vec<_>>())
    });
    // A whole node for each rank.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let deadline = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(20);
    let job = platform.submit(&json!({
        "name": "gang",
        "work": {"command": ["/bin/sh", "-c", RANK]},
        "ask": {
            "resources": {"cpu": cores.to_string(), "memory": "64Mi"},
            "replicas": 2, "duration_s": 240, "deadline": deadline.to_string(),
        },
        "value": "1000",
    }));
    let beats = |attempt: u32, rank: u32| -> Vec<i64> {
        let file = platform.outputs(job).join(format!("beats-{attempt}-{rank}"));
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let minute = Duration::from_secs(60);
    wait("the gang meets", minute, || !beats(1, 0).is_empty() && !beats(1, 1).is_empty());

    // Some node of the gang that is not the manager's.
    let runs_on = |place: usize| {
        let listed = swarm.nodes[place].docker(&["ps", "-q", "--filter", "label=era.attempt=1"]);
        listed.is_ok_and(|ids| !ids.is_empty())
    };
    let place = [1, 2].into_iter().find(|place| runs_on(*place)).unwrap();
    let rank = {
        let filter =
            ["ps", "--filter", "label=era.attempt=1", "--format", "{{.Label \"era.rank\"}}"];
        swarm.nodes[place].docker(&filter).unwrap().trim().parse::<u32>().unwrap()
    };
    swarm.cut(place + 1, true);
    let lost = swarm.name(place, &names);
    platform.wait_for("the loss is known", "/nodes", |answer| {
        let node = answer["items"].as_array()?.iter().find(|node| node["name"] == lost.as_str())?;
        (node["health"] == "lost").then_some(())
    });
    wait("the gang goes on elsewhere", Duration::from_secs(120), || {
        !beats(2, 0).is_empty() && !beats(2, 1).is_empty()
    });
    let silent = beats(1, rank);
    let first = beats(2, 0)[0].min(beats(2, 1)[0]);
    assert!(silent.last().unwrap() <= &first, "the old attempt ended before the new one began");
    swarm.cut(place + 1, false);
    platform.wait_for("it is back", "/nodes", |answer| {
        let node = answer["items"].as_array()?.iter().find(|node| node["name"] == lost.as_str())?;
        (node["health"] == "up").then_some(())
    });
    std::fs::write(platform.outputs(job).join("go"), "").unwrap();
    let ended = platform.ended(job);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(beats(1, rank), silent, "what was cut off never went on");
    assert!(platform.ok(&["logs", &job.to_string()]).contains("met"));
}

#[test]
fn an_image_goes_from_a_dockerfile_into_the_catalogue_and_a_job_runs_in_it() {
    let Some(daemon) = Daemon::alone() else { return };
    let platform = Platform::start_with(&["--executor", &daemon.address()]);
    let folder = platform.home().join("hello");
    std::fs::create_dir_all(&folder).unwrap();
    let dockerfile = folder.join("Dockerfile");
    std::fs::write(&dockerfile, format!("FROM {IMAGE}\nARG WHO\nENV HELLO=$WHO\n")).unwrap();
    let built = platform.ok(&["images", "build", "hello", "--arg", "WHO=world", "-o", "json"]);
    let built: Value = serde_json::from_str(&built).unwrap();
    let reference = built["reference"].as_str().unwrap();
    assert!(reference.ends_with("/hello:latest"), "{built}");
    platform.ok(&["images", "publish", "hello", reference, "--framework", "none"]);
    assert!(platform.ok(&["images", "ls"]).contains("hello"));
    let listed: Value =
        serde_json::from_str(&platform.ok(&["images", "ls", "-o", "json"])).unwrap();
    assert_eq!(listed[0]["bytes"], built["bytes"], "the engine knows: {listed}");
    let job = |image: &str| {
        json!({
            "work": {"command": ["/bin/sh", "-c", "echo hello $HELLO"], "image": image},
            "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
        })
    };
    let by_name = platform.submit(&job("hello"));
    assert_eq!(platform.ended(by_name)["state"], "succeeded");
    assert!(platform.ok(&["logs", &by_name.to_string()]).contains("hello world"));
    platform.ok(&["images", "rm", "hello"]);
    assert!(!platform.ok(&["images"]).contains("hello"));

    // A Dockerfile in the job's own code needs neither a catalogue nor a build by hand.
    let code = platform.home().join("code");
    std::fs::create_dir_all(code.join("env")).unwrap();
    std::fs::write(code.join("env/Dockerfile"), format!("FROM {IMAGE}\nENV BROUGHT=along\n"))
        .unwrap();
    std::fs::write(code.join("said"), "with its code").unwrap();
    let said = platform.ok(&[
        "run",
        "-y",
        "--time",
        "1m",
        "--code",
        "code",
        "--image",
        "./env/Dockerfile",
        "--",
        "/bin/sh",
        "-c",
        "echo $BROUGHT $(cat said)",
    ]);
    assert_eq!(said, "along with its code\n");

    // What fails shows the last lines, and what does not exist says so.
    std::fs::write(&dockerfile, format!("FROM {IMAGE}\nRUN echo on the way && false\n")).unwrap();
    let (code, said) = platform.fails(&["images", "build", "hello"]);
    assert!(code != 0 && said.contains("the Dockerfile failed"), "{said}");
    let mut nowhere = job("127.0.0.1:1/no/such:image");
    // Long enough for the registry to be asked again for a while.
    nowhere["ask"]["duration_s"] = json!(300);
    let lost = platform.submit(&nowhere);
    assert_eq!(platform.ended(lost)["state"], "failed");
    let log = platform.ok(&["logs", &lost.to_string()]);
    assert!(log.contains("could not be had"), "{log}");
}

#[test]
fn the_image_of_a_promised_job_is_on_its_node_before_the_start() {
    let Some(daemon) = Daemon::alone() else { return };
    let Some(registry) = can(Registry::start(&daemon)) else { return };
    daemon.docker(&["swarm", "init", "--advertise-addr", "127.0.0.1"]).unwrap();
    let auth = daemon.folder.join("auth");
    write_private(&auth, LOGIN);
    let (user, password) = LOGIN.split_once(':').unwrap();
    let login = ["login", "-u", user, "-p", password, registry.place()];
    let config = daemon.folder.join("config");
    let config = ["--config", config.to_str().unwrap()];
    // It is in the registry, and the engine has forgotten it.
    let image = format!("{}/staged:1", registry.place());
    daemon.docker(&[&config[..], &login].concat()).unwrap();
    daemon.docker(&["tag", IMAGE, &image]).unwrap();
    daemon.docker(&[&config[..], &["push", &image]].concat()).unwrap();
    daemon.docker(&["rmi", &image]).unwrap();
    let there = || daemon.docker(&["image", "inspect", &image]).is_ok();
    assert!(!there());

    let platform = Platform::start_with(&["--executor", &registry.address(&daemon, &auth)]);
    platform.wait_for("a node", "/nodes", |nodes| {
        (nodes["items"].as_array()?.len() == 1).then_some(())
    });
    let from = |minutes| jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
    let job = platform.submit(&json!({
        "work": {"command": ["true"], "image": image},
        "ask": {
            "resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60,
            "earliest": from(5).to_string(), "deadline": from(30).to_string(),
        },
        "value": "1000",
    }));
    wait("its image is brought", Duration::from_secs(120), there);
    let seen = jiff::Timestamp::now();
    let told = platform.get(&format!("/jobs/{job}"));
    let promised: jiff::Timestamp = told["promised_start"].as_str().unwrap().parse().unwrap();
    assert!(seen < promised && told["tasks"].as_array().is_none_or(Vec::is_empty), "{told}");
    // Nothing stays of what brought it.
    wait("its service goes", Duration::from_secs(60), || {
        daemon.docker(&["service", "ls", "-q"]).is_ok_and(|listed| listed.is_empty())
    });
}

#[test]
fn an_executor_that_cannot_be_reached_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (executor, says) in [
        ("docker:///nowhere/at/all", "is it running"),
        ("docker://host", "HOST:PORT"),
        ("podman://x", "is no executor"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_era"))
            .args(["up", "--listen", "127.0.0.1:0", "--executor", executor, "--data"])
            .arg(folder.path().join("data"))
            .env("ERA_CONFIG", folder.path().join("config"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(says), "{executor}: {said}");
    }
}
