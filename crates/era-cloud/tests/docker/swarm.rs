//! On a Swarm of three nodes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_cloud::docker::{DockerEngine, EngineAddress, InstanceState};
use era_cloud::{Ending, Executor, ExecutorReport, Launch, Order, TaskSecrets};
use era_core::units::Span;

use crate::bed::{Bed, can, data};
use crate::registry::{LOGIN, Registry, write_private};
use crate::three::Swarm;

/// How long after a loss the scheduler would start the next attempt.
const FENCE: Span = Span(15_000);

/// A rank that says every fifth of a second that it lives, until it is told to go.
const RANK: &str = "echo up $(hostname) $MASTER_ADDR; \
    while ! nslookup rank-0 >/dev/null || ! nslookup rank-1 >/dev/null; do sleep 0.2; done; echo met; \
    while ! test -e $ERA_OUTPUTS/go; do \
    echo $(date +%s) $ERA_ATTEMPT $ERA_RANK >> $ERA_OUTPUTS/beats-$ERA_ATTEMPT-$ERA_RANK; sleep 0.2; done; echo done";

fn gang(bed: &Bed, attempt: u32, nodes: [&str; 2]) -> Vec<Launch> {
    let rank = |(rank, node): (u32, &str)| {
        let mut launch = bed.launch(1, RANK);
        launch.task.attempt = attempt;
        launch.task.rank = rank;
        launch.replicas = 2;
        launch.node_name = node.to_owned();
        launch
    };
    (0..).zip(nodes).map(rank).collect()
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(tokio::time::timeout(crate::bed::PATIENCE, waited).await.is_ok(), "{what}");
}

fn beats(data: &Path, attempt: u32, rank: u32) -> Vec<i64> {
    let file = data.join(format!("jobs/1/outputs/beats-{attempt}-{rank}"));
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_outlives_a_node_that_is_cut_off_and_nothing_runs_twice() {
    let Some(swarm) = Swarm::start() else { return };
    let data = data();
    let mut bed = Bed::start(&swarm.address(), data.path(), FENCE).await;
    assert!(bed.executor.engine().is_swarm());
    bed.joined(3).await;
    let names: Vec<String> = (0..3).map(|place| swarm.name(place, &bed.nodes)).collect();
    let first = gang(&bed, 1, [&names[1], &names[2]]);
    for launch in &first {
        bed.executor.carry_out(Order::Launch(launch.clone()));
    }
    for _ in &first {
        bed.find(|r| matches!(r, ExecutorReport::Started { .. }).then_some(())).await;
    }
    let path = data.path().to_owned();
    eventually("both ranks meet by name and beat", || {
        !beats(&path, 1, 0).is_empty() && !beats(&path, 1, 1).is_empty()
    })
    .await;
    // Each on the node that was chosen for it.
    for (place, rank) in [(1, 0), (2, 1)] {
        let filter = format!("label=era.rank={rank}");
        let there = swarm.nodes[place].docker(&["ps", "-q", "--filter", &filter]).expect("listed");
        assert!(!there.is_empty(), "rank {rank}");
    }
    assert!(bed.log(1).contains("met"), "{}", bed.log(1));

    swarm.cut(3, true);
    let lost = bed
        .find(|r| match r {
            ExecutorReport::NodeLost { name } => Some(name.clone()),
            _ => None,
        })
        .await;
    assert_eq!(lost, names[2]);
    // What the scheduler does now: stops the rest of the gang, and starts the next attempt when
    // the lease of what was cut off has lapsed.
    let fence = crate::bed::now() + FENCE;
    bed.executor.carry_out(Order::Stop { task: first[0].task, until: fence });
    let stopped = bed.over(first[0].task).await;
    assert!(
        matches!(stopped, ExecutorReport::Exited { ending: Ending::Stopped, .. }),
        "{stopped:?}"
    );
    let left = u64::try_from(fence.since(crate::bed::now()).ms()).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(left)).await;
    let silent = beats(&path, 1, 1);
    let second = gang(&bed, 2, [&names[0], &names[1]]);
    for launch in &second {
        bed.executor.carry_out(Order::Launch(launch.clone()));
    }
    eventually("the next attempt runs on the others", || {
        !beats(&path, 2, 0).is_empty() && !beats(&path, 2, 1).is_empty()
    })
    .await;
    assert_eq!(beats(&path, 1, 1), silent, "what was cut off has ended by itself before");
    let last = silent.last().expect("it lived");
    assert!(*last <= beats(&path, 2, 0)[0].min(beats(&path, 2, 1)[0]));

    // It comes back, and brings nothing with it.
    swarm.cut(3, false);
    bed.find(|r| matches!(r, ExecutorReport::Node(node) if node.name == names[2]).then_some(()))
        .await;
    eventually("its container goes", || {
        let all = ["ps", "-aq", "--filter", "label=era.attempt=1"];
        swarm.nodes[2].docker(&all).is_ok_and(|listed| listed.is_empty())
    })
    .await;
    assert_eq!(beats(&path, 1, 1), silent);

    std::fs::write(path.join("jobs/1/outputs/go"), "").expect("write");
    // In whatever order they end.
    for _ in &second {
        let over =
            bed.find(|r| matches!(r, ExecutorReport::Exited { .. }).then(|| r.clone())).await;
        let ExecutorReport::Exited { task, code: 0, ending: Ending::Itself, .. } = over else {
            panic!("{over:?}");
        };
        bed.executor.acknowledge(task);
    }
    eventually("nothing stays on the engine", || {
        let list = |words: &[&str]| swarm.nodes[0].docker(words).unwrap_or_default();
        list(&["service", "ls", "-q"]).is_empty()
            && !list(&["network", "ls", "--format", "{{.Name}}"]).contains("era-")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_serves_the_whole_interface_and_tells_of_its_nodes() {
    let Some(swarm) = Swarm::start() else { return };
    let data = data();
    // Long enough for a server that starts again on a busy machine.
    let fence = Span::from_s(60);
    let Some(registry) = can(Registry::start(&swarm.nodes[0])) else { return };
    let auth = data.path().join("auth");
    write_private(&auth, LOGIN);
    let address = registry.address(&swarm.nodes[0], &auth);
    let mut bed = Bed::start(&address, data.path(), fence).await;
    bed.joined(3).await;
    let node = swarm.name(1, &bed.nodes);

    // A volume of the manager's own is seen by no other node.
    let local =
        EngineAddress::parse(&format!("{}&volumes=local:kept", swarm.address())).expect("read");
    let alone = DockerEngine::connect_for(&local, data.path(), MachineClock::system())
        .await
        .expect("reached");
    let only = alone.nodes().await.expect("listed");
    assert_eq!(only.len(), 1);
    assert_eq!(only[0].id, swarm.id(0));

    // A secret reaches the task, and nobody who looks at the service.
    let wait = "while ! test -e $ERA_OUTPUTS/go; do sleep 0.1; done";
    let mut launch = bed.launch(1, &format!("echo $API_TOKEN $NOTE; {wait}; exit 4"));
    launch.node_name = node.clone();
    let spec = Arc::make_mut(&mut launch.spec);
    spec.env.insert("API_TOKEN".into(), "hush-hush".into());
    spec.secrets = TaskSecrets::new([("NOTE".into(), "hush-a-bye".into())].into());
    bed.executor.carry_out(Order::Stage(launch.without_secrets()));
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|r| matches!(r, ExecutorReport::Started { .. }).then_some(())).await;
    let ours = ["service", "ls", "-q", "--filter", "label=era.attempt=1"];
    let services = swarm.nodes[0].docker(&ours).expect("listed");
    assert_eq!(services.lines().count(), 1, "{services}");
    let all = swarm.nodes[0].docker(&["service", "inspect", services.trim()]).expect("inspected");
    assert!(!all.contains("hush-"));
    let service: serde_json::Value = serde_json::from_str(&all).expect("JSON");
    let template = &service[0]["Spec"]["TaskTemplate"];
    assert_eq!(template["RestartPolicy"]["Condition"], "none", "{all}");
    let (nano, bytes) =
        (u64::from(launch.each.cpu) * 1_000_000, u64::from(launch.each.memory) << 20);
    for kind in ["Limits", "Reservations"] {
        let given = &template["Resources"][kind];
        assert_eq!(given["NanoCPUs"].as_u64(), Some(nano), "{kind}: {all}");
        // Its guard needs some memory of its own.
        let memory = given["MemoryBytes"].as_u64().expect("a number");
        assert!((bytes..bytes + (16 << 20)).contains(&memory), "{kind}: {all}");
    }
    std::fs::write(data.path().join("jobs/1/outputs/go"), "").expect("write");
    let over = bed.find(|r| matches!(r, ExecutorReport::Exited { .. }).then(|| r.clone())).await;
    let ran = matches!(over, ExecutorReport::Exited { code: 4, ending: Ending::Itself, .. });
    assert!(ran, "{over:?}: {}", bed.log(1));
    bed.executor.acknowledge(launch.task);
    assert_eq!(bed.log(1), "hush-hush hush-a-bye\n");

    let engine = bed.executor.engine().clone();
    let volume = era_cloud::docker::Volume::Local { name: "v".into() };
    engine.create_volume("era-test", &volume).await.expect("made");
    engine.create_volume("era-test", &volume).await.expect("made before");
    assert!(swarm.nodes[0].docker(&["volume", "ls", "-q"]).expect("listed").contains("era-test"));
    engine.delete_volume("era-test").await.expect("removed");
    engine.delete_volume("era-test").await.expect("removed before");
    engine.delete(launch.task).await.expect("removed");
    engine.delete(launch.task).await.expect("removed before");
    assert_eq!(engine.inspect(launch.task).await.expect("asked"), None);

    // A volume of an export is made as it is told, and mounted only when something uses it.
    let export =
        era_cloud::docker::Volume::Nfs { server: "10.0.0.1".into(), path: "/srv/era".into() };
    engine.create_volume("era-nfs", &export).await.expect("made");
    let options = ["volume", "inspect", "-f", "{{json .Options}}", "era-nfs"];
    let options = swarm.nodes[0].docker(&options).expect("inspected");
    for option in [r#""type":"nfs""#, r#""o":"addr=10.0.0.1,rw,hard""#, r#""device":":/srv/era""#] {
        assert!(options.contains(option), "{option}: {options}");
    }
    engine.delete_volume("era-nfs").await.expect("removed");

    // An image that no node can have is named, with what was answered and what to do.
    let mut absent = bed.launch(3, "true");
    absent.node_name = node.clone();
    let image = format!("{}/no-such:image", registry.place());
    Arc::make_mut(&mut absent.spec).image = Some(image.clone());
    bed.executor.carry_out(Order::Launch(absent.clone()));
    let over = bed.over(absent.task).await;
    assert!(matches!(over, ExecutorReport::Exited { ending: Ending::NotStarted, .. }), "{over:?}");
    let log = bed.log(3);
    let named = format!("image `{image}` could not be had by the engine at docker://");
    assert!(log.contains(&named) && log.contains("check its name"), "{log}");

    // What runs is found again after a restart of the server, and runs on.
    let script = "echo up; trap 'exit 9' TERM; while :; do sleep 0.1; done";
    let mut polite = bed.launch(2, script);
    polite.node_name = node.clone();
    bed.executor.carry_out(Order::Launch(polite.clone()));
    bed.find(|r| matches!(r, ExecutorReport::Started { .. }).then_some(())).await;
    eventually("it prints", || bed.log(2) == "up\n").await;
    drop(bed);
    let mut bed = Bed::start(&swarm.address(), data.path(), fence).await;
    assert_eq!(bed.executor.known(), [polite.task]);
    bed.joined(3).await;
    bed.find(|r| {
        matches!(r, ExecutorReport::Started { task, .. } if *task == polite.task).then_some(())
    })
    .await;
    let engine = bed.executor.engine().clone();
    assert_eq!(bed.log(2), "up\n", "it was not started again");

    // A stop is heard by the guard, wherever it is.
    let seen = engine.inspect(polite.task).await.expect("asked").expect("there");
    assert_eq!(seen.state, InstanceState::Runs);
    bed.executor
        .carry_out(Order::Stop { task: polite.task, until: crate::bed::now() + Span::from_s(30) });
    let over = bed.over(polite.task).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 9, ending: Ending::Stopped, .. }),
        "{over:?}"
    );

    // What the Swarm's own administrator does is followed.
    let id = swarm.id(1);
    swarm.nodes[0].docker(&["node", "update", "--availability", "drain", &id]).expect("drained");
    bed.find(|r| matches!(r, ExecutorReport::NodeDrained { name } if *name == node).then_some(()))
        .await;
    swarm.nodes[0].docker(&["node", "update", "--availability", "active", &id]).expect("active");
    bed.find(|r| matches!(r, ExecutorReport::NodeResumed { name } if *name == node).then_some(()))
        .await;

    // A worker takes no orders.
    let worker =
        era_cloud::docker::EngineAddress::parse(&swarm.nodes[1].address()).expect("an address");
    let site = era_cloud::docker::SiteId::named("00000000").expect("a site");
    let refused = era_cloud::docker::DockerEngine::connect(&worker, site, MachineClock::system())
        .await
        .err()
        .expect("refused");
    assert!(refused.to_string().contains("give the address of a manager"), "{refused}");
}
