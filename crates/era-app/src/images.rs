//! The catalogue of images, and the engine that builds them.

use std::path::PathBuf;
use std::sync::Arc;

use era_api::image::{Image, NewImage};
use era_cloud::docker::{Address, DockerError, Engine};
use era_core::units::Time;
use era_store::StoreError;
use era_store::accounts::ImageRow;

use crate::wire::stamp;

/// The engine that builds and pushes images: the executor's, once that was reached, or one of its
/// own, which is reached when it is needed first. Clones are the same.
#[derive(Clone, Default)]
pub struct ImageEngine {
    reached: Arc<tokio::sync::OnceCell<Engine>>,
    own: Option<(Address, PathBuf)>,
}

impl ImageEngine {
    /// An engine of its own, for the site of this folder.
    pub fn at(address: Address, folder: PathBuf) -> ImageEngine {
        ImageEngine { reached: Arc::default(), own: Some((address, folder)) }
    }

    /// The engine; `None` where there is none.
    pub async fn reach(&self) -> Option<Result<Engine, DockerError>> {
        let Some((address, folder)) = &self.own else { return self.reached.get().cloned().map(Ok) };
        let connect = || Engine::connect_for(address, folder);
        Some(self.reached.get_or_try_init(connect).await.cloned())
    }

    /// The executor's engine was reached. The first one stays.
    pub fn reached(&self, engine: Engine) {
        let _ = self.reached.set(engine);
    }
}

/// An image of the catalogue as it is told.
pub fn image(row: ImageRow) -> Result<Image, StoreError> {
    let new: NewImage = serde_json::from_str(&row.details).map_err(|error| {
        let what = format!("image `{}`", row.name);
        StoreError::Damaged { what, problem: error.to_string() }
    })?;
    Ok(Image {
        name: new.name,
        reference: new.reference,
        framework: new.framework,
        version: new.version,
        python: new.python,
        gpu: new.gpu,
        bytes: new.bytes,
        digest: new.digest,
        published_by: row.published_by,
        published: stamp(Time(row.published)),
    })
}
