//! Accounts: who there is, who is asking, and by what right.
//!
//! Names, rights and live tokens are kept in memory, so that a request is authenticated without
//! the database; every change is written through before it counts. Where several servers hold
//! them, each reads again what another one changed (`revision`). Limits, wallets and levels
//! are the core's, which knows users as numbers: [`mirror`] keeps it told. What a caller may do
//! with jobs and data is decided where these are handled, by [`Caller`].

pub mod directory;
pub mod first_start;
pub mod mirror;
pub mod password;
mod revision;
pub mod throttle;
pub mod token;

mod accounts;
mod caller;
mod failed;
pub mod sessions;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use era_store::accounts::AccountTables;
use era_store::{Store, StoreError};

use crate::clock::Clock;

pub use accounts::AccountError;
pub use accounts::grant;
pub use caller::Caller;
pub use directory::role;
pub use directory::{AccountDirectory, GroupEntry, UserEntry};
pub use sessions::{Issued, LoginError, NewSession, OWN_MACHINE, Session, scopes_of};
pub use sessions::{TOKENS_MAX, caller};

use throttle::Throttle;
use token::Tokens;

/// All accounts of a server.
pub struct Auth {
    clock: Arc<dyn Clock>,
    rows: AccountTables,
    directory: ArcSwap<AccountDirectory>,
    tokens: Tokens,
    throttle: Mutex<Throttle>,
    hasher: password::Hasher,
    /// Whoever changes accounts holds this, so that no change is lost and no number given twice.
    changing: tokio::sync::Mutex<()>,
    /// When tokens were last tended.
    tended: AtomicI64,
    /// What other servers change, where there are any.
    revision: revision::KnownRevision,
    /// Whether only one account may be used, since the jobs of all would run as one user.
    one: bool,
}

impl Auth {
    /// Reads all accounts and live tokens.
    pub async fn open(store: &Store, clock: Arc<dyn Clock>) -> Result<Auth, StoreError> {
        let rows = store.accounts();
        // Read before what it is the revision of: what changes in between is read again.
        let revision = revision::KnownRevision::of(rows.revision().await?);
        let directory = AccountDirectory::read(rows.groups().await?, rows.users().await?)?;
        let tokens = Tokens::of(rows.tokens(clock.machine().0).await?);
        Ok(Auth {
            clock,
            rows,
            directory: ArcSwap::from_pointee(directory),
            tokens,
            throttle: Mutex::new(Throttle::default()),
            hasher: password::Hasher::default(),
            changing: tokio::sync::Mutex::new(()),
            tended: AtomicI64::new(0),
            revision,
            one: false,
        })
    }

    /// The same for one account only; refused where more are in use already.
    pub fn for_one(mut self) -> Result<Auth, AccountError> {
        self.one = true;
        let directory = self.directory();
        match directory.users().filter(|user| user.enabled).nth(1) {
            Some(_) => Err(AccountError::SharedUser),
            None => Ok(self),
        }
    }

    /// Everybody, as of now.
    pub fn directory(&self) -> Arc<AccountDirectory> {
        self.directory.load_full()
    }

    /// The tables behind it.
    pub fn rows(&self) -> &AccountTables {
        &self.rows
    }

    /// Writes down when tokens were last used, and forgets those that have expired. For the
    /// server to call every minute or so.
    pub async fn tend(&self) -> Result<(), StoreError> {
        let now = self.now_ms();
        let (expired, used) = self.tokens.tend(self.tended.swap(now, Ordering::Relaxed), now);
        // Nothing is written for nothing: an idle server leaves the disk alone.
        if expired || !used.is_empty() {
            self.rows.tend_tokens(&used, now).await?;
        }
        Ok(())
    }

    /// The machine's clock, in milliseconds since the epoch.
    fn now_ms(&self) -> i64 {
        self.clock.machine().0
    }
}
