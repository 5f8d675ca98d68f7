//! Webhooks: addresses that are told when something happens.
//!
//! An account makes and removes its own ([`own`]). [`news`] finds out in the journal what is to be
//! told and puts it into a durable outbox; [`deliver`] sends it, signed ([`sign`]), and tries again
//! with growing pauses. Where it may be sent is decided when the name has been resolved
//! ([`crate::reach`]), so that no name can lead into the house. Redirects are not followed.

pub mod deliver;
pub mod news;
pub mod own;
pub mod sign;

use std::time::Duration;

use era_store::StoreError;
use era_store::journal::Journal;
use tokio_util::sync::CancellationToken;

use crate::Services;
use crate::reach::EgressPolicy;
use deliver::Deliveries;
use news::Watcher;

/// How long news are gathered before they are written down together.
const GATHER: Duration = Duration::from_millis(200);
/// How often prices are looked at.
const PRICES_EVERY: Duration = Duration::from_secs(60);
/// How long it is until a failed look is repeated.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How long what is on its way may take to come back when the server stops; what has not is sent
/// again by the next one.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Watches the journal and delivers until it is stopped. For the server's start to spawn.
pub async fn run(app: Services, journal: Journal, reach: EgressPolicy, stop: CancellationToken) {
    let mut deliveries = Deliveries::new(reach, app.clock.clone());
    tokio::select! {
        () = stop.cancelled() => {}
        () = work(&app, &journal, &mut deliveries) => {}
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

async fn work(app: &Services, journal: &Journal, deliveries: &mut Deliveries) {
    let mut committed = app.driver.committed();
    let mut watcher = Watcher::default();
    let mut prices = tokio::time::interval(PRICES_EVERY);
    let mut look = true;
    loop {
        let wait = match round(app, journal, look, &mut watcher, deliveries).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(%error, "webhooks: trying again");
                AFTER_FAILURE
            }
        };
        look = true;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            settled = deliveries.next_settled() => {
                look = false;
                if let Err(error) = settled {
                    tracing::error!(%error, "webhooks: what a message came to is not noted");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
            changed = committed.changed() => match changed {
                Ok(()) => tokio::time::sleep(GATHER).await,
                Err(_) => return,
            },
            _ = prices.tick() => {
                if let Err(error) = watcher.look_at_prices(app).await {
                    tracing::error!(%error, "webhooks: prices could not be looked at");
                }
            }
        }
    }
}

/// Takes what is new, where it is worth a look, sends what is due, and says how long there is
/// nothing to do.
async fn round(
    app: &Services,
    journal: &Journal,
    look: bool,
    watcher: &mut Watcher,
    deliveries: &mut Deliveries,
) -> Result<Duration, StoreError> {
    if look {
        watcher.look_at_journal(app, journal).await?;
    }
    deliveries.send_due(app).await
}
