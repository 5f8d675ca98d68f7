//! Who may write to Redis: whoever leads, by the word of the database.

use std::pin::Pin;
use std::sync::Arc;

use era_cloud::celery::bus::Bus;
use era_cloud::celery::fence::{Leadership, LeaseFence};
use era_store::Lease;

/// Who feeds Redis.
const KEY: &str = "era:feeder";

/// A lease, as it was taken.
pub struct HeldLease {
    lease: Lease,
    generation: u64,
}

impl HeldLease {
    /// A lease that was just taken.
    pub fn new(lease: Lease) -> Arc<HeldLease> {
        let generation = lease.generation();
        Arc::new(HeldLease { lease, generation })
    }
}

impl Leadership for HeldLease {
    fn generation(&self) -> u64 {
        self.generation
    }

    fn holds(&self) -> Pin<Box<dyn Future<Output = Result<bool, String>> + Send + '_>> {
        Box::pin(async {
            let leader = self.lease.leader().await.map_err(|error| error.to_string())?;
            Ok(leader.generation == self.generation)
        })
    }
}

/// The right of a leader to feed Redis.
pub(super) fn pen(bus: Bus, lease: Lease) -> LeaseFence {
    LeaseFence::new(bus, KEY, HeldLease::new(lease))
}
