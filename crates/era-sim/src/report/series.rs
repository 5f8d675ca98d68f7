//! Curves over time, each of a bounded number of points: a point is the exact mean over its
//! stretch of time, not a sample, so nothing is missed between two of them.

use era_core::cluster::Rates;
use era_core::settings::Settings;

use super::round;
use crate::measure::{delivered, used_of_machine};
use crate::run::{Setup, TraceRun};
use crate::trace::Trace;

/// Time from 0 to the end of a run, in equal stretches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) step_s: f64,
    pub(super) points: usize,
}

impl Axis {
    pub(super) fn new(makespan_s: i64, points: usize) -> Axis {
        Axis { step_s: makespan_s.max(1) as f64 / points as f64, points }
    }

    /// The stretch that an instant falls in.
    pub(super) fn point(self, second: f64) -> usize {
        ((second / self.step_s) as usize).min(self.points - 1)
    }

    /// Gives `add` each stretch that `[from, to)` touches, and for how much of the stretch.
    pub(super) fn spread(self, from_s: i64, to_s: i64, mut add: impl FnMut(usize, f64)) {
        let end = self.step_s * self.points as f64;
        let (from, to) = ((from_s.max(0) as f64).min(end), (to_s as f64).min(end));
        if to <= from {
            return;
        }
        for point in self.point(from)..=self.point(to) {
            let start = point as f64 * self.step_s;
            let part = (to.min(start + self.step_s) - from.max(start)) / self.step_s;
            if part > 0.0 {
                add(point, part);
            }
        }
    }
}

/// The part of the machines that were present that was in use.
pub(super) fn utilisation(setup: &Setup, run: &TraceRun, axis: Axis) -> Vec<f64> {
    let mut used = vec![0.0; axis.points];
    for i in &run.intervals {
        let [cpu, memory, gpu] = [i.cpu_milli, i.memory_mib, i.gpu_milli].map(f64::from);
        let node = i.node as usize;
        let part = used_of_machine(&setup.machines, setup.ratios, node, cpu, memory, gpu);
        axis.spread(i.start_s, i.end_s, |point, time| used[point] += part * time);
    }
    let mut present = vec![setup.machines.count() as f64; axis.points];
    for absence in &run.absences {
        axis.spread(absence.from_s, absence.to_s, |point, time| present[point] -= time);
    }
    let part = |(used, present): (&f64, &f64)| {
        if *present > 1e-9 { round((used / present).min(1.0), 4) } else { 0.0 }
    };
    used.iter().zip(&present).map(part).collect()
}

/// How many jobs were there and did not run.
pub(super) fn waiting(trace: &Trace, run: &TraceRun, axis: Axis) -> Vec<f64> {
    let end_s = (axis.step_s * axis.points as f64).ceil() as i64;
    let mut waiting = vec![0.0; axis.points];
    let never: std::collections::BTreeSet<usize> =
        run.never_fit.iter().map(|(index, _)| *index).collect();
    for (index, (job, ran)) in trace.jobs.iter().zip(&run.jobs).enumerate() {
        if !never.contains(&index) {
            let until_s = ran.end_s.unwrap_or(end_s);
            axis.spread(job.submit_s, until_s, |point, time| waiting[point] += time);
        }
    }
    // A gang is on several machines at the same time: it runs once.
    let mut attempts: Vec<(u32, u32, i64, i64)> =
        run.intervals.iter().map(|i| (i.job, i.attempt, i.start_s, i.end_s)).collect();
    attempts.sort_unstable();
    attempts.dedup_by_key(|(job, attempt, ..)| (*job, *attempt));
    for (_, _, start_s, end_s) in attempts {
        axis.spread(start_s, end_s, |point, time| waiting[point] -= time);
    }
    waiting.iter().map(|count| round(count.max(0.0), 2)).collect()
}

/// What was delivered in time so far, and what queue work would have paid for its GPU time so far
/// by the house's default rule, both in credits; nothing where the trace has no values.
pub(super) fn values(trace: &Trace, run: &TraceRun, axis: Axis) -> Option<(Vec<f64>, Vec<f64>)> {
    trace.jobs.iter().find(|job| job.value.is_some())?;
    let mut value = vec![0.0; axis.points];
    for (job, ran) in trace.jobs.iter().zip(&run.jobs) {
        if let (Some(worth), Some(end_s)) = (delivered(job, ran), ran.end_s) {
            value[axis.point(end_s as f64)] += worth as f64 / 1e6;
        }
    }
    let density = f64::from(Settings::default().queue_density.0) / 1000.0;
    let rate = Rates::default().gpu.0 as f64 / 1e6 * density / 3_600.0;
    let mut revenue = vec![0.0; axis.points];
    for i in &run.intervals {
        // A pool's GPUs are counted as processors.
        let gpus = f64::from(if i.gpus == 0 { i.cpu_milli } else { i.gpu_milli }) / 1000.0;
        let pay = gpus * rate * axis.step_s;
        axis.spread(i.start_s, i.end_s, |point, time| revenue[point] += pay * time);
    }
    Some((so_far(&value), so_far(&revenue)))
}

fn so_far(points: &[f64]) -> Vec<f64> {
    let sum = |sum: &mut f64, point: &f64| {
        *sum += point;
        Some(round(*sum, 2))
    };
    points.iter().scan(0.0, sum).collect()
}

/// How many points the distribution of waits has.
const WAIT_POINTS: usize = 160;

/// The distribution of waits: equal ratios from one second to the longest.
pub(super) fn waits(trace: &Trace, run: &TraceRun) -> Vec<(f64, f64)> {
    let waited = trace.jobs.iter().zip(&run.jobs);
    let mut waits: Vec<i64> =
        waited.filter_map(|(job, ran)| Some(ran.start_s? - job.submit_s)).collect();
    waits.sort_unstable();
    let Some(longest) = waits.last().map(|longest| (*longest).max(2) as f64) else {
        return Vec::new();
    };
    let at = |point: usize| {
        let wait = longest.powf(point as f64 / (WAIT_POINTS - 1) as f64);
        // The longest wait is in, whatever rounding does to it.
        let within = waits.partition_point(|other| *other as f64 <= wait * (1.0 + 1e-9));
        (round(wait, 1), round(within as f64 / waits.len() as f64, 4))
    };
    (0..WAIT_POINTS).map(at).collect()
}
