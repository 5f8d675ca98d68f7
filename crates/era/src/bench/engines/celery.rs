//! Celery: how fast messages are published and tasks are run, by ours and by its own.
//!
//! A `redis-server` of its own is started. Celery is the one of the Python that `ERA_BENCH_PYTHON`
//! names, else of the environment that `scripts/test-python` makes; without it only our side is
//! measured, and the report says so.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use era_cloud::celery::EXEC;
use era_cloud::celery::body::BodyFormat;
use era_cloud::celery::bus::Bus;
use era_cloud::celery::envelope::Envelope;
use era_cloud::celery::message::TaskMessage;
use era_cloud::celery::names::RedisAddress;
use era_cloud::celery::queue;
use serde_json::{Map, Value, json};

use crate::clock::instant;

/// Messages that our publisher sends, one after the other.
const PUBLISHED: usize = 10_000;
/// Messages that Celery's client sends.
const CLIENT_PUBLISHED: usize = 2_000;
/// Tasks that a worker runs.
const TASKS: usize = 2_000;
/// How long anything may take.
const DONE_MAX: Duration = Duration::from_secs(300);
/// Celery's side, as a program: `publish` or `worker`.
const PROGRAM: &str = include_str!("theirs.py");

/// A process that ends with the value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let until = instant() + Duration::from_secs(10);
        while instant() < until {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that is measured of Celery.
pub(super) fn measure() -> Result<Map<String, Value>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::Builder::new().prefix("era-bench-").tempdir()?;
    let place = Place::start(folder.path())?;
    let mut report = Map::new();
    let mut keep = |name: &str, value: Option<f64>| {
        report.insert(name.to_owned(), value.map_or(Value::Null, |v| json!(v.round())));
    };
    keep("celery_publish_per_second", Some(runtime.block_on(place.publish())?));
    keep("rust_worker_tasks_per_second", Some(runtime.block_on(place.our_worker())?));
    let python = python();
    let theirs = |what: fn(&Place, &Path) -> Result<f64>| {
        python.as_deref().map(|python| what(&place, python)).transpose()
    };
    keep("celery_client_publish_per_second", theirs(Place::their_client)?);
    keep("celery_worker_tasks_per_second", theirs(Place::their_worker)?);
    if python.is_none() {
        let why = "no Python with Celery: run scripts/test-python, or set ERA_BENCH_PYTHON";
        report.insert("celery_missing".to_owned(), why.into());
    }
    Ok(report)
}

/// A Python that has Celery.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("ERA_BENCH_PYTHON").map(PathBuf::from);
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let ours = Path::new(&target).join("python/bin/python");
    let python = named.unwrap_or(ours);
    let mut import = Command::new(&python);
    import.args(["-c", "import celery, redis"]).stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success()).then_some(python)
}

/// A Redis, and a folder for what talks to it.
struct Place {
    folder: PathBuf,
    address: RedisAddress,
    _redis: Running,
}

impl Place {
    fn start(folder: &Path) -> Result<Place> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"])
            .arg(port.to_string())
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server is needed: apt-get install redis-server")?;
        let address = RedisAddress::read(&format!("redis://127.0.0.1:{port}/0"))?;
        let redis = Running(child);
        let until = instant() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(instant() < until, "redis-server does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Place { folder: folder.to_owned(), address, _redis: redis })
    }

    /// One client, one message after the other, each answered before the next.
    async fn publish(&self) -> Result<f64> {
        let bus = Bus::connect(&self.address, crate::clock::machine()).await?;
        let begun = instant();
        for n in 0..PUBLISHED {
            bus.publish(&[message(&bus, EXEC, n, "bench-publish")?]).await?;
        }
        let rate = PUBLISHED as f64 / begun.elapsed().as_secs_f64();
        let _: i64 = bus.run("forget messages", redis::cmd("DEL").arg("bench-publish")).await?;
        Ok(rate)
    }

    /// `true`, so many times, through our worker.
    async fn our_worker(&self) -> Result<f64> {
        let data = self.folder.join("worker");
        let child = Command::new(std::env::current_exe()?)
            .args(["worker", "--node", "bench", "--concurrency", "16", "--broker"])
            .arg(&self.address.url)
            .arg("--data")
            .arg(&data)
            .stdout(Stdio::null())
            .spawn()?;
        let _worker = Running(child);
        self.run_all(EXEC).await
    }

    /// Sends the tasks, and waits until the last is served. One runs first, so that whoever serves
    /// is there.
    async fn run_all(&self, task: &str) -> Result<f64> {
        let bus = Bus::connect(&self.address, crate::clock::machine()).await?;
        bus.publish(&[message(&bus, task, usize::MAX, queue::COMPUTE)?]).await?;
        self.served(&bus).await?;
        let all: Result<Vec<Envelope>> =
            (0..TASKS).map(|n| message(&bus, task, n, queue::COMPUTE)).collect();
        let begun = instant();
        bus.publish(&all?).await?;
        self.served(&bus).await?;
        Ok(TASKS as f64 / begun.elapsed().as_secs_f64())
    }

    /// Waits until no message waits and none is held.
    async fn served(&self, bus: &Bus) -> Result<()> {
        let until = instant() + DONE_MAX;
        loop {
            let mut ask = redis::pipe();
            ask.cmd("LLEN").arg(queue::COMPUTE).cmd("HLEN").arg("unacked");
            let (waiting, held): (u64, u64) = bus.run_all("count messages", &ask).await?;
            if waiting + held == 0 {
                return Ok(());
            }
            ensure!(instant() < until, "{waiting} messages wait and {held} are held");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn their_program(&self) -> Result<PathBuf> {
        let path = self.folder.join("bench.py");
        std::fs::write(&path, PROGRAM)?;
        Ok(path)
    }

    /// Celery's own client, one message after the other.
    fn their_client(&self, python: &Path) -> Result<f64> {
        let done = Command::new(python)
            .arg(self.their_program()?)
            .args(["publish", &CLIENT_PUBLISHED.to_string()])
            .env("BROKER", &self.address.url)
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(done.status.success(), "Celery's client failed");
        let text = String::from_utf8_lossy(&done.stdout);
        text.trim().parse().with_context(|| format!("Celery's client said {text}"))
    }

    /// The same work through a prefork worker of Celery, with a process for each core.
    fn their_worker(&self, python: &Path) -> Result<f64> {
        let child = Command::new(python)
            .arg(self.their_program()?)
            .arg("worker")
            .env("BROKER", &self.address.url)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let _worker = Running(child);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.run_all("bench.run"))
    }
}

fn message(bus: &Bus, task: &str, n: usize, queue: &str) -> Result<Envelope> {
    let id = format!("{task}-{n}-{}", bus.tag());
    let message = TaskMessage::new(task, &id, vec![json!(["true"])], Map::new());
    Ok(message.wrap(queue, BodyFormat::Json, None, bus.tag())?)
}
