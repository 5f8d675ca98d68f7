//! How long jobs take and what they use, learned from what they took and used: published to the
//! scheduler as an input.
//!
//! Learning is the laboratory's, which replays the journal for it, as a process of lowest
//! priority. What a journal does not say, what jobs were measured to use, lies beside it in a table.
//! What was published last lies in a file whose age says when the next lesson is due, so that a
//! server that is started often does not learn often.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use era_core::units::{JobId, Span, Time};
use era_core::{Command, Reply};
use era_store::StoreError;
use era_store::samples::Mean;

use crate::Services;
use crate::clock::Clock;
use crate::driver::Unanswered;

/// How far back the journal is read.
const MEMORY: Span = Span::from_days(28);
/// How long after the start the first lesson comes at the earliest.
const FIRST: Duration = Duration::from_secs(15 * 60);
/// Most series of use that are looked at: a few for each job that a learner remembers.
const SERIES_MAX: u32 = 100_000;
/// What was learned last: the command that publishes it.
const LEARNED_FILE: &str = "estimates.json";
const JOURNAL_FILE: &str = "journal.ndjson";
const USED_FILE: &str = "used.csv";

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
enum NoEstimates {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error("a file of the lesson cannot be used: {0}")]
    Io(#[from] std::io::Error),
    #[error("the laboratory found nothing: {0}")]
    Lesson(String),
    #[error("what was learned cannot be published: {0}")]
    NotPublished(String),
}

/// Learns and publishes until it is stopped.
pub(super) async fn keep_learning(app: Services, every: Duration) {
    let Ok(folder) = app.lab.own_folder("estimates") else { return };
    let mut due =
        FIRST.min(every).max(every.saturating_sub(age(&*app.clock, &folder.join(LEARNED_FILE))));
    loop {
        tokio::time::sleep(due).await;
        due = every;
        match publish(&app, &folder, app.clock.now()).await {
            Ok(()) => tracing::info!("what was learned about jobs was published"),
            // Most sites are too young for it at first.
            Err(NoEstimates::Lesson(why)) => tracing::info!(why, "nothing is learned about jobs"),
            Err(error) => tracing::warn!(%error, "nothing is learned about jobs"),
        }
    }
}

/// How old a file is; very old where there is none.
fn age(clock: &dyn Clock, file: &Path) -> Duration {
    let written = std::fs::metadata(file).and_then(|about| about.modified());
    let machine = (clock.now() - clock.ahead()).0.unsigned_abs();
    let now = UNIX_EPOCH + Duration::from_millis(machine);
    let age = written.ok().and_then(|at| now.duration_since(at).ok());
    age.unwrap_or(Duration::MAX)
}

async fn publish(app: &Services, folder: &Path, now: Time) -> Result<(), NoEstimates> {
    let [journal_file, used_file, learned_file] =
        [JOURNAL_FILE, USED_FILE, LEARNED_FILE].map(|name| folder.join(name));
    let journal = app.store.journal();
    let since = journal.segment_before(now - MEMORY).await?;
    journal.export_to(since, &journal_file).await?;
    let means = app.store.samples().means("usage/", now - MEMORY, SERIES_MAX).await?;
    std::fs::write(&used_file, table(&means))?;
    let file = |flag: &str, path: &Path| {
        let mut argument = OsString::from(flag);
        argument.push(path);
        argument
    };
    let mut arguments: Vec<OsString> = ["sim", "estimate", "--json"].map(OsString::from).into();
    arguments.extend([
        file("--journal=", &journal_file),
        file("--used=", &used_file),
        file("--out=", &learned_file),
    ]);
    let learned = app.lab.by_itself(arguments).await;
    // Large, and of no use any more.
    let _ = std::fs::remove_file(&journal_file);
    let _ = std::fs::remove_file(&used_file);
    learned.map_err(NoEstimates::Lesson)?;
    let text = std::fs::read(&learned_file)?;
    let command = serde_json::from_slice::<Command>(&text);
    let command = command.map_err(|e| NoEstimates::NotPublished(e.to_string()))?;
    match app.driver.ask(command, None).await?.reply {
        Reply::Refused { refusal, .. } => Err(NoEstimates::NotPublished(refusal.to_string())),
        _ => Ok(()),
    }
}

/// What each job used, all its replicas together, as the laboratory reads it.
fn table(means: &[Mean]) -> String {
    // GPUs, cores and bytes.
    let mut jobs: BTreeMap<JobId, [Option<f64>; 3]> = BTreeMap::new();
    // Queue work has one part, and only queue work is predicted.
    for mean in means.iter().filter(|mean| mean.part == 0) {
        let column = match mean.name.strip_prefix("usage/") {
            Some("cpu") => 1,
            Some("memory") => 2,
            Some(name) if is_gpu(name) => 0,
            _ => continue,
        };
        let sum = &mut jobs.entry(mean.job).or_default()[column];
        *sum = Some(sum.unwrap_or(0.0) + mean.mean.max(0.0));
    }
    let mut table = String::from("job_id,used_gpus,used_cpus,used_mem_gb\n");
    for (job, [gpus, cpus, bytes]) in jobs {
        let cell = |value: Option<f64>| value.map(|v| format!("{v:.3}")).unwrap_or_default();
        let memory = cell(bytes.map(|bytes| bytes / f64::from(1 << 30)));
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{},{},{},{memory}", job.0, cell(gpus), cell(cpus));
    }
    table
}

/// Whether it is how busy a GPU is: `gpu0`, `gpu1`, and so on.
fn is_gpu(name: &str) -> bool {
    let number = name.strip_prefix("gpu");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replicas_use_is_summed_by_job_and_everything_else_left_out() {
        let mean = |job, name: &str, part, rank, mean| Mean {
            job: JobId(job),
            name: name.into(),
            part,
            rank,
            mean,
        };
        let gib = f64::from(1 << 30);
        let means = [
            mean(7, "usage/cpu", 0, 0, 1.5),
            mean(7, "usage/cpu", 0, 1, 0.25),
            mean(7, "usage/memory", 0, 0, 2.0 * gib),
            mean(7, "usage/memory_peak", 0, 0, 9.0 * gib),
            mean(7, "usage/gpu0", 0, 0, 0.5),
            mean(7, "usage/gpu11", 0, 1, 0.25),
            mean(7, "usage/gpu0_memory", 0, 0, 4.0 * gib),
            mean(8, "usage/cpu", 1, 0, 1.0),
            mean(9, "usage/memory", 0, 0, gib / 4.0),
        ];
        let expected = "job_id,used_gpus,used_cpus,used_mem_gb\n7,0.750,1.750,2.000\n9,,,0.250\n";
        assert_eq!(table(&means), expected);
    }
}
