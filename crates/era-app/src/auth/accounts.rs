//! Making and changing accounts and groups: first in the core, which may refuse, then here.
//!
//! A crash in between leaves the core with a number that nobody has yet; the next account gets
//! that number, and the core is told of it anew.

use std::sync::Arc;

use era_api::account::{NewGroup, NewUser, Role, UserEdit};
use era_core::accounts::{self as core, Actor};
use era_core::ledger::Account;
use era_core::quota::Quota;
use era_core::refusal::{QuotaScope, Refusal};
use era_core::units::{GroupId, Money, Name, UserId};
use era_core::{Command, Reply};
use era_store::StoreError;
use era_store::note::Note;
use serde_json::value::RawValue;

use super::Auth;
use super::directory::{AccountDirectory, GroupEntry, UserEntry};
use super::password::{self, BadPassword, HashError};
use crate::driver::{Handle, Unanswered};

/// The group of those for whom no other is named.
pub(super) const DEFAULT_GROUP: &str = "default";

/// Why an account was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// It cannot be called that.
    #[error(
        "`{0}` is no name of an account: use 1 to 63 of a-z, 0-9, `.`, `_`, `-`, the first a letter or digit"
    )]
    Name(String),
    /// The name is taken.
    #[error("{what} `{name}` exists already: choose another name")]
    Taken {
        /// `user` or `group`.
        what: &'static str,
        name: String,
    },
    /// Nobody has this name.
    #[error("there is no {what} `{name}`: list them to see their names")]
    Unknown {
        /// `user` or `group`.
        what: &'static str,
        name: String,
    },
    /// Accounts would not be kept apart.
    #[error(
        "without root, or elsewhere than on Linux, nothing keeps the jobs of accounts apart, so that \
         each can read and change what all others have: start the server as root on Linux, or, if \
         all of them may, with --insecure-shared-user"
    )]
    SharedUser,
    /// Nobody would be left to administrate.
    #[error("`{0}` is the last administrator who may log in: make another one first")]
    LastAdministrator(String),
    /// The password cannot be chosen.
    #[error(transparent)]
    Password(#[from] BadPassword),
    /// The present password is another one.
    #[error("this is not the present password: check it, or ask an administrator for a new one")]
    WrongPassword,
    /// Too many wrong passwords.
    #[error("too many wrong passwords: try again in {} s", .wait_ms.div_euclid(1000) + 1)]
    Throttled {
        /// For how long.
        wait_ms: i64,
    },
    /// The core refused.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// The core did not answer.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// The password could not be hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Asks the core, and takes a refusal for an error.
pub(super) async fn ask(driver: &Handle, command: Command) -> Result<(), AccountError> {
    ask_noting(driver, command, None).await
}

/// The same, with the names that the tables want to know.
pub(super) async fn ask_noting(
    driver: &Handle,
    command: Command,
    note: Option<Box<RawValue>>,
) -> Result<(), AccountError> {
    match driver.ask(command, note).await?.reply {
        Reply::Refused { refusal, .. } => Err(AccountError::Refused(Box::new(refusal))),
        _ => Ok(()),
    }
}

/// Names go into paths, folders and the core: plain lower-case words.
pub(super) fn good_name(name: &str) -> Result<(), AccountError> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if first && name.len() <= 63 && name.bytes().all(plain) {
        return Ok(());
    }
    // What is shown of it has no control characters, and an end.
    let shown = name.chars().take(63).map(|c| if c.is_control() { '?' } else { c }).collect();
    Err(AccountError::Name(shown))
}

/// What an account and its group are called, as the journal keeps it beside the core's numbers.
pub(super) fn names(user: Option<&str>, group: &str) -> Option<Box<RawValue>> {
    let user = user.map(str::to_owned);
    let note = Note { user, group: Some(group.to_owned()), ..Note::default() };
    serde_json::value::to_raw_value(&note).ok()
}

/// A user as the core knows it.
pub(super) fn for_core(user: &UserEntry, quota: Quota) -> core::User {
    core::User {
        id: user.id,
        group: user.group,
        level: user.level,
        group_admin: user.role == Role::GroupAdministrator,
        quota,
    }
}

impl Auth {
    /// Makes a group.
    pub async fn add_group(
        &self,
        driver: &Handle,
        wanted: &NewGroup,
        quota: Quota,
    ) -> Result<Arc<GroupEntry>, AccountError> {
        let _turn = self.turn().await?;
        self.add_group_alone(driver, wanted, quota).await
    }

    async fn add_group_alone(
        &self,
        driver: &Handle,
        wanted: &NewGroup,
        quota: Quota,
    ) -> Result<Arc<GroupEntry>, AccountError> {
        good_name(&wanted.name)?;
        let directory = self.directory();
        if directory.group_named(&wanted.name).is_some() {
            return Err(AccountError::Taken { what: "group", name: wanted.name.clone() });
        }
        let group = GroupEntry {
            id: directory.next_group(),
            name: wanted.name.clone(),
            level: wanted.level,
            storage_bytes: wanted.quota.storage_bytes,
            created: self.now_ms(),
        };
        let core = core::Group { id: group.id, level: group.level, quota };
        let note = names(None, &group.name);
        ask_noting(driver, Command::PutGroup { group: core }, note).await?;
        self.rows.add_group(&group.row()).await?;
        self.publish(|directory| directory.put_group(group.clone()));
        Ok(Arc::new(group))
    }

    /// Makes an account, and its group where that does not exist. Gives the one-time password
    /// where one was made.
    pub async fn add_user(
        &self,
        driver: &Handle,
        wanted: &NewUser,
    ) -> Result<(Arc<UserEntry>, Option<String>), AccountError> {
        good_name(&wanted.name)?;
        if let Some(chosen) = &wanted.password {
            password::acceptable(chosen, &wanted.name)?;
        }
        let _turn = self.turn().await?;
        if self.directory().user_named(&wanted.name).is_some() {
            return Err(AccountError::Taken { what: "user", name: wanted.name.clone() });
        }
        self.admits(&wanted.name)?;
        let made = match &wanted.password {
            Some(_) => None,
            None => Some(password::one_time()?),
        };
        let plain = wanted.password.clone().or_else(|| made.clone()).unwrap_or_default();
        let hash = self.hasher.hash(plain).await?;
        let group = self.group_or_new(driver, wanted.group.as_deref()).await?;
        let user = UserEntry {
            id: self.directory().next_user(),
            name: wanted.name.clone(),
            group,
            role: wanted.role,
            level: wanted.level,
            enabled: true,
            password: hash,
            one_time: made.is_some(),
            storage_bytes: None,
            created: self.now_ms(),
        };
        let core = for_core(&user, Quota::UNLIMITED);
        let note = names(Some(&user.name), &self.directory().group_name(group));
        ask_noting(driver, Command::PutUser { user: core }, note).await?;
        // What a number holds that nobody has yet is left from a start that went wrong here.
        let held = driver.snapshot().ledger().balance(Account::Wallet(user.id));
        let missing = Money(wanted.credits.0.saturating_sub(held.0));
        if missing != Money::ZERO {
            grant(driver, user.id, missing).await?;
        }
        self.rows.add_user(&user.row()).await?;
        self.publish(|directory| directory.put_user(user.clone()));
        Ok((Arc::new(user), made))
    }

    /// Refuses a second account where their jobs could not be kept apart.
    fn admits(&self, name: &str) -> Result<(), AccountError> {
        let directory = self.directory();
        let mut others = directory.users().filter(|user| user.enabled && user.name != name);
        if self.one && others.next().is_some() {
            return Err(AccountError::SharedUser);
        }
        Ok(())
    }

    async fn group_or_new(
        &self,
        driver: &Handle,
        name: Option<&str>,
    ) -> Result<GroupId, AccountError> {
        let name = name.unwrap_or(DEFAULT_GROUP);
        if let Some(group) = self.directory().group_named(name) {
            return Ok(group.id);
        }
        let wanted = NewGroup { name: name.to_owned(), level: 0, quota: Default::default() };
        Ok(self.add_group_alone(driver, &wanted, Quota::UNLIMITED).await?.id)
    }

    /// Changes an account. Gives the one-time password where a new one was asked for.
    pub async fn edit_user(
        &self,
        driver: &Handle,
        name: &str,
        edit: &UserEdit,
    ) -> Result<(Arc<UserEntry>, Option<String>), AccountError> {
        let _turn = self.turn().await?;
        let directory = self.directory();
        let before = named(&directory, name)?;
        let mut user = UserEntry::clone(&before);
        if let Some(group) = &edit.group {
            let unknown = || AccountError::Unknown { what: "group", name: group.clone() };
            user.group = directory.group_named(group).ok_or_else(unknown)?.id;
        }
        user.role = edit.role.unwrap_or(user.role);
        user.level = edit.level.unwrap_or(user.level);
        user.enabled = edit.enabled.unwrap_or(user.enabled);
        stays_administrable(&directory, &before, &user)?;
        if user.enabled && !before.enabled {
            self.admits(name)?;
        }
        let made = match edit.reset_password {
            true => Some(password::one_time()?),
            false => None,
        };
        if let Some(plain) = &made {
            user.password = self.hasher.hash(plain.clone()).await?;
            user.one_time = true;
        }
        let quota = driver.snapshot().accounts().user(user.id).map(|u| u.quota).unwrap_or_default();
        let (was, is) = (for_core(&before, quota), for_core(&user, quota));
        if was != is {
            let note = names(Some(&user.name), &directory.group_name(user.group));
            ask_noting(driver, Command::PutUser { user: is }, note).await?;
        }
        self.write_user(user.clone()).await?;
        // Less than before must not live on in a token.
        if !user.enabled || user.role < before.role {
            self.end_all(user.id).await?;
        } else if made.is_some() {
            self.end_logins(user.id, None).await?;
        }
        Ok((Arc::new(user), made))
    }

    /// Changes one's own password: all other logins end, and this one loses its limits.
    pub async fn change_password(
        &self,
        user: UserId,
        session: &str,
        old: &str,
        new: &str,
        from: std::net::IpAddr,
    ) -> Result<(), AccountError> {
        let directory = self.directory();
        let entry = directory.user(user).cloned();
        let unknown = || AccountError::Unknown { what: "user", name: user.0.to_string() };
        let entry = entry.ok_or_else(unknown)?;
        let throttled = self.throttle(|t| t.attempt(&entry.name, from, self.now_ms()));
        throttled.map_err(|wait_ms| AccountError::Throttled { wait_ms })?;
        let stored = Some(entry.password.clone());
        if !self.hasher.check(old.to_owned(), stored).await? {
            return Err(AccountError::WrongPassword);
        }
        self.throttle(|t| t.right(&entry.name, from));
        password::acceptable(new, &entry.name)?;
        if old == new {
            return Err(BadPassword::Guessable.into());
        }
        let hash = self.hasher.hash(new.to_owned()).await?;
        let _turn = self.turn().await?;
        let mut changed = UserEntry::clone(&*named(&self.directory(), &entry.name)?);
        changed.password = hash;
        changed.one_time = false;
        self.write_user(changed).await?;
        self.end_logins(user, Some(session)).await?;
        Ok(())
    }

    /// Sets what a user may use; the core decides whether `by` may.
    pub async fn set_user_quota(
        &self,
        driver: &Handle,
        by: Actor,
        name: &str,
        quota: Quota,
        storage_bytes: Option<u64>,
    ) -> Result<Arc<UserEntry>, AccountError> {
        let _turn = self.turn().await?;
        let mut user = UserEntry::clone(&*named(&self.directory(), name)?);
        set_quota(driver, by, QuotaScope::User(user.id), quota).await?;
        if user.storage_bytes != storage_bytes {
            user.storage_bytes = storage_bytes;
            self.write_user(user.clone()).await?;
        }
        Ok(Arc::new(user))
    }

    /// Sets what a group may use.
    pub async fn set_group_quota(
        &self,
        driver: &Handle,
        by: Actor,
        name: &str,
        quota: Quota,
        storage_bytes: Option<u64>,
    ) -> Result<Arc<GroupEntry>, AccountError> {
        let _turn = self.turn().await?;
        let directory = self.directory();
        let unknown = || AccountError::Unknown { what: "group", name: name.to_owned() };
        let mut group = GroupEntry::clone(directory.group_named(name).ok_or_else(unknown)?);
        set_quota(driver, by, QuotaScope::Group(group.id), quota).await?;
        if group.storage_bytes != storage_bytes {
            group.storage_bytes = storage_bytes;
            self.rows.set_group(&group.row()).await?;
            self.publish(|directory| directory.put_group(group.clone()));
        }
        Ok(Arc::new(group))
    }

    async fn write_user(&self, user: UserEntry) -> Result<(), StoreError> {
        self.rows.set_user(&user.row()).await?;
        self.publish(|directory| directory.put_user(user));
        Ok(())
    }

    /// Only while it is our turn.
    fn publish(&self, change: impl FnOnce(&mut AccountDirectory)) {
        let mut directory = AccountDirectory::clone(&self.directory.load());
        change(&mut directory);
        self.directory.store(Arc::new(directory));
    }
}

/// Gives credits, or below zero takes them.
pub async fn grant(driver: &Handle, user: UserId, amount: Money) -> Result<(), AccountError> {
    let command = match amount < Money::ZERO {
        false => Command::Grant { user, amount },
        true => Command::Withdraw { user, amount: Money(amount.0.saturating_neg()) },
    };
    ask(driver, command).await
}

async fn set_quota(
    driver: &Handle,
    by: Actor,
    scope: QuotaScope,
    quota: Quota,
) -> Result<(), AccountError> {
    let reason = Name::new("asked").ok();
    ask(driver, Command::SetQuota { by, scope, quota, reason }).await
}

fn named(directory: &AccountDirectory, name: &str) -> Result<Arc<UserEntry>, AccountError> {
    let unknown = || AccountError::Unknown { what: "user", name: name.to_owned() };
    directory.user_named(name).cloned().ok_or_else(unknown)
}

/// A house that nobody can administrate any more could not be mended from outside.
fn stays_administrable(
    directory: &AccountDirectory,
    before: &UserEntry,
    after: &UserEntry,
) -> Result<(), AccountError> {
    let runs = |user: &UserEntry| user.enabled && user.role == Role::Administrator;
    let others = directory.users().any(|user| user.id != before.id && runs(user));
    match runs(before) && !runs(after) && !others {
        true => Err(AccountError::LastAdministrator(before.name.clone())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_refusals_show_no_control_characters() {
        for good in ["ada", "a", "a.b_c-9", "0x", &"a".repeat(63)] {
            assert!(good_name(good).is_ok(), "{good}");
        }
        for bad in ["", "Ada", "-a", "a/b", "a b", "a\n", "é", "../x", &"a".repeat(64)] {
            let refused = good_name(bad).unwrap_err().to_string();
            assert!(!refused.contains('\n'), "{refused}");
        }
    }
}
