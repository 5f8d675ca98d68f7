//! REST under `/api/v1`: one file for each kind of thing, each with `routes()` of its own.
//!
//! A handler parses ([`Body`], [`Query`], [`Path`]), asks whether the [`Caller`] may, and calls
//! the driver or the store. Every error is a [`Failure`], which becomes problem details.
//! [`serve`](mod@serve) listens, and [`middleware`] surrounds every request.

pub mod caller;
pub mod extract;
pub mod failure;
pub mod gate;
pub mod middleware;
pub mod reading;
pub mod serve;

pub use caller::{Caller, Session};
pub use extract::{Body, From, Path, Query};
pub use failure::Failure;
pub use serve::{Serving, serve};

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// All routes, with their document.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
}

/// The whole service: routes, and what surrounds them.
pub fn service(app: App) -> axum::Router {
    let (routes, _) = OpenApiRouter::new().nest(era_api::PREFIX, routes()).split_for_parts();
    routes
        .fallback(middleware::nowhere)
        .method_not_allowed_fallback(middleware::no_such_method)
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(middleware::panicked))
        .layer(axum::middleware::from_fn(middleware::surround))
        .with_state(app)
}
