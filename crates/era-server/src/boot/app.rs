//! The application by itself: `era app`, any number of them, and `era files`, of which one is at
//! work.
//!
//! Both are a replica of the scheduler's state and the same routes; which of them are served, and
//! what is looked after besides, is the role's.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use era_app::auth::Auth;
use era_app::background::{Retention, Tuning};
use era_app::clock::{SystemClock, millis};
use era_app::egress::EgressPolicy;
use era_app::feed::Feed;
use era_app::image_engine::ImageEngine;
use era_app::lead::{LOOK_EVERY, Lead, LeaderCandidate};
use era_app::replica::Replica;
use era_app::report::Laboratory;
use era_app::{background, machine};
use era_cloud::clock::MachineClock;
use era_store::files::{Files, KeepFor};
use era_store::{Leader, LeaseRole, Place};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::BootError;
use super::assembly::{Answering, Running, Scheduling};
use super::reserved::Reserved;
use crate::App;
use crate::http::{RouteSet, Serving};

/// What a server of the application is for.
pub enum AppRole {
    /// Requests of all kinds but those about files.
    Requests {
        /// Where lines of JSON are taken.
        tcp: Option<SocketAddr>,
        /// How often, and for what, a better policy is searched.
        tuning: Option<Tuning>,
    },
    /// Requests about files.
    Files {
        /// How long what jobs leave is kept.
        retention: Retention,
    },
}

/// How a server of the application is started.
pub struct AppOptions {
    /// What it is for.
    pub role: AppRole,
    /// Where files are kept: storage that it shares with those who run tasks.
    pub folder: PathBuf,
    /// Where rows are kept.
    pub database: Place,
    /// A replica of it, for reads that may be a little behind.
    pub replica: Option<Place>,
    /// Where HTTP listens.
    pub listen: SocketAddr,
    /// How HTTP listens.
    pub serving: Serving,
    /// Where webhooks may go.
    pub egress: EgressPolicy,
    /// What replays a period without ERA, where there is one.
    pub laboratory: Option<Arc<dyn Laboratory>>,
    /// The program whose commands the laboratory runs: this one.
    pub program: PathBuf,
    /// What builds images, where there is an engine for it.
    pub images: ImageEngine,
    /// The clock of this machine.
    pub clock: MachineClock,
}

/// Starts a server of the application, once a scheduler has begun a journal; one that keeps files
/// once no other does. Its addresses are taken first, so that one in use is refused at once, and
/// nothing is listened to there before it is at work.
pub async fn start(settings: AppOptions) -> Result<Running, BootError> {
    if settings.database.as_folder().is_some() {
        return Err(BootError::NoServer(settings.database));
    }
    settings.serving.check(settings.listen)?;
    // A certificate that cannot be used is told now.
    settings.serving.encryption().await?;
    let reserved = Reserved::take(settings.listen)?;
    let address = reserved.address;
    let (routes, lines, mut work, keep) = match settings.role {
        AppRole::Requests { tcp, tuning } => {
            if let Some(address) = tcp {
                settings.serving.check(address)?;
            }
            let lines = tcp.map(Reserved::take).transpose()?;
            // Nothing is removed here.
            (
                RouteSet::AllButFiles,
                lines,
                background::BackgroundWork::Requests { tuning },
                KeepFor::default(),
            )
        }
        AppRole::Files { retention } => {
            let files = background::BackgroundWork::Files { retention, gate: None };
            (RouteSet::Files, None, files, retention.of_files())
        }
    };
    let clock = Arc::new(SystemClock::new(settings.clock));
    let database = (&settings.database, settings.replica.as_ref());
    let store = super::open(&settings.folder, database.0, database.1).await?;
    let lead = match routes {
        RouteSet::Files => {
            let candidate = LeaderCandidate::at(address, Some(String::new()), clock.clone());
            let mut told = String::new();
            let held = |leader: &Leader| {
                if told != leader.holder {
                    tracing::info!(leader = leader.holder, "standing by");
                    told.clone_from(&leader.holder);
                }
            };
            Some(Lead::wait_for(&store.lease_of(LeaseRole::Files), &candidate, held).await?)
        }
        RouteSet::All | RouteSet::AllButFiles => None,
    };
    if let (background::BackgroundWork::Files { gate, .. }, Some(lead)) = (&mut work, &lead) {
        *gate = Some(lead.gate());
    }
    let (replica, _) = Replica::start(&store).await?;
    let auth = Auth::open(&store, clock.clone()).await?;
    // The first scheduler of all makes the first account; before that nobody can be answered.
    while auth.directory().users().next().is_none() {
        tokio::time::sleep(LOOK_EVERY).await;
        auth.refresh().await?;
    }
    let handle = replica.handle();
    let (feed, _) = Feed::read(&store, handle.committed(), clock.clone()).await?;
    // Each has its own in the folder that all share: a run is known to whoever was asked for it.
    let lab = format!("lab-{}-{}", machine::file_name(), address.port());
    let answering = Answering {
        clock: clock.clone(),
        egress: settings.egress,
        laboratory: settings.laboratory,
        lab: settings.folder.join(lab),
        program: settings.program,
        files: Files::open(&store, keep, millis(clock))?,
        images: settings.images,
        engines: None,
    };
    let app = answering.services(&store, handle.clone(), auth, feed)?;
    let stop = CancellationToken::new();
    let mut beside = JoinSet::new();
    let (services, stopped) = (app.clone(), stop.clone());
    beside.spawn(async move { services.auth.keep_fresh(stopped).await });
    beside.spawn(background::run(app.clone(), vec![work], stop.clone()));
    beside.spawn(app.lab.clone().work(store.journal(), stop.clone()));
    let tcp = lines.as_ref().map(|reserved| reserved.address);
    if let Some(reserved) = lines {
        let address = reserved.address;
        let lines = super::lines_at(reserved.listen()?, address, &settings.serving).await?;
        beside.spawn(lines.serve(app.clone(), stop.clone()));
    }
    let listener = reserved.listen()?;
    let routes = crate::http::service(App(app.clone()), routes);
    let http = tokio::spawn(super::serve_all(listener, routes, settings.serving, stop.clone()));
    Ok(Running {
        app,
        address,
        tcp,
        first: None,
        store,
        handle,
        scheduling: Scheduling::Elsewhere(replica),
        lead,
        tasks: None,
        beside,
        http,
        stop,
        _occupied: None,
    })
}
