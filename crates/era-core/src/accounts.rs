//! Users and groups, and who may divide which quota.
//!
//! One rule binds them: in every dimension that a group's quota limits, the quotas of its users
//! add up to no more. A user who is unlimited in a dimension does not count in that sum; the
//! group's own limit still binds such a user at use. What is held and used is not known here
//! (see [`crate::usage`]), nor are wallets (see [`crate::ledger`]), names or passwords.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::quota::{Dimension, Quota};
use crate::refusal::{QuotaScope, Refusal};
use crate::units::{GroupId, UserId};

/// Most users.
pub const USERS_MAX: usize = 100_000;
/// Most groups.
pub const GROUPS_MAX: usize = 10_000;

/// Who bids, waits and pays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: UserId,
    /// The group whose quota it shares.
    pub group: GroupId,
    /// How much it counts in policies.
    pub level: u8,
    /// Whether it sees, cancels and retries the group's jobs and divides the group's quota.
    pub group_admin: bool,
    /// Its own limits.
    pub quota: Quota,
}

/// A set of users that shares a quota.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub id: GroupId,
    /// How much it counts in policies.
    pub level: u8,
    /// The limits of all its users together.
    pub quota: Quota,
}

impl User {
    /// A user of a group, of level 0 and without limits of its own.
    pub fn new(id: UserId, group: GroupId) -> User {
        User { id, group, level: 0, group_admin: false, quota: Quota::UNLIMITED }
    }
}

impl Group {
    /// A group of level 0 without limits.
    pub fn new(id: GroupId) -> Group {
        Group { id, level: 0, quota: Quota::UNLIMITED }
    }
}

/// On whose authority something is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Whoever runs the cluster.
    Administrator,
    /// A user, with the rights that it has itself.
    User(UserId),
}

/// All users and groups. A clone shares structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Accounts {
    users: OrdMap<UserId, User>,
    groups: OrdMap<GroupId, GroupSums>,
}

/// A group, with the sums of its users' limits: adding a user to a group of thousands must not
/// walk through all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupSums {
    group: Group,
    sums: LimitSums,
}

/// For each dimension, the sum of the users' limits. 128 bits hold any number of users' largest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LimitSums([u128; Dimension::COUNT]);

impl LimitSums {
    fn plus(mut self, quota: &Quota) -> LimitSums {
        for (sum, dimension) in self.0.iter_mut().zip(Dimension::ALL) {
            *sum += u128::from(quota.limit(dimension).unwrap_or(0));
        }
        self
    }

    /// Only for a quota that was added before.
    fn minus(mut self, quota: &Quota) -> LimitSums {
        for (sum, dimension) in self.0.iter_mut().zip(Dimension::ALL) {
            *sum -= u128::from(quota.limit(dimension).unwrap_or(0));
        }
        self
    }

    /// The rule: no sum exceeds the group's own limit.
    fn within(&self, group: &Group) -> Result<(), Refusal> {
        for (sum, dimension) in self.0.iter().zip(Dimension::ALL) {
            let Some(limit) = group.quota.limit(dimension) else { continue };
            if *sum > u128::from(limit) {
                // Saturates beyond what a refusal can tell; it is too much either way.
                let told = u64::try_from(*sum).unwrap_or(u64::MAX);
                let unit = dimension.unit_for(&[told, limit]);
                return Err(Refusal::QuotaSum {
                    group: group.id,
                    what: unit.name.into(),
                    sum: unit.amount(*sum),
                    limit: unit.limit(limit),
                });
            }
        }
        Ok(())
    }
}

impl Accounts {
    pub fn user(&self, user: UserId) -> Result<&User, Refusal> {
        self.users.get(&user).ok_or(Refusal::UnknownUser { user })
    }

    pub fn group(&self, group: GroupId) -> Result<&Group, Refusal> {
        self.entry(group).map(|entry| &entry.group)
    }

    /// All users, in the order of their numbers.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// All groups, in the order of their numbers.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values().map(|entry| &entry.group)
    }

    /// The quotas that bind a user: its own, then its group's.
    pub fn quotas(&self, user: UserId) -> Result<[(QuotaScope, &Quota); 2], Refusal> {
        let user = self.user(user)?;
        let group = self.group(user.group)?;
        Ok([(QuotaScope::User(user.id), &user.quota), (QuotaScope::Group(group.id), &group.quota)])
    }

    /// Creates a group, or replaces one and keeps its users.
    pub fn put_group(&mut self, group: Group) -> Result<(), Refusal> {
        group.quota.validate()?;
        let sums = match self.groups.get(&group.id) {
            Some(entry) => entry.sums.clone(),
            None if self.groups.len() >= GROUPS_MAX => {
                return Err(Refusal::Limit { what: "groups".into(), limit: GROUPS_MAX });
            }
            None => LimitSums::default(),
        };
        sums.within(&group)?;
        self.groups.insert(group.id, GroupSums { group, sums });
        Ok(())
    }

    /// Creates a user, or replaces one: moves it to another group, changes its level or quota.
    pub fn put_user(&mut self, user: User) -> Result<(), Refusal> {
        user.quota.validate()?;
        let old = self.users.get(&user.id);
        if old.is_none() && self.users.len() >= USERS_MAX {
            return Err(Refusal::Limit { what: "users".into(), limit: USERS_MAX });
        }
        let entry = self.entry(user.group)?;
        let without_it = match old {
            Some(old) if old.group == user.group => entry.sums.clone().minus(&old.quota),
            _ => entry.sums.clone(),
        };
        let sums = without_it.plus(&user.quota);
        sums.within(&entry.group)?;
        // Nothing can fail from here on.
        if let Some(old) = old.filter(|old| old.group != user.group).cloned()
            && let Some(left) = self.groups.get_mut(&old.group)
        {
            left.sums = left.sums.clone().minus(&old.quota);
        }
        if let Some(joined) = self.groups.get_mut(&user.group) {
            joined.sums = sums;
        }
        self.users.insert(user.id, user);
        Ok(())
    }

    /// Sets what a group may use. For administrators; the users' quotas must still fit into it.
    pub fn set_group_quota(&mut self, group: GroupId, quota: Quota) -> Result<(), Refusal> {
        let group = Group { quota, ..self.group(group)?.clone() };
        self.put_group(group)
    }

    /// Sets a user's part of its group's quota. For administrators and for the administrators of
    /// that very group.
    pub fn set_user_quota(&mut self, by: Actor, user: UserId, quota: Quota) -> Result<(), Refusal> {
        let user = self.user(user)?;
        if let Actor::User(by) = by {
            let by = self.user(by)?;
            if !by.group_admin || by.group != user.group {
                return Err(Refusal::NotGroupAdmin { user: by.id, group: user.group });
            }
        }
        let user = User { quota, ..user.clone() };
        self.put_user(user)
    }

    /// Re-derives what must always hold: each user has a group, the sums are right, and the rule
    /// that binds them is kept.
    pub fn check(&self) -> Result<(), String> {
        let mut sums: OrdMap<GroupId, LimitSums> = OrdMap::new();
        for (id, user) in &self.users {
            self.group(user.group).map_err(|refusal| format!("{id}: {refusal}"))?;
            if user.id != *id {
                return Err(format!("{} is kept as {id}", user.id));
            }
            let sum = sums.entry(user.group).or_default();
            *sum = sum.clone().plus(&user.quota);
        }
        for (id, entry) in &self.groups {
            let sum = sums.remove(id).unwrap_or_default();
            if entry.group.id != *id || entry.sums != sum {
                return Err(format!("{id} is kept as {entry:?}, its users add up to {sum:?}"));
            }
            sum.within(&entry.group).map_err(|refusal| refusal.to_string())?;
        }
        Ok(())
    }

    fn entry(&self, group: GroupId) -> Result<&GroupSums, Refusal> {
        self.groups.get(&group).ok_or(Refusal::UnknownGroup { group })
    }
}

/// As written: without the sums. Reading goes through the same checks as creating.
#[derive(Serialize, Deserialize)]
struct Stored {
    groups: Vec<Group>,
    users: Vec<User>,
}

impl From<Accounts> for Stored {
    fn from(accounts: Accounts) -> Stored {
        Stored {
            groups: accounts.groups().cloned().collect(),
            users: accounts.users().cloned().collect(),
        }
    }
}

impl TryFrom<Stored> for Accounts {
    type Error = Refusal;
    fn try_from(stored: Stored) -> Result<Accounts, Refusal> {
        let mut accounts = Accounts::default();
        stored.groups.into_iter().try_for_each(|group| accounts.put_group(group))?;
        stored.users.into_iter().try_for_each(|user| accounts.put_user(user))?;
        Ok(accounts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Money;
    use proptest::prelude::*;

    fn gpus(milli: u64) -> Quota {
        Quota { concurrent: [None, None, Some(milli)], ..Quota::UNLIMITED }
    }

    fn group(id: u32, quota: Quota) -> Group {
        Group { id: GroupId(id), level: 0, quota }
    }

    fn user(id: u32, group: u32, quota: Quota) -> User {
        User { id: UserId(id), group: GroupId(group), level: 0, group_admin: false, quota }
    }

    /// Group 1 of 8 GPUs with users 1 (its administrator, 4) and 2 (3); group 2 of 4, empty.
    fn two_groups() -> Accounts {
        let mut accounts = Accounts::default();
        accounts.put_group(group(1, gpus(8000))).unwrap();
        accounts.put_group(group(2, gpus(4000))).unwrap();
        accounts.put_user(User { group_admin: true, ..user(1, 1, gpus(4000)) }).unwrap();
        accounts.put_user(user(2, 1, gpus(3000))).unwrap();
        accounts
    }

    fn too_much(group: u32, sum: u64, limit: u64) -> Result<(), Refusal> {
        Err(Refusal::QuotaSum { group: GroupId(group), what: "gpus".into(), sum, limit })
    }

    #[test]
    fn the_users_of_a_group_share_no_more_than_it_has() {
        let mut accounts = two_groups();
        assert_eq!(accounts.put_user(user(3, 1, gpus(2000))), too_much(1, 9, 8));
        assert_eq!(accounts.set_group_quota(GroupId(1), gpus(6000)), too_much(1, 7, 6));
        let by = Actor::Administrator;
        assert_eq!(accounts.set_user_quota(by, UserId(2), gpus(5000)), too_much(1, 9, 8));
        assert_eq!(accounts, two_groups());
        accounts.put_user(user(3, 1, gpus(1000))).unwrap();
        accounts.set_user_quota(by, UserId(2), gpus(2000)).unwrap();
        accounts.set_group_quota(GroupId(1), gpus(7000)).unwrap();
        accounts.check().unwrap();
    }

    #[test]
    fn an_unlimited_user_does_not_count_but_is_bound_by_the_group() {
        let mut accounts = two_groups();
        accounts.put_user(user(3, 1, Quota::UNLIMITED)).unwrap();
        let [own, shared] = accounts.quotas(UserId(3)).unwrap();
        assert_eq!(own, (QuotaScope::User(UserId(3)), &Quota::UNLIMITED));
        assert_eq!(shared, (QuotaScope::Group(GroupId(1)), &gpus(8000)));
    }

    #[test]
    fn an_unlimited_group_takes_any_user() {
        let mut accounts = two_groups();
        accounts.put_group(group(3, Quota::UNLIMITED)).unwrap();
        for id in 10..20 {
            accounts.put_user(user(id, 3, gpus(u64::MAX))).unwrap();
        }
        let refused = accounts.set_group_quota(GroupId(3), gpus(9000)).unwrap_err();
        assert!(matches!(refused, Refusal::QuotaSum { sum: u64::MAX, .. }), "{refused}");
        accounts.check().unwrap();
    }

    #[test]
    fn a_user_who_moves_takes_its_quota_along() {
        let mut accounts = two_groups();
        accounts.put_user(user(2, 2, gpus(3000))).unwrap();
        assert_eq!(
            accounts.put_user(User { group_admin: true, ..user(1, 2, gpus(4000)) }),
            too_much(2, 7, 4)
        );
        accounts.set_group_quota(GroupId(1), gpus(4000)).unwrap();
        accounts.check().unwrap();
    }

    #[test]
    fn a_group_administrator_divides_its_own_group_only() {
        let mut accounts = two_groups();
        accounts.put_user(user(9, 2, gpus(1000))).unwrap();
        let denied = |by: u32, group: u32| {
            Err(Refusal::NotGroupAdmin { user: UserId(by), group: GroupId(group) })
        };
        let [chief, member, other] = [1, 2, 9].map(|id| Actor::User(UserId(id)));
        accounts.set_user_quota(chief, UserId(2), gpus(1000)).unwrap();
        accounts.set_user_quota(chief, UserId(1), gpus(7000)).unwrap();
        assert_eq!(accounts.set_user_quota(chief, UserId(9), gpus(0)), denied(1, 2));
        assert_eq!(accounts.set_user_quota(member, UserId(2), gpus(0)), denied(2, 1));
        assert_eq!(accounts.set_user_quota(other, UserId(2), gpus(0)), denied(9, 1));
    }

    #[test]
    fn whom_nobody_knows_is_refused() {
        let mut accounts = two_groups();
        let nobody = Refusal::UnknownUser { user: UserId(7) };
        let nowhere = Refusal::UnknownGroup { group: GroupId(7) };
        assert_eq!(accounts.user(UserId(7)), Err(nobody.clone()));
        assert_eq!(accounts.group(GroupId(7)), Err(nowhere.clone()));
        assert_eq!(accounts.put_user(user(3, 7, Quota::UNLIMITED)), Err(nowhere.clone()));
        assert_eq!(accounts.set_group_quota(GroupId(7), gpus(1)), Err(nowhere));
        let by = Actor::User(UserId(7));
        assert_eq!(accounts.set_user_quota(by, UserId(1), gpus(1)), Err(nobody));
        assert_eq!(accounts, two_groups());
    }

    #[test]
    fn there_are_only_so_many_groups() {
        let mut accounts = Accounts::default();
        for id in 0..GROUPS_MAX as u32 {
            accounts.put_group(group(id, Quota::UNLIMITED)).unwrap();
        }
        let refused = accounts.put_group(group(u32::MAX, Quota::UNLIMITED));
        assert_eq!(refused, Err(Refusal::Limit { what: "groups".into(), limit: GROUPS_MAX }));
        accounts.put_group(group(5, gpus(1))).unwrap();
    }

    fn any_quota() -> impl Strategy<Value = Quota> {
        (prop::option::of(0..6u64), prop::option::of(0..6u64), prop::option::of(-1..6i64)).prop_map(
            |(gpu, hours, credits)| Quota {
                concurrent: [None, None, gpu],
                hours: [hours, None, None],
                credits: credits.map(Money),
            },
        )
    }

    fn apply(accounts: &mut Accounts, act: u8, id: u32, to: u32, q: Quota) -> Result<(), Refusal> {
        match act {
            0 => accounts.put_group(group(to, q)),
            1 => accounts.put_user(User { group_admin: id == 0, ..user(id, to, q) }),
            2 => accounts.set_group_quota(GroupId(to), q),
            3 => accounts.set_user_quota(Actor::Administrator, UserId(id), q),
            _ => accounts.set_user_quota(Actor::User(UserId(to)), UserId(id), q),
        }
    }

    proptest! {
        #[test]
        fn whatever_is_set_the_parts_fit_the_whole_and_refusals_change_nothing(
            acts in prop::collection::vec((0..5u8, 0..5u32, 0..3u32, any_quota()), 0..60)
        ) {
            let mut accounts = Accounts::default();
            for (act, id, to, quota) in acts {
                let before = accounts.clone();
                if apply(&mut accounts, act, id, to, quota).is_err() {
                    prop_assert_eq!(&accounts, &before);
                }
                prop_assert_eq!(accounts.check(), Ok(()));
            }
            let json = serde_json::to_string(&accounts).unwrap();
            prop_assert_eq!(serde_json::from_str::<Accounts>(&json).unwrap(), accounts);
        }
    }
}
