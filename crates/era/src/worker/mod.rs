//! `era worker`: this machine as a node of a cluster whose tasks come through Redis.
//!
//! It takes launches from the queue of its node, and commands from the queues that all workers
//! share, and runs them through the local supervisor or in containers of this machine's engine. With
//! `--socket` it takes none by itself: a Celery worker in Python takes them, and asks over that
//! socket.

mod dead;
mod lease;
mod socket;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use era_cloud::celery::bus::Bus;
use era_cloud::celery::names::RedisAddress;
use era_cloud::celery::node::{CeleryNode, NodeOptions, Runs};
use era_cloud::celery::worker::Worker as Taking;
use era_cloud::discover;
use era_cloud::local::LocalOptions;
use era_cloud::task::SupervisorSettings;

/// Serve as a node: run ERA's tasks, which come through Redis as Celery's messages
#[derive(Args)]
pub(crate) struct Worker {
    #[command(subcommand)]
    about: Option<About>,
    /// Where Redis is: redis://HOST:PORT/DATABASE, with ?lease=SECONDS&visibility=SECONDS behind it
    #[arg(long, value_name = "URL", env = "ERA_BROKER", hide_env_values = true, global = true)]
    broker: Option<String>,
    /// What this node is called; the machine's name where nothing is said
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Where other nodes reach what runs on this one: an IP address, or a name that all of them
    /// resolve; the address from which this machine reaches Redis where nothing is said
    #[arg(long, value_name = "HOST", env = "ERA_WORKER_ADDRESS")]
    address: Option<String>,
    /// Where this worker keeps its own things
    #[arg(long, value_name = "DIR", default_value = "era-worker")]
    data: PathBuf,
    /// How many commands of the shared queue run at once; as many as this machine has cores where
    /// nothing is said, as in Celery
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=2000))]
    concurrency: Option<u16>,
    /// What runs tasks: `local` for processes, or containers of this machine's engine by its socket:
    /// `docker://` or `docker:///run/docker.sock` (`?image=` behind it for those that name none)
    #[arg(long, value_name = "URL", default_value = "local", env = "ERA_WORKER_EXECUTOR")]
    executor: String,
    /// A label of the node, as KEY=VALUE; may be given several times
    #[arg(long, value_name = "LABEL", value_parser = pair)]
    label: Vec<(String, String)>,
    /// A folder that no task may see, such as the site's data folder; may be given several times
    #[arg(long, value_name = "DIR")]
    hide: Vec<PathBuf>,
    /// Take no messages: run what is asked over this socket, until standard input ends
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    logging: crate::logging::Logging,
}

#[derive(Subcommand)]
enum About {
    /// Show messages that no worker could serve, or send them again
    Dead(dead::Dead),
}

fn pair(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Worker {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        // Whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        self.logging.start()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the runtime cannot be started")?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let broker = self.broker.as_deref();
        let broker = broker.context("give --broker redis://HOST:PORT/DATABASE, or ERA_BROKER")?;
        let bus = Bus::connect(&RedisAddress::read(broker)?, crate::clock::machine()).await?;
        match &self.about {
            Some(About::Dead(dead)) => return dead.run(&bus).await,
            None => {}
        }
        let address = self.reached_at(bus.address())?;
        let node = CeleryNode::start(self.options(address.clone())?, bus).await?;
        let settings = tokio::spawn(lease::follow(node.clone()));
        let mut out = std::io::stdout();
        writeln!(out, "node {} serves at {address}", node.name())?;
        out.flush()?;
        let done = match &self.socket {
            Some(path) => socket::serve(node.clone(), path).await,
            None => take(Taking::start(node.clone(), self.concurrency()?)).await,
        };
        settings.abort();
        node.leave().await;
        done
    }

    fn concurrency(&self) -> anyhow::Result<usize> {
        if let Some(number) = self.concurrency {
            return Ok(number.into());
        }
        let cores = std::thread::available_parallelism();
        Ok(cores.context("how many cores there are is not known: give --concurrency")?.get())
    }

    /// Where other nodes reach what runs on this one.
    fn reached_at(&self, broker: &RedisAddress) -> anyhow::Result<String> {
        let Some(address) = &self.address else {
            let broker = broker.host();
            let broker = broker.as_ref().map(|(host, port)| (host.as_str(), *port));
            return Ok(discover::address_towards(broker).to_string());
        };
        anyhow::ensure!(
            discover::names_a_machine(address),
            "`{address}` is no machine's IP address, and no name that resolves on this machine: give \
             --address one that all nodes reach"
        );
        Ok(address.clone())
    }

    fn options(&self, address: String) -> anyhow::Result<NodeOptions> {
        std::fs::create_dir_all(&self.data)
            .with_context(|| format!("{} cannot be made", self.data.display()))?;
        let folder = self.data.canonicalize().context("the worker's folder cannot be found")?;
        crate::own_folder::mark(&folder)
            .with_context(|| format!("{} cannot be written", folder.display()))?;
        let machine = discover::this_machine();
        let gpu_uuids = machine.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        let runs = self.runs(&folder, gpu_uuids)?;
        let mut found = machine.node;
        if let Some(name) = &self.node {
            found.name.clone_from(name);
        }
        found.address = Some(address);
        found.labels.extend(self.label.iter().cloned());
        Ok(NodeOptions { found, folder, runs })
    }

    /// What runs tasks here.
    fn runs(&self, folder: &Path, gpu_uuids: Vec<String>) -> anyhow::Result<Runs> {
        match self.executor.as_str() {
            "local" => {}
            url if url.starts_with("docker:") => {
                return Ok(Runs::Containers(era_cloud::docker::EngineAddress::parse(url)?));
            }
            other => anyhow::bail!(
                "`{other}` is no executor of a worker: give local, or docker:// with the socket of \
                 this machine's engine"
            ),
        }
        let usual = SupervisorSettings::default();
        let settings = SupervisorSettings {
            hidden: [vec![folder.to_owned()], self.hide.clone()].concat(),
            gpu_uuids,
            spare_keepers: self.concurrency.map_or(usual.spare_keepers, usize::from),
            ..usual
        };
        let local = LocalOptions::of_this_program(folder.join("shim"), settings)
            .context("this program cannot find itself")?;
        Ok(Runs::Processes(local))
    }
}

/// Takes messages until it is told to stop: once, to serve what it has; twice, to leave at once.
async fn take(worker: Taking) -> anyhow::Result<()> {
    crate::up::told_to_stop().await?;
    writeln!(std::io::stderr(), "serving what was taken; once more to leave at once")?;
    tokio::select! {
        () = worker.drain() => {}
        told = crate::up::told_to_stop() => told?,
    }
    Ok(())
}
