//! Tokens and browser sessions, known by the hash of what was told once.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::AccountTables;
use super::revision::{Counted, changed};
use super::users::number;
use crate::StoreError;

/// A token, or the session of a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its public name.
    pub id: String,
    /// The hash of the secret, in hexadecimal.
    pub hash: String,
    pub user: u32,
    /// What it is for.
    pub label: String,
    /// What it may be used for, as bits that the caller gives a meaning.
    pub scopes: u8,
    /// What a browser has to send back with changes; a plain token has none.
    pub csrf: Option<String>,
    /// Whether it is good for changing the password and nothing else.
    pub limited: bool,
    /// Since when, in milliseconds.
    pub created: i64,
    pub expires: i64,
    /// When it was last used, to the minute.
    pub used: Option<i64>,
}

fn token(row: &AnyRow) -> Result<TokenRow, StoreError> {
    Ok(TokenRow {
        id: row.try_get("id")?,
        hash: row.try_get("hash")?,
        user: number(row, "user_id")?,
        label: row.try_get("label")?,
        scopes: number(row, "scopes")?,
        csrf: row.try_get("csrf")?,
        limited: number::<i64>(row, "limited")? != 0,
        created: row.try_get("created")?,
        expires: row.try_get("expires")?,
        used: row.try_get("used")?,
    })
}

impl AccountTables {
    /// All tokens that are still good.
    pub async fn tokens(&self, now: i64) -> Result<Vec<TokenRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM account_tokens WHERE expires > ?")
            .bind(now)
            .fetch_all(self.database.readers())
            .await?;
        rows.iter().map(token).collect()
    }

    pub async fn add_token(&self, token: &TokenRow) -> Result<(), StoreError> {
        let change = sqlx::query(
            "INSERT INTO account_tokens (id, hash, user_id, label, scopes, csrf, limited, \
             created, expires, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&token.id)
        .bind(&token.hash)
        .bind(i64::from(token.user))
        .bind(&token.label)
        .bind(i64::from(token.scopes))
        .bind(token.csrf.as_deref())
        .bind(i64::from(token.limited))
        .bind(token.created)
        .bind(token.expires)
        .bind(token.used);
        self.change(change).await
    }

    pub async fn remove_token(&self, id: &str) -> Result<(), StoreError> {
        let change = sqlx::query("DELETE FROM account_tokens WHERE id = ?").bind(id);
        self.change(change).await
    }

    /// Removes all tokens of a user, but perhaps one, which is freed of its limits, and those with
    /// this label.
    pub async fn remove_tokens_of(
        &self,
        user: u32,
        but: Option<&str>,
        but_labelled: Option<&str>,
    ) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        sqlx::query("DELETE FROM account_tokens WHERE user_id = ? AND id <> ? AND label <> ?")
            .bind(i64::from(user))
            .bind(but.unwrap_or(""))
            .bind(but_labelled.unwrap_or(""))
            .execute(&mut *all)
            .await?;
        sqlx::query("UPDATE account_tokens SET limited = 0 WHERE user_id = ?")
            .bind(i64::from(user))
            .execute(&mut *all)
            .await?;
        changed(Counted::Accounts, &mut all).await?;
        all.commit().await?;
        Ok(())
    }

    /// Notes when tokens were last used, and forgets those that have expired.
    pub async fn tend_tokens(&self, used: &[(String, i64)], now: i64) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        for (id, at) in used {
            sqlx::query("UPDATE account_tokens SET used = ? WHERE id = ?")
                .bind(*at)
                .bind(id)
                .execute(&mut *all)
                .await?;
        }
        sqlx::query("DELETE FROM account_tokens WHERE expires <= ?")
            .bind(now)
            .execute(&mut *all)
            .await?;
        all.commit().await?;
        Ok(())
    }
}
