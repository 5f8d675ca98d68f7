//! Webhooks and their outbox.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::AccountTables;
use super::users::{big, number};
use crate::StoreError;

/// The row beside the journal's cursor that has the last number that a webhook was given.
const LAST_NUMBER: i64 = 2;

/// An address that is told when something happens.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRow {
    /// Its number; given when it is written.
    pub id: u64,
    pub user: u32,
    pub url: String,
    /// About what, joined by commas.
    pub events: String,
    /// In which pool a price is looked at.
    pub pool: Option<String>,
    /// Below what it is told, in micro-credits.
    pub below: Option<i64>,
    /// Whether it was below at the last look.
    pub was_below: bool,
    /// The secret of its signatures.
    pub secret: String,
    /// What the last delivery came to.
    pub last: Option<String>,
    /// Since when, in milliseconds.
    pub created: i64,
}

/// Something that is still to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its number; given when it is written.
    pub id: u64,
    pub webhook: u64,
    /// What it is about: the same is told once.
    pub origin: String,
    /// What is told.
    pub body: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried next, in milliseconds.
    pub due: i64,
    /// Since when it waits.
    pub created: i64,
}

fn webhook(row: &AnyRow) -> Result<WebhookRow, StoreError> {
    Ok(WebhookRow {
        id: number(row, "id")?,
        user: number(row, "user_id")?,
        url: row.try_get("url")?,
        events: row.try_get("events")?,
        pool: row.try_get("pool")?,
        below: row.try_get("below")?,
        was_below: number::<i64>(row, "was_below")? != 0,
        secret: row.try_get("secret")?,
        last: row.try_get("last")?,
        created: row.try_get("created")?,
    })
}

fn delivery(row: &AnyRow) -> Result<DeliveryRow, StoreError> {
    Ok(DeliveryRow {
        id: number(row, "id")?,
        webhook: number(row, "webhook_id")?,
        origin: row.try_get("origin")?,
        body: row.try_get("body")?,
        tries: number(row, "tries")?,
        due: row.try_get("due")?,
        created: row.try_get("created")?,
    })
}

impl AccountTables {
    pub async fn webhooks(&self) -> Result<Vec<WebhookRow>, StoreError> {
        let rows = sqlx::query("SELECT * FROM webhooks ORDER BY id")
            .fetch_all(self.database.readers())
            .await?;
        rows.iter().map(webhook).collect()
    }

    /// A user's webhooks after a number, in order.
    pub async fn webhooks_of(
        &self,
        user: u32,
        after: u64,
        most: u32,
    ) -> Result<Vec<WebhookRow>, StoreError> {
        let rows =
            sqlx::query("SELECT * FROM webhooks WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?")
                .bind(i64::from(user))
                .bind(big(after))
                .bind(i64::from(most))
                .fetch_all(self.database.readers())
                .await?;
        rows.iter().map(webhook).collect()
    }

    pub async fn webhook(&self, id: u64) -> Result<Option<WebhookRow>, StoreError> {
        let row = sqlx::query("SELECT * FROM webhooks WHERE id = ?")
            .bind(big(id))
            .fetch_optional(self.database.readers())
            .await?;
        row.as_ref().map(webhook).transpose()
    }

    /// Adds a webhook and gives its number.
    pub async fn add_webhook(&self, row: &WebhookRow) -> Result<u64, StoreError> {
        let mut all = self.database.writer().begin().await?;
        // Whoever keeps a number must not find another's webhook by it.
        let next = sqlx::query(
            "SELECT COALESCE(MAX(id), 0) + 1 AS id FROM (SELECT id FROM webhooks \
             UNION ALL SELECT seq AS id FROM webhook_cursor WHERE id = ?) given",
        )
        .bind(LAST_NUMBER)
        .fetch_one(&mut *all)
        .await?;
        let id: u64 = number(&next, "id")?;
        sqlx::query(
            "INSERT INTO webhook_cursor (id, seq) VALUES (?, ?) \
             ON CONFLICT (id) DO UPDATE SET seq = excluded.seq",
        )
        .bind(LAST_NUMBER)
        .bind(big(id))
        .execute(&mut *all)
        .await?;
        sqlx::query(
            "INSERT INTO webhooks (id, user_id, url, events, pool, below, was_below, secret, \
             last, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(big(id))
        .bind(i64::from(row.user))
        .bind(&row.url)
        .bind(&row.events)
        .bind(row.pool.as_deref())
        .bind(row.below)
        .bind(i64::from(row.was_below))
        .bind(&row.secret)
        .bind(row.last.as_deref())
        .bind(row.created)
        .execute(&mut *all)
        .await?;
        all.commit().await?;
        Ok(id)
    }

    /// Removes a webhook and whatever it was still to be told.
    pub async fn remove_webhook(&self, id: u64) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        sqlx::query("DELETE FROM webhook_outbox WHERE webhook_id = ?")
            .bind(big(id))
            .execute(&mut *all)
            .await?;
        sqlx::query("DELETE FROM webhooks WHERE id = ?").bind(big(id)).execute(&mut *all).await?;
        all.commit().await?;
        Ok(())
    }

    /// How far the journal was looked through; the first time, this number is noted.
    pub async fn webhook_cursor(&self, first: u64) -> Result<u64, StoreError> {
        let row = sqlx::query("SELECT seq FROM webhook_cursor WHERE id = 1")
            .fetch_optional(self.database.readers())
            .await?;
        if let Some(row) = row {
            return number(&row, "seq");
        }
        sqlx::query("INSERT INTO webhook_cursor (id, seq) VALUES (1, ?)")
            .bind(big(first))
            .execute(self.database.writer())
            .await?;
        Ok(first)
    }

    /// Puts deliveries into the outbox, and notes with them how far the journal was looked
    /// through: neither without the other, so that nothing is missed or told twice.
    pub async fn post(
        &self,
        deliveries: &[DeliveryRow],
        cursor: Option<u64>,
    ) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        for delivery in deliveries {
            sqlx::query(
                "INSERT INTO webhook_outbox (id, webhook_id, origin, body, tries, due, created) \
                 SELECT COALESCE((SELECT MAX(id) FROM webhook_outbox), 0) + 1, id, ?, ?, ?, ?, ? \
                 FROM webhooks WHERE id = ? AND NOT EXISTS \
                 (SELECT 1 FROM webhook_outbox WHERE webhook_id = ? AND origin = ?)",
            )
            .bind(&delivery.origin)
            .bind(&delivery.body)
            .bind(i64::from(delivery.tries))
            .bind(delivery.due)
            .bind(delivery.created)
            .bind(big(delivery.webhook))
            .bind(big(delivery.webhook))
            .bind(&delivery.origin)
            .execute(&mut *all)
            .await?;
        }
        if let Some(seq) = cursor {
            sqlx::query("UPDATE webhook_cursor SET seq = ? WHERE id = 1")
                .bind(big(seq))
                .execute(&mut *all)
                .await?;
        }
        all.commit().await?;
        Ok(())
    }

    /// Notes whether a price was below at the last look.
    pub async fn set_was_below(&self, id: u64, was_below: bool) -> Result<(), StoreError> {
        sqlx::query("UPDATE webhooks SET was_below = ? WHERE id = ?")
            .bind(i64::from(was_below))
            .bind(big(id))
            .execute(self.database.writer())
            .await?;
        Ok(())
    }

    /// Webhooks for which something waits, by when the first of it is due.
    pub async fn webhooks_due(&self) -> Result<Vec<(u64, i64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT webhook_id AS id, MIN(due) AS due FROM webhook_outbox GROUP BY webhook_id \
             ORDER BY MIN(due), webhook_id",
        )
        .fetch_all(self.database.readers())
        .await?;
        rows.iter().map(|row| Ok((number(row, "id")?, row.try_get("due")?))).collect()
    }

    /// What is to be told to a webhook first.
    pub async fn first_due(&self, webhook: u64) -> Result<Option<DeliveryRow>, StoreError> {
        let row = sqlx::query(
            "SELECT * FROM webhook_outbox WHERE webhook_id = ? ORDER BY due, id LIMIT 1",
        )
        .bind(big(webhook))
        .fetch_optional(self.database.readers())
        .await?;
        row.as_ref().map(delivery).transpose()
    }

    /// What waits for a webhook since before this is not told any more.
    pub async fn give_up(&self, webhook: u64, before: i64) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM webhook_outbox WHERE webhook_id = ? AND created < ?")
            .bind(big(webhook))
            .bind(before)
            .execute(self.database.writer())
            .await?;
        Ok(())
    }

    /// A delivery is over: it arrived, or it was given up.
    pub async fn delivered(&self, row: &DeliveryRow, came_to: &str) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        sqlx::query("DELETE FROM webhook_outbox WHERE id = ?")
            .bind(big(row.id))
            .execute(&mut *all)
            .await?;
        sqlx::query("UPDATE webhooks SET last = ? WHERE id = ?")
            .bind(came_to)
            .bind(big(row.webhook))
            .execute(&mut *all)
            .await?;
        all.commit().await?;
        Ok(())
    }

    /// A delivery failed and is tried again at `due`.
    pub async fn try_again(
        &self,
        row: &DeliveryRow,
        due: i64,
        came_to: &str,
    ) -> Result<(), StoreError> {
        let mut all = self.database.writer().begin().await?;
        sqlx::query("UPDATE webhook_outbox SET tries = tries + 1, due = ? WHERE id = ?")
            .bind(due)
            .bind(big(row.id))
            .execute(&mut *all)
            .await?;
        sqlx::query("UPDATE webhooks SET last = ? WHERE id = ?")
            .bind(came_to)
            .bind(big(row.webhook))
            .execute(&mut *all)
            .await?;
        all.commit().await?;
        Ok(())
    }
}
