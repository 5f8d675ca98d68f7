//! The terminal of a running task, over a WebSocket: binary messages are what is typed and shown,
//! texts are JSON about it.

use std::time::Duration;

use axum::Extension;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use era_api::terminal::{TerminalEnd, TerminalSize, TerminalWord};
use era_app::jobs::terminal;
use era_cloud::{Attached, Shown, Typed};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::logs::not_a_socket;
use super::open_session::OpenSession;
use super::watched::{GOODBYE_TIME_MAX, HEARTBEAT, SEND_TIME_MAX, room};
use super::{Call, Failure, Path, Query};
use crate::App;

/// Most bytes that are typed in one message: more than is pasted.
const TYPED_BYTES_MAX: usize = 64 << 10;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(attach))
}

/// Which terminal.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct TerminalAsk {
    /// Of this replica; of the first where nothing is said.
    #[serde(default)]
    rank: Option<u32>,
}

/// Attaches to the terminal of a running job that was submitted with `work.terminal`. Its owner
/// and administrators may.
///
/// What was shown last comes first. Binary messages are bytes as they are typed and shown; a text
/// `{"resize": {"rows": 24, "cols": 80}}` tells the size of the window. Whoever is attached sees
/// the same and may type. The last message is a text that says how the task ended, and the code
/// 1000 closes; with any other code the task may run on, and can be attached to again.
#[utoipa::path(get, path = "/jobs/{id}/terminal", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number"), TerminalAsk),
    responses(
    (status = 101, description = "A WebSocket; its last text", body = TerminalEnd),
))]
async fn attach(
    call: Call,
    Path(id): Path<u64>,
    Query(ask): Query<TerminalAsk>,
    open: Option<Extension<OpenSession>>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let job = terminal::may_type(&call.app, &call.caller, id).await?;
    let upgrade = upgrade.map_err(not_a_socket)?;
    let room = room()?;
    let rank = ask.rank.unwrap_or(0);
    let attached = terminal::attach(&call.app, &call.caller, call.from, &job, rank).await?;
    let open = open.map(|Extension(open)| open);
    let upgrade = upgrade.max_message_size(TYPED_BYTES_MAX).max_frame_size(TYPED_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move {
        serve(socket, attached, open).await;
        drop(room);
    }))
}

/// Passes on what is typed and shown until either side is gone, or the token is no longer good.
async fn serve(socket: WebSocket, attached: Attached, open: Option<OpenSession>) {
    let Attached { typed, shown } = attached;
    let (mut to, mut from) = socket.split();
    let may_stay = async {
        match open {
            Some(open) => {
                open.over().await;
                open.goodbye()
            }
            None => std::future::pending().await,
        }
    };
    let goodbye = tokio::select! {
        goodbye = show(&mut to, shown) => goodbye,
        goodbye = take(&mut from, typed) => goodbye,
        goodbye = may_stay => Some(goodbye),
    };
    let Some(goodbye) = goodbye else { return };
    if put(&mut to, Message::Close(Some(goodbye))).await {
        let hear_out = async { while let Some(Ok(_)) = from.next().await {} };
        // One who does not answer is left alone all the same.
        let _ = tokio::time::timeout(GOODBYE_TIME_MAX, hear_out).await;
    }
}

/// Sends what is shown; the goodbye is nothing where nobody is there to hear it.
async fn show(
    to: &mut SplitSink<WebSocket, Message>,
    mut shown: mpsc::Receiver<Shown>,
) -> Option<CloseFrame> {
    loop {
        let end = match tokio::time::timeout(HEARTBEAT, shown.recv()).await {
            Err(_) => {
                if !put(to, Message::Ping(Vec::new().into())).await {
                    return None;
                }
                continue;
            }
            Ok(Some(Shown::Bytes(bytes))) => {
                if !put(to, Message::Binary(bytes.into())).await {
                    return None;
                }
                continue;
            }
            Ok(Some(Shown::Exited(code))) => TerminalEnd::Exited(code),
            Ok(Some(Shown::Lost(reason))) => TerminalEnd::Lost(reason),
            Ok(None) => {
                let reason = "the node's supervisor is gone: attach again";
                return Some(CloseFrame { code: close_code::AGAIN, reason: reason.into() });
            }
        };
        let text = serde_json::to_string(&end).unwrap_or_default();
        let sent = put(to, Message::Text(text.into())).await;
        let reason = "the task is over".into();
        return sent.then_some(CloseFrame { code: close_code::NORMAL, reason });
    }
}

async fn put(to: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(tokio::time::timeout(SEND_TIME_MAX, to.send(message)).await, Ok(Ok(())))
}

/// Takes what is typed. Whoever types faster than the task reads waits.
async fn take(from: &mut SplitStream<WebSocket>, typed: mpsc::Sender<Typed>) -> Option<CloseFrame> {
    while let Some(Ok(message)) = from.next().await {
        let word = match message {
            Message::Binary(bytes) => Typed::Bytes(bytes.into()),
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(TerminalWord::Resize(TerminalSize { rows, cols })) => {
                    Typed::Size { rows: rows.max(1), cols: cols.max(1) }
                }
                Err(_) => {
                    let reason = "a text must be {\"resize\": {\"rows\": 24, \"cols\": 80}}".into();
                    return Some(CloseFrame { code: close_code::UNSUPPORTED, reason });
                }
            },
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return None,
        };
        if typed.send(word).await.is_err() {
            // The other direction says why.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return None;
        }
    }
    None
}
