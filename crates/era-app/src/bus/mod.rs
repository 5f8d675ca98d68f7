//! The bus between the layers where a site has Redis: settings are distributed, accepted jobs are
//! told ([`accepted`]), and the catalogue of images is mirrored ([`catalogue`]).
//!
//! All are made from what is durable, and only follow it: Redis may be away, and what it missed
//! is told when it is back. Nothing here is asked by the scheduler. Whoever leads writes, and
//! nobody else can (`fence`).

pub mod accepted;
pub mod catalogue;
pub mod fence;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use era_cloud::celery::bus::{Bus, BusError};
use era_cloud::celery::fence::LeaseFence;
use era_cloud::celery::names::RedisAddress;
use era_cloud::clock::MachineClock;
use era_cloud::settings::{self, Values};
use era_store::StoreError;
use era_store::journal::Journal;
use tokio_util::sync::CancellationToken;

use crate::Services;
use crate::follow::follow;
use crate::wire;

/// How long it is until something that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often Redis is told the settings again, in case it lost its memory.
const EVERY: Duration = Duration::from_secs(30);

/// Why the bus does not go on.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error(transparent)]
    Bus(BusError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else leads now.
    #[error("another server leads, and feeds Redis: nothing more is told from here")]
    Deposed,
}

impl From<BusError> for FeedError {
    fn from(error: BusError) -> FeedError {
        if error.is_deposed() { FeedError::Deposed } else { FeedError::Bus(error) }
    }
}

/// Feeds Redis until the server stops. For the server's start to spawn.
pub async fn run(
    app: Services,
    journal: Journal,
    address: RedisAddress,
    clock: MachineClock,
    stop: CancellationToken,
) {
    let work = async {
        loop {
            match Bus::connect(&address, clock.clone()).await {
                Ok(bus) => {
                    let pen = fence::pen(bus, app.store.lease());
                    let jobs = accepted::AcceptedJobs::new(&app, journal.clone(), &pen);
                    let committed = app.driver.committed();
                    tokio::select! {
                        // Whatever fails is tried again.
                        _ = follow(jobs, accepted::RULES, committed, Arc::default()) => {}
                        () = keep_settings(&app, &pen) => {}
                        never = catalogue::keep(app.auth.rows(), &pen) => never,
                    }
                }
                Err(error) => tracing::warn!(%error, "the bus waits for Redis"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Distributes settings whenever they change, and again from time to time.
async fn keep_settings(app: &Services, pen: &LeaseFence) {
    let mut committed = app.driver.committed();
    let mut told: Option<Values> = None;
    loop {
        let values = Values(wire::settings(app.driver.snapshot().settings()));
        if told.as_ref() != Some(&values) {
            if let Err(error) = distribute(pen, &values).await {
                tracing::warn!(%error, "settings wait to be distributed");
                told = None;
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            told = Some(values);
        }
        match tokio::time::timeout(EVERY, committed.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => told = None,
        }
    }
}

/// Puts settings into force for everybody who watches.
async fn distribute(pen: &LeaseFence, values: &Values) -> Result<(), FeedError> {
    let mut all = redis::pipe();
    all.cmd("DEL").arg(settings::KEY);
    for (name, value) in &values.0 {
        all.cmd("HSET").arg(settings::KEY).arg(name).arg(value.to_string());
    }
    all.cmd("PUBLISH").arg(settings::KEY).arg("changed");
    Ok(pen.write("distribute settings", &all).await?)
}
