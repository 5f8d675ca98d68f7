//! How long what jobs leave is kept, and its removal once that is over.

use std::time::Duration;

use era_core::units::{Span, Time};
use era_store::files::{KeepFor, StillKeepsFiles};

use crate::Services;

/// How long what jobs leave is kept after their end; for ever where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Their folders, with outputs, checkpoints and logs, and the code and data they used.
    pub outputs: Option<Duration>,
    /// What they told and used: metrics and samples, counted from the last of them.
    pub samples: Option<Duration>,
}

impl Retention {
    /// What of it whoever keeps files must know.
    pub fn of_files(self) -> KeepFor {
        KeepFor { outputs_ms: self.outputs.map(|kept| span(kept).ms()), ..KeepFor::default() }
    }
}

fn span(time: Duration) -> Span {
    Span::from_s(i64::try_from(time.as_secs()).unwrap_or(i64::MAX / 1000))
}

/// Removes what nothing names and what is over its time. Whatever fails is told of, and tried
/// again at the next turn.
pub(super) async fn apply(
    app: &Services,
    retention: Retention,
    now: Time,
    still_keeps: StillKeepsFiles<'_>,
) {
    if let Err(error) = super::outputs::keep_arrays(app).await {
        tracing::warn!(%error, "files are not collected this time");
        return;
    }
    match app.files.collect_while(still_keeps).await {
        Ok(collected) if collected != Default::default() => {
            tracing::info!(?collected, "files that nothing names were removed");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "files could not be collected"),
    }
    let Some(kept) = retention.samples else { return };
    match app.store.samples().forget_silent_since(now - span(kept)).await {
        Ok(0) => {}
        Ok(jobs) => tracing::info!(jobs, "what jobs told long ago was forgotten"),
        Err(error) => tracing::warn!(%error, "what jobs told long ago could not be forgotten"),
    }
}

#[cfg(test)]
mod tests {
    use era_core::units::{JobId, UserId};
    use era_store::files::Outputs;
    use era_store::samples::{NewSample, SeriesAsk};

    use super::*;
    use crate::clock::Clock;
    use crate::clock::tests::of_this_machine;
    use crate::feed::tests::Site;

    fn told(job: u64, at: Time) -> NewSample {
        let name = String::from("loss");
        NewSample { job: JobId(job), part: 0, rank: 0, name, step: 1, at, value: 0.5 }
    }

    #[tokio::test]
    async fn what_jobs_left_and_told_goes_when_its_time_is_over_and_not_before() {
        let (day, folder) = (Duration::from_secs(86_400), tempfile::tempdir().unwrap());
        let now = of_this_machine().now();
        let long = Retention { outputs: Some(30 * day), samples: Some(30 * day) };
        let none = Retention { outputs: Some(Duration::ZERO), samples: Some(30 * day) };
        let site = Site::keeping(folder.path(), long).await;
        let outputs = site.app.files.job_folder(JobId(5)).join("outputs");
        std::fs::create_dir_all(&outputs).unwrap();
        std::fs::write(outputs.join("model"), b"weights").unwrap();
        let left = Outputs { job: JobId(5), account: UserId(1), files: 1, bytes: 7 };
        site.app.files.record_outputs(&[left], (1, 5)).await.unwrap();
        let samples = site.app.store.samples();
        let long_ago = now - Span::from_days(31);
        samples.append(&[told(5, long_ago), told(6, long_ago), told(6, now)]).await.unwrap();
        let heard = async |job| {
            let all = SeriesAsk::default();
            !samples.series(JobId(job), &all).await.unwrap().is_empty()
        };
        let still_keeps = || true;
        apply(&site.app, Retention::default(), now, &still_keeps).await;
        assert!(outputs.exists() && heard(5).await, "for ever where nothing is said");
        apply(&site.app, long, now, &still_keeps).await;
        assert!(outputs.exists() && !heard(5).await && heard(6).await);
        site.stop().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let site = Site::keeping(folder.path(), none).await;
        apply(&site.app, none, now, &still_keeps).await;
        assert!(!outputs.exists());
        site.stop().await;
    }
}
