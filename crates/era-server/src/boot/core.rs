//! The scheduler by itself: `era core`. Any number of them may run on one database; one leads, and
//! the others stand by.
//!
//! Whoever stands by follows the journal on a state of its own and tries the lead when the lease
//! has run out, so that to take over is to read the last few entries and go on. Whoever finds that
//! another one has taken its lead ends: what it still had to say, the journal would refuse.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use era_app::auth::Auth;
use era_app::clock::{SystemClock, millis};
use era_app::driver::{Driver, SegmentRules};
use era_app::egress::EgressPolicy;
use era_app::feed::Feed;
use era_app::image_engine::ImageEngine;
use era_app::lead::{LOOK_EVERY, Lead, LeaderCandidate};
use era_app::replica::{inbox, link::Contact};
use era_app::{background, bus, webhook};
use era_cloud::celery::names::RedisAddress;
use era_cloud::clock::MachineClock;
use era_core::State;
use era_store::files::{Files, KeepFor};
use era_store::journal::Follower;
use era_store::{Place, Store, StoreError, answered_within};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::assembly::{Answering, Running, Scheduling};
use super::layer_status::{LayerStatus, Standing};
use super::{BootError, first, listen, local_address};
use crate::http::Serving;
use crate::http::serve::ServeError;

/// How long the database may take to answer whoever stands by, and to hand over a whole state: a
/// host that vanished says nothing at all.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const STATE_MAX: Duration = Duration::from_secs(120);

/// How a scheduler is started.
pub struct CoreOptions {
    /// Where it may keep what it learns.
    pub folder: PathBuf,
    /// Where rows are kept.
    pub database: Place,
    /// Where it says how it stands.
    pub listen: SocketAddr,
    /// How it listens there.
    pub serving: Serving,
    /// Where other layers ask it.
    pub inbox: SocketAddr,
    /// How they reach that, if it is not the address itself.
    pub advertise: Option<String>,
    /// When segments of the journal begin.
    pub rules: SegmentRules,
    /// Where webhooks may go.
    pub egress: EgressPolicy,
    /// Redis, where the site shares settings and accepted jobs through one.
    pub redis: Option<RedisAddress>,
    /// The program whose commands the laboratory runs: this one.
    pub program: PathBuf,
    /// How often it is learned how long jobs take and what they use.
    pub learn_every: Duration,
    /// The clock of this machine.
    pub clock: MachineClock,
}

/// A scheduler that does not lead yet.
pub struct Scheduler {
    settings: CoreOptions,
    clock: Arc<SystemClock>,
    store: Store,
    inbox: TcpListener,
    contact: Contact,
    candidate: LeaderCandidate,
    status: LayerStatus,
    /// Where it says how it stands.
    pub address: SocketAddr,
    http: JoinHandle<Result<(), ServeError>>,
    stop: CancellationToken,
}

impl Scheduler {
    /// Listens, and opens what is kept, once its database answers. It stands by until [`Scheduler::lead`] comes back.
    pub async fn open(settings: CoreOptions) -> Result<Scheduler, BootError> {
        if settings.database.as_folder().is_some() {
            return Err(BootError::NoServer(settings.database));
        }
        settings.serving.check(settings.listen)?;
        let listener = listen(settings.listen)?;
        let address = local_address(&listener, settings.listen)?;
        let inbox = listen(settings.inbox)?;
        let asked_at = local_address(&inbox, settings.inbox)?;
        let advertised = settings.advertise.clone().unwrap_or_else(|| asked_at.to_string());
        let contact = Contact::new(&advertised)?;
        let clock = Arc::new(SystemClock::new(settings.clock.clone()));
        let candidate = LeaderCandidate::at(asked_at, Some(contact.written()), clock.clone());
        let (status, stop) = (LayerStatus::new(), CancellationToken::new());
        let serving = settings.serving.clone();
        let http = tokio::spawn(status.clone().serve(listener, serving, stop.clone()));
        let store = super::open(&settings.folder, &settings.database, None).await?;
        Ok(Scheduler {
            settings,
            clock,
            store,
            inbox,
            contact,
            candidate,
            status,
            address,
            http,
            stop,
        })
    }

    /// Stands by until nobody else leads, then leads.
    pub async fn lead(self) -> Result<Running, BootError> {
        let (lead, follower) = self.stand_by().await?;
        let Scheduler {
            settings,
            clock,
            store,
            inbox: listener,
            contact,
            status,
            address,
            http,
            stop,
            ..
        } = self;
        let journal = store.journal();
        let started = match follower {
            Some(mut follower) => {
                // What the last leader wrote at the last moment. From here on only this one does.
                follower.catch_up().await?;
                let restored = follower.restored();
                clock.not_before(restored.state.now());
                // Executors are elsewhere, and tell what ended when they find this one.
                Driver::start_from(journal, clock.clone(), settings.rules, restored, Vec::new())
            }
            None => Driver::start(journal, clock.clone(), settings.rules, State::default()).await,
        };
        let (driver, _releases) = started?;
        let handle = driver.handle();
        first::furnish(&handle).await?;
        let auth = Auth::open(&store, clock.clone()).await?;
        let first = auth.first_start(&handle).await?;
        // Application servers read the tables too, and cannot ask for them.
        let feed = Feed::start(&store, handle.committed(), Duration::ZERO, clock.clone()).await?;
        let (feed, follower) = feed;
        let answering = Answering {
            clock: clock.clone(),
            egress: settings.egress,
            laboratory: None,
            lab: settings.folder.join("lab"),
            program: settings.program,
            // Whoever keeps files removes them: nothing is removed here.
            files: Files::open(&store, KeepFor::default(), millis(clock))?,
            images: ImageEngine::default(),
            engines: None,
        };
        let app = answering.services(&store, handle.clone(), auth, feed)?;
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|source| BootError::Listen { address: settings.inbox, source })?;
        let mut beside = JoinSet::new();
        beside.spawn(inbox::serve(listener, handle.clone(), contact, stop.clone()));
        let work =
            vec![background::BackgroundWork::Scheduler { learn_every: settings.learn_every }];
        beside.spawn(background::run(app.clone(), work, stop.clone()));
        let (services, stopped) = (app.clone(), stop.clone());
        beside.spawn(async move { services.auth.keep_fresh(stopped).await });
        beside.spawn(webhook::run(app.clone(), store.journal(), settings.egress, stop.clone()));
        if let Some(redis) = settings.redis {
            beside.spawn(bus::run(
                app.clone(),
                store.journal(),
                redis,
                settings.clock,
                stop.clone(),
            ));
        }
        status.set(Standing::AtWork(Some(app.clone())));
        Ok(Running {
            app,
            address,
            tcp: None,
            first,
            store,
            handle,
            scheduling: Scheduling::Here { driver, follower },
            lead: Some(lead),
            tasks: None,
            beside,
            http,
            stop,
            _occupied: None,
        })
    }

    /// Follows the journal until the lead is there to be taken.
    async fn stand_by(&self) -> Result<(Lead, Option<Follower>), BootError> {
        let lease = self.store.lease();
        let mut follower = None;
        loop {
            match self.look(&lease, &mut follower).await {
                Ok(Some(lead)) => return Ok((lead, follower)),
                Ok(None) => {}
                Err(error) if error.may_pass() => {
                    tracing::warn!(%error, "the database does not answer: trying again");
                }
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn look(
        &self,
        lease: &era_store::Lease,
        follower: &mut Option<Follower>,
    ) -> Result<Option<Lead>, StoreError> {
        match follower {
            // A page at a time: there may be many, but none takes long.
            Some(follower) => {
                while answered_within(ANSWER_MAX, follower.advance(|_, _| {})).await? {}
            }
            None => {
                let journal = self.store.journal();
                *follower = match answered_within(STATE_MAX, journal.follow()).await {
                    // The release before this one still leads, or has just stopped: whoever leads
                    // next brings the journal to its own version.
                    Err(StoreError::OtherVersion { .. }) => None,
                    followed => followed?,
                }
            }
        }
        match answered_within(ANSWER_MAX, Lead::try_seat(lease, &self.candidate)).await? {
            Ok(lead) => Ok(Some(lead)),
            Err(leader) => {
                self.status.stands_by(&leader.holder);
                Ok(None)
            }
        }
    }
}
