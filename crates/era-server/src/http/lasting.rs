//! For how long something that stays open may: as long as the token is good by which it was opened,
//! and until the server stops.
//!
//! A request is over before anybody notices that its token is revoked; a WebSocket or a stream of
//! events is not. Whoever keeps one open looks at this now and then.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, close_code};
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::auth::token::Live;

/// How often it is looked. Other servers' revocations are known after a second more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Word that the server stops: whoever keeps something open ends it. A clone shares.
#[derive(Clone, Default)]
pub struct Stopping(pub CancellationToken);

/// The token behind something that stays open. A clone shares.
#[derive(Clone)]
pub struct Lasting {
    app: App,
    live: Arc<Live>,
    stopping: Stopping,
}

impl Lasting {
    pub(super) fn new(app: &App, live: &Arc<Live>, stopping: Option<&Stopping>) -> Lasting {
        let stopping = stopping.cloned().unwrap_or_default();
        Lasting { app: app.clone(), live: live.clone(), stopping }
    }

    /// Whether the token is still good, its account may still use it, and the server goes on.
    pub fn is_good(&self) -> bool {
        !self.stopping.0.is_cancelled() && self.app.auth.is_good(&self.live)
    }

    /// Comes back when it is not.
    pub async fn over(&self) {
        while self.is_good() {
            tokio::select! {
                () = self.stopping.0.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// The goodbye to whoever may stay no longer.
    pub fn goodbye(&self) -> CloseFrame {
        let (code, reason) = match self.stopping.0.is_cancelled() {
            true => (close_code::AWAY, "the server is stopping: come back in a moment"),
            false => (close_code::POLICY, "the token is expired or revoked: log in again"),
        };
        CloseFrame { code, reason: reason.into() }
    }
}

/// Comes back when that is over, with the goodbye; never, where there is nothing to look at.
pub async fn over(lasting: Option<&Lasting>) -> CloseFrame {
    match lasting {
        Some(lasting) => {
            lasting.over().await;
            lasting.goodbye()
        }
        None => std::future::pending().await,
    }
}
