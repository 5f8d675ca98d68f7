//! Who is asking, and what they may.

use era_api::account::{Role, Scope};
use era_core::accounts::Actor;
use era_core::units::{GroupId, UserId};

/// The account behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its number.
    pub user: UserId,
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: GroupId,
    /// What it may do.
    pub role: Role,
    /// What its token may be used for.
    pub scopes: Vec<Scope>,
}

impl Caller {
    /// On whose authority the core acts.
    pub fn actor(&self) -> Actor {
        match self.role {
            Role::Administrator => Actor::Administrator,
            Role::User | Role::GroupAdministrator => Actor::User(self.user),
        }
    }
}
