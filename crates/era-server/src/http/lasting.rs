//! For how long something that stays open may: as long as the token is good by which it was opened.
//!
//! A request is over before anybody notices that its token is revoked; a WebSocket or a stream of
//! events is not. Whoever keeps one open looks at this now and then.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, close_code};

use crate::App;
use crate::auth::token::Live;

/// How often it is looked. Other servers' revocations are known after a second more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The token behind something that stays open. A clone shares.
#[derive(Clone)]
pub struct Lasting {
    app: App,
    live: Arc<Live>,
}

impl Lasting {
    pub(super) fn new(app: &App, live: &Arc<Live>) -> Lasting {
        Lasting { app: app.clone(), live: live.clone() }
    }

    /// Whether the token is still good, and its account may still use it.
    pub fn is_good(&self) -> bool {
        self.app.auth.is_good(&self.live)
    }

    /// Comes back when it is not.
    pub async fn over(&self) {
        while self.is_good() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Comes back when that is over; never, where there is nothing to look at.
pub async fn over(lasting: Option<&Lasting>) {
    match lasting {
        Some(lasting) => lasting.over().await,
        None => std::future::pending().await,
    }
}

/// The goodbye to whoever may stay no longer.
pub fn goodbye() -> CloseFrame {
    CloseFrame {
        code: close_code::POLICY,
        reason: "the token is expired or revoked: log in again".into(),
    }
}
