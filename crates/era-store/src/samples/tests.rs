//! What is told is kept, within its bounds.

use super::*;

struct Bed {
    samples: Samples,
    _folder: tempfile::TempDir,
}

async fn bed() -> Bed {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path()).await;
    Bed { samples: store.samples(), _folder: folder }
}

fn value(job: u64, name: &str, rank: u32, step: u64, value: f64) -> NewSample {
    let at = Time(1000 * step as i64);
    NewSample { job: JobId(job), part: 0, rank, name: name.into(), step, at, value }
}

fn curve(job: u64, name: &str, steps: std::ops::Range<u64>) -> Vec<NewSample> {
    steps.map(|step| value(job, name, 0, step, 1.0 / (step + 1) as f64)).collect()
}

fn steps(line: &SampleSeries) -> Vec<u64> {
    line.points.iter().map(|point| point.step).collect()
}

fn all() -> SeriesAsk {
    SeriesAsk::default()
}

#[tokio::test]
async fn a_curve_is_read_by_name_rank_and_steps() {
    let bed = bed().await;
    let mut batch = curve(1, "loss", 0..10);
    batch.extend([
        value(1, "acc", 0, 3, 0.5),
        value(1, "loss", 1, 0, 9.0),
        value(2, "loss", 0, 0, 7.0),
    ]);
    assert_eq!(bed.samples.append(&batch).await.unwrap(), Appended { kept: 13, dropped: 0 });
    let lines = bed.samples.lines(JobId(1), &all(), 100).await.unwrap();
    let names: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.rank)).collect();
    assert_eq!(names, [("acc", 0), ("loss", 0), ("loss", 1)]);
    let ask = SeriesAsk {
        names: vec!["loss".into()],
        rank: Some(0),
        step_from: Some(2),
        step_to: Some(4),
    };
    let lines = bed.samples.lines(JobId(1), &ask, 100).await.unwrap();
    assert_eq!((lines.len(), steps(&lines[0])), (1, vec![2, 3, 4]));
    assert_eq!(lines[0].points[0].value, 1.0 / 3.0);
    assert_eq!(lines[0].points[0].at, Time(2000));
}

#[tokio::test]
async fn the_newest_value_of_every_series_is_known() {
    let bed = bed().await;
    bed.samples.append(&curve(1, "loss", 0..10)).await.unwrap();
    bed.samples.append(&[value(1, "loss", 0, 10, 42.0)]).await.unwrap();
    let series = bed.samples.series(JobId(1), &all()).await.unwrap();
    assert_eq!((series.len(), series[0].told), (1, 11));
    assert_eq!((series[0].last.step, series[0].last.value), (10, 42.0));
    assert!(bed.samples.series(JobId(9), &all()).await.unwrap().is_empty());
}

#[tokio::test]
async fn parts_of_a_bid_do_not_mix() {
    let bed = bed().await;
    let second = NewSample { part: 3, ..value(1, "loss", 7, 0, 2.0) };
    bed.samples.append(&[value(1, "loss", 7, 0, 1.0), second]).await.unwrap();
    let series = bed.samples.series(JobId(1), &all()).await.unwrap();
    let places: Vec<_> = series.iter().map(|s| (s.part, s.rank, s.last.value)).collect();
    assert_eq!(places, [(0, 7, 1.0), (3, 7, 2.0)]);
}

#[tokio::test]
async fn a_chart_gets_no_more_points_than_it_asked_for() {
    let bed = bed().await;
    bed.samples.append(&curve(1, "loss", 0..5000)).await.unwrap();
    let lines = bed.samples.lines(JobId(1), &all(), 200).await.unwrap();
    let steps = steps(&lines[0]);
    assert!(steps.len() <= 200 && steps.len() > 100);
    assert_eq!((steps[0], *steps.last().unwrap()), (0, 4999));
}

#[tokio::test]
async fn a_series_without_end_takes_bounded_room_and_keeps_its_peak() {
    let bed = bed().await;
    let mut told = curve(1, "loss", 0..40_000);
    told[12_345].value = 77.0;
    for batch in told.chunks(7000) {
        bed.samples.append(batch).await.unwrap();
    }
    let lines = bed.samples.lines(JobId(1), &all(), usize::MAX).await.unwrap();
    assert!(lines[0].points.len() <= POINTS_PER_SERIES_MAX);
    assert!(lines[0].points.len() > POINTS_PER_SERIES_MAX / 4);
    assert!(lines[0].points.iter().any(|p| (p.step, p.value) == (12_345, 77.0)));
    assert_eq!(bed.samples.series(JobId(1), &all()).await.unwrap()[0].told, 40_000);
}

#[tokio::test]
async fn what_cannot_be_kept_is_counted_and_the_rest_is_kept() {
    let bed = bed().await;
    let batch = [
        value(1, "a", 0, 0, f64::NAN),
        value(1, "", 0, 0, 1.0),
        value(1, &"n".repeat(NAME_BYTES_MAX + 1), 0, 0, 1.0),
        value(1, "fine", 0, 0, 1.0),
    ];
    assert_eq!(bed.samples.append(&batch).await.unwrap(), Appended { kept: 1, dropped: 3 });
    let many: Vec<_> =
        (0..SERIES_PER_JOB_MAX).map(|n| value(1, &format!("n{n}"), 0, 0, 1.0)).collect();
    let appended = bed.samples.append(&many).await.unwrap();
    assert_eq!(appended, Appended { kept: SERIES_PER_JOB_MAX as u64 - 1, dropped: 1 });
    // Another job's room is its own.
    assert_eq!(bed.samples.append(&[value(2, "x", 0, 0, 1.0)]).await.unwrap().kept, 1);
}

#[tokio::test]
async fn one_who_follows_gets_every_point_once() {
    let bed = bed().await;
    let mut follow = Follow::default();
    bed.samples.append(&curve(1, "loss", 0..3)).await.unwrap();
    let mut newer = async |samples: &Samples| {
        let lines = samples.newer(JobId(1), &all(), &mut follow, 1000).await.unwrap();
        lines.iter().flat_map(steps).collect::<Vec<u64>>()
    };
    assert_eq!(newer(&bed.samples).await, [0, 1, 2]);
    assert!(newer(&bed.samples).await.is_empty());
    bed.samples.append(&[value(1, "loss", 0, 3, 1.0), value(1, "acc", 0, 8, 1.0)]).await.unwrap();
    assert_eq!(newer(&bed.samples).await, [8, 3]);
}

#[tokio::test]
async fn what_is_forgotten_is_the_longest_silent() {
    let bed = bed().await;
    for job in 1..=4 {
        bed.samples.append(&curve(job, "loss", 0..job * 10)).await.unwrap();
    }
    let jobs = async || {
        let mut left = Vec::new();
        for job in 1..=4 {
            if !bed.samples.series(JobId(job), &all()).await.unwrap().is_empty() {
                left.push(job);
            }
        }
        left
    };
    assert_eq!(bed.samples.forget_silent_since(Time(10_000)).await.unwrap(), 1);
    assert_eq!(jobs().await, [2, 3, 4]);
    assert_eq!(bed.samples.keep_at_most(70).await.unwrap(), 1);
    assert_eq!(jobs().await, [3, 4]);
    let writer = bed.samples.database.writer();
    let before = crate::testing::rows_read(writer).await;
    bed.samples.forget(JobId(4)).await.unwrap();
    let after = crate::testing::rows_read(writer).await;
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after - before < 60, "{} rows were read to forget 40", after - before);
    }
    assert_eq!(jobs().await, [3]);
    assert_eq!(bed.samples.keep_at_most(1000).await.unwrap(), 0);
}
