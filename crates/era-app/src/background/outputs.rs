//! What ended jobs left, counted for their owners' quotas and for retention.
//!
//! The ends of jobs are read from the tables, and how far they were read is kept with what was
//! found: whatever a crash interrupts is found again. Many jobs are counted and written together,
//! since a site may end a thousand in a second and the disk is not to be asked for each.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use era_core::units::{JobId, UserId};
use era_store::files::{FilesError, Outputs};
use era_store::tables::Tables;
use tokio_util::sync::CancellationToken;

use crate::Services;
use crate::files::outputs;

/// How long ends are gathered.
const GATHER: Duration = Duration::from_secs(2);
/// Ends that are looked at together.
const AT_A_TIME: u32 = 1_000;

/// Counts until it is stopped.
pub(super) async fn follow(app: Services, stop: CancellationToken) {
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
pub(super) async fn settle(app: &Services) -> Result<(), FilesError> {
    let tables = Tables::new(&app.store);
    let mut cursor = app.files.outputs_cursor().await?;
    loop {
        let ends = tables.ends(cursor, AT_A_TIME).await?;
        let Some((last, ..)) = ends.last() else { return Ok(()) };
        cursor = *last;
        let folders: Vec<_> =
            ends.iter().map(|(_, job, owner)| (*job, *owner, app.files.job_folder(*job))).collect();
        let left = tokio::task::spawn_blocking(move || count(folders)).await.unwrap_or_default();
        app.files.record_outputs(&left, cursor).await?;
    }
}

/// What there is in the folders of these jobs, also of those who left nothing: their logs, and the
/// code and data that they used, are kept no longer than others'. A folder that cannot be read is
/// told of and counts as empty, so that it does not stand in the way of all others.
fn count(jobs: Vec<(JobId, UserId, PathBuf)>) -> Vec<Outputs> {
    let counted = jobs.into_iter().map(|(job, account, folder)| {
        let size = |name| {
            outputs::size(&folder.join(name)).unwrap_or_else(|error| {
                tracing::warn!(job = job.0, ?error, "what a job left cannot be counted");
                (0, 0)
            })
        };
        let (files, bytes) = size("outputs");
        let (_, saved) = size("checkpoints");
        Outputs { job, account, files, bytes: bytes.saturating_add(saved) }
    });
    counted.collect()
}

/// Keeps what was handed in with an array for as long as one of its jobs is not over: it is pinned
/// by the first of them.
pub(super) async fn keep_arrays(app: &Services) -> Result<(), FilesError> {
    let state = app.driver.snapshot();
    let live = state.jobs().filter(|job| job.ended.is_none());
    let firsts: BTreeSet<JobId> = live.filter_map(|job| Some(job.array?.first)).collect();
    app.files.keep_longer(&firsts).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_left_nothing_is_counted_and_so_are_checkpoints_and_any_number_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let jobs =
            [1, 2, 3].map(|id: u64| (JobId(id), UserId(1), folder.path().join(id.to_string())));
        for (name, bytes) in [("1/outputs", 3), ("1/checkpoints", 4), ("2/logs", 5)] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("file"), vec![0; bytes]).unwrap();
        }
        let counted: Vec<_> =
            count(jobs.into()).iter().map(|left| (left.job.0, left.files, left.bytes)).collect();
        assert_eq!(counted, [(1, 1, 7), (2, 0, 0), (3, 0, 0)]);
    }
}
