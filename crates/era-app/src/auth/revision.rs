//! Several servers on one database: what another one changed is read again.
//!
//! Every change leaves word in the database, and whoever holds accounts in memory looks every
//! [`LOOK_EVERY`]: a token that was revoked elsewhere is good for that long and no longer. For a
//! token that is not known it is looked at once, since it may have been made elsewhere a moment
//! ago, and so it is at a login. How often a stranger can cause that is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use era_store::StoreError;
use era_store::accounts::AccountLock;
use tokio_util::sync::CancellationToken;

use super::Auth;
use super::accounts::AccountError;
use super::directory::{AccountDirectory, UserEntry};
use super::token::{self, LiveToken};
use crate::driver::Unanswered;

/// How often it is looked whether somebody changed something.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most looks in a second that tokens cause which are not known.
const LOOK_UPS_MAX: u64 = 50;
/// How long a change waits for another server's.
const TURN_MAX: Duration = Duration::from_secs(10);

/// What is known of other servers' changes.
#[derive(Debug)]
pub(super) struct KnownRevision {
    /// Whether there are other servers.
    shared: AtomicBool,
    /// Of what is in memory.
    number: AtomicU64,
    /// The second of the last look-ups, and how many there were in it.
    second: AtomicI64,
    look_ups: AtomicU64,
}

impl KnownRevision {
    pub(super) fn of(revision: u64) -> KnownRevision {
        KnownRevision {
            shared: AtomicBool::new(false),
            number: AtomicU64::new(revision),
            second: AtomicI64::new(0),
            look_ups: AtomicU64::new(0),
        }
    }

    fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Whether one more look may be taken now. Two threads may both begin a second: a few
    /// more are taken then, and nothing else.
    fn may_look_up(&self, second: i64) -> bool {
        if self.second.swap(second, Ordering::Relaxed) != second {
            self.look_ups.store(0, Ordering::Relaxed);
        }
        self.look_ups.fetch_add(1, Ordering::Relaxed) < LOOK_UPS_MAX
    }
}

/// The right to change accounts: nobody here or elsewhere changes them meanwhile.
pub(super) struct AccountTurn<'a> {
    _here: tokio::sync::MutexGuard<'a, ()>,
    _everywhere: AccountLock,
}

impl Auth {
    /// Keeps accounts as other servers change them, until it is stopped.
    pub async fn keep_fresh(&self, stop: CancellationToken) {
        self.revision.shared.store(true, Ordering::Relaxed);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "what changed of accounts cannot be read: trying again");
            }
        }
    }

    /// Waits until nobody else changes accounts, and reads what was changed before.
    pub(super) async fn turn(&self) -> Result<AccountTurn<'_>, AccountError> {
        let here = self.changing.lock().await;
        let everywhere = tokio::time::timeout(TURN_MAX, self.rows.alone());
        let everywhere = everywhere.await.map_err(|_| Unanswered::Busy)??;
        if self.revision.is_shared() {
            self.read_again().await?;
        }
        Ok(AccountTurn { _here: here, _everywhere: everywhere })
    }

    /// Reads accounts and tokens again if another server changed any.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let _here = self.changing.lock().await;
        self.read_again().await
    }

    /// Only while `changing` is held.
    async fn read_again(&self) -> Result<(), StoreError> {
        let revision = self.rows.revision().await?;
        if revision == self.revision.number.load(Ordering::Relaxed) {
            return Ok(());
        }
        let directory =
            AccountDirectory::read(self.rows.groups().await?, self.rows.users().await?)?;
        self.tokens.replace(self.rows.tokens(self.now_ms()).await?);
        self.directory.store(Arc::new(directory));
        self.revision.number.store(revision, Ordering::Relaxed);
        Ok(())
    }

    /// Before a login: an account that was made or changed elsewhere a moment ago is known.
    pub(super) async fn before_login(&self) -> Result<(), StoreError> {
        if self.revision.is_shared() { self.refresh().await } else { Ok(()) }
    }

    /// The live token behind what somebody presents, and its account; also if it was made elsewhere
    /// a moment ago.
    pub async fn session_looked_up(
        &self,
        presented: &str,
    ) -> Result<Option<(Arc<UserEntry>, Arc<LiveToken>)>, StoreError> {
        let known = self.session(presented);
        if known.is_some() || !self.revision.is_shared() {
            return Ok(known);
        }
        let looks_right = token::recognise(presented).is_some();
        if !looks_right || !self.revision.may_look_up(self.now_ms().div_euclid(1000)) {
            return Ok(None);
        }
        // Whoever made it has left word of that.
        self.refresh().await?;
        Ok(self.session(presented))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_causes_a_bounded_number_of_look_ups() {
        let revision = KnownRevision::of(0);
        let looked = |second| (0..1000).filter(|_| revision.may_look_up(second)).count() as u64;
        assert_eq!((looked(1), looked(2)), (LOOK_UPS_MAX, LOOK_UPS_MAX));
    }
}
