//! A server as one assembly of parts, each of which is there or not: a scheduler or a replica of
//! one, what answers requests, what runs tasks, and the work beside them.
//!
//! [`super::start`], [`core`](super::core), [`app`](super::app) and [`cloud`](super::cloud) say
//! which parts there are and what has to be waited for; how a part is made stands here once, and so
//! does the order in which all of them end.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use era_app::asks::Asking;
use era_app::auth::Auth;
use era_app::auth::first_start::FirstAccount;
use era_app::clock::Clock;
use era_app::driver::{Driver, Handle, Releases, Unanswered};
use era_app::egress::EgressPolicy;
use era_app::feed::Feed;
use era_app::image_engine::ImageEngine;
use era_app::lab::Lab;
use era_app::launch::{Engines, Launcher, Launching};
use era_app::lead::{Lead, LeaseGate};
use era_app::replica::Replica;
use era_app::report::Laboratory;
use era_app::{Parts, Services, influx, recorder, staging};
use era_cloud::{ExecutorReport, TaskLimits};
use era_store::files::Files;
use era_store::{Store, StoreError, answered_within};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::BootError;
use crate::http::serve::ServeError;

/// How long the tables may take to end, and values that jobs told to be recorded.
const FOLLOW_TIME: Duration = Duration::from_secs(5);
/// How long the database may take to say who leads.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A server at work. `A` is what it answers requests with: nothing, where it answers none.
pub struct Running<A = Services> {
    /// What requests reach.
    pub app: A,
    /// Where HTTP listens.
    pub address: SocketAddr,
    /// Where lines of JSON are taken.
    pub tcp: Option<SocketAddr>,
    /// The account that was made, at the first start.
    pub first: Option<FirstAccount>,
    pub(super) store: Store,
    pub(super) handle: Handle,
    pub(super) scheduling: Scheduling,
    pub(super) lead: Option<Lead>,
    pub(super) tasks: Option<Tasks>,
    /// What else goes on until it is told to stop.
    pub(super) beside: JoinSet<()>,
    pub(super) http: JoinHandle<Result<(), ServeError>>,
    pub(super) stop: CancellationToken,
    /// Keeps other servers out of the folder, where nobody may share it.
    pub(super) _occupied: Option<File>,
}

/// The scheduler that a server has.
pub(super) enum Scheduling {
    /// Its own, and what keeps the tables.
    Here { driver: Driver, follower: JoinHandle<()> },
    /// Another process's, followed.
    Elsewhere(Replica),
}

/// What answers requests needs beside a store and a scheduler.
pub(super) struct Answering {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) egress: EgressPolicy,
    pub(super) laboratory: Option<Arc<dyn Laboratory>>,
    /// Where simulations and replays are kept, and the program that runs them.
    pub(super) lab: PathBuf,
    pub(super) program: PathBuf,
    pub(super) files: Files,
    pub(super) images: ImageEngine,
    /// The executors, where they are this process's.
    pub(super) engines: Option<Engines>,
}

impl Answering {
    /// What requests reach.
    pub(super) fn services(
        self,
        store: &Store,
        driver: Handle,
        auth: Auth,
        feed: Feed,
    ) -> Result<Services, BootError> {
        let engines = self.engines;
        let clock = self.clock;
        Ok(Services::new(Parts {
            driver,
            clock: clock.clone(),
            store: store.clone(),
            auth,
            egress: self.egress,
            feed,
            asks: Asking::default(),
            laboratory: self.laboratory,
            lab: Lab::open(self.lab, self.program, clock).map_err(BootError::Lab)?,
            files: self.files,
            images: self.images,
            // What runs tasks elsewhere says at its start if it cannot.
            runs_images: engines.as_ref().is_none_or(Engines::run_images),
            terminals: engines.filter(Engines::have_terminals),
        }))
    }
}

/// What runs tasks, at work.
pub(super) struct Tasks {
    launcher: Launcher,
    recorder: JoinHandle<()>,
    telling: Option<JoinHandle<()>>,
    relay: Option<JoinHandle<()>>,
}

/// How tasks are run.
pub(super) struct Tasking {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) engines: Engines,
    pub(super) files: Files,
    pub(super) folder: PathBuf,
    pub(super) limits: TaskLimits,
    pub(super) influx: Option<influx::InfluxAddress>,
    /// Where another server may run them instead: what says that none does. Where the scheduler is
    /// in this very process there is none.
    pub(super) gate: Option<LeaseGate>,
}

impl Tasking {
    /// Carries out what is released, and takes what is reported.
    pub(super) fn start(
        self,
        store: &Store,
        driver: Handle,
        releases: Releases,
        reported: mpsc::Receiver<ExecutorReport>,
    ) -> Tasks {
        let Tasking { clock, engines, files, folder, limits, influx, gate } = self;
        let (influx, telling) = influx.map(influx::start).unzip();
        let (samples, recorder) = recorder::start(store.samples(), influx);
        let catalogue = store.accounts();
        let launching = Launching {
            driver: driver.clone(),
            clock,
            rows: store.accounts(),
            journal: store.journal(),
            secrets: store.secrets(),
            engines,
            staging: Arc::new(staging::FromFiles { files, driver, catalogue }),
            folder,
            limits,
            samples: Some(samples),
            gate: gate.clone(),
            one_clock: gate.is_none(),
        };
        let (relay, releases) = match gate {
            Some(gate) => {
                let (relay, releases) = relayed(gate, releases);
                (Some(relay), releases)
            }
            None => (None, releases),
        };
        let launcher = Launcher::start(launching, releases, reported);
        Tasks { launcher, recorder, telling, relay }
    }
}

/// Lets effects through while the lease is surely held: whoever was paused and comes back launches
/// nothing until it knows that nobody else does.
fn relayed(mut gate: LeaseGate, mut releases: Releases) -> (JoinHandle<()>, Releases) {
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

impl Tasks {
    /// Gives no more orders and takes no more reports. Tasks go on; what they told is recorded.
    async fn stop(self) {
        if let Some(relay) = self.relay {
            relay.abort();
        }
        self.launcher.stop().await;
        if tokio::time::timeout(FOLLOW_TIME, self.recorder).await.is_err() {
            tracing::warn!("values that jobs told are not all recorded");
        }
        if let Some(mut telling) = self.telling
            && tokio::time::timeout(FOLLOW_TIME, &mut telling).await.is_err()
        {
            telling.abort();
            tracing::warn!("InfluxDB has not got all values");
        }
    }
}

impl Scheduling {
    /// Stops it once nobody asks it any more.
    async fn stop(self) -> Result<(), StoreError> {
        match self {
            Scheduling::Here { driver, follower } => {
                let stopped = driver.stop().await;
                // The driver is gone: the tables take what is left, and end.
                if tokio::time::timeout(FOLLOW_TIME, follower).await.is_err() {
                    tracing::warn!("the tables are behind: whoever leads next goes on from there");
                }
                stopped
            }
            Scheduling::Elsewhere(replica) => replica.stop().await,
        }
    }
}

impl<A> Running<A> {
    /// Comes back when it cannot go on: the journal cannot be written or followed any more, or
    /// another server has taken its place.
    pub async fn failed(&self) {
        let lost = async {
            match &self.lead {
                Some(lead) => lead.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.handle.stopped() => {}
            () = lost => {}
        }
    }

    /// Why it cannot. Nothing is brought to an orderly end: whoever leads now goes on.
    pub async fn why(self) -> BootError {
        let ended = match self.scheduling {
            Scheduling::Here { .. } if self.handle.is_running() => {
                let lease = self.store.lease();
                return match answered_within(ANSWER_MAX, lease.leader()).await {
                    Ok(leader) if leader.generation == lease.generation() => {
                        BootError::Deposed("the lead was not renewed in time".to_owned())
                    }
                    Ok(leader) => {
                        BootError::Deposed(format!("{} has taken the lead", leader.holder))
                    }
                    Err(error) => error.into(),
                };
            }
            Scheduling::Elsewhere(_) if self.handle.is_following() => {
                let why = "another server has taken the place of this one";
                return BootError::Deposed(why.to_owned());
            }
            Scheduling::Here { driver, .. } => driver.stop().await,
            Scheduling::Elsewhere(replica) => replica.stop().await,
        };
        match ended {
            Err(error @ StoreError::Deposed { .. }) => BootError::Deposed(error.to_string()),
            Err(error) => error.into(),
            Ok(()) => Unanswered::Stopped.into(),
        }
    }

    /// Stops in order: no more questions, then no more orders and reports, then the scheduler,
    /// which answers what it was asked, then what is kept; and lets the next one lead at once.
    /// Tasks go on.
    pub async fn stop(mut self) -> Result<(), BootError> {
        self.stop.cancel();
        let served = self.http.await;
        while self.beside.join_next().await.is_some() {}
        if let Some(tasks) = self.tasks {
            tasks.stop().await;
        }
        let stopped = self.scheduling.stop().await;
        drop((self.app, self.handle));
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
