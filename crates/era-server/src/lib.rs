//! The edges of the application: HTTP, WebSockets and TCP, the page, and how all of it is started.
//!
//! What is asked over the network is parsed here, handed to a use case of [`era_app`], and its
//! answer written as the protocol has it. No use case is decided here.

pub mod boot;
pub mod http;
pub mod page;
mod problem;
mod reading;
pub mod tcp;

use era_app::Services;

/// What every request can reach. A clone shares.
///
/// It is a type of this crate, so that requests can be read as the types of [`era_app`].
#[derive(Clone)]
pub struct App(pub Services);

impl std::ops::Deref for App {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0
    }
}
