//! Users and groups.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::AccountTables;
use crate::StoreError;

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// Its number, the same as in the core.
    pub id: u32,
    pub name: String,
    /// How much it counts in policies.
    pub level: u8,
    /// Most bytes of data, where there is a limit.
    pub storage_bytes: Option<u64>,
    /// Since when, in milliseconds.
    pub created: i64,
}

/// A user.
#[derive(Clone, PartialEq, Eq)]
pub struct UserRow {
    /// Its number, the same as in the core.
    pub id: u32,
    pub name: String,
    pub group: u32,
    /// What it may do, as a number that the caller gives a meaning.
    pub role: u8,
    /// How much it counts in policies.
    pub level: u8,
    /// Whether it may log in.
    pub enabled: bool,
    /// The hash of its password.
    pub password: String,
    /// Whether that must be changed at the first login.
    pub one_time: bool,
    /// Most bytes of data, where there is a limit.
    pub storage_bytes: Option<u64>,
    /// Since when, in milliseconds.
    pub created: i64,
}

/// Numbers are kept as BIGINT; one that does not fit was not written by this program.
pub(super) fn number<T: TryFrom<i64>>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    let value: i64 = row.try_get(column)?;
    T::try_from(value).map_err(|_| StoreError::Damaged {
        what: format!("column `{column}`"),
        problem: format!("{value} is out of range"),
    })
}

/// The same for a number that may be absent.
pub(super) fn maybe<T: TryFrom<i64>>(row: &AnyRow, column: &str) -> Result<Option<T>, StoreError> {
    match row.try_get::<Option<i64>, _>(column)? {
        Some(_) => number(row, column).map(Some),
        None => Ok(None),
    }
}

/// What cannot be written because it is larger than a BIGINT is written as the largest.
pub(super) fn big(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn group(row: &AnyRow) -> Result<GroupRow, StoreError> {
    Ok(GroupRow {
        id: number(row, "id")?,
        name: row.try_get("name")?,
        level: number(row, "level")?,
        storage_bytes: maybe(row, "storage_bytes")?,
        created: row.try_get("created")?,
    })
}

fn user(row: &AnyRow) -> Result<UserRow, StoreError> {
    Ok(UserRow {
        id: number(row, "id")?,
        name: row.try_get("name")?,
        group: number(row, "group_id")?,
        role: number(row, "role")?,
        level: number(row, "level")?,
        enabled: number::<i64>(row, "enabled")? != 0,
        password: row.try_get("password")?,
        one_time: number::<i64>(row, "one_time")? != 0,
        storage_bytes: maybe(row, "storage_bytes")?,
        created: row.try_get("created")?,
    })
}

impl AccountTables {
    /// All groups, by number.
    pub async fn groups(&self) -> Result<Vec<GroupRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM account_groups ORDER BY id")
            .fetch_all(self.database.readers())
            .await?;
        rows.iter().map(group).collect()
    }

    /// All users, by number.
    pub async fn users(&self) -> Result<Vec<UserRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM account_users ORDER BY id")
            .fetch_all(self.database.readers())
            .await?;
        rows.iter().map(user).collect()
    }

    /// What the account of a name may do, if there is one.
    pub async fn role_of(&self, name: &str) -> Result<Option<u8>, StoreError> {
        let row = sqlx::query("SELECT role FROM account_users WHERE name = ?")
            .bind(name)
            .fetch_optional(self.database.readers())
            .await?;
        row.as_ref().map(|row| number(row, "role")).transpose()
    }

    /// Adds a group. A name that is taken is a database error: look first.
    pub async fn add_group(&self, group: &GroupRow) -> Result<(), StoreError> {
        let change = sqlx::query(
            "INSERT INTO account_groups (id, name, level, storage_bytes, created) \
             VALUES (?, ?, ?, ?, ?)",
        )
        .bind(i64::from(group.id))
        .bind(&group.name)
        .bind(i64::from(group.level))
        .bind(group.storage_bytes.map(big))
        .bind(group.created);
        self.change(change).await
    }

    /// Writes a group's level and limit anew.
    pub async fn set_group(&self, group: &GroupRow) -> Result<(), StoreError> {
        let change =
            sqlx::query("UPDATE account_groups SET level = ?, storage_bytes = ? WHERE id = ?")
                .bind(i64::from(group.level))
                .bind(group.storage_bytes.map(big))
                .bind(i64::from(group.id));
        self.change(change).await
    }

    /// Adds a user. A name that is taken is a database error: look first.
    pub async fn add_user(&self, user: &UserRow) -> Result<(), StoreError> {
        let change = sqlx::query(
            "INSERT INTO account_users (id, name, group_id, role, level, enabled, password, \
             one_time, storage_bytes, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(i64::from(user.id))
        .bind(&user.name)
        .bind(i64::from(user.group))
        .bind(i64::from(user.role))
        .bind(i64::from(user.level))
        .bind(i64::from(user.enabled))
        .bind(&user.password)
        .bind(i64::from(user.one_time))
        .bind(user.storage_bytes.map(big))
        .bind(user.created);
        self.change(change).await
    }

    /// Writes all of a user but its number, its name and its age anew.
    pub async fn set_user(&self, user: &UserRow) -> Result<(), StoreError> {
        let change = sqlx::query(
            "UPDATE account_users SET group_id = ?, role = ?, level = ?, enabled = ?, \
             password = ?, one_time = ?, storage_bytes = ? WHERE id = ?",
        )
        .bind(i64::from(user.group))
        .bind(i64::from(user.role))
        .bind(i64::from(user.level))
        .bind(i64::from(user.enabled))
        .bind(&user.password)
        .bind(i64::from(user.one_time))
        .bind(user.storage_bytes.map(big))
        .bind(i64::from(user.id));
        self.change(change).await
    }
}
