//! The catalogue of images as a Redis hash, for those who would rather look there: by name, each
//! as the API tells it.
//!
//! The database has the catalogue, and counts its changes in the transactions that make them; here
//! it is looked for a change twice a second, whichever server made it. The hash is written
//! anew in one step, so nobody reads half of a catalogue, and again from time to time, in case
//! Redis lost its memory.

use std::collections::BTreeMap;
use std::time::Duration;

use era_api::image::Image;
use era_cloud::celery::fence::LeaseFence;
use era_store::accounts::AccountTables;
use tokio::time::Instant;

use super::{AGAIN, EVERY, FeedError};
use crate::images::image;

/// The hash, and the channel that tells of a change.
pub const KEY: &str = "era:images";
/// How often it is looked whether there was a change.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Images that are read at a time.
const AT_A_TIME: u32 = 500;

/// Keeps the hash as the catalogue is.
pub(super) async fn keep(rows: &AccountTables, pen: &LeaseFence) -> ! {
    let mut told: Option<(u64, Instant)> = None;
    loop {
        let still = told.filter(|(_, at)| at.elapsed() < EVERY).map(|(revision, _)| revision);
        match look(rows, pen, still).await {
            Ok(Some(revision)) => told = Some((revision, Instant::now())),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "the catalogue of images waits to be mirrored");
                told = None;
                tokio::time::sleep(AGAIN).await;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Writes the hash if it is not of the revision that there is now; the revision that was written.
pub(super) async fn look(
    rows: &AccountTables,
    pen: &LeaseFence,
    still: Option<u64>,
) -> Result<Option<u64>, FeedError> {
    let revision = rows.images_revision().await?;
    if still == Some(revision) {
        return Ok(None);
    }
    let images = all(rows).await?;
    // What changed while it was read is read again, whole.
    if rows.images_revision().await? != revision {
        return Ok(None);
    }
    let mut whole = redis::pipe();
    whole.cmd("DEL").arg(KEY);
    for (name, image) in &images {
        whole.cmd("HSET").arg(KEY).arg(name).arg(serde_json::json!(image).to_string());
    }
    whole.cmd("PUBLISH").arg(KEY).arg("changed");
    pen.write("take the catalogue of images", &whole).await?;
    Ok(Some(revision))
}

async fn all(rows: &AccountTables) -> Result<BTreeMap<String, Image>, FeedError> {
    let mut images = BTreeMap::new();
    loop {
        let after = images.last_key_value().map_or("", |(name, _): (&String, _)| name.as_str());
        let page = rows.images_after(after, AT_A_TIME).await?;
        let last = page.len() < AT_A_TIME as usize;
        for row in page {
            images.insert(row.name.clone(), image(row)?);
        }
        if last {
            return Ok(images);
        }
    }
}
