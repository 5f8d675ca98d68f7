//! Tells whoever listens when a request changed something that the journal does not have.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use era_app::feed::ClusterChange;

use crate::App;

/// Lets a request through, and tells what it changed, if it did.
pub(super) async fn tell(State(app): State<App>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let path = (!reads).then(|| request.uri().path().to_owned());
    let response = next.run(request).await;
    if let Some(path) = path.filter(|_| response.status().is_success()) {
        app.feed.tell(changed(&app, &path));
    }
    response
}

/// What a change under this path is about.
fn changed(app: &App, path: &str) -> Option<ClusterChange> {
    let mut steps = path.strip_prefix(era_api::PREFIX)?.split('/').skip(1);
    let (kind, name) = (steps.next()?, steps.next().unwrap_or_default());
    let directory = app.auth.directory();
    match kind {
        "data" => Some(ClusterChange::Data),
        "lab" => Some(ClusterChange::Lab),
        "users" => {
            let user = directory.user_named(name);
            Some(ClusterChange::Account(user.map(|user| user.id), user.map(|user| user.group)))
        }
        "groups" => {
            Some(ClusterChange::Account(None, directory.group_named(name).map(|group| group.id)))
        }
        "tokens" | "sessions" | "password" => Some(ClusterChange::Account(None, None)),
        _ => None,
    }
}
