//! What a run was like for those who waited for it, and for those who paid for the machines.

use serde::Serialize;

use crate::run::{Machines, Ratios, Run, Setup};
use crate::trace::Trace;

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Jobs that ran to their end.
    pub jobs: u64,
    /// Jobs that fit nowhere.
    pub never_fit: u64,
    /// Mean time from submission to the first start.
    pub mean_wait_s: f64,
    /// Half of all jobs waited at most this long.
    pub p50_wait_s: f64,
    /// All but one in a hundred waited at most this long.
    pub p99_wait_s: f64,
    /// Mean time from submission to the end.
    pub mean_jct_s: f64,
    /// All but one in a hundred took at most this long from submission to the end.
    pub p99_jct_s: f64,
    /// From the first submission to the last end.
    pub makespan_s: i64,
    /// The part of the machines that was used, by the platform's formula.
    pub utilisation: f64,
    /// Jain's index over groups, of the part of their time in which jobs ran rather than waited.
    pub fairness: f64,
}

/// Measures a run.
pub fn measure(trace: &Trace, setup: &Setup, run: &Run) -> Measures {
    let mut waits = Vec::with_capacity(run.jobs.len());
    let mut jcts = Vec::with_capacity(run.jobs.len());
    let mut makespan_s = 0;
    for (job, ran) in trace.jobs.iter().zip(&run.jobs) {
        if let (Some(start), Some(end)) = (ran.start_s, ran.end_s) {
            waits.push(start - job.submit_s);
            jcts.push(end - job.submit_s);
            makespan_s = makespan_s.max(end);
        }
    }
    waits.sort_unstable();
    jcts.sort_unstable();
    Measures {
        jobs: jcts.len() as u64,
        never_fit: run.never_fit.len() as u64,
        mean_wait_s: mean(&waits),
        p50_wait_s: quantile(&waits, 0.50),
        p99_wait_s: quantile(&waits, 0.99),
        mean_jct_s: mean(&jcts),
        p99_jct_s: quantile(&jcts, 0.99),
        makespan_s,
        utilisation: utilisation(&setup.machines, setup.ratios, run, makespan_s),
        fairness: fairness(trace, run),
    }
}

fn mean(sorted: &[i64]) -> f64 {
    let sum: i64 = sorted.iter().sum();
    if sorted.is_empty() { 0.0 } else { sum as f64 / sorted.len() as f64 }
}

/// The smallest value that this share of all values stays within.
pub fn quantile(sorted: &[i64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).map_or(0.0, |value| *value as f64)
}

/// The mean over machines of cpu·ratio + gpu·ratio + memory·ratio. All machines of a run are
/// present the whole time, so each weighs the same.
fn utilisation(machines: &Machines, ratios: Ratios, run: &Run, makespan_s: i64) -> f64 {
    let time = makespan_s.max(1) as f64;
    let part = |used: f64, of: f64| if of > 0.0 { used / (of * time) } else { 0.0 };
    match machines {
        // Its GPUs are counted as processors.
        Machines::Pool { gpus } => {
            run.given.first().map_or(0.0, |g| part(g.cpu, f64::from(*gpus) * 1000.0))
        }
        Machines::Nodes(nodes) => {
            let of_machine = nodes.iter().zip(&run.given).map(|(node, given)| {
                ratios.cpu * part(given.cpu, f64::from(node.cpu_milli))
                    + ratios.memory * part(given.memory, f64::from(node.memory_mib))
                    + ratios.gpu * part(given.gpu, f64::from(node.gpus) * 1000.0)
            });
            of_machine.sum::<f64>() / nodes.len().max(1) as f64
        }
    }
}

/// Jain's index over groups of the mean of duration / completion time: 1 where all groups wait
/// alike for the time that their jobs take.
fn fairness(trace: &Trace, run: &Run) -> f64 {
    let mut groups = vec![(0.0, 0u64); trace.groups.len() + 1];
    for (job, ran) in trace.jobs.iter().zip(&run.jobs) {
        if let Some(end) = ran.end_s {
            let group = &mut groups[job.group.map_or(0, |g| g as usize + 1)];
            group.0 += job.duration_s as f64 / (end - job.submit_s).max(1) as f64;
            group.1 += 1;
        }
    }
    let means: Vec<f64> =
        groups.iter().filter(|(_, n)| *n > 0).map(|(sum, n)| sum / *n as f64).collect();
    jain(&means)
}

/// Jain's index: 1 where all are equal, 1/n where one has everything.
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) =
        values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    if squares == 0.0 { 1.0 } else { sum * sum / (values.len() as f64 * squares) }
}
