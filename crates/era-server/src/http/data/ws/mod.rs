//! The file service over a WebSocket: many files at once on one connection.
//!
//! One task reads, one writes, and each download has one of its own; all that is sent goes through
//! a channel of a few frames, so a slow client slows its own downloads and nothing is piled up.
//! The messages are [`era_api::file_service`]; the page is `docs/file-service.md`.

mod download;
mod outbox;
mod session;
mod upload;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::StatusCode;
use axum::response::Response;
use era_api::Problem;
use era_api::file_service::{FileChunk, PIECE_BYTES_MAX};

use crate::http::open_session::OpenSession;
use crate::http::{Caller, Failure};
use era_app::files::Service;

/// Opens the file service: see `docs/file-service.md`.
#[utoipa::path(get, path = "/files/ws", tag = "data",
    responses((status = 101, description = "The conversation begins"),
        (status = "default", body = Problem)))]
pub(crate) async fn serve(
    State(service): State<Service>,
    caller: Caller,
    open: Option<Extension<OpenSession>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let upgrade = upgrade.map_err(|rejection| {
        let detail = format!("this is a WebSocket: {rejection}");
        Failure::new(StatusCode::BAD_REQUEST, "no_websocket", detail)
    })?;
    let frame_max = FileChunk::HEADER_BYTES + PIECE_BYTES_MAX;
    let upgrade = upgrade.max_message_size(frame_max).max_frame_size(frame_max);
    let open = open.map(|Extension(open)| open);
    Ok(upgrade.on_upgrade(move |socket| session::converse(socket, service, caller, open)))
}
