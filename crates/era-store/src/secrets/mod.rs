//! Users' secrets: variables that their jobs find in their environment, and that nobody is told
//! again, not even who set them.
//!
//! A row holds a secret sealed for its user and its name; the key is a file of the server's folder
//! and never in the database (decision 0023). Who may set one, and which job gets it, is not known
//! here.

mod key;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use sqlx::Row;

use crate::{Database, Store, StoreError};
pub(crate) use key::KEY_FILE;
use key::{Key, Unopened};

/// The secrets of all users. A clone shares.
#[derive(Clone, Debug)]
pub struct SecretStore {
    database: Database,
    key: PathBuf,
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRow {
    /// What the variable is called.
    pub name: String,
    /// When it was set, in milliseconds.
    pub changed: i64,
}

impl Store {
    pub fn secrets(&self) -> SecretStore {
        SecretStore { database: self.durable().clone(), key: self.folder().join(KEY_FILE) }
    }
}

impl SecretStore {
    /// A user's secrets after a name, in order.
    pub async fn of(
        &self,
        user: u32,
        after: &str,
        most: u32,
    ) -> Result<Vec<SecretRow>, StoreError> {
        let sql = "SELECT name, changed FROM secrets WHERE user_id = ? AND name > ? \
                   ORDER BY name LIMIT ?";
        let rows = sqlx::query(sql)
            .bind(i64::from(user))
            .bind(after)
            .bind(i64::from(most))
            .fetch_all(self.database.readers())
            .await?;
        let row = |row: &sqlx::any::AnyRow| {
            Ok(SecretRow { name: row.try_get("name")?, changed: row.try_get("changed")? })
        };
        rows.iter().map(row).collect()
    }

    /// Sets a secret, or another value for it. Says whether there was room: a user has so many at
    /// most.
    pub async fn set(
        &self,
        user: u32,
        name: &str,
        value: &str,
        now: i64,
        most: u32,
    ) -> Result<bool, StoreError> {
        let sealed = self.key_made().await?.seal(user, name, value);
        let failed = |source| StoreError::File { path: self.key.clone(), source };
        let sealed = sealed.map_err(failed)?;
        let mut all = self.database.writer().begin().await?;
        let others = sqlx::query_scalar::<_, i64>(
            "SELECT COUNT(*) FROM secrets WHERE user_id = ? AND name <> ?",
        );
        let others =
            others.bind(i64::from(user)).bind(name).fetch_one(&mut *all).await?.unsigned_abs();
        if others >= u64::from(most) {
            return Ok(false);
        }
        sqlx::query(
            "INSERT INTO secrets (user_id, name, sealed, changed) VALUES (?, ?, ?, ?) \
             ON CONFLICT (user_id, name) DO UPDATE SET sealed = excluded.sealed, \
             changed = excluded.changed",
        )
        .bind(i64::from(user))
        .bind(name)
        .bind(sealed)
        .bind(now)
        .execute(&mut *all)
        .await?;
        all.commit().await?;
        Ok(true)
    }

    /// Removes a secret. Says whether there was one.
    pub async fn remove(&self, user: u32, name: &str) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM secrets WHERE user_id = ? AND name = ?")
            .bind(i64::from(user))
            .bind(name)
            .execute(self.database.writer())
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// The values of those of these that are there.
    pub async fn open(
        &self,
        user: u32,
        names: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut sealed = Vec::with_capacity(names.len());
        for name in names {
            let text = sqlx::query_scalar::<_, String>(
                "SELECT sealed FROM secrets WHERE user_id = ? AND name = ?",
            );
            let text = text.bind(i64::from(user)).bind(name);
            let text = text.fetch_optional(self.database.readers()).await?;
            sealed.extend(text.map(|text| (name, text)));
        }
        if sealed.is_empty() {
            return Ok(BTreeMap::new());
        }
        let key = self.key().await?;
        let open = |(name, text): (&String, String)| {
            let key = key.as_ref().ok_or(Unopened::NoKey);
            match key.and_then(|key| key.open(user, name, &text)) {
                Ok(value) => Ok((name.clone(), value)),
                Err(why) => Err(self.unopened(name, why)),
            }
        };
        sealed.into_iter().map(open).collect()
    }

    fn unopened(&self, name: &str, why: Unopened) -> StoreError {
        // The way to the key is for whoever keeps the server, and not for the owner of a job.
        tracing::error!(name, key = %self.key.display(), %why, "a secret cannot be opened");
        StoreError::Unopened { name: name.to_owned(), why: why.to_string() }
    }

    async fn key(&self) -> Result<Option<Key>, StoreError> {
        let path = self.key.clone();
        on_disk(&self.key, move || Key::read(&path)).await
    }

    async fn key_made(&self) -> Result<Key, StoreError> {
        let path = self.key.clone();
        on_disk(&self.key, move || Key::read_or_make(&path)).await
    }
}

async fn on_disk<T: Send + 'static>(
    path: &std::path::Path,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other);
    done.flatten().map_err(|source| StoreError::File { path: path.to_owned(), source })
}
