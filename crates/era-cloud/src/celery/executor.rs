//! The executor whose tasks are messages: launches go to the queue of the chosen node, ends come
//! back as results.
//!
//! It knows which launches are out ([`known`]), gives them to Redis ([`orders`]), reads what became
//! of them ([`results`]), gives up what nobody takes ([`waiting`]) and follows the nodes and their
//! leases ([`nodes`]). How a node runs a task is the node's to know.

mod folders;
mod known;
mod nodes;
mod orders;
mod results;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::bus::{self, Bus, BusError};
use super::fence::{Leadership, LeaseFence};
use super::names::{self, BadRedisAddress, CeleryId, RedisAddress};
use crate::clock::MachineClock;
use crate::executor::{Executor, Order, Reports};
use folders::Folders;
use known::LaunchesOut;
use tokio::time::Instant;
use waiting::RedisAway;

/// How long it is until something that Redis refused is tried again.
const AGAIN: Duration = Duration::from_millis(300);

/// What the executor needs to know.
#[derive(Clone)]
pub struct CeleryOptions {
    pub address: RedisAddress,
    /// The file that keeps by what this site is known there.
    pub site: PathBuf,
    /// By what right launches and orders are given: nothing is, once another server does.
    pub lead: Arc<dyn Leadership>,
    /// The clock of this machine.
    pub clock: MachineClock,
}

/// Why tasks cannot be given to Celery.
#[derive(Debug, thiserror::Error)]
pub enum CeleryError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] BadRedisAddress),
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The site's name cannot be kept.
    #[error("{path}: {source}")]
    File {
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another site is there.
    #[error(
        "Redis at {address} serves another site ({theirs}, and this one is {ours}): give another \
         database, as in celery://HOST/1, or delete the key {} there if that site is no more",
        names::SITE
    )]
    OtherSite { address: String, ours: String, theirs: String },
}

/// Runs tasks on nodes that take them from Redis as Celery's messages.
pub struct CeleryExecutor {
    shared: Arc<Shared>,
    says: mpsc::UnboundedSender<ExecutorCommand>,
    tasks: Vec<JoinHandle<()>>,
}

/// What all parts of it share.
struct Shared {
    bus: Bus,
    /// Whatever is written goes through it.
    fence: LeaseFence,
    site: String,
    known: Mutex<LaunchesOut>,
    folders: Folders,
    /// Nodes that left a launch where it was, as Redis should know them.
    untaken: Mutex<BTreeSet<String>>,
    /// Where others reach what runs on each node, by its worker's word.
    addresses: Mutex<BTreeMap<String, String>>,
    /// Redis, while it is away.
    away: Mutex<Option<RedisAway>>,
    /// Something that waits is to stop.
    stops: Notify,
    reports: Reports,
}

/// What is to be done, in order.
#[derive(Debug)]
enum ExecutorCommand {
    Order(Box<Order>),
    Acknowledge(TaskId),
}

impl Shared {
    fn known(&self) -> std::sync::MutexGuard<'_, LaunchesOut> {
        // It is changed in single steps, each of which leaves it right.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn untaken(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, task: TaskId) -> String {
        CeleryId { site: self.site.clone(), task }.to_string()
    }

    /// Passes reports on; `false` when nobody takes them any more.
    async fn report(
        &self,
        reports: impl IntoIterator<Item = crate::executor::ExecutorReport>,
    ) -> bool {
        for report in reports {
            if self.reports.send(report).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl CeleryExecutor {
    /// Connects, finds what is out already, and goes on until it is dropped. When it returns,
    /// [`Executor::known`] can be asked.
    pub async fn start(
        options: CeleryOptions,
        reports: Reports,
    ) -> Result<CeleryExecutor, CeleryError> {
        let bus = Bus::connect(&options.address, options.clock).await?;
        let site = site(&options.site)?;
        settle_in(&bus, &site).await?;
        let fence = LeaseFence::new(bus.clone(), names::LAUNCHER, options.lead);
        fence.take().await?;
        let known = orders::out(&bus, &site).await?;
        let known = Mutex::new(known);
        let (folders, away, stops) = (Folders::default(), Mutex::default(), Notify::new());
        let (untaken, addresses) = (Mutex::default(), Mutex::default());
        let shared =
            Shared { bus, fence, site, known, folders, untaken, addresses, away, stops, reports };
        let shared = Arc::new(shared);
        // What was to be launched before may be so before the nodes are looked at.
        nodes::show(&shared).await?;
        let (says, heard) = mpsc::unbounded_channel();
        let tasks = vec![
            until_deposed(&shared, orders::carry_out(Arc::clone(&shared), heard)),
            until_deposed(&shared, results::listen(Arc::clone(&shared))),
            until_deposed(&shared, results::look(Arc::clone(&shared))),
            until_deposed(&shared, results::hear_reports(Arc::clone(&shared))),
            until_deposed(&shared, nodes::follow(Arc::clone(&shared))),
            until_deposed(&shared, waiting::watch(Arc::clone(&shared))),
        ];
        Ok(CeleryExecutor { shared, says, tasks })
    }

    /// Comes back once another server was found to give launches. From then on nothing is written
    /// here, and nothing is told.
    pub async fn deposed(&self) {
        self.shared.fence.deposed().await;
    }

    fn say(&self, say: ExecutorCommand) {
        if self.says.send(say).is_err() {
            tracing::error!("an order was given to an executor that has stopped");
        }
    }
}

/// Goes on until it is done, or another server leads: what is seen here is that one's to tell.
fn until_deposed(
    shared: &Arc<Shared>,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        tokio::select! {
            () = shared.fence.deposed() => {}
            () = work => {}
        }
    })
}

impl Drop for CeleryExecutor {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Executor for CeleryExecutor {
    fn carry_out(&self, order: Order) {
        // What is out is known at once, also while orders wait for Redis.
        match &order {
            Order::Launch(launch) => {
                let bare = launch.without_secrets();
                if !self.shared.known().insert(bare.clone(), Instant::now()) {
                    return;
                }
                if !launch.spec.secrets.is_empty() {
                    let (shared, says) = (Arc::clone(&self.shared), self.says.clone());
                    tokio::spawn(orders::hand_over(shared, says, launch.clone(), bare));
                    return;
                }
            }
            Order::Stop { task, .. } => {
                if self.shared.known().stop(*task) {
                    self.shared.stops.notify_one();
                }
            }
            Order::Prolong { .. } | Order::Resize { .. } | Order::Stage(_) => {}
        }
        self.say(ExecutorCommand::Order(Box::new(order)));
    }

    fn acknowledge(&self, task: TaskId) {
        if self.shared.known().has(task) {
            self.say(ExecutorCommand::Acknowledge(task));
        }
    }

    fn known(&self) -> Vec<TaskId> {
        self.shared.known().tasks()
    }

    fn address_of(&self, node: &str) -> Option<String> {
        self.shared.addresses().get(node).cloned()
    }

    /// Its workers know: one without an engine does not start such a task, and says why.
    fn runs_images(&self) -> bool {
        true
    }
}

/// By what the site of this file is known, made at the first start.
pub fn site(path: &Path) -> Result<String, CeleryError> {
    let failed = |source| CeleryError::File { path: path.to_owned(), source };
    match std::fs::read_to_string(path) {
        Ok(text) if names::is_site(text.trim()) => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let site = bus::random_hex::<4>();
    std::fs::write(path, &site).map_err(failed)?;
    Ok(site)
}

/// One site a database: the ids of jobs begin anew with every site.
async fn settle_in(bus: &Bus, site: &str) -> Result<(), CeleryError> {
    let mut all = redis::pipe();
    all.cmd("SET").arg(names::SITE).arg(site).arg("NX").ignore();
    all.cmd("GET").arg(names::SITE);
    let (theirs,): (String,) = bus.run_all("say whose it is", &all).await?;
    if theirs == site {
        return Ok(());
    }
    let address = bus.address().shown();
    Err(CeleryError::OtherSite { address, ours: site.to_owned(), theirs })
}
