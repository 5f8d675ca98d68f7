//! What a job printed: in pages, as a text, and as it comes.

use axum::body::{Body, Bytes};
use axum::extract::ws::{WebSocketUpgrade, close_code};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use era_api::Page;
use era_api::job::{LogFilter, LogFormat, LogLine};
use era_app::AppError;
use era_app::jobs::logs::{self, LogTail, LogText};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::open_session::OpenSession;
use super::watched::{Follower, Gone, room};
use super::{Call, Failure, Path, Query};
use crate::App;

/// Logs of jobs.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(logs)).routes(routes!(follow))
}

/// What a job printed: a page of lines, or all of it as a text.
///
/// Attempts follow one another, and what replicas printed is in the order of time. The last page
/// has no `next`; while the job runs, more may come behind the last line's `next`.
#[utoipa::path(get, path = "/jobs/{id}/logs", tag = "jobs", params(("id" = u64, Path), LogFilter),
    responses(
    (status = 200, content(
        (Page<LogLine> = "application/json"),
        (String = "text/plain"),
    )),
))]
async fn logs(
    call: Call,
    Path(id): Path<u64>,
    Query(filter): Query<LogFilter>,
) -> Result<Response, Failure> {
    match filter.format {
        LogFormat::Json => {
            Ok(Json(logs::page(&call.app, &call.caller, id, &filter).await?).into_response())
        }
        LogFormat::Text => Ok(text(logs::text(&call.app, &call.caller, id, &filter).await?, id)),
    }
}

/// What a job prints, as it comes: each message is a JSON list of lines. Closed with the code 1000
/// once the job is over and all was sent.
#[utoipa::path(get, path = "/jobs/{id}/logs/ws", tag = "jobs",
    params(("id" = u64, Path), LogFilter), responses(
    (status = 101, description = "A WebSocket, on which lists of lines come", body = Vec<LogLine>),
))]
async fn follow(
    call: Call,
    Path(id): Path<u64>,
    Query(filter): Query<LogFilter>,
    open: Option<Extension<OpenSession>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let tail = logs::follow(&call.app, &call.caller, id, &filter).await?;
    let upgrade = upgrade.map_err(not_a_socket)?;
    let room = room()?;
    let open = open.map(|Extension(open)| open);
    Ok(upgrade.on_upgrade(move |socket| send(Follower::new(socket, room, open), tail)))
}

/// A WebSocket was expected.
pub(super) fn not_a_socket(
    rejection: axum::extract::ws::rejection::WebSocketUpgradeRejection,
) -> Failure {
    let status = axum::http::StatusCode::UPGRADE_REQUIRED;
    let detail = format!("this is a WebSocket: {}", rejection.body_text());
    Failure::new(status, "upgrade_required", detail)
}

/// All of a log as a text, each piece read when the one before was taken.
fn text(text: LogText, job: u64) -> Response {
    let stream = futures_util::stream::unfold(text, |mut text| async move {
        let piece = text.next().await?;
        Some((piece.map(Bytes::from), text))
    });
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let name = format!("attachment; filename=\"job-{job}.log\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

/// Sends lines as they come until the job is over.
async fn send(mut follower: Follower, mut tail: LogTail) {
    match send_all(&mut follower, &mut tail).await {
        Ok(Ok(())) => follower.end(close_code::NORMAL, "the job is over").await,
        Ok(Err(_)) => follower.end(close_code::ERROR, "the log cannot be read").await,
        Err(Gone) => {}
    }
}

async fn send_all(
    follower: &mut Follower,
    tail: &mut LogTail,
) -> Result<Result<(), AppError>, Gone> {
    loop {
        match tail.next().await {
            Ok(Some(lines)) if lines.is_empty() => follower.pause().await?,
            Ok(Some(lines)) => follower.send(&lines).await?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests;
