//! Webhooks: addresses that are told when something happens.
//!
//! [`news`] finds out in the journal what is to be told and puts it into a durable outbox;
//! [`deliver`] sends it, signed ([`sign`]), and tries again with growing pauses. Where it may be
//! sent is decided when the name has been resolved ([`address`]), so that no name can lead into
//! the house. Redirects are not followed.

pub mod address;
pub mod deliver;
pub mod news;
pub mod sign;

use std::time::Duration;

use era_store::StoreError;
use era_store::journal::Journal;
use tokio_util::sync::CancellationToken;

use crate::App;
use address::Reach;
use news::Watcher;

/// How long news are gathered before they are written down together.
const GATHER: Duration = Duration::from_millis(200);
/// How often prices are looked at.
const PRICES_EVERY: Duration = Duration::from_secs(60);
/// How long it is until a failed look is repeated.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Watches the journal and delivers until it is stopped. For the server's start to spawn.
pub async fn run(app: App, journal: Journal, reach: Reach, stop: CancellationToken) {
    let mut committed = app.driver.committed();
    let mut watcher = Watcher::default();
    let mut prices = tokio::time::interval(PRICES_EVERY);
    let agent = deliver::agent(reach);
    loop {
        let wait = match round(&app, &journal, &mut watcher, &agent).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(%error, "webhooks: trying again");
                AFTER_FAILURE
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
            changed = committed.changed() => match changed {
                Ok(()) => tokio::time::sleep(GATHER).await,
                Err(_) => return,
            },
            _ = prices.tick() => {
                if let Err(error) = watcher.look_at_prices(&app).await {
                    tracing::error!(%error, "webhooks: prices could not be looked at");
                }
            }
        }
    }
}

/// Takes what is new, sends what is due, and says how long there is nothing to do.
async fn round(
    app: &App,
    journal: &Journal,
    watcher: &mut Watcher,
    agent: &ureq::Agent,
) -> Result<Duration, StoreError> {
    watcher.look_at_journal(app, journal).await?;
    deliver::due(app, agent).await
}
