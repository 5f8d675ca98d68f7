//! The catalogue of images.

use sqlx::Row;

use super::AccountTables;
use super::revision::{Counted, changed};
use crate::StoreError;
use crate::files::contains;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRow {
    /// Its name in the catalogue.
    pub name: String,
    /// All about it, as JSON that the caller gives a meaning.
    pub details: String,
    pub published_by: String,
    /// When, in milliseconds.
    pub published: i64,
}

impl AccountTables {
    /// Images after a name, in order.
    pub async fn images_after(&self, after: &str, most: u32) -> Result<Vec<ImageRow>, StoreError> {
        self.images_with("", after, most).await
    }

    /// Images after a name, in order, whose own has a text in it.
    pub async fn images_with(
        &self,
        text: &str,
        after: &str,
        most: u32,
    ) -> Result<Vec<ImageRow>, StoreError> {
        let sql = "SELECT * FROM images WHERE name > ? AND lower(name) LIKE lower(?) ESCAPE '!' \
                   ORDER BY name LIMIT ?";
        let rows = sqlx::query(sql)
            .bind(after)
            .bind(contains(text))
            .bind(i64::from(most))
            .fetch_all(self.database.readers())
            .await?;
        rows.iter().map(image).collect()
    }

    pub async fn image(&self, name: &str) -> Result<Option<ImageRow>, StoreError> {
        let row = sqlx::query("SELECT * FROM images WHERE name = ?")
            .bind(name)
            .fetch_optional(self.database.readers())
            .await?;
        row.as_ref().map(image).transpose()
    }

    /// Publishes an image, or another one under its name.
    pub async fn put_image(&self, image: &ImageRow) -> Result<(), StoreError> {
        let mut both = self.database.writer().begin().await?;
        sqlx::query("DELETE FROM images WHERE name = ?")
            .bind(&image.name)
            .execute(&mut *both)
            .await?;
        sqlx::query(
            "INSERT INTO images (name, details, published_by, published) VALUES (?, ?, ?, ?)",
        )
        .bind(&image.name)
        .bind(&image.details)
        .bind(&image.published_by)
        .bind(image.published)
        .execute(&mut *both)
        .await?;
        changed(Counted::Images, &mut both).await?;
        both.commit().await?;
        Ok(())
    }

    /// Takes an image out of the catalogue.
    pub async fn remove_image(&self, name: &str) -> Result<(), StoreError> {
        let remove = sqlx::query("DELETE FROM images WHERE name = ?").bind(name);
        self.change_of(Counted::Images, remove).await
    }
}

fn image(row: &sqlx::any::AnyRow) -> Result<ImageRow, StoreError> {
    Ok(ImageRow {
        name: row.try_get("name")?,
        details: row.try_get("details")?,
        published_by: row.try_get("published_by")?,
        published: row.try_get("published")?,
    })
}
