//! What runs tasks, by itself: `era cloud`. One is at work for a site, and others stand by.
//!
//! It is a replica of the scheduler's state and a launcher: effects come out of the journal as it
//! is followed, and reports go to whoever leads. So a change of the lead is nothing to a task.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use era_app::clock::{SystemClock, millis};
use era_app::lead::{Lead, LeaderCandidate};
use era_app::replica::Replica;
use era_app::{influx, launch};
use era_cloud::TaskLimits;
use era_cloud::clock::MachineClock;
use era_store::files::{Files, KeepFor};
use era_store::{LeaseRole, Place};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::assembly::{Running, Scheduling, Tasking};
use super::layer_status::{LayerStatus, Standing};
use super::{BootError, REPORTS_MAX, StartEngines, Starting, listen, local_address};
use crate::http::Serving;

/// How what runs tasks is started.
pub struct CloudOptions {
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
    pub limits: TaskLimits,
    /// InfluxDB, where what jobs tell and use goes there as well.
    pub influx: Option<influx::InfluxAddress>,
    /// The clock of this machine.
    pub clock: MachineClock,
}

/// Starts to run tasks, once no other does and a scheduler has begun a journal.
pub async fn start(
    settings: CloudOptions,
    engines: StartEngines,
) -> Result<Running<()>, BootError> {
    if settings.database.as_folder().is_some() {
        return Err(BootError::NoServer(settings.database));
    }
    settings.serving.check(settings.listen)?;
    let listener = listen(settings.listen)?;
    let address = local_address(&listener, settings.listen)?;
    let (status, stop) = (LayerStatus::new(), CancellationToken::new());
    let http = tokio::spawn(status.clone().serve(listener, settings.serving, stop.clone()));
    let store = super::open(&settings.folder, &settings.database, None).await?;
    // What stands beside the lease is where tasks are.
    let clock = Arc::new(SystemClock::new(settings.clock));
    let candidate = LeaderCandidate::at(address, None, clock.clone());
    let held = |leader: &era_store::Leader| status.stands_by(&leader.holder);
    let lease = store.lease_of(LeaseRole::Cloud);
    let lead = Lead::wait_for(&lease, &candidate, held).await?;
    let (replica, releases) = Replica::start(&store).await?;
    let handle = replica.handle();
    let holder = engines.holder.await.map_err(BootError::Engines)?;
    let out = launch::out(&handle.snapshot());
    if let Err(elsewhere) = holder.settle(&lease, out, settings.abandon.as_deref()).await {
        // Whoever can see them is not to wait for this one.
        lead.give_up().await;
        return Err(elsewhere);
    }
    let (reports, reported) = mpsc::channel(REPORTS_MAX);
    let rules = handle.snapshot().settings().clone();
    let starting = Starting { reports, fence: rules.lease.max(rules.grace), lease };
    let engines = (engines.start)(starting).await.map_err(BootError::Engines)?;
    let tasking = Tasking {
        clock: clock.clone(),
        engines,
        // Whoever keeps files removes them: nothing is removed here.
        files: Files::open(&store, KeepFor::default(), millis(clock))?,
        folder: settings.folder,
        limits: settings.limits,
        influx: settings.influx,
        gate: Some(lead.gate()),
    };
    let tasks = tasking.start(&store, handle.clone(), releases, reported);
    status.set(Standing::AtWork(None));
    Ok(Running {
        app: (),
        address,
        tcp: None,
        first: None,
        store,
        handle,
        scheduling: Scheduling::Elsewhere(replica),
        lead: Some(lead),
        tasks: Some(tasks),
        beside: JoinSet::new(),
        http,
        stop,
        _occupied: None,
    })
}
