//! The executor of other machines: workers take tasks from Redis, as Celery's messages.

use std::path::PathBuf;
use std::sync::Arc;

use era_app::bus::fence::HeldLease;
use era_app::launch::Engines;
use era_cloud::celery::names::RedisAddress;
use era_cloud::celery::{self, CeleryExecutor, CeleryOptions};
use era_cloud::clock::MachineClock;
use era_cloud::simulated::SimulatedNodes;

use super::{StartEngines, Starting, TaskHolder};

/// The file by which a site is known to its workers.
const SITE: &str = "celery-site";

/// Workers behind this address, and these simulated nodes.
pub fn at(
    address: RedisAddress,
    folder: PathBuf,
    simulated: SimulatedNodes,
    clock: MachineClock,
) -> StartEngines {
    let (site, behind) = (folder.join(SITE), address.shown());
    let holder = async move {
        let site = celery::site(&site).map_err(|e| e.to_string())?;
        Ok(TaskHolder::new("celery", &site, format!("the workers behind {behind}")))
    };
    StartEngines {
        holder: Box::pin(holder),
        start: Box::new(move |with| Box::pin(start(address, folder, simulated, clock, with))),
    }
}

async fn start(
    address: RedisAddress,
    folder: PathBuf,
    simulated: SimulatedNodes,
    clock: MachineClock,
    Starting { reports, lease, .. }: Starting,
) -> Result<Engines, String> {
    let lead = HeldLease::new(lease);
    let options = CeleryOptions { address, site: folder.join(SITE), lead, clock: clock.clone() };
    let celery =
        CeleryExecutor::start(options, reports.clone()).await.map_err(|e| e.to_string())?;
    let simulated = super::executors::asleep(simulated, clock, reports);
    Ok(Engines { local: Arc::new(celery), simulated })
}
