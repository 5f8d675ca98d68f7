//! What a layer that answers no users says of itself: whether it lives, whether it is at work or
//! stands by, and its measures.

use std::net::TcpListener;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::App;
use crate::http::serve::{ServeError, serve_routes};
use crate::http::{Failure, Serving, health};
use era_app::Services;

/// How it stands with a layer.
pub(super) enum Standing {
    /// Somebody else is at work.
    By { leader: String },
    /// It is at work; its measures are those of the application, where it has one.
    AtWork(Option<Services>),
}

/// What it says. A clone shares.
#[derive(Clone)]
pub(super) struct LayerStatus(Arc<ArcSwap<Standing>>);

impl LayerStatus {
    /// That of a layer that has not begun.
    pub(super) fn new() -> LayerStatus {
        let leader = "nobody yet".to_owned();
        LayerStatus(Arc::new(ArcSwap::from_pointee(Standing::By { leader })))
    }

    /// Says something else from now on.
    pub(super) fn set(&self, standing: Standing) {
        self.0.store(Arc::new(standing));
    }

    /// Says who is at work.
    pub(super) fn stands_by(&self, leader: &str) {
        let same = matches!(&**self.0.load(), Standing::By { leader: told } if told == leader);
        if !same {
            tracing::info!(leader, "standing by");
            self.set(Standing::By { leader: leader.to_owned() });
        }
    }

    /// Answers until it is stopped.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        serving: Serving,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let routes = axum::Router::new()
            .route("/healthz", get(health::alive))
            .route("/readyz", get(of_app))
            .route("/metrics", get(of_app))
            .fallback(elsewhere)
            .with_state(self);
        serve_routes(listener, routes, &serving, stop.cancelled_owned()).await
    }
}

/// Whatever else is asked is asked of another server.
async fn elsewhere(State(status): State<LayerStatus>) -> Response {
    match &**status.0.load() {
        Standing::By { leader } => standby(leader),
        Standing::AtWork(_) => {
            let detail = "there is no such path here: requests are for `era app`";
            Failure::new(StatusCode::NOT_FOUND, "no_such_path", detail).into_response()
        }
    }
}

fn standby(leader: &str) -> Response {
    let detail = format!("this server stands by: {leader} is at work");
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "standby", detail).after(1).into_response()
}

async fn of_app(State(status): State<LayerStatus>, request: Request) -> Response {
    let app = match &**status.0.load() {
        Standing::By { leader } => return standby(leader),
        Standing::AtWork(None) => return health::alive().await.into_response(),
        Standing::AtWork(Some(app)) => app.clone(),
    };
    let routes = health::routes().split_for_parts().0.with_state(App(app));
    routes.oneshot(request).await.unwrap_or_else(|never| match never {})
}
