//! Queries of requests that read none. Those that read one refuse what they do not know when they
//! parse it; here the others do, so that nothing behind a `?` is passed over.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::extract::unread_query;

/// Lets a request through unless it has a query that nobody reads.
pub(super) async fn refuse_unread(
    State(reading): State<Arc<BTreeSet<String>>>,
    request: Request,
    next: Next,
) -> Response {
    match first_unread(&reading, &request) {
        Some(name) => unread_query(name).into_response(),
        None => next.run(request).await,
    }
}

/// The first parameter of a query that nobody reads.
fn first_unread<'a>(reading: &BTreeSet<String>, request: &'a Request) -> Option<&'a str> {
    let first = request.uri().query()?.split('&').find(|one| !one.is_empty())?;
    let route = request.extensions().get::<MatchedPath>()?.as_str();
    // What answers a GET answers a HEAD as well.
    let get = (request.method() == Method::HEAD).then_some("GET");
    let mut methods = [request.method().as_str()].into_iter().chain(get);
    let reads = methods.any(|method| reading.contains(&format!("{method} {route}")));
    (!reads).then(|| first.split_once('=').map_or(first, |(name, _)| name))
}
