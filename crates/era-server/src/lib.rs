//! The application: driver, use cases, HTTP, WebSocket and TCP.
//!
//! One thread owns the scheduler's state ([`driver`]); everyone else reads snapshots of it or asks
//! that thread. What is asked over the network is parsed and authorised here ([`http`]), and
//! answered from the store's tables or the newest snapshot.

pub mod asks;
pub mod auth;
pub mod boot;
pub mod bus;
pub mod clock;
pub mod driver;
pub mod feed;
pub mod files;
mod gather;
pub mod http;
pub mod influx;
pub mod lab;
pub mod launch;
pub mod page;
pub mod recorder;
mod replica;
pub mod report;
pub mod submit;
pub mod tcp;
pub mod tend;
pub mod upkeep;
pub mod webhook;
pub mod wire;

use std::sync::Arc;

use era_store::Store;

/// What every request can reach. A clone shares.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// The parts of a running server.
pub struct Parts {
    /// The road to the scheduler.
    pub driver: driver::Handle,
    /// What is kept.
    pub store: Store,
    /// Who there is, and by what right they ask.
    pub auth: auth::Auth,
    /// Where webhooks may go.
    pub reach: webhook::address::Reach,
    /// What follows the journal: tables, and whoever listens.
    pub feed: feed::Feed,
    /// Quotes that were asked and not yet taken.
    pub asks: asks::Asking,
    /// What replays a period without ERA, where there is one.
    pub laboratory: Option<Box<dyn report::Laboratory>>,
    /// Simulations, replays and tuning runs.
    pub lab: lab::Lab,
    /// Contents, trees and data sets.
    pub files: era_store::files::Files,
    /// What builds images, where the executor has an engine that does.
    pub images: boot::executors::ImageEngine,
    /// Whether jobs may name an image: not where it is known that no executor runs any.
    pub runs_images: bool,
    /// The executors, where tasks may have terminals and are run by this very process.
    pub terminals: Option<launch::Engines>,
}

impl App {
    /// A server made of these parts.
    pub fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }

    /// Waits for a short while until the tables have what was just written, so that whoever wrote
    /// it reads it. Says whether they have it.
    pub async fn wait_for(&self, seq: u64) -> bool {
        self.feed.wait_for(seq).await
    }
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
