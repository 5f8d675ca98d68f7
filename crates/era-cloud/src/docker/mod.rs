//! The executor of a Docker engine or a Swarm: a task is a container, or a service with one
//! replica, under a guard of its own.
//!
//! ```text
//!   server ── this executor ── engine or Swarm manager ── node ── container: guard ── task
//!                   └────────────── the job's folder, shared ──────────────┘
//! ```
//!
//! Names and labels come from (job, part, attempt, rank), so a second start is a no-op, and what
//! runs is found again after a restart. The job's folder is the server's own, seen by the nodes at
//! the same path, over NFS or in a volume; the lease of a task lies in it (decision 0018). Containers keep how
//! they ended until the server has acknowledged that. What is worth running is not known here.

mod address;
mod ahead;
#[cfg(test)]
mod bad_engines;
mod begin;
mod building;
mod engine;
mod failure;
#[cfg(test)]
mod fake;
mod follow;
mod held;
mod images;
mod instance;
mod layer;
mod lease;
mod names;
mod nodes;
mod plain;
mod registry;
mod swarm;
mod task;
mod tend;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::Span;
use tokio::sync::mpsc;

pub use address::{BadEngineAddress, Endpoint, EngineAddress, Volumes};
pub use begin::context;
pub use building::{BUILD_TIME, BUILDS_MAX, build_place};
pub use engine::DockerEngine;
pub use failure::DockerError;
pub use images::{Build, Context, ImageFacts, OutputLines};
pub use instance::{EngineNode, Instance, InstanceState, InstanceStatus, Mounted, Volume};
pub use lease::LeaseTimes;
pub use names::SiteId;
pub use registry::Registry;

use crate::clock::MachineClock;
use crate::executor::{Executor, Order, Reports};
use crate::isolate::Isolation;
use crate::task::SupervisorSettings;
use task::TaskDefaults;
use tend::{LoopCommand, TaskLoop};

/// How often images that nobody needs any more are looked for.
const TIDY_EVERY: Duration = Duration::from_secs(3600);
/// How long an image of a job's own Dockerfile is kept that no container uses.
const CODE_KEPT: Duration = Duration::from_secs(24 * 3600);

/// What the executor needs to know.
#[derive(Clone, Debug)]
pub struct DockerOptions {
    pub address: EngineAddress,
    /// The data folder, below which are the jobs' own.
    pub data: PathBuf,
    /// How long after a node was told to be lost its tasks must be gone.
    pub fence: Span,
    /// The clock of this machine.
    pub clock: MachineClock,
}

/// The executor of an engine.
pub struct DockerExecutor {
    says: mpsc::UnboundedSender<LoopCommand>,
    known: Known,
    engine: DockerEngine,
}

/// Which tasks are looked after.
type Known = Arc<Mutex<BTreeSet<TaskId>>>;

fn lock(known: &Known) -> std::sync::MutexGuard<'_, BTreeSet<TaskId>> {
    // A set of numbers is right whoever panicked beside it.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DockerExecutor {
    /// Reaches the engine, finds what runs there already, and goes on until this is dropped. When
    /// it returns, [`Executor::known`] can be asked.
    pub async fn start(
        options: DockerOptions,
        reports: Reports,
    ) -> Result<DockerExecutor, DockerError> {
        let data = options.data.clone();
        let engine = DockerEngine::connect_for(&options.address, &data, options.clock).await?;
        // Only a cut can make a second run, and there is none between a server and its socket.
        let near = !engine.is_swarm() && matches!(options.address.endpoint, Endpoint::Unix(_));
        let times = if near { LeaseTimes::none() } else { LeaseTimes::within(options.fence) };
        let outside = match &options.address.volumes {
            Volumes::Local { name } => engine.folder_of(name).await?,
            Volumes::Bind | Volumes::Nfs { .. } => data.clone(),
        };
        let defaults = TaskDefaults {
            site: engine.site().clone(),
            volumes: options.address.volumes.clone(),
            data,
            outside,
            times,
            isolation: isolation(),
            own_ids: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        };
        let known = Known::default();
        let (says, heard) = mpsc::unbounded_channel();
        let image = options.address.image.clone();
        let mut tender =
            TaskLoop::new(engine.clone(), defaults, image, reports, Arc::clone(&known));
        tender.adopt().await?;
        tokio::spawn(tender.go_on(heard));
        tokio::spawn(tidy(engine.clone(), says.downgrade()));
        Ok(DockerExecutor { says, known, engine })
    }

    /// The engine, for images.
    pub fn engine(&self) -> &DockerEngine {
        &self.engine
    }

    fn say(&self, say: LoopCommand) {
        if self.says.send(say).is_err() {
            tracing::error!("an order was given to an executor that has stopped");
        }
    }
}

/// Removes images that nobody needs any more, as long as there is an executor.
async fn tidy(engine: DockerEngine, executor: mpsc::WeakUnboundedSender<LoopCommand>) {
    while executor.upgrade().is_some() {
        match engine.remove_code(CODE_KEPT).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "images of jobs that are over were removed"),
            Err(error) => tracing::debug!(%error, "old images were not looked for"),
        }
        tokio::time::sleep(TIDY_EVERY).await;
    }
}

/// As root each user has an id of its own; containers have namespaces in any case.
fn isolation() -> Isolation {
    let root = rustix::process::geteuid().is_root();
    let first_uid = root.then(|| SupervisorSettings::default().first_uid);
    Isolation { first_uid, namespaces: true }
}

impl Executor for DockerExecutor {
    fn carry_out(&self, order: Order) {
        if let Order::Launch(launch) = &order {
            lock(&self.known).insert(launch.task);
        }
        self.say(LoopCommand::Order(Box::new(order)));
    }

    fn acknowledge(&self, task: TaskId) {
        lock(&self.known).remove(&task);
        self.say(LoopCommand::Acknowledge(task));
    }

    fn known(&self) -> Vec<TaskId> {
        lock(&self.known).iter().copied().collect()
    }

    fn stages(&self) -> bool {
        true
    }

    fn runs_images(&self) -> bool {
        true
    }
}
