//! Options that the platform and its layers have in common, and what they all do first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use era_app::background::{Retention, Tuning};
use era_app::egress::EgressPolicy;
use era_app::image_engine::ImageEngine;
use era_app::influx;
use era_cloud::TaskLimits;
use era_cloud::celery::names::RedisAddress;
use era_cloud::clock::MachineClock;
use era_cloud::simulated::{EXAMPLE, SimulatedNodes};
use era_core::resources::{Round, parse_mib};
use era_server::boot::{self, StartEngines};
use era_server::http::Serving;
use era_store::Place;

use crate::cli::BadUsage;
use crate::logging::Logging;
use crate::own_folder;
use crate::upkeep::Rows;

/// Where things are kept.
#[derive(Args)]
pub(super) struct StorageOptions {
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = "era-data", env = "ERA_DATA")]
    data: PathBuf,
    #[command(flatten)]
    pub(super) rows: Rows,
}

impl StorageOptions {
    /// The folder, which is made where it is missing.
    pub(super) fn folder(&self) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(&self.data)
            .with_context(|| format!("{} cannot be made", self.data.display()))?;
        let data = self.data.canonicalize().context("the data folder cannot be found")?;
        // A disk that can only be read would otherwise be noticed late, and by a riddle.
        let written = own_folder::mark(&data).and_then(|()| tempfile::tempfile_in(&data));
        written.with_context(|| {
            format!("{} cannot be written: mount it for writing, or give another", data.display())
        })?;
        Ok(data)
    }

    /// Where rows are.
    pub(super) fn place(&self, folder: &Path) -> Place {
        self.rows.place(folder)
    }
}

/// Where requests come in, and a second place to read from.
#[derive(Args)]
pub(super) struct ListenOptions {
    /// A replica of that database, for lists and reports, which may be a little behind
    #[arg(long, value_name = "URL", env = "ERA_DATABASE_REPLICA", hide_env_values = true)]
    pub(super) database_replica: Option<Place>,
    /// Where HTTP listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7632")]
    pub(super) listen: SocketAddr,
    /// Where lines of JSON are taken, pipelined: quote, submit, cancel, status; encrypted where HTTP
    /// is
    #[arg(long, value_name = "ADDR")]
    pub(super) tcp: Option<SocketAddr>,
}

/// How often a better policy is searched.
#[derive(Args)]
pub(super) struct TuningOptions {
    /// Search a better policy so often, such as 1d, and propose it to administrators
    #[arg(long, value_name = "SPAN", value_parser = span)]
    tune_every: Option<std::time::Duration>,
    /// What such a search is to make small
    #[arg(long, value_name = "EXPR", default_value = "mean_wait_s + 0.1 * p99_wait_s")]
    tune_objective: String,
}

impl TuningOptions {
    pub(super) fn tuning(&self) -> Option<Tuning> {
        let objective = self.tune_objective.clone();
        self.tune_every.map(|every| Tuning { every, objective })
    }
}

/// How long what jobs leave is kept.
#[derive(Args)]
pub(super) struct RetentionOptions {
    /// Remove what a job left (outputs, checkpoints, log) so long after its end, such as 90d;
    /// without this it is kept for ever
    #[arg(long, value_name = "SPAN", env = "ERA_KEEP_OUTPUTS", value_parser = kept_span)]
    keep_outputs: Option<std::time::Duration>,
    /// Forget what a job told and used (metrics, samples) so long after the last of it, such as
    /// 90d; without this it is kept for ever
    #[arg(long, value_name = "SPAN", env = "ERA_KEEP_SAMPLES", value_parser = kept_span)]
    keep_samples: Option<std::time::Duration>,
}

impl RetentionOptions {
    pub(super) fn retention(&self) -> Retention {
        Retention { outputs: self.keep_outputs, samples: self.keep_samples }
    }
}

/// How connections are taken.
#[derive(Args)]
pub(super) struct TlsOptions {
    /// Certificate, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take unencrypted connections from anywhere: passwords and tokens can be read on the way
    #[arg(long)]
    insecure_plain: bool,
    /// Believe X-Forwarded-For and X-Forwarded-Proto: for a server that only its proxy can reach
    #[arg(long)]
    behind_proxy: bool,
}

impl TlsOptions {
    pub(super) fn serving(&self) -> Serving {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        Serving {
            tls,
            insecure: self.insecure_plain,
            proxied: self.behind_proxy,
            ..Serving::default()
        }
    }

    /// The address as others type it.
    pub(super) fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls_cert.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }
}

/// Where webhooks may go.
#[derive(Args)]
pub(super) struct WebhookOptions {
    /// Let webhooks go to private addresses: members can make the server call what only it reaches
    #[arg(long)]
    insecure_webhooks: bool,
}

impl WebhookOptions {
    pub(super) fn egress(&self) -> EgressPolicy {
        if self.insecure_webhooks { EgressPolicy::Anywhere } else { EgressPolicy::Public }
    }
}

/// What runs tasks.
#[derive(Args)]
pub(super) struct TaskOptions {
    /// What runs tasks: `local`, workers behind `celery://HOST:PORT/DATABASE`, or `docker://` with a
    /// socket or HOST:PORT of an engine or a Swarm manager (`?image=`, `volumes=`, `registry=`,
    /// `registry-auth=`, `tls=`, `insecure-plain=yes` behind it)
    #[arg(
        long,
        value_name = "URL",
        default_value = "local",
        env = "ERA_EXECUTOR",
        hide_env_values = true
    )]
    executor: String,
    /// Simulated nodes to add, whose tasks only sleep
    #[arg(long, value_name = "FILE", long_help = nodes_help())]
    nodes: Option<PathBuf>,
    /// InfluxDB for what jobs tell and use: http://USER:PASSWORD@HOST:8086/DATABASE (version 1) or
    /// http://HOST:8086?org=ORG&bucket=BUCKET&token=TOKEN (version 2)
    #[arg(long, value_name = "URL", env = "ERA_INFLUX", hide_env_values = true)]
    pub(super) influx: Option<influx::InfluxAddress>,
    /// Without root every job runs as this user: allow further accounts all the same, each of which
    /// can then read and change what the others have
    #[arg(long)]
    insecure_shared_user: bool,
    /// Most that a task may have on disk: working folder, outputs, checkpoints
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64Gi",
        env = "ERA_TASK_DISK",
        value_parser = disk_size
    )]
    task_disk: u64,
    /// Most of a task's log that is kept; what is older goes first
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256Mi",
        env = "ERA_TASK_LOG",
        value_parser = log_size
    )]
    task_log: u64,
    /// Most processes and threads of a task
    #[arg(
        long,
        value_name = "N",
        default_value_t = TaskLimits::default().processes,
        env = "ERA_TASK_PROCESSES",
        value_parser = clap::value_parser!(u32).range(16..=4_194_304)
    )]
    task_processes: u32,
    #[arg(skip)]
    pub(super) images: ImageEngine,
}

impl TaskOptions {
    /// What starts the executor that was named.
    pub(super) fn engines(
        &self,
        data: &Path,
        simulated: SimulatedNodes,
        clock: MachineClock,
    ) -> anyhow::Result<StartEngines> {
        let here = data.to_owned();
        match self.executor.as_str() {
            "local" => Ok(boot::executors::here(here, simulated, clock)),
            url if url.starts_with("celery://") => {
                Ok(boot::celery::at(RedisAddress::read(url)?, here, simulated, clock))
            }
            url if url.starts_with("docker:") => {
                let address = era_cloud::docker::EngineAddress::parse(url)?;
                let images = self.images.clone();
                Ok(boot::executors::docker(here, address, simulated, images, clock))
            }
            // Of an address only its kind is repeated: there may be a password in the rest.
            other => anyhow::bail!(
                "`{}` is no executor: give local, docker://SOCKET-OR-ADDRESS or \
                 celery://HOST:PORT/DATABASE",
                other.split_once(':').map_or(other, |(kind, _)| kind)
            ),
        }
    }

    /// What each task may have beside what it asks for.
    pub(super) fn limits(&self) -> TaskLimits {
        let (processes, log_bytes) = (self.task_processes, self.task_log);
        TaskLimits { processes, log_bytes, disk_bytes: self.task_disk }
    }

    /// Whether nothing keeps the jobs of accounts apart.
    pub(super) fn share_user(&self) -> bool {
        let root = rustix::process::geteuid().is_root();
        nothing_between(&self.executor, root, cfg!(target_os = "linux"))
    }

    /// Whether that may only be one account, since nobody said otherwise.
    pub(super) fn serve_one(&self) -> bool {
        self.share_user() && !self.insecure_shared_user
    }

    /// The Redis behind Celery's workers, where they are what runs tasks.
    pub(super) fn redis(&self) -> Option<&str> {
        Some(self.executor.as_str()).filter(|url| url.starts_with("celery://"))
    }

    /// The nodes of the file that was named. It is read before anything is made, so that a bad one
    /// leaves nothing behind.
    pub(super) fn simulated(&self) -> Result<SimulatedNodes, BadUsage> {
        let Some(file) = &self.nodes else { return Ok(SimulatedNodes::default()) };
        let text = std::fs::read_to_string(file)
            .map_err(|why| BadUsage(format!("{} cannot be read: {why}", file.display())))?;
        era_cloud::simulated::read(&text)
            .map_err(|bad| BadUsage(format!("{}: {bad}", file.display())))
    }
}

/// Whether an executor leaves the jobs of accounts to each other. Without root all of them run as
/// this program's own user, containers as much as processes; and elsewhere than on Linux processes
/// see the platform's own files, as root too.
fn nothing_between(executor: &str, root: bool, linux: bool) -> bool {
    match executor {
        "local" => !(root && linux),
        docker if docker.starts_with("docker:") => !root,
        _ => false,
    }
}

/// What a file of nodes looks like, where somebody asks for all of the help.
fn nodes_help() -> String {
    format!(
        "Simulated nodes to add, whose tasks only sleep: a file of YAML or JSON such as\n\n\
         {EXAMPLE}\n\
         makes four nodes, a100-0 to a100-3; without a count, one with the name as it is. Of these, \
         only name and capacity with cpu and memory must be there. Tasks sleep for task_s seconds \
         at most, 2 where it is not given"
    )
}

fn disk_size(text: &str) -> Result<u64, String> {
    size("disk", text)
}

fn log_size(text: &str) -> Result<u64, String> {
    size("log", text)
}

/// A size in bytes, of at least one MiB.
fn size(what: &str, text: &str) -> Result<u64, String> {
    match parse_mib(what, text, Round::Down) {
        Ok(0) => Err("give at least 1Mi".to_owned()),
        Ok(mib) => Ok(u64::from(mib) << 20),
        Err(error) => Err(error.to_string()),
    }
}

/// At least a minute: a search takes its time.
pub(super) fn span(text: &str) -> Result<std::time::Duration, String> {
    at_least(60, "give at least 1m", text)
}

/// At least ten seconds: a lesson replays the journal.
pub(super) fn lesson_span(text: &str) -> Result<std::time::Duration, String> {
    at_least(10, "give at least 10s", text)
}

/// At least an hour: what is over its time is looked for once an hour.
fn kept_span(text: &str) -> Result<std::time::Duration, String> {
    at_least(3600, "give at least 1h", text)
}

fn at_least(seconds: u64, problem: &str, text: &str) -> Result<std::time::Duration, String> {
    let span: era_spec::SpanSpec =
        text.parse().map_err(|e: era_spec::span::BadSpan| e.to_string())?;
    if span.seconds < seconds {
        return Err(problem.to_owned());
    }
    Ok(std::time::Duration::from_secs(span.seconds))
}

/// A server's log, its runtime, and its work on it.
pub(super) fn run(
    logging: Logging,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    // Whoever was first has chosen the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    logging.start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |n| n.get()).max(2))
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let done = runtime.block_on(work);
    // A server that was deposed or whose database is gone waits for nobody.
    runtime.shutdown_background();
    done
}

pub(super) fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("this program cannot be found")
}

#[cfg(test)]
mod tests {
    use super::nothing_between;

    #[test]
    fn only_workers_elsewhere_run_tasks_as_somebody_else_than_a_server_without_root() {
        for (executor, ours) in [
            ("local", true),
            ("docker://", true),
            ("docker:///run/docker.sock?image=a", true),
            ("celery://127.0.0.1:6379/0", false),
        ] {
            assert_eq!(nothing_between(executor, false, true), ours, "{executor}");
            assert!(!nothing_between(executor, true, true), "{executor}");
        }
    }

    #[test]
    fn elsewhere_than_on_linux_root_keeps_containers_apart_and_not_processes() {
        assert!(nothing_between("local", true, false));
        assert!(!nothing_between("docker://", true, false));
    }
}
