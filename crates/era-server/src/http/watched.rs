//! What following a job's log and its metrics have in common: a WebSocket that neither a slow nor a
//! silent client can hold for ever.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::Failure;
use super::open_session::OpenSession;

/// Most WebSockets that follow logs or metrics at a time.
const FOLLOWERS_MAX: usize = 1024;
/// How often a client hears from us at least.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(20);
/// How long a client may take to accept a message.
pub(super) const SEND_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a client may take to answer a goodbye.
pub(super) const GOODBYE_TIME_MAX: Duration = Duration::from_secs(2);
/// The shortest and the longest pause between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(800);

static FOLLOWERS: Semaphore = Semaphore::const_new(FOLLOWERS_MAX);

/// Room for one more who follows.
pub(super) fn room() -> Result<SemaphorePermit<'static>, Failure> {
    FOLLOWERS.try_acquire().map_err(|_| {
        let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
        let detail = "too many follow logs and metrics already: read a page, or try again later";
        Failure::new(status, "too_many_followers", detail).after(5)
    })
}

/// Whoever follows has gone, or is too slow.
pub(super) struct Gone;

/// A WebSocket to one who follows.
pub(super) struct Follower {
    socket: WebSocket,
    heard: Instant,
    pause: Duration,
    open: Option<OpenSession>,
    _room: SemaphorePermit<'static>,
}

impl Follower {
    /// For as long as the token is good, where there is one.
    pub(super) fn new(
        socket: WebSocket,
        room: SemaphorePermit<'static>,
        open: Option<OpenSession>,
    ) -> Follower {
        Follower { socket, heard: Instant::now(), pause: PAUSE_MIN, open, _room: room }
    }

    /// Says goodbye to one who may follow no longer.
    async fn may_stay(&mut self) -> Result<(), Gone> {
        let Some(open) = self.open.as_ref().filter(|open| !open.is_good()) else {
            return Ok(());
        };
        let goodbye = open.goodbye();
        self.put(Message::Close(Some(goodbye))).await?;
        self.hear_out().await;
        Err(Gone)
    }

    /// Sends a list of things as one message. Waits while the client is busy, but not for ever.
    pub(super) async fn send<T: Serialize>(&mut self, items: &[T]) -> Result<(), Gone> {
        let text = serde_json::to_string(items).map_err(|error| {
            tracing::error!(%error, "what is followed cannot be written");
            Gone
        })?;
        self.may_stay().await?;
        self.pause = PAUSE_MIN;
        self.put(Message::Text(text.into())).await
    }

    /// Waits a moment, longer each time that nothing came, and listens to the client meanwhile.
    pub(super) async fn pause(&mut self) -> Result<(), Gone> {
        self.may_stay().await?;
        let until = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        if self.heard.elapsed() > HEARTBEAT {
            self.put(Message::Ping(Vec::new().into())).await?;
        }
        loop {
            match tokio::time::timeout_at(until, self.socket.recv()).await {
                Err(_) => return Ok(()),
                Ok(Some(Ok(Message::Close(_)))) => {
                    self.hear_out().await;
                    return Err(Gone);
                }
                Ok(None | Some(Err(_))) => return Err(Gone),
                // Whatever a client says, it has nothing to say here.
                Ok(Some(Ok(_))) => {}
            }
        }
    }

    pub(super) async fn end(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code, reason: reason.into() };
        if self.put(Message::Close(Some(frame))).await.is_err() {
            return;
        }
        self.hear_out().await;
    }

    /// A goodbye is answered by either side, and then it is over for both. Reading on sends ours.
    async fn hear_out(&mut self) {
        let goodbye = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        // One who does not answer is left alone all the same.
        let _ = tokio::time::timeout(GOODBYE_TIME_MAX, goodbye).await;
    }

    async fn put(&mut self, message: Message) -> Result<(), Gone> {
        let sent = tokio::time::timeout(SEND_TIME_MAX, self.socket.send(message)).await;
        self.heard = Instant::now();
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}
