//! The executors of a server: this machine's own processes or a Docker engine, and simulated nodes
//! beside them.

use std::path::PathBuf;
use std::sync::Arc;

use era_app::image_engine::ImageEngine;
use era_app::launch::Engines;
use era_app::machine;
use era_cloud::clock::MachineClock;
use era_cloud::docker::{DockerEngine, DockerExecutor, DockerOptions, EngineAddress};
use era_cloud::local::{LocalExecutor, LocalOptions};
use era_cloud::simulated::{SimulatedExecutor, SimulatedNodes};
use era_cloud::task::SupervisorSettings;
use era_cloud::{Executor, ExecutorReport, Reports, discover};

use super::{StartEngines, Starting, TaskHolder};

/// This machine as the first node, and these simulated ones. The running program is its own
/// supervisor.
pub fn here(folder: PathBuf, simulated: SimulatedNodes, clock: MachineClock) -> StartEngines {
    StartEngines {
        holder: Box::pin(std::future::ready(Ok(TaskHolder::here()))),
        start: Box::new(move |with| Box::pin(start(folder, simulated, clock, with.reports))),
    }
}

/// A Docker engine or a Swarm instead of this machine's own processes. What becomes of `images` is
/// the engine, once it was reached.
pub fn docker(
    folder: PathBuf,
    address: EngineAddress,
    simulated: SimulatedNodes,
    images: ImageEngine,
    clock: MachineClock,
) -> StartEngines {
    StartEngines {
        holder: Box::pin(of_engine(address.clone(), folder.clone(), clock.clone())),
        start: Box::new(move |Starting { reports, fence, .. }| {
            Box::pin(async move {
                let options = DockerOptions { address, data: folder, fence, clock: clock.clone() };
                let docker = DockerExecutor::start(options, reports.clone())
                    .await
                    .map_err(|e| e.to_string())?;
                images.reached(docker.engine().clone());
                let simulated = asleep(simulated, clock, reports);
                Ok(Engines { local: Arc::new(docker), simulated })
            })
        }),
    }
}

/// The engine at an address, by the id that it gave itself: an address may mean another one on
/// another machine.
async fn of_engine(
    address: EngineAddress,
    folder: PathBuf,
    clock: MachineClock,
) -> Result<TaskHolder, String> {
    let engine = DockerEngine::connect_for(&address, &folder, clock).await;
    let engine = engine.map_err(|e| e.to_string())?;
    let (kind, what) =
        if engine.is_swarm() { ("swarm", "the Swarm") } else { ("docker", "the Docker engine") };
    let name = engine.id().unwrap_or(machine::id());
    Ok(TaskHolder::new(kind, name, format!("{what} {} of {}", engine.place(), engine.host())))
}

/// Simulated nodes, where there are any.
pub(super) fn asleep(
    simulated: SimulatedNodes,
    clock: MachineClock,
    reports: Reports,
) -> Option<Arc<dyn Executor>> {
    if simulated.nodes.is_empty() {
        return None;
    }
    Some(Arc::new(SimulatedExecutor::start(simulated, clock, reports)))
}

async fn start(
    folder: PathBuf,
    simulated: SimulatedNodes,
    clock: MachineClock,
    reports: Reports,
) -> Result<Engines, String> {
    let machine = tokio::task::spawn_blocking(discover::this_machine).await;
    let machine = machine.map_err(|e| e.to_string())?;
    let settings = SupervisorSettings {
        hidden: vec![folder.clone()],
        gpu_uuids: machine.gpus.iter().map(|gpu| gpu.uuid.clone()).collect(),
        ..SupervisorSettings::default()
    };
    let options = LocalOptions::of_this_program(folder.join("shim"), settings)
        .map_err(|e| format!("this program cannot find itself: {e}"))?;
    let local = LocalExecutor::start(options, reports.clone()).await.map_err(|e| e.to_string())?;
    for note in local.notes() {
        tracing::warn!("{note}");
    }
    // The channel is empty, and its other end is held by whoever asked for this.
    let _ = reports.try_send(ExecutorReport::Node(machine.node));
    let simulated = asleep(simulated, clock, reports);
    Ok(Engines { local: Arc::new(local), simulated })
}
