//! Engines that are too old, full, or lack an image, as whoever started the server or handed in a
//! job reads of them.

use std::time::Duration;

use era_core::units::Span;
use serde_json::{Value, json};

use super::fake::Fake;
use super::{Docker, DockerOptions};
use crate::executor::{Ending, Executor, Order, Report};
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

/// What the log of a task says that this engine does not start.
async fn said_of_a_start(fake: &Fake) -> String {
    let (tell, mut reports) = tokio::sync::mpsc::channel(64);
    let data = fake.data();
    std::fs::create_dir_all(&data).expect("a folder");
    let options =
        DockerOptions { address: fake.address(), data: data.clone(), fence: Span::from_s(30) };
    let docker = Docker::start(options, tell).await.expect("an executor");
    let mut launch = launch(7, &["true"]);
    std::sync::Arc::make_mut(&mut launch.spec).folder = data.join("jobs/7");
    docker.carry_out(Order::Launch(launch));
    let ended = async {
        loop {
            if let Some(Report::Exited { ending, .. }) = reports.recv().await {
                return ending;
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("in time");
    assert_eq!(ended, Ending::NotStarted);
    said_in(&data.join("jobs/7/logs"))
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
async fn an_engine_that_is_full_is_named_with_what_it_answered_and_what_to_do() {
    let full = Fake::start(|request| match request {
        "POST /containers/create" => said(500, "mkdir /var/lib/docker/x: no space left on device"),
        _ => None,
    });
    let log = said_of_a_start(&full).await;
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
    let options =
        DockerOptions { address: fake.address(), data: data.clone(), fence: Span::from_s(30) };
    let place = fake.address().endpoint.to_string();
    let docker = Docker::start(options, tell).await.expect("an executor");
    let of = |job| {
        let mut launch = launch(job, &["true"]);
        launch.task.job = era_core::units::JobId(job);
        std::sync::Arc::make_mut(&mut launch.spec).folder = data.join(format!("jobs/{job}"));
        launch
    };
    assert!(matches!(reports.recv().await, Some(Report::Node(_))));
    fake.stop_listening();
    let (waits, cancelled) = (of(1), of(2));
    docker.carry_out(Order::Launch(waits.clone()));
    docker.carry_out(Order::Launch(cancelled.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let until = crate::task::now() + Span::from_s(600);
    docker.carry_out(Order::Stop { task: cancelled.task, until });
    // What is called off is over at once, and nobody waits for the engine to say so.
    let first = tokio::time::timeout(Duration::from_secs(10), reports.recv()).await;
    let Ok(Some(Report::Exited { task, ending, .. })) = first else { panic!("{first:?}") };
    assert_eq!((task, ending), (cancelled.task, Ending::Stopped));
    let mut lost = Vec::new();
    while lost.len() < 2 {
        let next = tokio::time::timeout(Duration::from_secs(120), reports.recv()).await;
        match next.expect("in time").expect("a report") {
            Report::NodeLost { name } => lost.push(name),
            Report::Lost { task, reason } => lost.push(format!("{} {reason}", task.job.0)),
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
    let log = said_of_a_start(&without).await;
    let place = without.address().endpoint.to_string();
    for words in [
        format!("image `torch:2.9` could not be had by the engine at {place}").as_str(),
        "manifest unknown",
        "check its name",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
}
