//! What a job told and used: curves for charts, and values as they come.

use axum::extract::ws::{WebSocketUpgrade, close_code};
use axum::response::Response;
use axum::{Extension, Json};
use era_api::Page;
use era_api::job::{MetricFilter, MetricPoint};
use era_app::AppError;
use era_app::jobs::metrics::{self, MetricTail};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::logs::not_a_socket;
use super::open_session::OpenSession;
use super::watched::{Follower, Gone, room};
use super::{Call, Failure, Path, Query};
use crate::App;

/// Most points of one message.
const MESSAGE_POINTS_MAX: usize = 10_000;

/// Metrics of jobs.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(follow))
}

/// What a job told and used, as curves: by name, then replica, then step.
#[utoipa::path(get, path = "/jobs/{id}/metrics", tag = "jobs",
    params(("id" = u64, Path), MetricFilter), responses(
    (status = 200, body = Page<MetricPoint>),
))]
async fn metrics(
    call: Call,
    Path(id): Path<u64>,
    Query(filter): Query<MetricFilter>,
) -> Result<Json<Page<MetricPoint>>, Failure> {
    Ok(Json(metrics::page(&call.app, &call.caller, id, &filter).await?))
}

/// What a job tells and uses: what there is, then values as they come, each message a JSON list.
/// Closed with the code 1000 once the job is over and all was sent.
#[utoipa::path(get, path = "/jobs/{id}/metrics/ws", tag = "jobs",
    params(("id" = u64, Path), MetricFilter), responses(
    (status = 101, description = "A WebSocket, on which lists of values come",
        body = Vec<MetricPoint>),
))]
async fn follow(
    call: Call,
    Path(id): Path<u64>,
    Query(filter): Query<MetricFilter>,
    open: Option<Extension<OpenSession>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let tail = metrics::follow(&call.app, &call.caller, id, &filter).await?;
    let upgrade = upgrade.map_err(not_a_socket)?;
    let room = room()?;
    let open = open.map(|Extension(open)| open);
    Ok(upgrade.on_upgrade(move |socket| send(Follower::new(socket, room, open), tail)))
}

/// Sends values as they come until the job is over.
async fn send(mut follower: Follower, mut tail: MetricTail) {
    match send_all(&mut follower, &mut tail).await {
        Ok(Ok(())) => follower.end(close_code::NORMAL, "the job is over").await,
        Ok(Err(error)) => {
            tracing::error!(%error, "metrics cannot be read");
            follower.end(close_code::ERROR, "the metrics cannot be read").await;
        }
        Err(Gone) => {}
    }
}

async fn send_all(
    follower: &mut Follower,
    tail: &mut MetricTail,
) -> Result<Result<(), AppError>, Gone> {
    loop {
        match tail.next().await {
            Ok(Some(points)) if points.is_empty() => follower.pause().await?,
            Ok(Some(points)) => {
                for message in points.chunks(MESSAGE_POINTS_MAX) {
                    follower.send(message).await?;
                }
            }
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests;
