//! What every use case can reach.

use std::sync::Arc;

use era_store::Store;

use crate::clock::Clock;
use crate::image_engine::ImageEngine;
use crate::{asks, auth, driver, egress, feed, lab, launch, report};

/// What every use case can reach. A clone shares.
#[derive(Clone)]
pub struct Services(Arc<Parts>);

/// The parts of a running server.
pub struct Parts {
    /// The road to the scheduler.
    pub driver: driver::Handle,
    /// The time, as every use case reads it.
    pub clock: Arc<dyn Clock>,
    /// What is kept.
    pub store: Store,
    /// Who there is, and by what right they ask.
    pub auth: auth::Auth,
    /// Where webhooks may go.
    pub egress: egress::EgressPolicy,
    /// What follows the journal: tables, and whoever listens.
    pub feed: feed::Feed,
    /// Quotes that were asked and not yet taken.
    pub asks: asks::Asking,
    /// What replays a period without ERA, where there is one.
    pub laboratory: Option<Arc<dyn report::Laboratory>>,
    /// Simulations, replays and tuning runs.
    pub lab: lab::Lab,
    /// Contents, trees and data sets.
    pub files: era_store::files::Files,
    /// What builds images, where the executor has an engine that does.
    pub images: ImageEngine,
    /// Whether jobs may name an image: not where it is known that no executor runs any.
    pub runs_images: bool,
    /// The executors, where tasks may have terminals and are run by this very process.
    pub terminals: Option<launch::Engines>,
}

impl Services {
    pub fn new(parts: Parts) -> Services {
        Services(Arc::new(parts))
    }

    /// Waits for a short while until the tables have what was just written, so that whoever wrote
    /// it reads it. Says whether they have it.
    pub async fn wait_for(&self, seq: u64) -> bool {
        self.feed.wait_for(seq).await
    }
}

impl std::ops::Deref for Services {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
