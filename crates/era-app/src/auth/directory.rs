//! Everybody by name and by number, as an immutable value that readers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_api::account::Role;
use era_core::units::{GroupId, UserId};
use era_store::StoreError;
use era_store::accounts::{GroupRow, UserRow};

/// Everybody.
#[derive(Clone, Default)]
pub struct AccountDirectory {
    users: BTreeMap<UserId, Arc<UserEntry>>,
    user_names: BTreeMap<String, UserId>,
    groups: BTreeMap<GroupId, Arc<GroupEntry>>,
    group_names: BTreeMap<String, GroupId>,
}

/// A user.
#[derive(Clone)]
pub struct UserEntry {
    pub id: UserId,
    pub name: String,
    pub group: GroupId,
    /// What it may do.
    pub role: Role,
    /// How much it counts in policies.
    pub level: u8,
    /// Whether it may log in.
    pub enabled: bool,
    /// The hash of its password.
    pub(super) password: String,
    /// Whether its password must be changed at the first login.
    pub one_time: bool,
    /// Most bytes of data, where there is a limit.
    pub storage_bytes: Option<u64>,
    /// Since when, in milliseconds.
    pub created: i64,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    pub id: GroupId,
    pub name: String,
    /// How much it counts in policies.
    pub level: u8,
    /// Most bytes of data, where there is a limit.
    pub storage_bytes: Option<u64>,
    /// Since when, in milliseconds.
    pub created: i64,
}

impl AccountDirectory {
    /// From what is kept.
    pub(super) fn read(
        groups: Vec<GroupRow>,
        users: Vec<UserRow>,
    ) -> Result<AccountDirectory, StoreError> {
        let mut directory = AccountDirectory::default();
        for row in groups {
            directory.put_group(GroupEntry::from(row));
        }
        for row in users {
            directory.put_user(UserEntry::read(row)?);
        }
        Ok(directory)
    }

    pub fn user(&self, id: UserId) -> Option<&Arc<UserEntry>> {
        self.users.get(&id)
    }

    pub fn user_named(&self, name: &str) -> Option<&Arc<UserEntry>> {
        self.users.get(self.user_names.get(name)?)
    }

    pub fn group(&self, id: GroupId) -> Option<&Arc<GroupEntry>> {
        self.groups.get(&id)
    }

    pub fn group_named(&self, name: &str) -> Option<&Arc<GroupEntry>> {
        self.groups.get(self.group_names.get(name)?)
    }

    /// What a user is called; one that is not known by its number.
    pub fn user_name(&self, id: UserId) -> String {
        self.user(id).map_or_else(|| format!("user {}", id.0), |user| user.name.clone())
    }

    /// What a group is called; one that is not known by its number.
    pub fn group_name(&self, id: GroupId) -> String {
        self.group(id).map_or_else(|| format!("group {}", id.0), |group| group.name.clone())
    }

    /// All users, by number.
    pub fn users(&self) -> impl Iterator<Item = &Arc<UserEntry>> {
        self.users.values()
    }

    /// All groups, by number.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<GroupEntry>> {
        self.groups.values()
    }

    /// Users whose names come after this one, in order of their names.
    pub fn users_after<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<UserEntry>> {
        after(&self.user_names, name).filter_map(|id| self.users.get(id))
    }

    /// Groups whose names come after this one, in order of their names.
    pub fn groups_after<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<GroupEntry>> {
        after(&self.group_names, name).filter_map(|id| self.groups.get(id))
    }

    /// How many users a group has.
    pub fn members(&self, group: GroupId) -> usize {
        self.users.values().filter(|user| user.group == group).count()
    }

    pub(super) fn put_user(&mut self, user: UserEntry) {
        self.user_names.insert(user.name.clone(), user.id);
        self.users.insert(user.id, Arc::new(user));
    }

    pub(super) fn put_group(&mut self, group: GroupEntry) {
        self.group_names.insert(group.name.clone(), group.id);
        self.groups.insert(group.id, Arc::new(group));
    }

    /// The next free number of a user; numbers are never given again.
    pub(super) fn next_user(&self) -> UserId {
        UserId(self.users.keys().next_back().map_or(1, |last| last.0 + 1))
    }

    /// The next free number of a group.
    pub(super) fn next_group(&self) -> GroupId {
        GroupId(self.groups.keys().next_back().map_or(1, |last| last.0 + 1))
    }
}

fn after<'a, V>(names: &'a BTreeMap<String, V>, name: &str) -> impl Iterator<Item = &'a V> {
    use std::ops::Bound::{Excluded, Unbounded};
    names.range::<str, _>((Excluded(name), Unbounded)).map(|(_, value)| value)
}

impl From<GroupRow> for GroupEntry {
    fn from(row: GroupRow) -> GroupEntry {
        let GroupRow { id, name, level, storage_bytes, created } = row;
        GroupEntry { id: GroupId(id), name, level, storage_bytes, created }
    }
}

impl GroupEntry {
    pub(super) fn row(&self) -> GroupRow {
        GroupRow {
            id: self.id.0,
            name: self.name.clone(),
            level: self.level,
            storage_bytes: self.storage_bytes,
            created: self.created,
        }
    }
}

/// A role as rows have it.
pub fn role(number: u8) -> Option<Role> {
    match number {
        0 => Some(Role::User),
        1 => Some(Role::GroupAdministrator),
        2 => Some(Role::Administrator),
        _ => None,
    }
}

impl UserEntry {
    fn read(row: UserRow) -> Result<UserEntry, StoreError> {
        let role = role(row.role).ok_or_else(|| StoreError::Damaged {
            what: format!("account `{}`", row.name),
            problem: format!("{} is no role", row.role),
        })?;
        Ok(UserEntry {
            id: UserId(row.id),
            name: row.name,
            group: GroupId(row.group),
            role,
            level: row.level,
            enabled: row.enabled,
            password: row.password,
            one_time: row.one_time,
            storage_bytes: row.storage_bytes,
            created: row.created,
        })
    }

    pub(super) fn row(&self) -> UserRow {
        UserRow {
            id: self.id.0,
            name: self.name.clone(),
            group: self.group.0,
            role: match self.role {
                Role::User => 0,
                Role::GroupAdministrator => 1,
                Role::Administrator => 2,
            },
            level: self.level,
            enabled: self.enabled,
            password: self.password.clone(),
            one_time: self.one_time,
            storage_bytes: self.storage_bytes,
            created: self.created,
        }
    }
}
