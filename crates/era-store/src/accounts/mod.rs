//! Accounts and what belongs to them: users, groups, tokens, answered keys, the audit trail,
//! images and webhooks.
//!
//! Rows go in and come out as they are; what a role or a scope means, and whether somebody may,
//! is not known here. Passwords and tokens arrive as hashes. Limits, wallets and jobs are the
//! core's and are not here either.

mod audit;
mod images;
mod keys;
mod revision;
mod tokens;
mod users;
mod webhooks;

pub use audit::{AuditAsk, AuditRow};
pub use images::ImageRow;
pub use keys::{Claim, KEY_KEPT_MS, KeyedAnswer};
pub use revision::AccountLock;
pub use tokens::TokenRow;
pub use users::{GroupRow, UserRow};
pub use webhooks::{DeliveryRow, WebhookRow};

use crate::{Database, Store};

/// The tables of accounts. A clone shares.
#[derive(Clone, Debug)]
pub struct AccountTables {
    database: Database,
}

impl Store {
    /// Users, groups, tokens and what else belongs to accounts.
    pub fn accounts(&self) -> AccountTables {
        AccountTables { database: self.durable().clone() }
    }
}

#[cfg(test)]
mod tests;
