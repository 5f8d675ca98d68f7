//! What jobs tell and use goes to the store: gathered for a moment, then appended together.
//!
//! None of it is precious: where the store does not keep up, the channel fills and whoever sends
//! drops. What any value means is not known here.

use std::time::Duration;

use era_core::job::TaskId;
use era_store::samples::{NewSample, Samples};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::influx::Influx;

/// How long values are gathered at most before they are recorded.
pub const GATHER_TIME_MAX: Duration = Duration::from_millis(250);
/// Values of one batch, about.
const BATCH_MAX: usize = 8192;
/// Batches that wait before whoever sends drops.
const WAITING_MAX: usize = 4096;
/// How often it is looked whether too much is kept.
const TIDY_EVERY: Duration = Duration::from_secs(600);
/// Most values that are kept of all jobs: about 4 GB.
const VALUES_MAX: u64 = 100_000_000;

/// Values of a task on their way.
pub type SampleBatch = (TaskId, Vec<era_cloud::Sample>);

/// Starts recording, and telling InfluxDB where there is one. It ends when nobody can send any
/// more and all was recorded.
pub fn start(
    samples: Samples,
    influx: Option<Influx>,
) -> (mpsc::Sender<SampleBatch>, tokio::task::JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (sender, tokio::spawn(run(samples, influx, receiver)))
}

async fn run(samples: Samples, influx: Option<Influx>, mut told: mpsc::Receiver<SampleBatch>) {
    let mut tidied = Instant::now();
    while let Some(first) = told.recv().await {
        let mut batch: Vec<NewSample> = as_new(first).collect();
        let until = Instant::now() + GATHER_TIME_MAX;
        while batch.len() < BATCH_MAX {
            match timeout_at(until, told.recv()).await {
                Ok(Some(more)) => batch.extend(as_new(more)),
                Ok(None) | Err(_) => break,
            }
        }
        if let Some(influx) = &influx {
            influx.tell(&batch);
        }
        match samples.append(&batch).await {
            Ok(appended) if appended.dropped > 0 => {
                tracing::debug!(dropped = appended.dropped, "values were not recorded");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, values = batch.len(), "values are lost"),
        }
        if tidied.elapsed() > TIDY_EVERY {
            tidied = Instant::now();
            match samples.keep_at_most(VALUES_MAX).await {
                Ok(0) => {}
                Ok(jobs) => tracing::info!(jobs, "the values of old jobs were forgotten"),
                Err(error) => tracing::error!(%error, "old values cannot be forgotten"),
            }
        }
    }
}

fn as_new((task, samples): SampleBatch) -> impl Iterator<Item = NewSample> {
    samples.into_iter().map(move |sample| NewSample {
        job: task.job,
        part: task.part,
        rank: task.rank,
        name: sample.name,
        step: sample.step,
        at: sample.at,
        value: sample.value,
    })
}

#[cfg(test)]
mod tests {
    use era_cloud::Sample;
    use era_core::units::{JobId, Time};
    use era_store::Store;
    use era_store::samples::SeriesAsk;

    use super::*;

    #[tokio::test]
    async fn what_was_sent_is_recorded_before_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        let (sender, recording) = start(store.samples(), None);
        for rank in 0..3 {
            let task = TaskId { job: JobId(7), part: 0, attempt: 1, rank };
            let sample = |step| Sample { name: "loss".into(), step, at: Time(1), value: 0.5 };
            sender.send((task, vec![sample(1), sample(2)])).await.unwrap();
        }
        drop(sender);
        recording.await.unwrap();
        let series = store.samples().series(JobId(7), &SeriesAsk::default()).await.unwrap();
        assert_eq!(
            series.iter().map(|s| (s.rank, s.told)).collect::<Vec<_>>(),
            [(0, 2), (1, 2), (2, 2)]
        );
    }
}
