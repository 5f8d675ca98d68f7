//! What a job told and used: curves for charts, and values as they come.

use era_api::Page;
use era_api::job::{MetricFilter, MetricPoint};
use era_core::units::JobId;
use era_store::StoreError;
use era_store::samples::{Follow, SampleSeries, Samples, SeriesAsk};

use super::view::is_over;
use crate::auth::Caller;
use crate::error::AppError;
use crate::wire::{Wrong, stamp};
use crate::{Services, recorder, visibility};

/// Points of each curve where nothing is said.
const POINTS_DEFAULT: u32 = 500;
/// Most points of each curve.
const POINTS_MAX: u32 = 10_000;
/// Most points of one answer.
const ANSWER_POINTS_MAX: usize = 200_000;
/// Most names that are asked for at a time.
const NAMES_MAX: usize = 64;

/// Which curves, and of how many points each at most.
fn wanted(filter: &MetricFilter) -> Result<(SeriesAsk, usize), AppError> {
    let names = filter.names.as_deref().unwrap_or_default().split(',').map(str::trim);
    let names: Vec<String> = names.filter(|n| !n.is_empty()).map(str::to_owned).collect();
    if names.len() > NAMES_MAX {
        let many = Wrong::TooMany { most: NAMES_MAX, what: "names" };
        return Err(AppError::bad_field("names", many));
    }
    let points = filter.points.unwrap_or(POINTS_DEFAULT);
    if !(1..=POINTS_MAX).contains(&points) {
        let range = Wrong::Range { least: 1, most: POINTS_MAX.into() };
        return Err(AppError::bad_field("points", range));
    }
    let MetricFilter { rank, step_from, step_to, .. } = *filter;
    Ok((SeriesAsk { names, rank, step_from, step_to }, points as usize))
}

/// What a job told and used, as curves: by name, then replica, then step.
pub async fn page(
    services: &Services,
    caller: &Caller,
    id: u64,
    filter: &MetricFilter,
) -> Result<Page<MetricPoint>, AppError> {
    let (series, points) = wanted(filter)?;
    let job = visibility::job(services, caller, id).await?.id;
    let items = curves(&services.store.samples(), job, &series, points).await?;
    Ok(Page { items, next: None })
}

/// What there is of a job, then values as they come, until the job is over.
pub async fn follow(
    services: &Services,
    caller: &Caller,
    id: u64,
    filter: &MetricFilter,
) -> Result<MetricTail, AppError> {
    let (series, points) = wanted(filter)?;
    let job = visibility::job(services, caller, id).await?.id;
    let (samples, of) = (services.store.samples(), services.clone());
    Ok(MetricTail::of(samples, job, series, points, move || is_over(&of, job)))
}

async fn curves(
    samples: &Samples,
    job: JobId,
    ask: &SeriesAsk,
    points: usize,
) -> Result<Vec<MetricPoint>, StoreError> {
    // With very many series each gets fewer points, so that the answer stays bounded.
    let count = samples.series(job, ask).await?.len().max(1);
    let points = points.min((ANSWER_POINTS_MAX / count).max(1));
    Ok(samples.lines(job, ask, points).await?.into_iter().flat_map(as_points).collect())
}

fn as_points(line: SampleSeries) -> impl Iterator<Item = MetricPoint> {
    line.points.into_iter().map(move |point| MetricPoint {
        name: line.name.clone(),
        step: point.step,
        at: stamp(point.at),
        value: point.value,
        rank: line.rank,
    })
}

/// The values of a job as they are recorded.
pub struct MetricTail {
    samples: Samples,
    job: JobId,
    ask: SeriesAsk,
    points: usize,
    seen: Follow,
    over: Box<dyn Fn() -> bool + Send + Sync>,
    was_over: bool,
}

impl MetricTail {
    /// These values of a job, at most so many of each curve at a look, until it is `over`.
    pub fn of(
        samples: Samples,
        job: JobId,
        ask: SeriesAsk,
        points: usize,
        over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> MetricTail {
        let (seen, over) = (Follow::default(), Box::new(over));
        MetricTail { samples, job, ask, points, seen, over, was_over: false }
    }

    /// What came since the last look, or no values where nothing did; nothing once the job is over
    /// and all was given.
    pub async fn next(&mut self) -> Result<Option<Vec<MetricPoint>>, AppError> {
        let is_over = (self.over)();
        // The last values are recorded a moment after the task's end is known.
        if is_over && !self.was_over {
            tokio::time::sleep(recorder::GATHER_TIME_MAX * 2).await;
        }
        self.was_over = is_over;
        let lines = self.samples.newer(self.job, &self.ask, &mut self.seen, self.points).await?;
        let newer: Vec<MetricPoint> = lines.into_iter().flat_map(as_points).collect();
        Ok((!newer.is_empty() || !is_over).then_some(newer))
    }
}

#[cfg(test)]
mod tests {
    use era_core::units::Time;
    use era_store::Store;
    use era_store::samples::NewSample;

    use super::*;

    fn values(name: &str, steps: std::ops::Range<u64>) -> Vec<NewSample> {
        let value = |step| NewSample {
            job: JobId(1),
            part: 0,
            rank: 0,
            name: name.into(),
            step,
            at: Time(1000),
            value: step as f64,
        };
        steps.map(value).collect()
    }

    #[tokio::test]
    async fn an_answer_stays_bounded_however_many_names_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let samples = Store::open(folder.path()).await.unwrap().samples();
        for name in 0..300 {
            samples.append(&values(&format!("n{name}"), 0..1000)).await.unwrap();
        }
        let points = curves(&samples, JobId(1), &SeriesAsk::default(), 10_000).await.unwrap();
        assert!(points.len() <= ANSWER_POINTS_MAX && points.len() > ANSWER_POINTS_MAX / 2);
    }

    #[test]
    fn names_come_by_comma_and_are_bounded() {
        let ask = |names: &str| {
            wanted(&MetricFilter { names: Some(names.into()), ..MetricFilter::default() })
        };
        assert_eq!(ask("loss, acc,,").unwrap().0.names, ["loss", "acc"]);
        assert!(ask(&"a,".repeat(NAMES_MAX + 1)).is_err());
        for points in [0, POINTS_MAX + 1] {
            let points = Some(points);
            assert!(wanted(&MetricFilter { points, ..MetricFilter::default() }).is_err());
        }
    }
}
