//! How good predictions were, next to what could be said without learning.
//!
//! Each job is judged by what was predicted when it was submitted: no job was learned from before
//! it had ended.

use std::collections::BTreeMap;

use era_core::placement::Scorer;
use era_core::queue::PolicyRule;
use era_core::resources::Resource;
use era_core::settings::Backfill;
use era_core::units::Milli;
use serde::Serialize;

use crate::BadInput;
use crate::run::{Like, Machines, Setup, StatedDurations, TraceRun, UtilisationWeights, run};
use crate::trace::{Trace, TraceJob};

/// How far a way of predicting was off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// Half of all predictions were off by at most this: the binary logarithm of the ratio.
    pub median_log2_error: f64,
    /// The mean of the same.
    pub mean_log2_error: f64,
    /// The share of all that were at most twice, and at least half, of what it took.
    pub within_factor_2: f64,
}

/// How predictions went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccuracyReport {
    /// Jobs of the trace.
    pub jobs: usize,
    /// Those that came after the first forest was published: all figures are of these.
    pub judged: usize,
    /// The middle forest.
    pub predicted: Accuracy,
    /// The share of jobs between the low and the high forest; 0.8 is meant.
    pub between_low_and_high: f64,
    /// What owners stated, where the trace says it.
    pub stated: Option<Accuracy>,
    /// The mean logarithm of the owner's jobs that ended before; of all jobs for a newcomer.
    pub user_mean: Accuracy,
    /// What jobs use of what they ask for, by resource, where that was measured and learned.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<Resource, UseAccuracy>,
}

/// How far predictions of use were off. Shares of what was asked for, so that 0.1 is a tenth of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UseAccuracy {
    /// Jobs of which it was predicted, and then measured.
    pub judged: usize,
    /// How far predictions were off in the mean.
    pub predicted: f64,
    /// How far the mean of all jobs that ended before was.
    pub mean_before: f64,
    /// How far it is to believe that everything is used.
    pub asked: f64,
}

/// Runs a trace on so many machines that nothing waits, and judges what was predicted.
pub fn judge(trace: &Trace, progress: &dyn Fn(u64)) -> Result<Option<AccuracyReport>, BadInput> {
    let setup = Setup {
        machines: Machines::Pool { gpus: peak_gpus(trace) },
        policy: PolicyRule::Fifo,
        backfill: Backfill::None,
        estimates: StatedDurations::Predicted,
        scorer: Scorer::default(),
        preempt: false,
        ageing: false,
        like: Like::Era,
        ratios: UtilisationWeights::default(),
    };
    let ran = run(trace, &setup, progress)?;
    Ok(report(trace, &ran))
}

/// The most GPUs that are in use at a time if every job starts when it comes.
fn peak_gpus(trace: &Trace) -> u32 {
    let mut changes: Vec<(i64, i64)> = Vec::with_capacity(2 * trace.jobs.len());
    for job in &trace.jobs {
        changes.push((job.submit_s, i64::from(job.gpu_milli)));
        changes.push((job.submit_s + job.duration_s, -i64::from(job.gpu_milli)));
    }
    changes.sort_unstable();
    let mut held = 0;
    let peak = changes.iter().map(|(_, change)| {
        held += change;
        held
    });
    u32::try_from(peak.max().unwrap_or(0) / 1000 + 1).unwrap_or(u32::MAX)
}

/// Judges the predictions of a run; nothing where nothing was predicted.
pub fn report(trace: &Trace, run: &TraceRun) -> Option<AccuracyReport> {
    let means = means_before(trace, run);
    let judged: Vec<usize> =
        (0..trace.jobs.len()).filter(|i| run.jobs[*i].predicted.is_some()).collect();
    let log2 = |seconds: i64| (seconds.max(1) as f64).log2();
    let took = |i: usize| log2(trace.jobs[i].duration_s);
    let of = |said: &dyn Fn(usize) -> f64| {
        accuracy(judged.iter().map(|i| (said(*i) - took(*i)).abs()).collect())
    };
    let predicted = |i: usize| run.jobs[i].predicted.unwrap_or_default();
    let between = judged.iter().filter(|i| {
        let (said, took) = (predicted(**i), trace.jobs[**i].duration_s);
        (said.low_s..=said.high_s).contains(&took)
    });
    let stated = judged.iter().all(|i| trace.jobs[*i].stated_s.is_some());
    Some(AccuracyReport {
        jobs: trace.jobs.len(),
        judged: judged.len(),
        predicted: of(&|i| log2(predicted(i).middle_s))?,
        between_low_and_high: between.count() as f64 / judged.len() as f64,
        stated: if stated { of(&|i| log2(trace.jobs[i].stated_s.unwrap_or(1))) } else { None },
        user_mean: of(&|i| means[i])?,
        used: Resource::ALL.iter().filter_map(|r| Some((*r, of_use(trace, run, *r)?))).collect(),
    })
}

/// Judges what was predicted of the use of a resource.
fn of_use(trace: &Trace, run: &TraceRun, resource: Resource) -> Option<UseAccuracy> {
    let share = |used: Milli| f64::from(used.0) / f64::from(Milli::ONE.0);
    let measured = |i: usize| trace.jobs[i].shares_used()[resource as usize].map(share);
    let mut ends = Ends::of(run);
    let (mut sum, mut count) = (0.0, 0.0);
    let mut off = [0.0; 3];
    let mut judged = 0;
    for (i, job) in trace.jobs.iter().enumerate() {
        while let Some(ended) = ends.next_before(job.submit_s) {
            if let Some(used) = measured(ended) {
                (sum, count) = (sum + used, count + 1.0);
            }
        }
        let said = run.jobs[i].predicted.and_then(|said| said.used[resource as usize]);
        if let (Some(said), Some(used)) = (said.map(share), measured(i)) {
            judged += 1;
            let others = [said, sum / f64::max(count, 1.0), 1.0];
            for (off, said) in off.iter_mut().zip(others) {
                *off += (said - used).abs();
            }
        }
    }
    let mean = |off: f64| off / judged as f64;
    let [predicted, mean_before, asked] = off.map(mean);
    (judged > 0).then_some(UseAccuracy { judged, predicted, mean_before, asked })
}

/// The ends of a run, in their order.
struct Ends(std::iter::Peekable<std::vec::IntoIter<(i64, usize)>>);

impl Ends {
    fn of(run: &TraceRun) -> Ends {
        let jobs = run.jobs.iter().enumerate();
        let mut ends: Vec<(i64, usize)> =
            jobs.filter_map(|(i, job)| Some((job.end_s?, i))).collect();
        ends.sort_unstable();
        Ends(ends.into_iter().peekable())
    }

    /// The next job that has ended by then.
    fn next_before(&mut self, second: i64) -> Option<usize> {
        self.0.next_if(|(end, _)| *end <= second).map(|(_, job)| job)
    }
}

fn accuracy(mut errors: Vec<f64>) -> Option<Accuracy> {
    errors.sort_by(f64::total_cmp);
    let middle = *errors.get(errors.len() / 2)?;
    let count = errors.len() as f64;
    Some(Accuracy {
        median_log2_error: middle,
        mean_log2_error: errors.iter().sum::<f64>() / count,
        within_factor_2: errors.iter().filter(|e| **e <= 1.0).count() as f64 / count,
    })
}

/// For each job, the mean logarithm of its owner's durations that were known when it came.
fn means_before(trace: &Trace, run: &TraceRun) -> Vec<f64> {
    let owner = |job: &TraceJob| (job.user, job.group);
    let mut ends = Ends::of(run);
    let mut sums: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    let mut all = (0.0, 0.0);
    let mean = |job: &TraceJob| {
        while let Some(ended) = ends.next_before(job.submit_s) {
            let log = (trace.jobs[ended].duration_s.max(1) as f64).log2();
            let sum = sums.entry(owner(&trace.jobs[ended])).or_insert((0.0, 0.0));
            *sum = (sum.0 + log, sum.1 + 1.0);
            all = (all.0 + log, all.1 + 1.0);
        }
        let (sum, count) = sums.get(&owner(job)).copied().unwrap_or(all);
        sum / f64::max(count, 1.0)
    };
    trace.jobs.iter().map(mean).collect()
}
