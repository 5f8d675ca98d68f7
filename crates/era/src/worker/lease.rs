//! What a worker takes from the configuration centre while it runs.

use std::time::Duration;

use era_cloud::celery::node::CeleryNode;
use era_cloud::settings::WatchedSettings;

/// Shortest and longest lease that a worker follows.
const LEASE_MIN: Duration = Duration::from_secs(1);
const LEASE_MAX: Duration = Duration::from_secs(3600);

/// Keeps the length of a node's lease as the site's settings say, once somebody has set it.
pub(crate) async fn follow(node: CeleryNode) {
    let mut settings = WatchedSettings::watch(node.bus().clone());
    loop {
        if let Some(lease) = settings.current().span("lease") {
            node.set_lease(lease.clamp(LEASE_MIN, LEASE_MAX));
        }
        if !settings.changed().await {
            return;
        }
    }
}
