//! What a container has written beside its mounts: its writable layer, as far as an engine says how
//! large it is. A Swarm does not: its manager knows nothing of containers on other nodes.

use std::time::Duration;

use bollard::query_parameters::InspectContainerOptions;
use era_core::job::TaskId;
use tokio::time::Instant;

use super::engine::DockerEngine;
use super::failure::DockerError;
use super::names;

/// How often it is asked for at most: the engine walks through all of the layer.
const EVERY: Duration = Duration::from_secs(10);
/// So many times as long as an answer takes is waited for the next one.
const REST_SHARE: u32 = 20;

/// The writable layer of one task, looked at seldom.
pub(super) struct Layer {
    engine: DockerEngine,
    task: TaskId,
    due: Instant,
    /// Its size when it was last told.
    pub(super) bytes: u64,
}

impl Layer {
    pub(super) fn new(engine: DockerEngine, task: TaskId) -> Layer {
        Layer { engine, task, due: Instant::now(), bytes: 0 }
    }

    /// Asks again if that is due. An engine that does not say changes nothing.
    pub(super) async fn look(&mut self) {
        if self.engine.is_swarm() || Instant::now() < self.due {
            return;
        }
        let begun = Instant::now();
        match self.engine.layer_bytes(self.task).await {
            Ok(bytes) => self.bytes = bytes,
            Err(error) => tracing::debug!(task = %self.task, %error, "a layer has no size"),
        }
        self.due = Instant::now() + EVERY.max(begun.elapsed() * REST_SHARE);
    }
}

impl DockerEngine {
    /// How many bytes a container has written beside its mounts.
    async fn layer_bytes(&self, task: TaskId) -> Result<u64, DockerError> {
        let name = names::task_name(self.site(), task);
        let options = Some(InspectContainerOptions { size: true });
        let found = self.api.inspect_container(&name, options).await;
        let found =
            found.map_err(|error| DockerError::of(&self.place, "measure a container", error))?;
        Ok(found.size_rw.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0))
    }
}
