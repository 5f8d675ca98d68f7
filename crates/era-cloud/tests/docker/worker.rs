//! A worker whose tasks are containers: launches come through Redis, and the lease of the node is
//! kept by the guards in them.

use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use era_cloud::celery::body::BodyFormat;
use era_cloud::celery::bus::Bus;
use era_cloud::celery::fence::Leadership;
use era_cloud::celery::message::TaskMessage;
use era_cloud::celery::names::RedisAddress;
use era_cloud::celery::node::{CeleryNode, NodeError, NodeOptions, Runs};
use era_cloud::celery::worker::Worker;
use era_cloud::celery::{CeleryExecutor, CeleryOptions, EXEC, queue};
use era_cloud::clock::MachineClock;
use era_cloud::{Ending, Executor, ExecutorReport, FoundNode, Launch, Order, docker};
use era_core::resources::Capacity;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::bed::{Daemon, IMAGE, PATIENCE, data, log};

const NODE: &str = "boxes";
/// Short, so that what its end does is seen soon.
const LEASE_S: u64 = 3;
/// Long enough for a worker to come back on a machine that has much to do.
const LONG_LEASE_S: u64 = 30;

/// A server of the test's own.
struct Redis {
    process: Child,
    port: u16,
    lease_s: u64,
}

impl Redis {
    async fn start(folder: &Path, lease_s: u64) -> Redis {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("its number").port();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let redis = Redis { process, port, lease_s };
        while Bus::connect(&redis.address(), MachineClock::system()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        redis
    }

    fn address(&self) -> RedisAddress {
        let Redis { port, lease_s, .. } = self;
        RedisAddress::read(&format!("redis://127.0.0.1:{port}/0?lease={lease_s}"))
            .expect("an address")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn worker(daemon: &Daemon, redis: &Redis, folder: &Path) -> Worker {
    let address = docker::EngineAddress::parse(&daemon.address()).expect("an address");
    let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
    let labels = std::collections::BTreeMap::new();
    let found = FoundNode { name: NODE.into(), capacity, labels, address: None, simulated: false };
    let options = NodeOptions { found, folder: folder.into(), runs: Runs::Containers(address) };
    loop {
        let bus = Bus::connect(&redis.address(), MachineClock::system()).await.expect("Redis");
        match CeleryNode::start(options.clone(), bus).await {
            Ok(node) => return Worker::start(node, 4),
            // The one before it is about to be gone.
            Err(NodeError::Folded(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The only server that there is.
struct Alone;

impl Leadership for Alone {
    fn generation(&self) -> u64 {
        1
    }

    fn holds(&self) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(true)))
    }
}

/// The scheduler's side, as one that reports are read from.
struct Server {
    executor: CeleryExecutor,
    reports: mpsc::Receiver<ExecutorReport>,
}

impl Server {
    async fn start(redis: &Redis, data: &Path) -> Server {
        let (tell, reports) = mpsc::channel(1024);
        let (site, lead) = (data.join("site"), Arc::new(Alone));
        let options =
            CeleryOptions { address: redis.address(), site, lead, clock: MachineClock::system() };
        let executor = CeleryExecutor::start(options, tell).await.expect("an executor");
        let mut server = Server { executor, reports };
        server
            .find(|report| matches!(report, ExecutorReport::Node(node) if node.name == NODE))
            .await;
        server
    }

    async fn find(&mut self, wanted: impl Fn(&ExecutorReport) -> bool) -> ExecutorReport {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            let report = next.expect("a report in time").expect("an executor");
            if wanted(&report) {
                return report;
            }
        }
    }

    async fn over(&mut self, launch: &Launch) -> ExecutorReport {
        let over = |report: &ExecutorReport| {
            matches!(report, ExecutorReport::Exited { task, .. } | ExecutorReport::Lost { task, .. }
                if *task == launch.task)
        };
        let over = self.find(over).await;
        self.executor.acknowledge(launch.task);
        over
    }
}

fn launch(data: &Path, job: u64, script: &str) -> Launch {
    let mut launch = crate::bed::launch(data, NODE, job, script);
    Arc::make_mut(&mut launch.spec).image = Some(IMAGE.into());
    launch
}

fn running(daemon: &Daemon) -> String {
    daemon.docker(&["ps", "-q", "--filter", "label=era.job"]).expect("listed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_with_an_image_runs_in_a_container_behind_a_worker_and_outlives_its_restart() {
    let Some(daemon) = Daemon::alone() else { return };
    let (data, own) = (data(), crate::bed::data());
    let redis = Redis::start(own.path(), LONG_LEASE_S).await;
    let serving = worker(&daemon, &redis, own.path()).await;
    let mut server = Server::start(&redis, data.path()).await;
    // Nothing but the image is there: this machine has more than busybox.
    let first =
        launch(data.path(), 1, "ls /usr 2>/dev/null || echo in a box; echo $ERA_NODE; exit 3");
    server.executor.carry_out(Order::Launch(first.clone()));
    let over = server.over(&first).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 3, ending: Ending::Itself, .. }),
        "{over:?}"
    );
    assert_eq!(log(data.path(), 1), format!("in a box\n{NODE}\n"));

    // A command of Celery's clients, too, in the image that the worker's address names.
    let bus = Bus::connect(&redis.address(), MachineClock::system()).await.expect("Redis");
    let words = json!(["sh", "-c", "ls /usr 2>/dev/null || echo in a box"]);
    let message = TaskMessage::new(EXEC, "a-command", vec![words], Map::new());
    let wrapped = message.wrap(queue::EAGER, BodyFormat::Json, None, bus.tag()).expect("a message");
    bus.publish(&[wrapped]).await.expect("sent");
    let result = loop {
        let found = bus.results(&["a-command".to_owned()]).await.expect("looked up").remove(0);
        match found.filter(|meta| meta.status.is_final()) {
            Some(meta) => break meta.result,
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    assert_eq!((&result["code"], &result["output"]), (&Value::from(0), &"in a box\n".into()));

    // A worker that comes back within its lease finds its container again.
    let long =
        launch(data.path(), 2, "echo one; until test -e $ERA_OUTPUTS/go; do sleep 0.1; done");
    server.executor.carry_out(Order::Launch(long.clone()));
    server.find(|r| matches!(r, ExecutorReport::Started { task, .. } if *task == long.task)).await;
    let before = running(&daemon);
    drop(serving);
    let serving = worker(&daemon, &redis, own.path()).await;
    assert_eq!(running(&daemon), before);
    std::fs::write(data.path().join("jobs/2/outputs/go"), "").expect("written");
    let over = server.over(&long).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 0, ending: Ending::Itself, .. }),
        "{over:?}"
    );
    assert_eq!(log(data.path(), 2), "one\n", "it ran once");

    // A stop reaches it.
    let endless = launch(data.path(), 3, "trap 'exit 7' TERM; while :; do sleep 0.1; done");
    server.executor.carry_out(Order::Launch(endless.clone()));
    server
        .find(|r| matches!(r, ExecutorReport::Started { task, .. } if *task == endless.task))
        .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let until = crate::bed::now() + era_core::units::Span::from_s(20);
    server.executor.carry_out(Order::Stop { task: endless.task, until });
    let over = server.over(&endless).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 7, ending: Ending::Stopped, .. }),
        "{over:?}"
    );
    drop(serving);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_whose_worker_died_is_gone_before_its_node_is_given_up() {
    let Some(daemon) = Daemon::alone() else { return };
    let (data, own) = (data(), crate::bed::data());
    let redis = Redis::start(own.path(), LEASE_S).await;
    let serving = worker(&daemon, &redis, own.path()).await;
    let mut server = Server::start(&redis, data.path()).await;
    let endless = launch(data.path(), 1, "trap '' TERM; while :; do sleep 0.1; done");
    server.executor.carry_out(Order::Launch(endless.clone()));
    server
        .find(|r| matches!(r, ExecutorReport::Started { task, .. } if *task == endless.task))
        .await;
    // It is renewed for longer than a lease.
    tokio::time::sleep(Duration::from_secs(LEASE_S * 3)).await;
    assert_ne!(running(&daemon), "");
    drop(serving);
    server.find(|report| matches!(report, ExecutorReport::NodeLost { name } if name == NODE)).await;
    assert_eq!(running(&daemon), "", "its guard has ended it, though it would not hear");
    assert!(matches!(server.over(&endless).await, ExecutorReport::Lost { .. }));
}
