//! What ended jobs left, counted for their owners' quotas and for retention.
//!
//! The ends of jobs are read from the tables, and how far they were read is kept with what was
//! found: whatever a crash interrupts is found again. Many jobs are counted and written together,
//! since a site may end a thousand in a second and the disk is not to be asked for each.

use std::path::PathBuf;
use std::time::Duration;

use era_core::units::{JobId, UserId};
use era_store::files::{FilesError, Outputs};
use era_store::tables::Tables;
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::files::outputs;

/// How long ends are gathered.
const GATHER: Duration = Duration::from_secs(2);
/// Ends that are looked at together.
const AT_A_TIME: u32 = 1_000;

/// Counts until it is stopped.
pub(super) async fn follow(app: App, stop: CancellationToken) {
    let mut seen = 0;
    loop {
        let applied = app.feed.applied();
        if applied > seen {
            match settle(&app).await {
                Ok(()) => seen = applied,
                Err(error) => tracing::warn!(%error, "what jobs left could not be counted"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(GATHER) => {}
        }
    }
}

/// Counts what all jobs left that ended since the last time.
pub(crate) async fn settle(app: &App) -> Result<(), FilesError> {
    let tables = Tables::new(&app.store);
    let mut cursor = app.files.outputs_cursor().await?;
    loop {
        let ends = tables.ends(cursor, AT_A_TIME).await?;
        let Some((last, ..)) = ends.last() else { return Ok(()) };
        cursor = *last;
        let folders: Vec<_> = ends
            .iter()
            .map(|(_, job, owner)| (*job, *owner, app.files.job_folder(*job).join("outputs")))
            .collect();
        let left = tokio::task::spawn_blocking(move || count(folders)).await.unwrap_or_default();
        app.files.record_outputs(&left, cursor).await?;
    }
}

/// What there is in these folders. One that cannot be read is told of and passed over, so that it
/// does not stand in the way of all others.
fn count(folders: Vec<(JobId, UserId, PathBuf)>) -> Vec<Outputs> {
    let counted =
        folders.into_iter().filter_map(|(job, account, folder)| match outputs::size(&folder) {
            Ok((0, _)) => None,
            Ok((files, bytes)) => Some(Outputs { job, account, files, bytes }),
            Err(error) => {
                tracing::warn!(job = job.0, ?error, "what a job left cannot be counted");
                None
            }
        });
    counted.collect()
}
