//! On a Swarm of one node, where tasks hold leases as on one of many.

use std::collections::HashMap;
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_cloud::docker::{DockerEngine, EngineAddress, Instance, InstanceState, SiteId};
use era_cloud::{Ending, Executor, ExecutorReport, Order};
use era_core::job::TaskId;
use era_core::units::{JobId, Span};
use tokio::time::Instant;

use crate::bed::{Bed, Daemon, IMAGE, PATIENCE, data, now};

fn swarm() -> Option<Daemon> {
    let daemon = Daemon::alone()?;
    daemon.docker(&["swarm", "init", "--advertise-addr", "127.0.0.1"]).expect("a Swarm");
    Some(daemon)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_stopped_may_use_its_whole_grace_and_is_told_once() {
    let Some(daemon) = swarm() else { return };
    let data = data();
    // A lease of four seconds, and one for the kill.
    let mut bed = Bed::start(&daemon.address(), data.path(), Span::from_s(9)).await;
    bed.joined(1).await;
    let slow = "told=0; trap 'told=$((told + 1))' TERM; echo up; \
                while [ $told = 0 ]; do sleep 0.2; done; \
                i=0; while [ $i -lt 60 ]; do sleep 0.2; i=$((i + 1)); done; exit $((20 + told))";
    let launch = bed.launch(1, slow);
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|r| matches!(r, ExecutorReport::Started { .. }).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    bed.executor.carry_out(Order::Stop { task: launch.task, until: now() + Span::from_s(40) });
    let over = bed.over(launch.task).await;
    let whole = matches!(over, ExecutorReport::Exited { code: 21, ending: Ending::Stopped, .. });
    assert!(whole, "{over:?}: {}", bed.log(1));

    // What does not end by itself is killed when it is over, and no later.
    let deaf = bed.launch(2, "trap '' TERM; echo up; while :; do sleep 0.2; done");
    bed.executor.carry_out(Order::Launch(deaf.clone()));
    bed.find(|r| matches!(r, ExecutorReport::Started { .. }).then_some(())).await;
    let told = Instant::now();
    bed.executor.carry_out(Order::Stop { task: deaf.task, until: now() + Span::from_s(10) });
    let over = bed.over(deaf.task).await;
    let killed = matches!(over, ExecutorReport::Exited { code: 137, ending: Ending::Stopped, .. });
    assert!(killed, "{over:?}");
    assert!(told.elapsed() >= Duration::from_secs(9), "{:?}", told.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_starts_once_nothing_of_the_one_before_it_runs() {
    let Some(daemon) = swarm() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), Span::from_s(60)).await;
    bed.joined(1).await;
    let script = "trap '' TERM; while :; do date +%s > $ERA_OUTPUTS/at-$ERA_ATTEMPT; \
                  test -e $ERA_OUTPUTS/go && exit 0; sleep 0.1; done";
    let mut launch = bed.launch(1, script);
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|r| matches!(r, ExecutorReport::Started { .. }).then_some(())).await;
    // Neither its guard nor a signal ends it: only the engine does, and takes its time.
    let id = daemon.docker(&["ps", "-q", "--filter", "label=era.attempt=1"]).expect("listed");
    daemon.docker(&["pause", &id]).expect("paused");
    launch.task.attempt = 2;
    bed.executor.carry_out(Order::Launch(launch.clone()));
    tokio::time::sleep(Duration::from_secs(4)).await;
    let old = || daemon.docker(&["ps", "-q", "--filter", "label=era.attempt=1"]).expect("listed");
    let new = || daemon.docker(&["ps", "-q", "--filter", "label=era.attempt=2"]).expect("listed");
    assert!(old().is_empty() || new().is_empty(), "both are there");
    let _ = daemon.docker(&["unpause", &id]);
    bed.find(|r| {
        matches!(r, ExecutorReport::Started { task, .. } if task.attempt == 2).then_some(())
    })
    .await;
    assert_eq!(old(), "");
    std::fs::write(data.path().join("jobs/1/outputs/go"), "").expect("write");
    let over = bed.over(launch.task).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}");
}

fn instance(name: &str, task: TaskId, site: &str) -> Instance {
    let labels = [
        ("era.site", site.to_owned()),
        ("era.job", task.job.0.to_string()),
        ("era.part", task.part.to_string()),
        ("era.attempt", task.attempt.to_string()),
        ("era.rank", task.rank.to_string()),
    ];
    let labels: HashMap<String, String> = labels.map(|(key, value)| (key.to_owned(), value)).into();
    Instance {
        name: name.to_owned(),
        labels,
        image: IMAGE.into(),
        command: ["/bin/sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"]
            .map(str::to_owned)
            .to_vec(),
        env: Vec::new(),
        secrets: None,
        user: Some((1000, 1000)),
        folder: "/".into(),
        mounts: Vec::new(),
        read_only: false,
        reserved: true,
        cpu_milli: 0,
        memory_bytes: 0,
        processes: 0,
        shm_bytes: 0,
        gpus: Vec::new(),
        network: None,
        node: None,
        grace_s: 10,
        log_bytes: 1 << 20,
    }
}

/// Waits until an instance is so.
async fn becomes(
    engine: &DockerEngine,
    task: TaskId,
    what: &str,
    is: impl Fn(Option<&InstanceState>) -> bool,
) {
    let begun = Instant::now();
    loop {
        let seen = engine.inspect(task).await.expect("inspected").map(|seen| seen.state);
        if is(seen.as_ref()) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {seen:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// All that is asked of instances and volumes, each of it twice: what is done stays done.
async fn whole_interface(daemon: &Daemon, site: &str) {
    let address = EngineAddress::parse(&daemon.address()).expect("an address");
    let site_named = SiteId::named(site).expect("a site");
    let engine = DockerEngine::connect(&address, site_named, MachineClock::system())
        .await
        .expect("an engine");
    let task = TaskId { job: JobId(9), part: 0, attempt: 1, rank: 0 };
    let one = instance(&format!("era-{site}-j9-p0-a1-r0"), task, site);
    for _ in 0..2 {
        engine.create(&one, false).await.expect("made");
    }
    becomes(&engine, task, "made and not started", |s| matches!(s, Some(InstanceState::Waits(_))))
        .await;
    for _ in 0..2 {
        for _ in 0..2 {
            engine.start(task).await.expect("started");
        }
        becomes(&engine, task, "started", |s| s == Some(&InstanceState::Runs)).await;
        for _ in 0..2 {
            engine.stop(task).await.expect("stopped");
        }
        becomes(&engine, task, "stopped", |s| s.is_some_and(|s| *s != InstanceState::Runs)).await;
    }
    engine.start(task).await.expect("started again");
    becomes(&engine, task, "started again", |s| s == Some(&InstanceState::Runs)).await;
    for _ in 0..2 {
        engine.delete(task).await.expect("removed");
    }
    becomes(&engine, task, "removed", |s| s.is_none()).await;
    let volume = era_cloud::docker::Volume::Local { name: "v".into() };
    for _ in 0..2 {
        engine.create_volume("era-whole", &volume).await.expect("made");
    }
    assert!(daemon.docker(&["volume", "ls", "-q"]).expect("listed").contains("era-whole"));
    for _ in 0..2 {
        engine.delete_volume("era-whole").await.expect("removed");
    }
    assert!(!daemon.docker(&["volume", "ls", "-q"]).expect("listed").contains("era-whole"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_made_inspected_started_stopped_and_removed_on_either_kind_of_engine() {
    let Some(daemon) = Daemon::alone() else { return };
    whole_interface(&daemon, "00000001").await;
    daemon.docker(&["swarm", "init", "--advertise-addr", "127.0.0.1"]).expect("a Swarm");
    whole_interface(&daemon, "00000002").await;

    // A secret whose service never came is gone after the next start, and no other.
    let data = data();
    let bed = Bed::start(&daemon.address(), data.path(), Span::from_s(30)).await;
    drop(bed);
    let site = std::fs::read_to_string(data.path().join("docker-site")).expect("a site");
    for (name, site) in [("era-orphan", site.trim()), ("era-other", "ffffffff")] {
        let label = format!("era.site={site}");
        let file = data.path().join("token").display().to_string();
        std::fs::write(&file, "hush").expect("write");
        daemon.docker(&["secret", "create", "--label", &label, name, &file]).expect("kept");
    }
    let _bed = Bed::start(&daemon.address(), data.path(), Span::from_s(30)).await;
    let secrets = daemon.docker(&["secret", "ls", "--format", "{{.Name}}"]).expect("listed");
    assert_eq!(secrets, "era-other");
}
