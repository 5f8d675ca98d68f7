//! The figures that an objective may use, by name.

use std::collections::BTreeMap;

use crate::measure::{RunFigures, jain, quantile, rounded};
use crate::replay::JobHistory;
use crate::tune::factors::FactorRow;

/// Every name that an objective may use, with what it means.
pub const NAMES: [(&str, &str); 12] = [
    ("jobs", "jobs that ran to their end"),
    ("mean_wait_s", "mean time from submission to the first start"),
    ("p50_wait_s", "half of all jobs waited at most this long"),
    ("p99_wait_s", "all but one in a hundred waited at most this long"),
    ("mean_jct_s", "mean time from submission to the end"),
    ("p99_jct_s", "all but one in a hundred took at most this long"),
    ("mean_slowdown", "mean of completion time over run time, runs below 10 s counting as 10 s"),
    ("makespan_s", "from the first submission to the last end"),
    ("utilisation", "the part of the GPUs that was used"),
    ("fairness", "Jain's index over groups; 1 is fair"),
    ("value", "value received, in credits"),
    ("paid", "what users paid, in credits"),
];

/// The figures of a run, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured(pub [f64; NAMES.len()]);

impl Measured {
    /// A figure by its place.
    pub fn at(&self, index: usize) -> f64 {
        self.0.get(index).copied().unwrap_or(0.0)
    }

    /// A figure by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        index_of(name).map(|index| self.at(index))
    }

    /// All of them.
    pub fn named(&self) -> BTreeMap<&'static str, f64> {
        NAMES.iter().zip(self.0).map(|((name, _), figure)| (*name, rounded(figure))).collect()
    }

    pub(super) fn of_trace(measures: &RunFigures, rows: &[FactorRow], value: f64) -> Measured {
        Measured([
            measures.jobs as f64,
            measures.mean_wait_s,
            measures.p50_wait_s,
            measures.p99_wait_s,
            measures.mean_jct_s,
            measures.p99_jct_s,
            slowdown(rows),
            measures.makespan_s as f64,
            measures.utilisation,
            measures.fairness,
            value,
            0.0,
        ])
    }

    /// Of jobs of a journal on so many thousandths of GPUs.
    pub(super) fn of_stories(stories: &[&JobHistory], gpu_milli: u64) -> Measured {
        let mut waits = Vec::new();
        let mut jcts = Vec::new();
        let mut groups: BTreeMap<u32, (f64, u64)> = BTreeMap::new();
        let (mut first, mut last, mut had) = (i64::MAX, 0, 0u128);
        let (mut value, mut paid) = (0.0, 0.0);
        for story in stories {
            value += story.value().0 as f64 / 1e6;
            paid += story.paid.0 as f64 / 1e6;
            had += story.had;
            let (Some(start), Some((end, _))) = (story.started, &story.ended) else { continue };
            let (wait, jct) = (start.since(story.submitted).0, end.since(story.submitted).0);
            waits.push(wait);
            jcts.push(jct);
            first = first.min(story.submitted.0);
            last = last.max(end.0);
            let group = groups.entry(story.group.0).or_default();
            group.0 += (jct - wait) as f64 / jct.max(1) as f64;
            group.1 += 1;
        }
        waits.sort_unstable();
        jcts.sort_unstable();
        let seconds = |ms: f64| ms / 1000.0;
        let mean = |of: &[i64]| {
            let sum: i128 = of.iter().map(|ms| i128::from(*ms)).sum();
            seconds(sum as f64 / of.len().max(1) as f64)
        };
        let makespan_ms = (last - first.min(last)).max(1) as f64;
        let fair: Vec<f64> = groups.values().map(|(sum, n)| sum / *n as f64).collect();
        let rows: Vec<FactorRow> =
            stories.iter().filter_map(|story| FactorRow::of_story(story)).collect();
        Measured([
            jcts.len() as f64,
            mean(&waits),
            seconds(quantile(&waits, 0.50)),
            seconds(quantile(&waits, 0.99)),
            mean(&jcts),
            seconds(quantile(&jcts, 0.99)),
            slowdown(&rows),
            seconds(makespan_ms),
            had as f64 / (gpu_milli.max(1) as f64 * makespan_ms),
            jain(&fair),
            value,
            paid,
        ])
    }
}

/// The place of a name in [`NAMES`].
pub(super) fn index_of(name: &str) -> Option<usize> {
    NAMES.iter().position(|(known, _)| *known == name)
}

fn slowdown(rows: &[FactorRow]) -> f64 {
    let one = |row: &FactorRow| ((row.wait_s + row.run_s) / row.run_s.max(10.0)).max(1.0);
    rows.iter().map(one).sum::<f64>() / rows.len().max(1) as f64
}
