//! Closes long-lived connections when their token is revoked or expires, and when the server stops.
//!
//! A request is over before its token could be revoked; a WebSocket or a stream of events is not.
//! Handlers of such connections check here now and then. Each account has a limited number of them,
//! so that nobody takes the connections of all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, close_code};
use axum::http::StatusCode;
use era_app::auth::token::LiveToken;
use era_core::units::UserId;
use tokio_util::sync::CancellationToken;

use super::Failure;
use crate::App;

/// How often it is looked. Other servers' revocations are known after a second more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Most that one account has open at a time: one in sixteen of all connections that there may be.
const OPEN_MAX: u32 = 256;

/// How many each account has open.
static OPEN: Mutex<BTreeMap<UserId, u32>> = Mutex::new(BTreeMap::new());

fn open() -> MutexGuard<'static, BTreeMap<UserId, u32>> {
    // A table of numbers is right whoever panicked beside it.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the things that an account has open.
struct OpenPermit(UserId);

impl OpenPermit {
    fn take(user: UserId) -> Option<OpenPermit> {
        let mut open = open();
        let count = open.entry(user).or_default();
        (*count < OPEN_MAX).then(|| {
            *count += 1;
            OpenPermit(user)
        })
    }
}

impl Drop for OpenPermit {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(count) = open.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.0);
            }
        }
    }
}

/// Word that the server stops: whoever keeps something open ends it. A clone shares.
#[derive(Clone, Default)]
pub struct Stopping(pub CancellationToken);

/// The token behind something that stays open. A clone shares.
#[derive(Clone)]
pub struct OpenSession {
    app: App,
    live: Arc<LiveToken>,
    stopping: Stopping,
    _permit: Arc<OpenPermit>,
}

impl OpenSession {
    pub(super) fn new(
        app: &App,
        live: &Arc<LiveToken>,
        stopping: Option<&Stopping>,
    ) -> Result<OpenSession, Failure> {
        let permit = OpenPermit::take(live.user).ok_or_else(|| {
            let detail = "this account has too many connections open: close some of them";
            Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_open", detail).after(5)
        })?;
        let stopping = stopping.cloned().unwrap_or_default();
        Ok(OpenSession {
            app: app.clone(),
            live: live.clone(),
            stopping,
            _permit: Arc::new(permit),
        })
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
pub async fn over(open: Option<&OpenSession>) -> CloseFrame {
    match open {
        Some(open) => {
            open.over().await;
            open.goodbye()
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_only_so_many_open_and_others_have_theirs() {
        let (ada, ben) = (UserId(4_000_000_001), UserId(4_000_000_002));
        let permits: Vec<OpenPermit> =
            (0..OPEN_MAX).filter_map(|_| OpenPermit::take(ada)).collect();
        assert_eq!(permits.len(), OPEN_MAX as usize);
        assert!(OpenPermit::take(ada).is_none());
        assert!(OpenPermit::take(ben).is_some());
        drop(permits);
        assert!(OpenPermit::take(ada).is_some());
        assert!(!open().contains_key(&ada) && !open().contains_key(&ben));
    }
}
