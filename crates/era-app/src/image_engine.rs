//! The engine that builds images and sends them to a registry.

use std::path::PathBuf;
use std::sync::Arc;

use era_cloud::clock::MachineClock;
use era_cloud::docker::{DockerEngine, DockerError, EngineAddress};

/// The engine that builds and pushes images: the executor's, once that was reached, or one of its
/// own, which is reached when it is needed first. Clones are the same.
#[derive(Clone, Default)]
pub struct ImageEngine {
    reached: Arc<tokio::sync::OnceCell<DockerEngine>>,
    own: Option<(EngineAddress, PathBuf, MachineClock)>,
}

impl ImageEngine {
    /// An engine of its own, for the site of this folder.
    pub fn at(address: EngineAddress, folder: PathBuf, clock: MachineClock) -> ImageEngine {
        ImageEngine { reached: Arc::default(), own: Some((address, folder, clock)) }
    }

    /// The engine; `None` where there is none.
    pub async fn reach(&self) -> Option<Result<DockerEngine, DockerError>> {
        let Some((address, folder, clock)) = &self.own else {
            return self.reached.get().cloned().map(Ok);
        };
        let connect = || DockerEngine::connect_for(address, folder, clock.clone());
        Some(self.reached.get_or_try_init(connect).await.cloned())
    }

    /// The executor's engine was reached. The first one stays.
    pub fn reached(&self, engine: DockerEngine) {
        let _ = self.reached.set(engine);
    }
}
