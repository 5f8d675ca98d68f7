//! REST under `/api/v1`: one file for each kind of thing, each with `routes()` of its own.
//!
//! A handler parses, asks whether the caller may, and calls the driver or the store. Every error
//! is a [`Failure`], which becomes problem details.

pub mod caller;
pub mod data;
pub mod failure;

pub use caller::Caller;
pub use failure::Failure;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// All routes, with their document.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
}
