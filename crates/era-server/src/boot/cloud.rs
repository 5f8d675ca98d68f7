//! What runs tasks, by itself: `era cloud`. One is at work for a site, and others stand by.
//!
//! It is a replica of the scheduler's state and a launcher: effects come out of the journal as it
//! is followed, and reports go to whoever leads. So a change of the lead is nothing to a task.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use era_cloud::Limits;
use era_store::files::{Files, Keep};
use era_store::{Place, Seat, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::door::{Door, Standing};
use super::lead::{Candidate, Gate, Lead};
use super::{BootError, REPORTS_MAX, StartEngines, Starting, listen, local_address, staging};
use crate::driver::{Handle, Releases};
use crate::http::Serving;
use crate::http::serve::ServeError;
use crate::launch::{self, Launcher, Launching};
use crate::replica::Replica;
use crate::{influx, recorder};

/// How what runs tasks is started.
pub struct Settings {
    /// Where code, data and what jobs leave is kept: storage that it shares with those who keep
    /// files and answer for logs.
    pub folder: PathBuf,
    /// Where rows are kept.
    pub database: Place,
    /// Where it says how it stands.
    pub listen: SocketAddr,
    /// How it listens there.
    pub serving: Serving,
    /// What ran tasks before and is gone for good, by its id: what it had is lost.
    pub abandon: Option<String>,
    /// What each task may have beside what it asks for.
    pub limits: Limits,
    /// InfluxDB, where what jobs tell and use goes there as well.
    pub influx: Option<influx::Address>,
}

/// At work.
pub struct Working {
    /// Where it says how it stands.
    pub address: SocketAddr,
    driver: Handle,
    store: Store,
    lead: Lead,
    replica: Replica,
    launcher: Launcher,
    recorder: JoinHandle<()>,
    telling: Option<JoinHandle<()>>,
    relay: JoinHandle<()>,
    http: JoinHandle<Result<(), ServeError>>,
    stop: CancellationToken,
}

/// Starts to run tasks, once no other does and a scheduler has begun a journal.
pub async fn start(settings: Settings, engines: StartEngines) -> Result<Working, BootError> {
    if settings.database.as_folder().is_some() {
        return Err(BootError::NoServer(settings.database));
    }
    settings.serving.check(settings.listen)?;
    let listener = listen(settings.listen)?;
    let address = local_address(&listener, settings.listen)?;
    let (door, stop) = (Door::new(), CancellationToken::new());
    let http = tokio::spawn(door.clone().serve(listener, settings.serving, stop.clone()));
    let store = super::open(&settings.folder, &settings.database, None).await?;
    // What stands beside the seat is where tasks are.
    let candidate = Candidate::at(address, None);
    let held = |leader: &era_store::Leader| door.stands_by(&leader.holder);
    let seat = store.seat(Seat::Cloud);
    let lead = Lead::wait_for(&seat, &candidate, held).await?;
    let (replica, releases) = Replica::start(&store).await?;
    let driver = replica.handle();
    let holder = engines.holder.await.map_err(BootError::Engines)?;
    let out = launch::out(&driver.snapshot());
    if let Err(elsewhere) = holder.settle(&seat, out, settings.abandon.as_deref()).await {
        // Whoever can see them is not to wait for this one.
        lead.give_up().await;
        return Err(elsewhere);
    }
    let (reports, reported) = mpsc::channel(REPORTS_MAX);
    let rules = driver.snapshot().settings().clone();
    let starting = Starting { reports, fence: rules.lease.max(rules.grace), lease: seat };
    let engines = (engines.start)(starting).await.map_err(BootError::Engines)?;
    // Whoever keeps files removes them: nothing is removed here.
    let files = Files::open(&store, Keep::default())?;
    let (influx, telling) = settings.influx.map(influx::start).unzip();
    let (samples, recorder) = recorder::start(store.samples(), influx);
    let staging = staging::FromFiles { files, driver: driver.clone(), catalogue: store.accounts() };
    let launching = Launching {
        driver: driver.clone(),
        rows: store.accounts(),
        journal: store.journal(),
        secrets: store.secrets(),
        engines,
        staging: Arc::new(staging),
        jobs: settings.folder.join("jobs"),
        limits: settings.limits,
        samples: Some(samples),
        gate: Some(lead.gate()),
        one_clock: false,
    };
    let (relay, releases) = relay(lead.gate(), releases);
    let launcher = Launcher::start(launching, releases, reported);
    door.set(Standing::AtWork(None));
    Ok(Working {
        address,
        driver,
        store,
        lead,
        replica,
        launcher,
        recorder,
        telling,
        relay,
        http,
        stop,
    })
}

/// Lets effects through while the seat is surely held: whoever was paused and comes back launches
/// nothing until it knows that nobody else does.
fn relay(mut gate: Gate, mut releases: Releases) -> (JoinHandle<()>, Releases) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let relay = tokio::spawn(async move {
        while let Some(released) = releases.recv().await {
            if !gate.pass().await || sender.send(released).is_err() {
                return;
            }
        }
    });
    (relay, receiver)
}

impl Working {
    /// Comes back when it cannot go on: the journal cannot be followed any more, or another one
    /// runs tasks.
    pub async fn failed(&self) {
        tokio::select! {
            () = self.driver.stopped() => {}
            () = self.lead.lost() => {}
        }
    }

    /// Why it cannot.
    pub async fn why(self) -> BootError {
        super::why(&self.driver, self.replica).await
    }

    /// Stops giving orders and taking reports. Tasks go on.
    pub async fn stop(self) -> Result<(), BootError> {
        self.stop.cancel();
        self.relay.abort();
        self.launcher.stop().await;
        super::recorded(self.recorder, self.telling).await;
        drop(self.driver);
        let stopped = self.replica.stop().await;
        self.lead.give_up().await;
        let served = self.http.await;
        self.store.close().await;
        stopped?;
        match served {
            Ok(served) => Ok(served?),
            Err(_) => Ok(()),
        }
    }
}
