//! What a server does by itself, now and then: notes what was asked and what pools cost, counts
//! what jobs left, removes what nothing names any more, learns what will be asked for and how jobs
//! will go, and has better rules searched.
//!
//! None of it stands in anybody's way: it runs beside the requests, fails alone, and is tried
//! again at its next turn.

mod estimates;
mod forecast;
mod outputs;
mod prices;
mod retention;

use std::time::Duration;

use era_api::lab::LabAsk;
use era_core::units::Span;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::retention::Retention;
use crate::Services;
use crate::feed::ClusterChange;
use crate::lead::LeaseGate;

/// How often small things are looked after.
const OFTEN: Duration = Duration::from_secs(60);
/// How often files, forecasts and old prices are looked after.
const HOURLY: Duration = Duration::from_secs(3600);
/// How far apart news of the laboratory are.
const LAB_NEWS_APART: Duration = Duration::from_millis(500);
/// How long after the start this begins, so that a start is not made slower.
const FIRST: Duration = Duration::from_secs(30);

/// What goes on by itself, by whose server it is.
pub enum BackgroundWork {
    /// Of whoever leads.
    Scheduler {
        /// How often it is learned how long jobs take and what they use.
        learn_every: Duration,
    },
    /// Of whoever keeps files.
    Files {
        /// How long what jobs leave is kept.
        retention: Retention,
        /// Open while no other server keeps files; none where no other can.
        gate: Option<LeaseGate>,
    },
    /// Of everybody who answers requests.
    Requests {
        /// How often, and for what, a better policy is searched.
        tuning: Option<Tuning>,
    },
}

/// Does these parts of it until it is stopped. For the server's start to spawn.
pub async fn run(app: Services, parts: Vec<BackgroundWork>, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    for part in parts {
        match part {
            BackgroundWork::Scheduler { learn_every } => {
                tasks.spawn(until(stop.clone(), prices::follow(app.clone())));
                tasks.spawn(until(stop.clone(), forecasts(app.clone())));
                let learning = estimates::keep_learning(app.clone(), learn_every);
                tasks.spawn(until(stop.clone(), learning));
            }
            BackgroundWork::Files { retention, gate } => {
                tasks.spawn(outputs::follow(app.clone(), stop.clone()));
                tasks.spawn(until(stop.clone(), collect(app.clone(), retention, gate)));
            }
            BackgroundWork::Requests { tuning } => {
                let (here, stopped) = (app.clone(), stop.clone());
                tasks.spawn(async move {
                    until(stopped, often(here.clone())).await;
                    // What is in memory only would be lost.
                    note_quotes(&here).await;
                });
                tasks.spawn(until(stop.clone(), tell_of_lab(app.clone())));
                if let Some(tuning) = tuning {
                    tasks.spawn(until(stop.clone(), tune(app.clone(), tuning)));
                }
            }
        }
    }
    tasks.join_all().await;
}

/// Tells whoever listens that a run of the laboratory began, got on or ended; not too often.
async fn tell_of_lab(app: Services) {
    let mut changes = app.lab.changes();
    while changes.changed().await.is_ok() {
        app.feed.tell(Some(ClusterChange::Lab));
        tokio::time::sleep(LAB_NEWS_APART).await;
    }
}

/// A search that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    pub every: Duration,
    /// What is to be made small.
    pub objective: String,
}

/// Candidates of a search that nobody waits for.
const BUDGET: u32 = 96;

/// Asks the laboratory for a better policy now and then. What it finds is proposed, and put in
/// force by an administrator or by nobody.
async fn tune(app: Services, tuning: Tuning) {
    for seed in 1.. {
        tokio::time::sleep(tuning.every).await;
        let asked = LabAsk::Tune { objective: tuning.objective.clone(), budget: BUDGET, seed };
        if let Err(error) = app.lab.ask(asked, None) {
            tracing::warn!(%error, "no better policy is searched this time");
        }
    }
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn often(app: Services) {
    loop {
        tokio::time::sleep(OFTEN).await;
        note_quotes(&app).await;
        if let Err(error) = app.auth.tend().await {
            tracing::warn!(%error, "tokens could not be tended");
        }
    }
}

async fn note_quotes(app: &Services) {
    if let Err(error) = app.asks.write(&app.store.asks(), app.clock.now()).await {
        tracing::warn!(%error, "quotes that were asked could not be noted");
    }
}

async fn collect(app: Services, retention: Retention, gate: Option<LeaseGate>) {
    tokio::time::sleep(FIRST).await;
    let ours = || gate.as_ref().is_none_or(LeaseGate::is_open);
    loop {
        retention::apply(&app, retention, app.clock.now(), &ours).await;
        tokio::time::sleep(HOURLY).await;
    }
}

async fn forecasts(app: Services) {
    tokio::time::sleep(FIRST).await;
    loop {
        let old = app.clock.now() + Span(-prices::KEPT.ms());
        if let Err(error) = app.store.prices().forget_before(old).await {
            tracing::warn!(%error, "old prices could not be forgotten");
        }
        match forecast::publish(&app, app.clock.now()).await {
            Ok(Some(requests)) => tracing::info!(requests, "a forecast was published"),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "no forecast could be made"),
        }
        tokio::time::sleep(HOURLY).await;
    }
}
