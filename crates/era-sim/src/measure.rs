//! What a run was like for those who waited for it, and for those who paid for the machines.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::run::{JobRun, Machines, Setup, TraceRun, UtilisationWeights};
use crate::trace::{Trace, TraceJob};

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFigures {
    /// Jobs that ran to their end.
    pub jobs: u64,
    /// Jobs that fit nowhere.
    pub never_fit: u64,
    /// Jobs that were accepted and never ended.
    pub unfinished: u64,
    /// Of the jobs that ended, those that were stopped at their limit with work left to do.
    pub over_limit: u64,
    /// How often a job was stopped to make room.
    pub preemptions: u64,
    /// How often hardware under a job was lost.
    pub losses: u64,
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
    /// Jain's index over groups (or users, where there are none), of the part of their time in which jobs ran rather than waited.
    pub fairness: f64,
    /// What the jobs that ended in time were worth, in credits, where the trace has values.
    pub value: Option<f64>,
}

/// What a job was worth in the end, in micro-credits: nothing if it ended too late or undone.
pub(crate) fn delivered(job: &TraceJob, ran: &JobRun) -> Option<i64> {
    let end_s = ran.end_s.filter(|_| !ran.over_limit)?;
    job.value.filter(|_| job.deadline_s.is_none_or(|deadline_s| end_s <= deadline_s))
}

pub fn measure(trace: &Trace, setup: &Setup, run: &TraceRun) -> RunFigures {
    let mut waits = Vec::with_capacity(run.jobs.len());
    let mut jcts = Vec::with_capacity(run.jobs.len());
    let mut makespan_s = 0;
    let (mut over_limit, mut preemptions, mut losses) = (0, 0, 0);
    for (job, ran) in trace.jobs.iter().zip(&run.jobs) {
        if let (Some(start), Some(end)) = (ran.start_s, ran.end_s) {
            waits.push(start - job.submit_s);
            jcts.push(end - job.submit_s);
            makespan_s = makespan_s.max(end);
        }
        over_limit += u64::from(ran.over_limit);
        preemptions += u64::from(ran.preemptions);
        losses += u64::from(ran.losses);
    }
    let (ended, never_fit) = (jcts.len() as u64, run.never_fit.len() as u64);
    waits.sort_unstable();
    jcts.sort_unstable();
    RunFigures {
        jobs: ended,
        never_fit,
        unfinished: trace.jobs.len() as u64 - ended - never_fit,
        over_limit,
        preemptions,
        losses,
        mean_wait_s: mean(&waits),
        p50_wait_s: quantile(&waits, 0.50),
        p99_wait_s: quantile(&waits, 0.99),
        mean_jct_s: mean(&jcts),
        p99_jct_s: quantile(&jcts, 0.99),
        makespan_s,
        utilisation: utilisation(&setup.machines, setup.ratios, run, makespan_s),
        fairness: fairness(trace, run),
        value: value(trace, run),
    }
}

fn value(trace: &Trace, run: &TraceRun) -> Option<f64> {
    trace.jobs.iter().find(|job| job.value.is_some())?;
    let worth = trace.jobs.iter().zip(&run.jobs).filter_map(|(job, ran)| delivered(job, ran));
    Some(worth.map(|micro| micro as f64 / 1e6).sum())
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

/// The mean over machines of cpu·ratio + gpu·ratio + memory·ratio, each machine weighted by the
/// time that it was present.
fn utilisation(
    machines: &Machines,
    ratios: UtilisationWeights,
    run: &TraceRun,
    makespan_s: i64,
) -> f64 {
    let away: i64 = run
        .absences
        .iter()
        .map(|absence| absence.to_s.min(makespan_s) - absence.from_s.min(makespan_s))
        .sum();
    let present = (machines.count() as i64 * makespan_s - away).max(1) as f64;
    let given = run.given.iter().enumerate();
    let used =
        given.map(|(node, g)| used_of_machine(machines, ratios, node, g.cpu, g.memory, g.gpu));
    used.sum::<f64>() / present
}

/// What was used of a machine, as a part of it, by the platform's formula: of its processors, its
/// memory and its GPUs in the units of [`Given`](crate::run::Given).
pub(crate) fn used_of_machine(
    machines: &Machines,
    ratios: UtilisationWeights,
    node: usize,
    cpu: f64,
    memory: f64,
    gpu: f64,
) -> f64 {
    let part = |used: f64, of: f64| if of > 0.0 { used / of } else { 0.0 };
    match machines {
        // Its GPUs are counted as processors.
        Machines::Pool { gpus } => part(cpu, f64::from(*gpus) * 1000.0),
        Machines::Nodes(nodes) => nodes.get(node).map_or(0.0, |node| {
            ratios.cpu * part(cpu, f64::from(node.cpu_milli))
                + ratios.memory * part(memory, f64::from(node.memory_mib))
                + ratios.gpu * part(gpu, f64::from(node.gpus) * 1000.0)
        }),
    }
}

/// Whom fairness is between: groups, or users where a trace names no groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parties {
    Groups,
    Users,
}

impl Parties {
    pub fn of(trace: &Trace) -> Parties {
        if trace.groups.is_empty() && !trace.users.is_empty() {
            Parties::Users
        } else {
            Parties::Groups
        }
    }
}

/// How a group or user fared.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFigures {
    /// Its number in the trace; none for jobs without one.
    pub party: Option<u32>,
    /// Its jobs that ended.
    pub jobs: u64,
    /// The mean over these of duration / completion time: 1 for who never waits.
    pub service: f64,
}

/// How each group or user fared.
pub fn fared(trace: &Trace, run: &TraceRun) -> Vec<GroupFigures> {
    let parties = Parties::of(trace);
    let mut sums: BTreeMap<Option<u32>, (f64, u64)> = BTreeMap::new();
    for (job, ran) in trace.jobs.iter().zip(&run.jobs) {
        if let Some(end) = ran.end_s {
            let party = match parties {
                Parties::Groups => job.group,
                Parties::Users => job.user,
            };
            let sum = sums.entry(party).or_default();
            sum.0 += (job.duration_s as f64 / (end - job.submit_s).max(1) as f64).min(1.0);
            sum.1 += 1;
        }
    }
    let fared = |(party, (sum, jobs)): (_, (f64, u64))| GroupFigures {
        party,
        jobs,
        service: sum / jobs as f64,
    };
    sums.into_iter().map(fared).collect()
}

/// Jain's index over groups or users of how they fared: 1 where all wait alike for the time that
/// their jobs take.
fn fairness(trace: &Trace, run: &TraceRun) -> f64 {
    let services: Vec<f64> = fared(trace, run).iter().map(|fared| fared.service).collect();
    jain(&services)
}

/// Jain's index: 1 where all are equal, 1/n where one has everything.
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) =
        values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    if squares == 0.0 { 1.0 } else { sum * sum / (values.len() as f64 * squares) }
}

/// As many digits as anybody reads.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Given, MachineAbsence, MachineSetup};

    fn two_machines() -> Machines {
        let machine = MachineSetup { gpus: 4, cpu_milli: 8_000, memory_mib: 1_000, model: None };
        Machines::Nodes(vec![machine.clone(), machine])
    }

    #[test]
    fn utilisation_weighs_resources_by_their_ratios() {
        let given = Given { cpu: 8_000.0 * 50.0, memory: 0.0, gpu: 4_000.0 * 100.0 };
        let run = TraceRun { given: vec![given, Given::default()], ..TraceRun::default() };
        let ratios = UtilisationWeights { cpu: 0.2, gpu: 0.7, memory: 0.1 };
        let used = utilisation(&two_machines(), ratios, &run, 100);
        assert!((used - (0.2 * 0.5 + 0.7) / 2.0).abs() < 1e-12, "{used}");
    }

    #[test]
    fn a_machine_that_was_away_weighs_less() {
        let given = Given { gpu: 4_000.0 * 100.0, ..Given::default() };
        let idle = Given::default();
        let absences = vec![MachineAbsence { node: 1, from_s: 50, to_s: i64::MAX }];
        let run = TraceRun { given: vec![given, idle], absences, ..TraceRun::default() };
        // 100 busy machine-seconds out of 150 that there were.
        let used = utilisation(&two_machines(), UtilisationWeights::default(), &run, 100);
        assert!((used - 100.0 / 150.0).abs() < 1e-12, "{used}");
    }

    #[test]
    fn jains_index_is_one_for_equals_and_one_over_n_for_one_who_has_all() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }
}
