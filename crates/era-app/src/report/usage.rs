//! Utilisation by the platform's formula.
//!
//! A machine's is `cpu · ratio + memory · ratio + gpu · ratio`: of each resource the share that is
//! given out, weighted by ratios that add up to one over the resources that the machine has. The
//! platform's is the mean over machines, each counted for as long as it was there.

use std::collections::{BTreeMap, BTreeSet};

use era_api::cluster::{Utilisation, UtilisationPoint};
use era_api::report::Simulated;
use era_core::units::{NodeId, Time};
use era_store::tables::{HOUR_MS, NodeSpan, NodeUse, TaskRow};

use super::ReportPeriod;
use crate::wire::stamp;

/// How much cores, memory and GPUs count, before those that a machine lacks are left out.
const RATIOS: [f64; 3] = [1.0, 1.0, 1.0];

/// What machines had and gave out.
#[derive(Clone, Debug)]
pub struct MachineUsage {
    pub period: ReportPeriod,
    /// Tasks that are over, by node and hour.
    pub hours: Vec<NodeUse>,
    /// Tasks that are not.
    pub open: Vec<TaskRow>,
    /// Since when which machines were there.
    pub spans: Vec<NodeSpan>,
}

/// Shares that are given out, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// By the formula.
    pub value: f64,
    /// Of cores, memory and GPUs, over all machines together.
    pub each: [f64; 3],
}

/// Amounts of one machine: cores, memory, GPUs.
#[derive(Clone, Copy, Debug, Default)]
struct MachineAmounts {
    had: [f64; 3],
    gave: [f64; 3],
    there_ms: f64,
}

impl MachineUsage {
    /// Over a part of the period, in whole hours; `None` where no machine was there.
    pub fn over(&self, part: ReportPeriod) -> Option<Shares> {
        shares(self.machines(part).into_values())
    }

    /// How much of the period was only simulated; `None` where nothing was.
    pub fn simulated(&self, asleep: &BTreeSet<NodeId>, jobs: u64) -> Option<Simulated> {
        let mut nodes = 0;
        let [mut slept, mut all] = [0.0; 2];
        for (node, machine) in self.machines(self.period) {
            let cores = machine.gave[0];
            all += cores;
            if asleep.contains(&node) {
                slept += cores;
                nodes += u64::from(machine.there_ms > 0.0);
            }
        }
        (nodes > 0 || jobs > 0).then(|| Simulated { jobs, nodes, share: share(slept, all) })
    }

    /// What each machine had and gave out in a part of the period.
    fn machines(&self, part: ReportPeriod) -> BTreeMap<NodeId, MachineAmounts> {
        let mut machines: BTreeMap<NodeId, MachineAmounts> = BTreeMap::new();
        for span in &self.spans {
            let ms = overlap(span.since, span.until, part);
            let machine = machines.entry(span.node).or_default();
            machine.there_ms += ms;
            add(&mut machine.had, span.units.map(|units| units as f64 * ms));
        }
        let within = |hour: i64| hour * HOUR_MS < part.to.0 && (hour + 1) * HOUR_MS > part.from.0;
        for used in self.hours.iter().filter(|used| within(used.hour)) {
            let machine = machines.entry(used.node).or_default();
            add(&mut machine.gave, used.unit_ms.map(|sum| sum as f64));
        }
        for task in &self.open {
            let Some(node) = task.node else { continue };
            let ms = overlap(task.launched, None, part);
            let machine = machines.entry(node).or_default();
            add(&mut machine.gave, task.units.map(|units| units as f64 * ms));
        }
        machines
    }

    /// At this moment.
    pub fn now(&self, now: Time) -> Utilisation {
        let mut machines: BTreeMap<NodeId, MachineAmounts> = BTreeMap::new();
        for span in self.spans.iter().filter(|span| span.until.is_none() && span.since <= now) {
            let machine = machines.entry(span.node).or_default();
            machine.there_ms = 1.0;
            machine.had = span.units.map(|units| units as f64);
        }
        for task in &self.open {
            if let Some(machine) = task.node.and_then(|node| machines.get_mut(&node)) {
                add(&mut machine.gave, task.units.map(|units| units as f64));
            }
        }
        let Shares { value, each: [cpu, memory, gpu] } =
            shares(machines.values().copied()).unwrap_or_default();
        Utilisation { now: value, cpu, memory, gpu, over_time: Vec::new() }
    }

    /// Hour by hour; an hour without machines is nought.
    pub fn by_hour(&self) -> Vec<UtilisationPoint> {
        let first = self.period.from.0.div_euclid(HOUR_MS);
        let last = (self.period.to.0 - 1).div_euclid(HOUR_MS);
        let hour = |hour: i64| {
            let (from, to) = (Time(hour * HOUR_MS), Time((hour + 1) * HOUR_MS));
            let part = ReportPeriod { from, to: to.min(self.period.to) };
            let value = self.over(part).map_or(0.0, |shares| shares.value);
            UtilisationPoint { from: stamp(from), value }
        };
        (first..=last).map(hour).collect()
    }
}

fn overlap(since: Time, until: Option<Time>, part: ReportPeriod) -> f64 {
    let to = until.unwrap_or(Time::MAX).min(part.to);
    to.since(since.max(part.from)).0.max(0) as f64
}

fn add(sums: &mut [f64; 3], more: [f64; 3]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

fn shares(machines: impl Iterator<Item = MachineAmounts>) -> Option<Shares> {
    let (mut value, mut weight) = (0.0, 0.0);
    let (mut had, mut gave) = ([0.0; 3], [0.0; 3]);
    for machine in machines.filter(|machine| machine.there_ms > 0.0) {
        value += formula(&machine) * machine.there_ms;
        weight += machine.there_ms;
        add(&mut had, machine.had);
        add(&mut gave, machine.gave);
    }
    let each = [0, 1, 2].map(|r| share(gave[r], had[r]).unwrap_or(0.0));
    (weight > 0.0).then(|| Shares { value: value / weight, each })
}

fn formula(machine: &MachineAmounts) -> f64 {
    let (mut sum, mut ratios) = (0.0, 0.0);
    for ((had, gave), ratio) in machine.had.iter().zip(machine.gave).zip(RATIOS) {
        if let Some(share) = share(gave, *had) {
            sum += ratio * share;
            ratios += ratio;
        }
    }
    if ratios > 0.0 { sum / ratios } else { 0.0 }
}

/// A task of a machine that was lost may outlast it for a moment: no share is above one.
fn share(gave: f64, had: f64) -> Option<f64> {
    (had > 0.0).then(|| (gave / had).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: ReportPeriod = ReportPeriod { from: Time(0), to: Time(2 * HOUR_MS) };

    fn machine(node: u32, units: [u64; 3]) -> NodeSpan {
        NodeSpan { node: NodeId(node), since: Time(0), until: None, units }
    }

    fn used(hour: i64, node: u32, units: [i64; 3]) -> NodeUse {
        NodeUse { hour, node: NodeId(node), unit_ms: units.map(|units| units * HOUR_MS) }
    }

    fn usage(hours: Vec<NodeUse>, spans: Vec<NodeSpan>) -> MachineUsage {
        MachineUsage { period: HOURS, hours, open: Vec::new(), spans }
    }

    #[test]
    fn it_is_the_mean_over_machines_of_the_mean_over_what_they_have() {
        let spans = vec![machine(1, [4000, 1000, 2000]), machine(2, [4000, 1000, 0])];
        let usage =
            usage(vec![used(0, 1, [2000, 500, 2000]), used(1, 1, [2000, 500, 2000])], spans);
        let shares = usage.over(HOURS).unwrap();
        // The first: (½ + ½ + 1) / 3; the second, which has no GPU, nought of two.
        assert!((shares.value - (2.0 / 3.0) / 2.0).abs() < 1e-9, "{shares:?}");
        assert_eq!(shares.each, [0.25, 0.25, 1.0]);
        let hours: Vec<f64> = usage.by_hour().iter().map(|point| point.value).collect();
        assert_eq!(hours.len(), 2);
        assert!((hours[0] - shares.value).abs() < 1e-9 && (hours[1] - shares.value).abs() < 1e-9);
    }

    #[test]
    fn a_machine_counts_for_as_long_as_it_was_there() {
        let mut half = machine(2, [1000, 0, 0]);
        half.until = Some(Time(HOUR_MS));
        let spans = vec![machine(1, [1000, 0, 0]), half];
        let shares = usage(vec![used(0, 2, [1000, 0, 0])], spans).over(HOURS).unwrap();
        assert!((shares.value - 1.0 / 3.0).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn tasks_that_still_run_count_up_to_the_end_of_the_period() {
        let mut usage = usage(Vec::new(), vec![machine(1, [1000, 0, 0])]);
        usage.open.push(TaskRow {
            job: era_core::units::JobId(1),
            part: 0,
            attempt: 1,
            rank: 0,
            node: Some(NodeId(1)),
            gpus: 0,
            units: [500, 0, 0],
            launched: Time(HOUR_MS),
            started: None,
            ended: None,
            exit_code: None,
            cause: None,
            prepared_ms: None,
        });
        assert!((usage.over(HOURS).unwrap().value - 0.25).abs() < 1e-9);
        assert!((usage.now(Time(2 * HOUR_MS)).now - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_simulated_nodes_gave_out_is_told_apart() {
        let spans = vec![machine(1, [4000, 0, 0]), machine(2, [4000, 0, 0])];
        let usage = usage(vec![used(0, 1, [1000, 0, 0]), used(1, 2, [3000, 0, 0])], spans);
        let told = usage.simulated(&[NodeId(2), NodeId(9)].into(), 5);
        assert_eq!(told, Some(Simulated { jobs: 5, nodes: 1, share: Some(0.75) }));
        assert_eq!(usage.simulated(&BTreeSet::new(), 0), None, "all of it was real");
    }

    #[test]
    fn without_machines_there_is_no_utilisation() {
        assert_eq!(usage(Vec::new(), Vec::new()).over(HOURS), None);
    }
}
