//! Data sets, contents, trees and outputs over plain HTTP.
//!
//! Handlers are written for any state that holds a file [`Service`], and so are tried without a
//! scheduler. What is asked live and for many files at once is `ws`.

mod blobs;
mod outputs;
mod ranges;
mod sets;
mod take;
#[cfg(test)]
mod tests;
mod trees;
pub(crate) mod ws;

use axum::extract::{FromRef, FromRequestParts};
use era_app::files::Service;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::http::{Caller, Failure};

impl FromRef<App> for Service {
    fn from_ref(app: &App) -> Service {
        Service::of(app)
    }
}

/// All routes of files, with their document.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Service: FromRef<S>,
    Caller: FromRequestParts<S, Rejection = Failure>,
{
    OpenApiRouter::new()
        .routes(routes!(blobs::missing))
        .routes(routes!(blobs::state, blobs::put, blobs::get))
        .routes(routes!(trees::put))
        .routes(routes!(trees::get))
        .routes(routes!(sets::list, sets::create))
        .routes(routes!(sets::get, sets::share, sets::remove))
        .routes(routes!(sets::files, sets::edit))
        .routes(routes!(sets::file, sets::put_file, sets::remove_file))
        .routes(routes!(outputs::list))
        .routes(routes!(outputs::get))
        .routes(routes!(outputs::list_checkpoints))
        .routes(routes!(outputs::get_checkpoint))
        .routes(routes!(ws::serve))
}
