//! The Celery executor on a real Redis that stands still, and on a node that takes nothing: what
//! was not begun is given up with a word in its log, and never starts afterwards.

#![cfg(target_os = "linux")]

mod again;
mod fenced;
mod sealed;
#[path = "../../../skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use era_cloud::celery::bus::Bus;
use era_cloud::celery::fence::Leadership;
use era_cloud::celery::names::{self, CeleryId, RedisAddress};
use era_cloud::celery::node::{CeleryNode, NodeOptions, Runs};
use era_cloud::celery::worker::Worker;
use era_cloud::celery::{CeleryExecutor, CeleryOptions};
use era_cloud::clock::MachineClock;
use era_cloud::local::LocalOptions;
use era_cloud::log::{LogReader, Only};
use era_cloud::task::SupervisorSettings;
use era_cloud::{
    Ending, Executor, ExecutorReport, FoundNode, Launch, Order, TaskLimits, TaskSecrets, TaskSpec,
};
use era_core::job::TaskId;
use era_core::resources::{Capacity, Resources};
use era_core::units::{JobId, NodeId, Span, Time, UserId};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(180);
/// Longer than Redis stands still, so that what runs meanwhile goes on.
const LEASE_S: u64 = 120;

/// A site with nodes, in a folder that all of them see.
struct Bed {
    folder: tempfile::TempDir,
    redis: Child,
    port: u16,
    lease_s: u64,
    /// How often the lead was taken.
    led: Arc<AtomicU64>,
    executor: CeleryExecutor,
    reports: mpsc::Receiver<ExecutorReport>,
}

/// Now, by the wall clock.
fn now() -> Time {
    MachineClock::system().now()
}

/// A server that took the lead, as the database would tell.
struct Leads {
    led: Arc<AtomicU64>,
    generation: u64,
}

impl Leads {
    fn next(led: &Arc<AtomicU64>) -> Arc<Leads> {
        let generation = led.fetch_add(1, Ordering::SeqCst) + 1;
        Arc::new(Leads { led: Arc::clone(led), generation })
    }
}

impl Leadership for Leads {
    fn generation(&self) -> u64 {
        self.generation
    }

    fn holds(&self) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + '_>> {
        Box::pin(ready(Ok(self.led.load(Ordering::SeqCst) == self.generation)))
    }
}

impl Bed {
    /// `None` where there is no Redis and need not be.
    async fn start() -> Option<Bed> {
        Bed::with_lease(LEASE_S).await
    }

    async fn with_lease(lease_s: u64) -> Option<Bed> {
        let folder = tempfile::tempdir().expect("a folder");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("its number").port();
        drop(free);
        let redis = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let redis = match redis {
            Ok(redis) => redis,
            Err(why) => {
                skipped::skipped(&format!("redis-server: {why}"));
                return None;
            }
        };
        while Bus::connect(&address(port, lease_s), MachineClock::system()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let led = Arc::default();
        let (executor, reports) = server(&address(port, lease_s), folder.path(), &led).await;
        Some(Bed { folder, redis, port, lease_s, led, executor, reports })
    }

    /// A server that starts anew. The one before it is only paused.
    async fn restart_server(&mut self) -> (CeleryExecutor, mpsc::Receiver<ExecutorReport>) {
        let address = address(self.port, self.lease_s);
        let (executor, reports) = server(&address, self.folder.path(), &self.led).await;
        let executor = std::mem::replace(&mut self.executor, executor);
        (executor, std::mem::replace(&mut self.reports, reports))
    }

    async fn bus(&self) -> Bus {
        Bus::connect(&address(self.port, self.lease_s), MachineClock::system())
            .await
            .expect("Redis")
    }

    /// What Celery calls a task.
    fn id(&self, launch: &Launch) -> String {
        let site = std::fs::read_to_string(self.folder.path().join("site")).expect("a site");
        CeleryId { site, task: launch.task }.to_string()
    }

    /// A node that holds a lease. What it is sent is taken by a worker, where it has one.
    async fn node(&mut self, name: &str) -> CeleryNode {
        let folder = self.folder.path().join(name);
        let runs = Runs::Processes(LocalOptions {
            folder: folder.join("shim"),
            program: env!("CARGO_BIN_EXE_era-cloud-test-shim").into(),
            arguments: Vec::new(),
            settings: SupervisorSettings::default(),
        });
        let capacity = Capacity { cpu: 4000, memory: 4096, ..Capacity::default() };
        let (name, labels) = (name.to_owned(), BTreeMap::new());
        let found =
            FoundNode { name: name.clone(), capacity, labels, address: None, simulated: false };
        let bus = self.bus().await;
        let node =
            CeleryNode::start(NodeOptions { found, folder, runs }, bus).await.expect("a node");
        self.find(|report| matches!(report, ExecutorReport::Node(found) if found.name == name))
            .await;
        node
    }

    fn stand_still(&self, still: bool) {
        let signal = if still { "-STOP" } else { "-CONT" };
        let done = Command::new("kill").args([signal, &self.redis.id().to_string()]).status();
        assert!(done.expect("a signal").success());
    }

    /// A shell's words on a node.
    fn launch(&self, node: &str, job: u64, script: &str) -> Launch {
        self.launch_with(node, job, script, TaskSecrets::default())
    }

    fn launch_with(&self, node: &str, job: u64, script: &str, secrets: TaskSecrets) -> Launch {
        let mut launch = self.prepared(node, job, script);
        Arc::make_mut(&mut launch.spec).secrets = secrets;
        self.executor.carry_out(Order::Launch(launch.clone()));
        launch
    }

    fn prepared(&self, node: &str, job: u64, script: &str) -> Launch {
        Launch {
            task: TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 },
            node: NodeId(0),
            node_name: node.into(),
            gpus: Vec::new(),
            each: Resources { cpu: 500, memory: 128, ..Resources::default() },
            replicas: 1,
            until: now() + Span::from_s(900),
            master: "127.0.0.1".into(),
            peers: vec!["127.0.0.1".into()],
            spec: Arc::new(TaskSpec {
                user: UserId(1),
                user_name: "ada".into(),
                job_name: None,
                command: ["/bin/sh", "-c", script].map(Into::into).into(),
                env: BTreeMap::new(),
                secrets: TaskSecrets::default(),
                code: Vec::new(),
                inputs: Vec::new(),
                image: None,
                folder: self.job(job),
                checkpoints_of: None,
                alone: true,
                terminal: false,
                array: None,
                limits: TaskLimits::default(),
            }),
        }
    }

    fn job(&self, job: u64) -> PathBuf {
        JobId(job).folder(self.folder.path())
    }

    /// How often a job has said that it runs.
    fn runs(&self, job: u64) -> usize {
        let said = std::fs::read_to_string(self.job(job).join("outputs/ran"));
        said.map_or(0, |said| said.lines().count())
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
        let task = launch.task;
        let over = self
            .find(|report| {
                matches!(report, ExecutorReport::Exited { task: t, .. } | ExecutorReport::Lost { task: t, .. }
                    if *t == task)
            })
            .await;
        self.executor.acknowledge(task);
        over
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.stand_still(false);
        let _ = self.redis.kill();
        let _ = self.redis.wait();
    }
}

fn address(port: u16, lease_s: u64) -> RedisAddress {
    RedisAddress::read(&format!("redis://127.0.0.1:{port}/0?lease={lease_s}")).expect("an address")
}

async fn server(
    address: &RedisAddress,
    folder: &Path,
    led: &Arc<AtomicU64>,
) -> (CeleryExecutor, mpsc::Receiver<ExecutorReport>) {
    let (tell, reports) = mpsc::channel(1024);
    let (site, lead) = (folder.join("site"), Leads::next(led));
    let options =
        CeleryOptions { address: address.clone(), site, lead, clock: MachineClock::system() };
    (CeleryExecutor::start(options, tell).await.expect("an executor"), reports)
}

fn log(job: &Path) -> String {
    let mut log = LogReader::open(&job.join("logs"), Only::default()).expect("a log");
    let lines = log.read(100, 1 << 20, Time::MAX).expect("lines");
    lines.iter().map(|line| String::from_utf8_lossy(&line.text) + "\n").collect()
}

/// Says that it runs, and goes on until it may end.
const BUSY: &str = "echo x >> $ERA_OUTPUTS/ran; until test -e $ERA_OUTPUTS/go; do sleep 0.1; done";
/// Says that it runs.
const BRIEF: &str = "echo x >> $ERA_OUTPUTS/ran";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_redis_keeps_from_starting_is_given_up_and_never_starts_though_its_message_arrives() {
    let Some(mut bed) = Bed::start().await else { return };
    let places = || 4;
    let workers = [
        Worker::start(bed.node("busy").await, places()),
        Worker::start(bed.node("idle").await, places()),
    ];
    let busy = bed.launch("busy", 1, BUSY);
    bed.find(|r| matches!(r, ExecutorReport::Started { task, .. } if *task == busy.task)).await;

    // Whatever is written to it from here on lies in its buffers, and is read in the end.
    bed.stand_still(true);
    let (waits, cancelled) = (bed.launch("idle", 2, BRIEF), bed.launch("idle", 3, BRIEF));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let until = now() + Span::from_s(600);
    bed.executor.carry_out(Order::Stop { task: cancelled.task, until });
    let over = bed.over(&cancelled).await;
    assert!(matches!(over, ExecutorReport::Exited { ending: Ending::Stopped, .. }), "{over:?}");
    // Before what was to start there, so that nothing is planned there anew.
    let lost = bed.find(|report| matches!(report, ExecutorReport::NodeLost { .. })).await;
    assert_eq!(
        lost,
        ExecutorReport::NodeLost { name: "idle".to_owned() },
        "what runs is nobody's to end"
    );
    let over = bed.over(&waits).await;
    let reason = "its-redis-went-away".to_owned();
    assert_eq!(over, ExecutorReport::Lost { task: waits.task, reason });
    let said = log(&bed.job(2));
    for words in [
        format!("the task waits to be started: Redis at redis://127.0.0.1:{}/0", bed.port).as_str(),
        "the task was not started: Redis at",
        "is it running, and is this its address?",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }

    bed.stand_still(false);
    bed.find(|report| matches!(report, ExecutorReport::Node(found) if found.name == "idle")).await;
    let last = bed.launch("idle", 4, BRIEF);
    let over = bed.over(&last).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}");
    std::fs::write(bed.job(1).join("outputs/go"), "").expect("written");
    let over = bed.over(&busy).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "it went on: {over:?}");
    assert_eq!([1, 2, 3, 4].map(|job| bed.runs(job)), [1, 0, 0, 1]);
    for worker in &workers {
        worker.node().leave().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_go_to_their_worker_by_the_jobs_folder_and_not_by_redis() {
    let Some(mut bed) = Bed::start().await else { return };
    let worker = Worker::start(bed.node("a").await, 4);
    let secrets = TaskSecrets::new([("NOTE".into(), "hush-hush".into())].into());
    let launch = bed.launch_with("a", 1, &format!("{BUSY}; echo $NOTE"), secrets);
    bed.find(|report| matches!(report, ExecutorReport::Started { .. })).await;
    let bus = bed.bus().await;
    let mut all = redis::cmd("HVALS");
    all.arg(names::LAUNCHES);
    let kept: Vec<String> = bus.run("show what is out", &all).await.expect("launches");
    assert!(kept[0].contains(r#""secrets":{"NOTE":null}"#), "{kept:?}");
    assert!(!kept[0].contains("hush-hush"));
    // What is written down again has no more in it.
    bed.executor.carry_out(Order::Prolong { task: launch.task, until: now() + Span::from_s(999) });
    let mut prolonged = kept.clone();
    while prolonged == kept {
        prolonged = bus.run("show what is out", &all).await.expect("launches");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!prolonged[0].contains("hush-hush"));
    let file = bed.job(1).join("secrets-p0-a1-r0");
    assert!(file.exists(), "a worker that comes back needs it again");
    std::fs::write(bed.job(1).join("outputs/go"), "").expect("written");
    let over = bed.over(&launch).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}");
    assert_eq!(log(&bed.job(1)), "hush-hush\n");
    let begun = Instant::now();
    while file.exists() {
        assert!(begun.elapsed() < PATIENCE, "it goes with its task");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    worker.node().leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_takes_nothing_is_drained_until_its_queue_is_empty() {
    let Some(mut bed) = Bed::start().await else { return };
    let node = bed.node("silent").await;
    let untaken = bed.launch("silent", 1, BRIEF);
    let drained = bed.find(|report| matches!(report, ExecutorReport::NodeDrained { .. })).await;
    assert_eq!(drained, ExecutorReport::NodeDrained { name: "silent".to_owned() });
    let over = bed.over(&untaken).await;
    let reason = "its-worker-did-not-take-it".to_owned();
    assert_eq!(over, ExecutorReport::Lost { task: untaken.task, reason });
    let said = log(&bed.job(1));
    for words in ["the task waits to be started", "the task was not started", "eracompute.silent"] {
        assert!(said.contains(words), "{words}: {said}");
    }

    let worker = Worker::start(node, 4);
    let resumed = bed.find(|report| matches!(report, ExecutorReport::NodeResumed { .. })).await;
    assert_eq!(resumed, ExecutorReport::NodeResumed { name: "silent".to_owned() });
    let next = bed.launch("silent", 2, BRIEF);
    let over = bed.over(&next).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}");
    assert_eq!([1, 2].map(|job| bed.runs(job)), [0, 1], "what was called off was not run");
    worker.node().leave().await;
}
