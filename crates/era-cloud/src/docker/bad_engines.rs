//! Engines that are too old, full, or lack an image, as whoever started the server or handed in a
//! job reads of them.

use std::time::Duration;

use era_core::units::Span;
use serde_json::{Value, json};

use super::fake::Fake;
use super::{DockerError, DockerExecutor, DockerOptions, InstanceState};
use crate::clock::MachineClock;
use crate::executor::{Ending, Executor, ExecutorReport, Order};
use crate::log::{LogReader, Only};
use crate::shim::tests::launch;

#[tokio::test]
async fn an_engine_that_is_too_old_says_what_it_speaks_and_what_to_install() {
    let old = Fake::start(|request| {
        (request == "GET /version")
            .then(|| (200, json!({"ApiVersion": "1.30", "Version": "17.06.0"})))
    });
    let refused = old.connect().await.err().expect("refused");
    let place = old.address().endpoint.to_string();
    for words in [place.as_str(), "version 1.30", "1.41", "install Docker 20.10 or later"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

/// What the log of a task says that this engine does not start, and how that ended.
async fn said_of_a_start(fake: &Fake) -> (String, ExecutorReport) {
    let (tell, mut reports) = tokio::sync::mpsc::channel(64);
    let data = fake.data();
    std::fs::create_dir_all(&data).expect("a folder");
    let options = DockerOptions {
        address: fake.address(),
        data: data.clone(),
        fence: Span::from_s(30),
        clock: MachineClock::system(),
    };
    let docker = DockerExecutor::start(options, tell).await.expect("an executor");
    let mut launch = launch(7, &["true"]);
    std::sync::Arc::make_mut(&mut launch.spec).folder = data.join("jobs/7");
    docker.carry_out(Order::Launch(launch));
    let ended = async {
        loop {
            if let Some(over @ (ExecutorReport::Exited { .. } | ExecutorReport::Lost { .. })) =
                reports.recv().await
            {
                return over;
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("in time");
    (said_in(&data.join("jobs/7/logs")), ended)
}

fn reason(report: &ExecutorReport) -> &str {
    match report {
        ExecutorReport::Lost { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

fn said_in(logs: &std::path::Path) -> String {
    let mut log = LogReader::open(logs, Only::default()).expect("a log");
    let lines = log.read(100, 1 << 20, era_core::units::Time::MAX).expect("lines");
    let text = lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned());
    text.collect::<Vec<_>>().join("\n")
}

fn said(status: u16, message: &str) -> Option<(u16, Value)> {
    Some((status, json!({ "message": message })))
}

#[tokio::test]
async fn an_engine_that_is_full_is_named_and_what_should_start_on_it_is_lost_and_not_failed() {
    let full = Fake::start(|request| match request {
        "POST /containers/create" => said(500, "mkdir /var/lib/docker/x: no space left on device"),
        _ => None,
    });
    let (log, over) = said_of_a_start(&full).await;
    assert_eq!(reason(&over), "the-disk-of-its-node-is-full");
    let place = full.address().endpoint.to_string();
    for words in [
        place.as_str(),
        "refused to make a container: mkdir /var/lib/docker/x: no space left on device",
        "its disk is full: make room on that machine",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[tokio::test]
async fn an_engine_that_goes_away_is_a_lost_node_and_what_waits_for_it_is_given_up() {
    let fake = Fake::start(|_| None);
    let (tell, mut reports) = tokio::sync::mpsc::channel(64);
    let data = fake.data();
    std::fs::create_dir_all(&data).expect("a folder");
    let options = DockerOptions {
        address: fake.address(),
        data: data.clone(),
        fence: Span::from_s(30),
        clock: MachineClock::system(),
    };
    let place = fake.address().endpoint.to_string();
    let docker = DockerExecutor::start(options, tell).await.expect("an executor");
    let of = |job| {
        let mut launch = launch(job, &["true"]);
        launch.task.job = era_core::units::JobId(job);
        std::sync::Arc::make_mut(&mut launch.spec).folder = data.join(format!("jobs/{job}"));
        launch
    };
    let all = Some(ExecutorReport::NodesAre { names: vec!["machine".into()] });
    assert_eq!(reports.recv().await, all);
    assert!(matches!(reports.recv().await, Some(ExecutorReport::Node(_))));
    fake.stop_listening();
    let (waits, cancelled) = (of(1), of(2));
    docker.carry_out(Order::Launch(waits.clone()));
    docker.carry_out(Order::Launch(cancelled.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let until = MachineClock::system().now() + Span::from_s(600);
    docker.carry_out(Order::Stop { task: cancelled.task, until });
    // What is called off is over at once, and nobody waits for the engine to say so.
    let first = tokio::time::timeout(Duration::from_secs(10), reports.recv()).await;
    let Ok(Some(ExecutorReport::Exited { task, ending, .. })) = first else { panic!("{first:?}") };
    assert_eq!((task, ending), (cancelled.task, Ending::Stopped));
    let mut lost = Vec::new();
    while lost.len() < 2 {
        let next = tokio::time::timeout(Duration::from_secs(120), reports.recv()).await;
        match next.expect("in time").expect("a report") {
            ExecutorReport::NodeLost { name } => lost.push(name),
            ExecutorReport::Lost { task, reason } => lost.push(format!("{} {reason}", task.job.0)),
            _ => {}
        }
    }
    lost.sort();
    assert_eq!(lost, ["1 its-engine-went-away", "machine"]);
    let log = said_in(&data.join("jobs/1/logs"));
    for words in [
        format!("the task waits to be started: the engine at {place} cannot be reached").as_str(),
        "the task was not started",
        "is it running, and is the address right?",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[tokio::test]
async fn an_image_that_does_not_exist_is_named_with_what_the_registry_answered_and_what_to_do() {
    let without = Fake::start(|request| match request {
        "POST /containers/create" => said(404, "No such image: torch:2.9"),
        "POST /images/create" => said(404, "manifest for torch:2.9 not found: manifest unknown"),
        _ => None,
    });
    let (log, over) = said_of_a_start(&without).await;
    assert!(matches!(over, ExecutorReport::Exited { ending: Ending::NotStarted, .. }), "{over:?}");
    let pulls = without.asked().iter().filter(|one| *one == "POST /images/create").count();
    assert_eq!(pulls, 1, "it is not asked for again");
    let place = without.address().endpoint.to_string();
    for words in [
        format!("image `torch:2.9` could not be had by the engine at {place}").as_str(),
        "manifest unknown",
        "check its name",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
}

#[tokio::test]
async fn a_registry_that_is_away_is_asked_again_for_a_while_and_then_the_task_has_failed_with_words()
 {
    let away = "Get http://r:5000/v2/: dial tcp 10.0.0.1:5000: connect: connection refused";
    assert!(DockerError::of_start("docker:///s", "torch:2.9", away).is_passing());
    let cut = Fake::start(|request| match request {
        "POST /containers/create" => said(404, "No such image: torch:2.9"),
        "POST /images/create" => {
            said(500, "Get http://r:5000/v2/: dial tcp 10.0.0.1:5000: connect: connection refused")
        }
        _ => None,
    });
    let (log, over) = said_of_a_start(&cut).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 126, .. }), "{over:?}");
    for words in [
        "the task waits to be started: image `torch:2.9` could not be had by the engine",
        "the task was not started: image `torch:2.9` could not be had by the engine",
        "is the registry running",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    let pulls = cut.asked().iter().filter(|one| *one == "POST /images/create").count();
    assert!(pulls > 1, "{pulls}");
}

/// A manager of these nodes and tasks, and of no services.
fn manager(request: &str, nodes: Value, tasks: Value) -> Option<(u16, Value)> {
    match request {
        "GET /info" => {
            Some((200, json!({"Swarm": {"LocalNodeState": "active", "ControlAvailable": true}})))
        }
        "GET /nodes" => Some((200, nodes)),
        "GET /tasks" => Some((200, tasks)),
        "GET /services" | "GET /secrets" => Some((200, json!([]))),
        "POST /services/create" => Some((201, json!({"ID": "s"}))),
        _ if request.starts_with("DELETE /services/") => Some((200, json!({}))),
        _ => None,
    }
}

fn node(id: &str, host: &str) -> Value {
    json!({
        "ID": id,
        "Description": {"Hostname": host},
        "Spec": {"Availability": "active"},
        "Status": {"State": "ready"},
    })
}

#[tokio::test]
async fn a_launch_on_a_node_that_is_not_there_is_lost_and_one_that_is_needs_no_look_before_it() {
    let swarm = Fake::start(|request| manager(request, json!([node("n", "here")]), json!([])));
    let data = swarm.data();
    std::fs::create_dir_all(&data).expect("a folder");
    let options = DockerOptions {
        address: swarm.address(),
        data: data.clone(),
        fence: Span::from_s(30),
        clock: MachineClock::system(),
    };
    let (tell, mut reports) = tokio::sync::mpsc::channel(64);
    let docker = DockerExecutor::start(options, tell).await.expect("an executor");
    let on = |job, name: &str, gpus: &[u8]| {
        let mut launch = launch(job, &["true"]);
        launch.task.job = era_core::units::JobId(job);
        launch.node_name = name.to_owned();
        launch.gpus = gpus.to_vec();
        std::sync::Arc::make_mut(&mut launch.spec).folder = data.join(format!("jobs/{job}"));
        launch
    };
    // At once, before the engine was looked at.
    for launch in [on(1, "here", &[]), on(2, "gone", &[]), on(3, "here", &[0])] {
        docker.carry_out(Order::Launch(launch));
    }
    let mut lost = Vec::new();
    while lost.len() < 2 {
        let next = tokio::time::timeout(Duration::from_secs(60), reports.recv()).await;
        match next.expect("in time").expect("a report") {
            over @ ExecutorReport::Lost { task, .. } => {
                lost.push(format!("{} {}", task.job.0, reason(&over)));
            }
            ExecutorReport::Exited { task, code, .. } => panic!("{task} exited with {code}"),
            _ => {}
        }
    }
    lost.sort();
    assert_eq!(lost, ["2 its-node-is-not-known", "3 its-node-is-not-known"]);
    let made = async {
        while !swarm.asked().iter().any(|one| one == "POST /services/create") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), made).await.expect("the other is made");
    let says = said_in(&data.join("jobs/2/logs"));
    assert!(says.contains("node `gone`"), "{says}");
}

#[tokio::test]
async fn a_launch_is_kept_with_the_node_that_it_is_on_wherever_it_was_staged() {
    let without = Fake::start(|_| None);
    let data = without.data();
    std::fs::create_dir_all(&data).expect("a folder");
    let options = DockerOptions {
        address: without.address(),
        data: data.clone(),
        fence: Span::from_s(30),
        clock: MachineClock::system(),
    };
    let (tell, mut reports) = tokio::sync::mpsc::channel(64);
    let docker = DockerExecutor::start(options, tell).await.expect("an executor");
    let mut launch = launch(7, &["true"]);
    std::sync::Arc::make_mut(&mut launch.spec).folder = data.join("jobs/7");
    launch.node_name = "a".into();
    docker.carry_out(Order::Stage(launch.clone()));
    let shared = super::lease::Shared::of(&launch.spec.folder, launch.task);
    let staged = async {
        while !shared.is_ready() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), staged).await.expect("it is staged");
    assert_eq!(shared.launch().expect("kept").node_name, "a");
    launch.node_name = "b".into();
    docker.carry_out(Order::Launch(launch));
    while !matches!(reports.recv().await, Some(ExecutorReport::Exited { .. })) {}
    assert_eq!(shared.launch().expect("kept").node_name, "b");
}

#[tokio::test]
async fn a_task_whose_service_was_removed_is_seen_until_its_container_is_gone() {
    let swarm = Fake::start(|request| {
        let task = |state: &str, rank: u32| {
            let labels = json!({
                "era.site": "0a1b2c3d", "era.job": "7", "era.part": "0", "era.attempt": "1",
                "era.rank": rank.to_string(),
            });
            json!({
                "ServiceID": format!("removed-{rank}"),
                "NodeID": "n",
                "Spec": {"ContainerSpec": {"Labels": labels}},
                "DesiredState": "remove",
                "Status": {"State": state},
            })
        };
        let tasks = json!([task("running", 0), task("shutdown", 1)]);
        manager(request, json!([]), tasks)
    });
    let engine = swarm.connect().await.expect("an engine");
    let seen = engine.list().await.expect("listed");
    let seen: Vec<_> = seen.iter().map(|one| (one.task.rank, one.state.clone())).collect();
    assert_eq!(seen, [(0, InstanceState::Runs)]);
}

#[tokio::test]
async fn an_attempt_that_is_to_be_launched_after_a_newer_one_is_told_to_be_lost() {
    let idle = Fake::start(|_| None);
    let data = idle.data();
    std::fs::create_dir_all(&data).expect("a folder");
    let options = DockerOptions {
        address: idle.address(),
        data: data.clone(),
        fence: Span::from_s(30),
        clock: MachineClock::system(),
    };
    let (tell, mut reports) = tokio::sync::mpsc::channel(64);
    let docker = DockerExecutor::start(options, tell).await.expect("an executor");
    let attempt = |attempt| {
        let mut launch = launch(7, &["true"]);
        launch.task.attempt = attempt;
        std::sync::Arc::make_mut(&mut launch.spec).folder = data.join("jobs/7");
        launch
    };
    let mut lost = async || loop {
        let next = tokio::time::timeout(Duration::from_secs(60), reports.recv()).await;
        match next.expect("an answer in time").expect("a report") {
            over @ ExecutorReport::Lost { task, .. } => {
                return (task.attempt, reason(&over).to_owned());
            }
            ExecutorReport::Started { task, .. } => panic!("{task} started"),
            _ => {}
        }
    };
    // While the old one is ended for the new one, and once it is gone.
    for number in [1, 2, 1] {
        docker.carry_out(Order::Launch(attempt(number)));
    }
    assert_eq!(lost().await, (1, "a-newer-attempt-took-its-place".to_owned()));
    docker.carry_out(Order::Launch(attempt(1)));
    assert_eq!(lost().await, (1, "a-newer-attempt-took-its-place".to_owned()));
}
