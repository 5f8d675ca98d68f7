//! The application by itself: `era app`, any number of them, and `era files`, of which one is at
//! work.
//!
//! Both are a replica of the scheduler's state and the same routes; which of them are served, and
//! what is looked after besides, is the role's.

use std::net::SocketAddr;
use std::path::PathBuf;

use era_store::files::{Files, Keep};
use era_store::{Leader, Place, Seat, Store};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::lead::{Candidate, LOOK_EVERY, Lead};
use super::reserved::Reserved;
use super::{BootError, executors, machine};
use crate::asks::Asking;
use crate::auth::Auth;
use crate::feed::Feed;
use crate::http::serve::{ServeError, serve_routes};
use crate::http::{Doors, Serving};
use crate::lab::Lab;
use crate::replica::Replica;
use crate::report::Laboratory;
use crate::tend::{Retention, Tuning};
use crate::webhook::address::Reach;
use crate::{App, Parts, auth, tend};

/// What a server of the application is for.
pub enum Role {
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
pub struct Settings {
    /// What it is for.
    pub role: Role,
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
    pub reach: Reach,
    /// What replays a period without ERA, where there is one.
    pub laboratory: Option<Box<dyn Laboratory>>,
    /// The program whose commands the laboratory runs: this one.
    pub program: PathBuf,
    /// What builds images, where there is an engine for it.
    pub images: executors::ImageEngine,
}

/// A server of the application at work.
pub struct Answering {
    /// What requests reach.
    pub app: App,
    /// Where HTTP listens.
    pub address: SocketAddr,
    /// Where lines of JSON are taken.
    pub tcp: Option<SocketAddr>,
    store: Store,
    lead: Option<Lead>,
    replica: Replica,
    tasks: JoinSet<()>,
    http: JoinHandle<Result<(), ServeError>>,
    stop: CancellationToken,
}

/// Starts a server of the application, once a scheduler has begun a journal; one that keeps files
/// once no other does. Its addresses are taken first, so that one in use is refused at once, and
/// nothing is listened to there before it is at work.
pub async fn start(settings: Settings) -> Result<Answering, BootError> {
    if settings.database.as_folder().is_some() {
        return Err(BootError::NoServer(settings.database));
    }
    settings.serving.check(settings.listen)?;
    // A certificate that cannot be used is told now.
    settings.serving.encryption().await?;
    let reserved = Reserved::take(settings.listen)?;
    let address = reserved.address;
    let (doors, lines, mut tending, keep) = match settings.role {
        Role::Requests { tcp, tuning } => {
            if let Some(address) = tcp {
                settings.serving.check(address)?;
            }
            let lines = tcp.map(Reserved::take).transpose()?;
            // Nothing is removed here.
            (Doors::AllButFiles, lines, tend::Of::Requests { tuning }, Keep::default())
        }
        Role::Files { retention } => {
            let files = tend::Of::Files { retention, gate: None };
            (Doors::Files, None, files, retention.of_files())
        }
    };
    let database = (&settings.database, settings.replica.as_ref());
    let store = super::open(&settings.folder, database.0, database.1).await?;
    let lead = match doors {
        Doors::Files => {
            let candidate = Candidate::at(address, Some(String::new()));
            let mut told = String::new();
            let held = |leader: &Leader| {
                if told != leader.holder {
                    tracing::info!(leader = leader.holder, "standing by");
                    told.clone_from(&leader.holder);
                }
            };
            Some(Lead::wait_for(&store.seat(Seat::Files), &candidate, held).await?)
        }
        Doors::All | Doors::AllButFiles => None,
    };
    if let (tend::Of::Files { gate, .. }, Some(lead)) = (&mut tending, &lead) {
        *gate = Some(lead.gate());
    }
    let (replica, _) = Replica::start(&store).await?;
    let auth = Auth::open(&store).await?;
    // The first scheduler of all makes the first account; before that nobody can be answered.
    while auth.directory().users().next().is_none() {
        tokio::time::sleep(LOOK_EVERY).await;
        auth.refresh().await?;
    }
    let handle = replica.handle();
    let (feed, _) = Feed::read(&store, handle.committed()).await?;
    // Each has its own in the folder that all share: a run is known to whoever was asked for it.
    let lab = format!("lab-{}-{}", machine::file_name(), address.port());
    let lab = settings.folder.join(lab);
    let lab = Lab::open(lab, settings.program).map_err(BootError::Lab)?;
    let app = App::new(Parts {
        driver: handle,
        store: store.clone(),
        auth,
        reach: settings.reach,
        feed,
        asks: Asking::default(),
        laboratory: settings.laboratory,
        lab: lab.clone(),
        files: Files::open(&store, keep)?,
        images: settings.images,
        // What runs tasks is another process: it says so at the start if it cannot.
        runs_images: true,
        terminals: None,
    });
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(auth::keep_fresh(app.clone(), stop.clone()));
    tasks.spawn(tend::run(app.clone(), vec![tending], stop.clone()));
    tasks.spawn(lab.work(store.journal(), stop.clone()));
    let tcp = lines.as_ref().map(|reserved| reserved.address);
    if let Some(reserved) = lines {
        let address = reserved.address;
        let lines = super::lines_at(reserved.listen()?, address, &settings.serving).await?;
        tasks.spawn(lines.serve(app.clone(), stop.clone()));
    }
    let listener = reserved.listen()?;
    let routes = crate::http::service(app.clone(), doors);
    let (serving, stopped) = (settings.serving, stop.clone());
    let http = tokio::spawn(async move {
        serve_routes(listener, routes, &serving, stopped.cancelled_owned()).await
    });
    Ok(Answering { app, address, tcp, store, lead, replica, tasks, http, stop })
}

impl Answering {
    /// Comes back when it cannot go on: the journal cannot be followed any more, or another one
    /// keeps the files.
    pub async fn failed(&self) {
        tokio::select! {
            () = self.app.driver.stopped() => {}
            () = super::lost(self.lead.as_ref()) => {}
        }
    }

    /// Why it cannot.
    pub async fn why(self) -> BootError {
        super::why(&self.app.driver, self.replica).await
    }

    /// Answers what is under way, and stops.
    pub async fn stop(self) -> Result<(), BootError> {
        self.stop.cancel();
        let served = self.http.await;
        self.tasks.join_all().await;
        drop(self.app);
        let stopped = self.replica.stop().await;
        if let Some(lead) = self.lead {
            lead.give_up().await;
        }
        self.store.close().await;
        stopped?;
        match served {
            Ok(served) => Ok(served?),
            Err(_) => Ok(()),
        }
    }
}
