//! Starting and stopping a server: everything is opened in the order in which it is needed, and
//! closed in the other.
//!
//! What each part does is its own to know; here stands what a first start needs so that a job can
//! be handed in the same minute, and in what order things must end so that nothing is lost.
//!
//! [`start`] is the whole platform in one process. Its layers by themselves are [`core`], [`app`]
//! (which keeps files as well, where that is its role) and [`cloud`]. All of them are one
//! `assembly` of parts that are there or not.

pub mod app;
mod assembly;
pub mod celery;
pub mod cloud;
pub mod core;
pub mod executors;
mod first;
mod holder;
mod layer_status;
mod reserved;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use era_app::auth::{AccountError, Auth};
use era_app::background::{Retention, Tuning};
use era_app::clock::{SystemClock, millis};
use era_app::driver::{Driver, Handle, SegmentRules, Unanswered};
use era_app::egress::EgressPolicy;
use era_app::feed::{Feed, UNSEEN_MAX};
use era_app::image_engine::ImageEngine;
use era_app::launch::Engines;
use era_app::lead::{self, Lead, LeadError};
use era_app::report::Laboratory;
use era_app::{background, bus, influx, webhook};
use era_cloud::celery::names::RedisAddress;
use era_cloud::clock::MachineClock;
use era_cloud::{Reports, TaskLimits};
use era_core::State;
use era_core::units::Span;
use era_store::files::Files;
use era_store::{Lease, Place, Store, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::assembly::Running;
use self::assembly::{Answering, Scheduling, Tasking};
pub use self::holder::TaskHolder;
use crate::http::serve::{ServeError, serve_routes};
use crate::http::{self, RouteSet, Serving};
use crate::{App, tcp};

/// How long it is until a database that could not be opened is tried again.
const OPEN_AGAIN: Duration = Duration::from_secs(1);
/// How long a first start waits for a node.
const FIRST_NODE: Duration = Duration::from_millis(500);
/// Most reports that wait to be taken.
const REPORTS_MAX: usize = 4096;

/// How a server is started.
pub struct ServerOptions {
    /// Where everything is kept.
    pub folder: PathBuf,
    /// Where rows are kept, if not in SQLite files of that folder.
    pub database: Option<Place>,
    /// A replica of it, for reads that may be a little behind.
    pub replica: Option<Place>,
    /// Where HTTP listens.
    pub listen: SocketAddr,
    /// Where lines of JSON are taken.
    pub tcp: Option<SocketAddr>,
    /// How HTTP listens.
    pub serving: Serving,
    /// When segments of the journal begin.
    pub rules: SegmentRules,
    /// Where webhooks may go.
    pub egress: EgressPolicy,
    /// What replays a period without ERA, where there is one.
    pub laboratory: Option<Arc<dyn Laboratory>>,
    /// Redis, where the site shares settings and accepted jobs through one.
    pub redis: Option<RedisAddress>,
    /// InfluxDB, where what jobs tell and use goes there as well.
    pub influx: Option<influx::InfluxAddress>,
    /// The program whose commands the laboratory runs: this one.
    pub program: PathBuf,
    /// How often, and for what, a better policy is searched.
    pub tuning: Option<Tuning>,
    /// What builds images, once the executor that has it was reached.
    pub images: ImageEngine,
    /// How often it is learned how long jobs take and what they use.
    pub learn_every: Duration,
    /// How long what jobs leave is kept.
    pub retention: Retention,
    /// What each task may have beside what it asks for.
    pub limits: TaskLimits,
    /// Whether only one account may be used, since the jobs of all would run as one user.
    pub one_account: bool,
    /// The clock of this machine.
    pub clock: MachineClock,
}

/// Something that is found out or started, or a sentence that says why not.
type Begun<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// What starts the executors.
pub struct StartEngines {
    /// Says where tasks will be, before anything is started.
    holder: Begun<TaskHolder>,
    /// Starts them, once there is somebody to report to.
    start: Box<dyn FnOnce(Starting) -> Begun<Engines> + Send>,
}

/// What executors are started with.
struct Starting {
    /// Where their reports go.
    reports: Reports,
    /// How long after a node was lost its tasks must be gone.
    fence: Span,
    /// By what right they are given orders.
    lease: Lease,
}

/// Why a server does not start or stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// What is kept cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another server is at work.
    #[error(transparent)]
    Led(#[from] LeadError),
    /// Somebody else has taken the place of this server.
    #[error("{0}; start this server again, so that it stands by")]
    Deposed(String),
    /// Layers on their own meet in a database server.
    #[error(
        "layers on their own need a database that all of them reach, and {0} is none: give \
         --database mysql://… or postgres://…"
    )]
    NoServer(Place),
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// Accounts cannot be made.
    #[error(transparent)]
    Accounts(#[from] AccountError),
    /// An address cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// An address cannot be listened on.
    #[error("{address}: {source}: give another address")]
    Listen { address: SocketAddr, source: std::io::Error },
    /// No task could be run.
    #[error("tasks cannot be run here: {0}")]
    Engines(String),
    /// Tasks run where this server cannot see them.
    #[error(
        "{tasks} tasks were given to {place} and are not over, and this one would ask {here}, \
         which knows nothing of them: start `era cloud` as it was started there, until they have \
         ended; or, if what ran them is gone for good, start this one with `--abandon {id}`: they \
         are lost then, and may run again"
    )]
    Elsewhere {
        tasks: usize,
        place: String,
        /// Where they would be looked for.
        here: String,
        /// By what the other place is known.
        id: String,
    },
    /// The laboratory's folder cannot be used.
    #[error("the folder of the laboratory cannot be used: {0}")]
    Lab(std::io::Error),
    /// What a first start needs was refused.
    #[error("the first start failed: {0}")]
    First(String),
    /// The scheduler has gone away.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// A place for lines of JSON, encrypted where HTTP is.
async fn lines_at(
    listener: TcpListener,
    address: SocketAddr,
    serving: &Serving,
) -> Result<tcp::LineListener, BootError> {
    let encryption = serving.encryption().await?.map(|config| config.get_inner().into());
    let lines = tcp::LineListener::new(listener, encryption);
    lines.map_err(|source| BootError::Listen { address, source })
}

/// Starts a server. Addresses are taken first, so that a second server on the same folder or
/// address is refused before it touches anything.
pub async fn start(settings: ServerOptions, engines: StartEngines) -> Result<Running, BootError> {
    settings.serving.check(settings.listen)?;
    let listener = listen(settings.listen)?;
    let lines = match settings.tcp {
        Some(address) => {
            settings.serving.check(address)?;
            Some(lines_at(listen(address)?, address, &settings.serving).await?)
        }
        None => None,
    };
    let occupied = lead::occupy(&settings.folder)?;
    let database = settings.database.unwrap_or_else(|| Place::folder(&settings.folder));
    let store = Store::open_at(&settings.folder, &database, settings.replica.as_ref()).await?;
    let clock = Arc::new(SystemClock::new(settings.clock.clone()));
    let lead = Lead::take(&store, clock.clone()).await?;
    let journal = store.journal();
    let restored = Driver::restore(&journal, State::default()).await?;
    let (reports, reported) = mpsc::channel(REPORTS_MAX);
    let rules = restored.state.settings().clone();
    let starting = Starting { reports, fence: rules.lease.max(rules.grace), lease: store.lease() };
    let engines = (engines.start)(starting).await.map_err(BootError::Engines)?;
    let ended = engines.ended_before(&restored.state.snapshot(), &*clock);
    clock.not_before(restored.state.now());
    let rules = settings.rules;
    let (driver, releases) = Driver::start_from(journal, clock.clone(), rules, restored, ended)?;
    let handle = driver.handle();
    first::furnish(&handle).await?;
    let auth = Auth::open(&store, clock.clone()).await?;
    let auth = if settings.one_account { auth.for_one()? } else { auth };
    let first = auth.first_start(&handle).await?;
    let files = Files::open(&store, settings.retention.of_files(), millis(clock.clone()))?;
    let tasking = Tasking {
        clock: clock.clone(),
        engines: engines.clone(),
        files: files.clone(),
        folder: settings.folder.clone(),
        limits: settings.limits,
        influx: settings.influx,
        gate: None,
    };
    let tasks = tasking.start(&store, handle.clone(), releases, reported);
    wait_for_a_node(&handle).await;
    let (feed, follower) =
        Feed::start(&store, handle.committed(), UNSEEN_MAX, clock.clone()).await?;
    let answering = Answering {
        clock,
        egress: settings.egress,
        laboratory: settings.laboratory,
        lab: settings.folder.join("lab"),
        program: settings.program,
        files,
        images: settings.images,
        engines: Some(engines),
    };
    let app = answering.services(&store, handle.clone(), auth, feed)?;
    let stop = CancellationToken::new();
    let address = local_address(&listener, settings.listen)?;
    let routes = http::service(App(app.clone()), RouteSet::All);
    let http = tokio::spawn(serve_all(listener, routes, settings.serving, stop.clone()));
    let mut beside = JoinSet::new();
    let tcp = lines.as_ref().map(|lines| lines.address);
    if let Some(lines) = lines {
        beside.spawn(lines.serve(app.clone(), stop.clone()));
    }
    let work = vec![
        background::BackgroundWork::Scheduler { learn_every: settings.learn_every },
        background::BackgroundWork::Files { retention: settings.retention, gate: None },
        background::BackgroundWork::Requests { tuning: settings.tuning },
    ];
    beside.spawn(background::run(app.clone(), work, stop.clone()));
    beside.spawn(app.lab.clone().work(store.journal(), stop.clone()));
    beside.spawn(webhook::run(app.clone(), store.journal(), settings.egress, stop.clone()));
    if let Some(redis) = settings.redis {
        beside.spawn(bus::run(app.clone(), store.journal(), redis, settings.clock, stop.clone()));
    }
    Ok(Running {
        app,
        address,
        tcp,
        first,
        store,
        handle,
        scheduling: Scheduling::Here { driver, follower },
        lead: Some(lead),
        tasks: Some(tasks),
        beside,
        http,
        stop,
        _occupied: Some(occupied),
    })
}

/// Serves all of these routes until it is told to stop.
async fn serve_all(
    listener: TcpListener,
    routes: axum::Router,
    serving: Serving,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    serve_routes(listener, routes, &serving, stop.cancelled_owned()).await
}

/// Waits a moment for the first node of a site that has none: whoever hands in a job as soon as the
/// server answers would be told that it never fits.
async fn wait_for_a_node(handle: &Handle) {
    let mut committed = handle.committed();
    let joined = async {
        while handle.snapshot().cluster().nodes().next().is_none() {
            if committed.changed().await.is_err() {
                return;
            }
        }
    };
    // Whose workers or engine come later starts without.
    let _ = tokio::time::timeout(FIRST_NODE, joined).await;
}

/// Opens what is kept for a layer on its own, once its database can be reached.
async fn open(
    folder: &Path,
    database: &Place,
    replica: Option<&Place>,
) -> Result<Store, StoreError> {
    loop {
        match Store::open_at(folder, database, replica).await {
            Err(error) if error.may_pass() => {
                tracing::warn!(%error, "the database cannot be used yet: trying again");
                tokio::time::sleep(OPEN_AGAIN).await;
            }
            opened => return opened,
        }
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, BootError> {
    let failed = |source| BootError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn local_address(listener: &TcpListener, asked: SocketAddr) -> Result<SocketAddr, BootError> {
    listener.local_addr().map_err(|source| BootError::Listen { address: asked, source })
}
