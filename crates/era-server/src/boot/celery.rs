//! The executor of other machines: workers take tasks from Redis, as Celery's messages.

use std::path::PathBuf;
use std::sync::Arc;

use era_cloud::Reports;
use era_cloud::celery::names::Address;
use era_cloud::celery::{Celery, CeleryOptions};
use era_cloud::simulated::SimulatedNodes;

use super::StartEngines;
use crate::launch::Engines;

/// Workers behind this address, and these simulated nodes.
pub fn at(address: Address, folder: PathBuf, simulated: SimulatedNodes) -> StartEngines {
    Box::new(move |reports, _lease| Box::pin(start(address, folder, simulated, reports)))
}

async fn start(
    address: Address,
    folder: PathBuf,
    simulated: SimulatedNodes,
    reports: Reports,
) -> Result<Engines, String> {
    let options = CeleryOptions { address, site: folder.join("celery-site") };
    let celery = Celery::start(options, reports.clone()).await.map_err(|e| e.to_string())?;
    let simulated = super::executors::asleep(simulated, reports);
    Ok(Engines { local: Arc::new(celery), simulated })
}
