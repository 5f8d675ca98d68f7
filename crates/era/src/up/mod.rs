//! `era up`: the whole platform in one process.

mod local;
mod trial;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use era_cloud::FoundNode;
use era_cloud::celery::names::Address;
use era_server::boot::{self, Running, Settings, StartEngines};
use era_server::driver::Rules;
use era_server::http::Serving;
use era_server::influx;
use era_server::tend::Tuning;
use era_server::webhook::address::Reach;
use era_store::Place;

use crate::upkeep::Rows;

/// Start the platform: this machine is its first node
#[derive(Args)]
pub(crate) struct Up {
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = "era-data", env = "ERA_DATA")]
    data: PathBuf,
    #[command(flatten)]
    rows: Rows,
    /// A replica of that database, for lists and reports, which may be a little behind
    #[arg(long, value_name = "URL", env = "ERA_DATABASE_REPLICA", hide_env_values = true)]
    database_replica: Option<Place>,
    /// Where HTTP listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7632")]
    listen: SocketAddr,
    /// Where lines of JSON are taken, pipelined: quote, submit, cancel, status
    #[arg(long, value_name = "ADDR")]
    tcp: Option<SocketAddr>,
    /// What runs tasks: `local`, workers behind `celery://HOST:PORT/DATABASE`, or `docker://` with a
    /// socket or HOST:PORT of an engine or a Swarm manager (`?image=`, `volumes=`, `registry=`,
    /// `registry-auth=`, `tls=` behind it)
    #[arg(long, value_name = "URL", default_value = "local", env = "ERA_EXECUTOR")]
    executor: String,
    /// Simulated nodes to add, whose tasks only sleep
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,
    /// Redis to share settings and accepted jobs through: redis://HOST:PORT/DATABASE
    #[arg(long, value_name = "URL", env = "ERA_REDIS")]
    redis: Option<String>,
    /// InfluxDB for what jobs tell and use: http://USER:PASSWORD@HOST:8086/DATABASE (version 1) or
    /// http://HOST:8086?org=ORG&bucket=BUCKET&token=TOKEN (version 2)
    #[arg(long, value_name = "URL", env = "ERA_INFLUX", hide_env_values = true)]
    influx: Option<influx::Address>,
    /// Certificate, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take unencrypted connections from anywhere: passwords and tokens can be read on the way
    #[arg(long)]
    insecure_plain: bool,
    /// Let webhooks go to private addresses: members can make the server call what only it reaches
    #[arg(long)]
    insecure_webhooks: bool,
    /// Search a better policy so often, such as 1d, and propose it to administrators
    #[arg(long, value_name = "SPAN", value_parser = span)]
    tune_every: Option<std::time::Duration>,
    /// What such a search is to make small
    #[arg(long, value_name = "EXPR", default_value = "mean_wait_s + 0.1 * p99_wait_s")]
    tune_objective: String,
    /// Learn so often how long jobs take and what they use
    #[arg(long, value_name = "SPAN", default_value = "1d", value_parser = lesson_span)]
    learn_every: std::time::Duration,
    /// Quote, submit and run a small training job, and tell what happened
    #[arg(long = "try")]
    trial: bool,
    #[arg(skip)]
    images: boot::executors::ImageEngine,
}

impl Up {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let filter = tracing_subscriber::EnvFilter::try_from_env("ERA_LOG")
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"))
            // What is sent to an engine holds users' secrets: its client shows all of it.
            .add_directive("bollard=warn".parse()?);
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(2, |n| n.get()).max(2))
            .enable_all()
            .build()
            .context("the runtime cannot be started")?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.data)
            .with_context(|| format!("{} cannot be made", self.data.display()))?;
        let data = self.data.canonicalize().context("the data folder cannot be found")?;
        // A disk that can only be read would otherwise be noticed late, and by a riddle.
        tempfile::tempfile_in(&data).with_context(|| {
            format!("{} cannot be written: mount it for writing, or give another", data.display())
        })?;
        let simulated = self.simulated()?;
        let engines = self.engines(&data, simulated)?;
        let running = boot::start(self.settings(data.clone())?, engines).await?;
        let scheme = if self.tls_cert.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", running.address);
        if let Err(error) = local::introduce(&running, &data, &url).await {
            // Logging in works all the same.
            tracing::warn!(%error, "this user's commands must log in");
        }
        greet(&running, &data, self.rows.database.as_ref(), &url)?;
        if self.trial {
            let tried = trial::run(&running, &data).await;
            // A script has seen what it wanted; a person may go on.
            if tried.is_err() || !std::io::stdout().is_terminal() {
                running.stop().await?;
                return tried;
            }
        }
        let failed = tokio::select! {
            () = running.failed() => true,
            told = told_to_stop() => {
                told?;
                false
            }
        };
        running.stop().await?;
        anyhow::ensure!(!failed, "the scheduler has stopped: its log says why");
        writeln!(std::io::stdout(), "stopped; what runs goes on, and is found again")?;
        Ok(())
    }

    fn settings(&self, folder: PathBuf) -> anyhow::Result<Settings> {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let objective = self.tune_objective.clone();
        Ok(Settings {
            folder,
            database: self.rows.database.clone(),
            replica: self.database_replica.clone(),
            listen: self.listen,
            tcp: self.tcp,
            serving: Serving { tls, insecure: self.insecure_plain, ..Serving::default() },
            rules: Rules::default(),
            reach: if self.insecure_webhooks { Reach::Anywhere } else { Reach::Public },
            laboratory: Some(Box::new(crate::laboratory::Simulator)),
            redis: self.shared()?,
            influx: self.influx.clone(),
            program: std::env::current_exe().context("this program cannot be found")?,
            learn_every: self.learn_every,
            tuning: self.tune_every.map(|every| Tuning { every, objective }),
            images: self.images.clone(),
        })
    }

    /// What starts the executor that was named.
    fn engines(&self, data: &Path, simulated: Vec<FoundNode>) -> anyhow::Result<StartEngines> {
        let here = data.to_owned();
        match self.executor.as_str() {
            "local" => Ok(boot::executors::here(here, simulated)),
            url if url.starts_with("celery://") => {
                Ok(boot::celery::at(Address::read(url)?, here, simulated))
            }
            url if url.starts_with("docker:") => {
                let address = era_cloud::docker::Address::parse(url)?;
                Ok(boot::executors::docker(here, address, simulated, self.images.clone()))
            }
            other => anyhow::bail!(
                "`{other}` is no executor: give local, docker://SOCKET-OR-ADDRESS or \
                 celery://HOST:PORT/DATABASE"
            ),
        }
    }

    /// Where Redis is, if this site has one.
    fn shared(&self) -> anyhow::Result<Option<Address>> {
        let celery = Some(self.executor.as_str()).filter(|url| url.starts_with("celery://"));
        Ok(self.redis.as_deref().or(celery).map(Address::read).transpose()?)
    }

    fn simulated(&self) -> anyhow::Result<Vec<FoundNode>> {
        let Some(file) = &self.nodes else { return Ok(Vec::new()) };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        era_cloud::simulated::read(&text).with_context(|| file.display().to_string())
    }
}

/// At least a minute: a search takes its time.
fn span(text: &str) -> Result<std::time::Duration, String> {
    at_least(60, "give at least 1m", text)
}

/// At least ten seconds: a lesson replays the journal.
fn lesson_span(text: &str) -> Result<std::time::Duration, String> {
    at_least(10, "give at least 10s", text)
}

fn at_least(seconds: u64, problem: &str, text: &str) -> Result<std::time::Duration, String> {
    let span: crate::job::span::Span =
        text.parse().map_err(|e: crate::job::span::BadSpan| e.to_string())?;
    if span.seconds < seconds {
        return Err(problem.to_owned());
    }
    Ok(std::time::Duration::from_secs(span.seconds))
}

fn greet(
    running: &Running,
    data: &Path,
    database: Option<&Place>,
    url: &str,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ERA is up at {url}")?;
    if let Some(tcp) = running.tcp {
        writeln!(out, "lines of JSON are taken at {tcp}")?;
    }
    writeln!(out, "everything is kept under {}", data.display())?;
    if let Some(database) = database {
        writeln!(out, "rows are kept in {database}")?;
    }
    if let Some(first) = &running.first {
        writeln!(out, "account: {}", first.name)?;
        writeln!(out, "one-time password: {}", first.password)?;
        writeln!(out, "log in with `era login`, which asks for a password of your own")?;
    }
    #[cfg(unix)]
    if !rustix::process::geteuid().is_root() {
        writeln!(out, "without root, every job runs as this user: let nobody else in")?;
    }
    out.flush()?;
    Ok(())
}

/// Comes back at Ctrl-C, and when a service manager asks.
pub(crate) async fn told_to_stop() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
