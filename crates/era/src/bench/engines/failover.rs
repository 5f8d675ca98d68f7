//! How long a site is without a scheduler when the one that leads is killed: from `kill -9` to the
//! first submission that is acknowledged, through an application that was there all the time.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use era_store::Dialect;
use era_store::trial::{Server, make_database};
use serde_json::{Map, Value, json};

use crate::bench::server::load::{Connection, request};
use crate::bench::server::site::{free_address, is_ready};
use crate::clock::instant;

/// How often.
const FAILOVERS: usize = 20;
/// How long anything may take.
const MOST: Duration = Duration::from_secs(60);
/// How long a process may take to stop.
const STOP_MAX: Duration = Duration::from_secs(15);
/// How long a standby follows before the next leader is killed.
const BETWEEN: Duration = Duration::from_millis(1500);

/// A process that ends with the value.
struct Layer {
    process: Child,
    http: SocketAddr,
}

impl Layer {
    fn start(kind: &str, folder: &Path, database: &str, more: &[String]) -> Result<Layer> {
        let http = free_address()?;
        let process = Command::new(std::env::current_exe()?)
            .args([kind, "--listen", &http.to_string(), "--data"])
            .arg(folder)
            .args(more)
            .env("ERA_DATABASE", database)
            .env("ERA_CONFIG", folder.join("config"))
            .env("ERA_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("era {kind} cannot be started"))?;
        Ok(Layer { process, http })
    }

    fn core(folder: &Path, database: &str) -> Result<Layer> {
        Layer::start("core", folder, database, &["--inbox".into(), free_address()?.to_string()])
    }

    fn is_ready(&self) -> bool {
        is_ready(self.http)
    }
}

impl Layer {
    /// `kill -9`.
    fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return;
        }
        // What runs tasks takes its idle supervisor along if it is asked.
        let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        let begun = instant();
        while matches!(self.process.try_wait(), Ok(None)) && begun.elapsed() < STOP_MAX {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The time within which all but one in a hundred are over, of twenty the longest.
pub(super) fn measure() -> Result<Map<String, Value>> {
    let folder = tempfile::Builder::new().prefix("era-bench-").tempdir()?;
    let rows = folder.path().join("rows");
    std::fs::create_dir(&rows)?;
    let mut report = Map::new();
    let server = match Server::start(Dialect::Postgres, &rows, true) {
        Ok(server) => server,
        Err(why) => {
            report.insert("failover_missing".to_owned(), why.to_string().into());
            report.insert("failover_p99_s".to_owned(), Value::Null);
            return Ok(report);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(make_database(&server.url(), "era"))?;
    let database = format!("{}/era", server.url());
    let mut times = failovers(&runtime, folder.path(), &database)?;
    times.sort();
    let seconds = |time: &Duration| json!((time.as_secs_f64() * 100.0).round() / 100.0);
    report.insert("failover_median_s".to_owned(), seconds(&times[times.len() / 2]));
    report.insert("failover_p99_s".to_owned(), times.last().map_or(Value::Null, seconds));
    Ok(report)
}

fn failovers(
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    database: &str,
) -> Result<Vec<Duration>> {
    let place = |number: usize| folder.join(format!("core-{number}"));
    let mut cores = vec![Layer::core(&place(0), database)?, Layer::core(&place(1), database)?];
    let shared = folder.join("shared");
    let app = Layer::start("app", &shared, database, &[])?;
    let _cloud = Layer::start("cloud", &shared, database, &["--insecure-shared-user".to_owned()])?;
    until("an application", || app.is_ready().then_some(()))?;
    let token = until("a token", || std::fs::read_to_string(shared.join("local-token")).ok())?;
    let job = json!({
        "work": {"command": ["true"]},
        "ask": {"resources": {"cpu": "50m", "memory": "16Mi"}, "duration_s": 60},
    });
    let submission = request("POST", "/jobs", token.trim(), &job.to_string());
    let submit = || {
        runtime.block_on(async {
            let mut connection = Connection::open(app.http).await.ok()?;
            let (status, _) = connection.ask(&submission).await.ok()?;
            (status == 201).then_some(())
        })
    };
    let mut times = Vec::with_capacity(FAILOVERS);
    for nth in 0..FAILOVERS {
        let leads = until("a leader", || cores.iter().position(Layer::is_ready))?;
        until("a submission", submit)?;
        std::thread::sleep(BETWEEN);
        cores.remove(leads).kill()?;
        let begun = instant();
        until("a submission", submit)?;
        times.push(begun.elapsed());
        cores.push(Layer::core(&place(nth + 2), database)?);
    }
    // The last job ends meanwhile: a supervisor that has nothing to keep goes with the others.
    std::thread::sleep(BETWEEN);
    Ok(times)
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T> {
    let begun = instant();
    loop {
        if let Some(found) = found() {
            return Ok(found);
        }
        ensure!(begun.elapsed() < MOST, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}
