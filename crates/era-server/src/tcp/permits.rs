//! How many connections an account has: none may take them all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use era_core::units::UserId;

use super::CONNECTIONS_MAX;

/// Most connections of an account.
pub(super) const PERMITS_MAX: usize = CONNECTIONS_MAX / 4;

/// Who has how many. A clone shares.
#[derive(Clone, Default)]
pub(super) struct ConnectionPermits(Arc<Mutex<BTreeMap<UserId, usize>>>);

/// One of them, until it is dropped.
pub(super) struct ConnectionPermit(ConnectionPermits, UserId);

impl ConnectionPermits {
    /// One more for this account, if it may have that.
    pub(super) fn take(&self, user: UserId) -> Option<ConnectionPermit> {
        let mut all = self.all();
        let taken = all.entry(user).or_default();
        if *taken >= PERMITS_MAX {
            return None;
        }
        *taken += 1;
        Some(ConnectionPermit(self.clone(), user))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<UserId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut all = self.0.all();
        if let Some(taken) = all.get_mut(&self.1) {
            *taken -= 1;
            if *taken == 0 {
                all.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_does_not_take_the_connections_of_others() {
        let permits = ConnectionPermits::default();
        let mut hers: Vec<ConnectionPermit> =
            (0..PERMITS_MAX).map(|_| permits.take(UserId(1)).unwrap()).collect();
        assert!(permits.take(UserId(1)).is_none());
        assert!(permits.take(UserId(2)).is_some());
        hers.pop();
        assert!(permits.take(UserId(1)).is_some());
        drop(hers);
        assert!(permits.all().is_empty());
    }
}
