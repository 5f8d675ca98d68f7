//! Who is asking, and what they may. What may be done to whose job or data is decided by whoever
//! handles these, with the questions below.

use era_api::account::{Role, Scope};
use era_core::accounts::Actor;
use era_core::units::{GroupId, UserId};

use crate::error::{AppError, Kind};

/// The account behind a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: UserId,
    pub name: String,
    pub group: GroupId,
    /// What it may do with this token: whoever has no [`Scope::Admin`] is a plain user.
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

    /// Refuses a token that is not for this.
    pub fn may(&self, scope: Scope) -> Result<(), AppError> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let scope = match scope {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        };
        let detail = format!("this token has no scope `{scope}`: make one that has");
        Err(AppError::new(Kind::Forbidden, "scope", detail))
    }

    /// Refuses whoever is no administrator.
    pub fn administers(&self) -> Result<(), AppError> {
        match self.role {
            Role::Administrator => Ok(()),
            _ => Err(AppError::forbidden("only administrators may do this: ask one")),
        }
    }

    /// Whether the jobs of a user of a group may be seen, cancelled and retried.
    pub fn sees(&self, user: UserId, group: GroupId) -> bool {
        self.user == user || self.heads(group)
    }

    /// Whether a group's members and quota are in the caller's hands.
    pub fn heads(&self, group: GroupId) -> bool {
        match self.role {
            Role::Administrator => true,
            Role::GroupAdministrator => self.group == group,
            Role::User => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role) -> Caller {
        Caller {
            user: UserId(1),
            name: "ada".into(),
            group: GroupId(1),
            role,
            scopes: vec![Scope::Read],
        }
    }

    #[test]
    fn a_group_administrator_sees_its_own_group_only() {
        let (me, other) = (UserId(1), UserId(2));
        let (mine, theirs) = (GroupId(1), GroupId(2));
        let sees = |role| {
            [(me, mine), (other, mine), (other, theirs)]
                .map(|(user, group)| caller(role).sees(user, group))
        };
        assert_eq!(sees(Role::User), [true, false, false]);
        assert_eq!(sees(Role::GroupAdministrator), [true, true, false]);
        assert_eq!(sees(Role::Administrator), [true, true, true]);
    }

    #[test]
    fn a_token_is_good_for_its_scopes() {
        assert!(caller(Role::User).may(Scope::Read).is_ok());
        assert!(caller(Role::User).may(Scope::Write).is_err());
    }
}
