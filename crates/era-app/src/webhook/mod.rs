//! Webhooks: addresses that are told when something happens.
//!
//! An account makes and removes its own ([`own`]). [`watch`] finds out in the journal what is to be
//! told and puts it into a durable outbox; [`deliver`] sends it, signed ([`sign`]), and tries again
//! with growing pauses. Where it may be sent is decided when the name has been resolved
//! ([`crate::egress`]), so that no name can lead into the house. Redirects are not followed.

pub mod deliver;
pub mod own;
pub mod sign;
pub mod watch;

use std::sync::Arc;
use std::time::Duration;

use era_store::journal::Journal;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Services;
use crate::egress::EgressPolicy;
use crate::follow::follow;
use deliver::Deliveries;
use watch::Watcher;

/// How often prices are looked at.
const PRICES_EVERY: Duration = Duration::from_secs(60);
/// How long it is until what failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How long what is on its way may take to come back when the server stops; what has not is sent
/// again by the next one.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Watches the journal and delivers until it is stopped. For the server's start to spawn.
pub async fn run(app: Services, journal: Journal, egress: EgressPolicy, stop: CancellationToken) {
    let mut deliveries = Deliveries::new(egress, app.clock.clone());
    let posted = Arc::new(Notify::new());
    let watcher = Watcher::new(app.clone(), journal, Arc::clone(&posted));
    tokio::select! {
        () = stop.cancelled() => {}
        // Whatever fails is tried again: it ends when nothing happens any more.
        _ = follow(watcher, watch::RULES, app.driver.committed(), Arc::default()) => {}
        () = watch_prices(&app, &posted) => {}
        () = deliver(&app, &mut deliveries, &posted) => {}
    }
    let last = async {
        while !deliveries.is_idle() {
            if let Err(error) = deliveries.next_settled().await {
                tracing::error!(%error, "webhooks: what a message came to is not noted");
            }
        }
    };
    let _ = tokio::time::timeout(LAST_ANSWERS, last).await;
}

async fn watch_prices(app: &Services, posted: &Notify) {
    let mut prices = tokio::time::interval(PRICES_EVERY);
    loop {
        prices.tick().await;
        if let Err(error) = watch::look_at_prices(app).await {
            tracing::error!(%error, "webhooks: prices could not be looked at");
        }
        posted.notify_one();
    }
}

/// Sends what is due, whenever something was posted, has come back or has waited long enough.
async fn deliver(app: &Services, deliveries: &mut Deliveries, posted: &Notify) {
    loop {
        let wait = match deliveries.send_due(app).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(%error, "webhooks: trying again");
                AFTER_FAILURE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = posted.notified() => {}
            settled = deliveries.next_settled() => if let Err(error) = settled {
                tracing::error!(%error, "webhooks: what a message came to is not noted");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}
