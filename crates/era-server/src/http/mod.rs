//! REST under `/api/v1`: one file for each kind of thing, each with `routes()` of its own.
//!
//! A handler parses ([`Body`], [`Query`], [`Path`]), calls a use case for the [`Caller`], and writes
//! its answer; a [`Call`] is what nearly all of them need of a request. Every error is a [`Failure`], which becomes problem details.
//! [`serve`](mod@serve) listens, and [`middleware`] surrounds every request.

pub mod audit;
pub mod caller;
mod changes;
mod cluster;
pub mod data;
pub mod events;
pub mod extract;
pub mod failure;
pub mod gate;
mod groups;
pub mod health;
pub mod idempotency;
mod image_builds;
mod images;
pub mod job_views;
pub mod jobs;
pub mod journal;
mod lab;
pub mod logs;
mod market;
pub mod measures;
pub mod metrics;
pub mod middleware;
pub mod open_session;
pub mod openapi;
pub mod proxy;
mod queries;
mod queues;
mod quotes;
mod secrets;
pub mod serve;
mod sessions;
mod settings;
pub mod spending;
pub mod statement;
mod tagged;
mod terminal;
mod users;
mod watched;
mod webhooks;

pub use caller::Call;
pub use era_app::auth::{Caller, Session};
pub use extract::{Body, ClientAddr, Path, Query};
pub use failure::Failure;
pub use serve::Serving;

use std::sync::Arc;

use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;

use crate::{App, page};

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSet {
    All,
    /// What is about files.
    Files,
    /// All but what is about files.
    AllButFiles,
}

/// All routes under `/api/v1`, with their document.
pub fn routes() -> OpenApiRouter<App> {
    but_files().merge(data::routes())
}

fn but_files() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(cluster::routes())
        .merge(jobs::routes())
        .merge(market::routes())
        .merge(queues::routes())
        .merge(quotes::routes())
        .merge(sessions::routes())
        .merge(users::routes())
        .merge(groups::routes())
        .merge(audit::routes())
        .merge(webhooks::routes())
        .merge(images::routes())
        .merge(image_builds::routes())
        .merge(events::routes())
        .merge(job_views::routes())
        .merge(journal::routes())
        .merge(lab::routes())
        .merge(logs::routes())
        .merge(measures::routes())
        .merge(metrics::routes())
        .merge(secrets::routes())
        .merge(settings::routes())
        .merge(spending::routes())
        .merge(statement::routes())
        .merge(terminal::routes())
}

/// The same where they are served.
fn all() -> OpenApiRouter<App> {
    OpenApiRouter::new().nest(era_api::PREFIX, routes()).merge(health::routes())
}

/// The whole service: routes, and what surrounds them.
pub fn service(app: App, set: RouteSet) -> axum::Router {
    // Measures are gathered from the first request on.
    health::recorder();
    let document = all().to_openapi();
    let queries = Arc::new(openapi::with_query(document.clone()));
    let routes = match set {
        RouteSet::All => routes(),
        RouteSet::Files => data::routes(),
        RouteSet::AllButFiles => but_files(),
    };
    let routes: axum::Router<App> =
        OpenApiRouter::new().nest(era_api::PREFIX, routes).split_for_parts().0;
    let document = openapi::complete(document);
    let document = axum::body::Bytes::from(serde_json::to_vec(&document).unwrap_or_default());
    let told = move || {
        let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
        std::future::ready((json, document.clone()))
    };
    let keep = axum::middleware::from_fn_with_state(app.clone(), idempotency::keep);
    let changes = axum::middleware::from_fn_with_state(app.clone(), changes::tell);
    let queries = axum::middleware::from_fn_with_state(queries, queries::refuse_unread);
    routes
        .route_layer(keep)
        .route_layer(changes)
        .route_layer(queries)
        .route("/api/v1/openapi.json", axum::routing::get(told))
        .merge(health::routes().split_for_parts().0)
        .fallback(page_or_nowhere)
        .method_not_allowed_fallback(middleware::no_such_method)
        .layer(axum::extract::DefaultBodyLimit::max(extract::JSON_BYTES_MAX))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(middleware::panicked))
        .layer(axum::middleware::from_fn(middleware::surround))
        .with_state(app)
}

/// The page at whatever is no route, or that nothing is there.
async fn page_or_nowhere(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match page::at(&method, uri.path(), &headers) {
        Some(page) => page,
        None => middleware::nowhere().await.into_response(),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests wait for servers in real time")]
mod tests;
