//! Who was where and when: bar by bar where there are few enough of them to tell apart, and
//! otherwise how full each part of the cluster was.

use std::collections::BTreeMap;

use serde::Serialize;

use super::series::Axis;
use super::{party_name, round};
use crate::measure::Parties;
use crate::run::{Interval, Machines, Setup, TraceRun};
use crate::trace::{Trace, TraceJob};

/// More bars than this nobody can tell apart.
const BARS_MAX: usize = 4_000;
/// More GPUs than this are drawn as how full their nodes were.
const BAR_GPUS_MAX: u64 = 512;
/// Rows and columns of the map.
const ROWS_MAX: usize = 96;
const COLUMNS: usize = 360;
/// How many groups or users have a colour of their own.
const COLOURS: usize = 7;
/// Levels of fullness as letters: 0 is empty, 63 is full. A `-` is a machine that was away.
const LEVELS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const AWAY: u8 = b'-';

/// Who was where and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Gantt {
    /// Every run of every job, GPU by GPU.
    Bars {
        /// The nodes: name and number of GPUs.
        nodes: Vec<(String, u32)>,
        /// The groups or users that have a colour.
        parties: Vec<String>,
        /// First GPU (counted over all nodes), GPUs, start and end in seconds, group (the number
        /// of colours for the others), job.
        bars: Vec<(u32, u32, i64, i64, usize, usize)>,
        /// What the trace calls the jobs.
        jobs: Vec<String>,
        /// When nodes were away: node, start, end.
        away: Vec<(u32, i64, i64)>,
    },
    /// How full each row was.
    Map {
        /// What a row is: `node`, `nodes` or `party`.
        of: &'static str,
        rows: Vec<String>,
        /// How long a column is, in seconds.
        step_s: f64,
        /// What a full cell stands for, in GPUs a row.
        full_gpus: Vec<f64>,
        /// Row by row, a letter a cell.
        cells: Vec<String>,
    },
}

pub(super) fn gantt(
    trace: &Trace,
    setup: &Setup,
    run: &TraceRun,
    nodes: &[Box<str>],
    makespan_s: i64,
) -> Gantt {
    let axis = Axis::new(makespan_s, COLUMNS);
    let Machines::Nodes(machines) = &setup.machines else {
        return map_of_parties(trace, run, axis);
    };
    let node_name = |node: usize| nodes.get(node).map_or(format!("n{node}"), |n| n.to_string());
    let gpus: Vec<u32> = machines.iter().map(|machine| machine.gpus).collect();
    let seen: Vec<&Interval> = run.intervals.iter().filter(|i| i.gpus != 0).collect();
    if seen.len() <= BARS_MAX && setup.machines.gpus() <= BAR_GPUS_MAX {
        let nodes = gpus.iter().enumerate().map(|(node, gpus)| (node_name(node), *gpus));
        return bars(trace, run, &seen, nodes.collect(), makespan_s);
    }
    map_of_nodes(run, &gpus, node_name, axis)
}

fn party_of(trace: &Trace, job: &TraceJob) -> Option<u32> {
    match Parties::of(trace) {
        Parties::Groups => job.group,
        Parties::Users => job.user,
    }
}

/// Groups or users by the GPU time that they had, the greediest first.
fn by_gpu_time(trace: &Trace, run: &TraceRun) -> Vec<Option<u32>> {
    let mut time: BTreeMap<Option<u32>, f64> = BTreeMap::new();
    for i in &run.intervals {
        let held = (i.end_s - i.start_s) as f64 * gpus_of(i);
        *time.entry(party_of(trace, &trace.jobs[i.job as usize])).or_default() += held;
    }
    let mut parties: Vec<_> = time.into_iter().collect();
    parties.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    parties.into_iter().map(|(party, _)| party).collect()
}

/// A pool's GPUs are counted as processors.
fn gpus_of(interval: &Interval) -> f64 {
    let milli = if interval.gpus == 0 { interval.cpu_milli } else { interval.gpu_milli };
    f64::from(milli) / 1000.0
}

fn bars(
    trace: &Trace,
    run: &TraceRun,
    seen: &[&Interval],
    nodes: Vec<(String, u32)>,
    makespan_s: i64,
) -> Gantt {
    let firsts: Vec<u32> = nodes
        .iter()
        .scan(0, |next, (_, gpus)| {
            let first = *next;
            *next += gpus;
            Some(first)
        })
        .collect();
    let coloured: Vec<Option<u32>> = by_gpu_time(trace, run).into_iter().take(COLOURS).collect();
    let mut jobs: Vec<String> = Vec::new();
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    let mut bars = Vec::with_capacity(seen.len());
    for i in seen {
        let job = *places.entry(i.job).or_insert_with(|| {
            jobs.push(trace.jobs[i.job as usize].id.to_string());
            jobs.len() - 1
        });
        let party = party_of(trace, &trace.jobs[i.job as usize]);
        let colour = coloured.iter().position(|p| *p == party).unwrap_or(COLOURS);
        for (first, count) in runs_of_bits(i.gpus) {
            let first = firsts[i.node as usize] + first;
            bars.push((first, count, i.start_s, i.end_s, colour, job));
        }
    }
    let parties = coloured.into_iter().map(|party| party_name(trace, party)).collect();
    let away = run.absences.iter().filter(|absence| absence.from_s < makespan_s);
    let away = away.map(|a| (a.node, a.from_s, a.to_s.min(makespan_s))).collect();
    Gantt::Bars { nodes, parties, bars, jobs, away }
}

/// Neighbouring GPUs together: the first of them, and how many.
fn runs_of_bits(mut mask: u64) -> Vec<(u32, u32)> {
    let mut runs = Vec::new();
    while mask != 0 {
        let first = mask.trailing_zeros();
        let count = (mask >> first).trailing_ones();
        runs.push((first, count));
        mask = if first + count >= 64 { 0 } else { mask >> (first + count) << (first + count) };
    }
    runs
}

fn map_of_nodes(
    run: &TraceRun,
    gpus: &[u32],
    node_name: impl Fn(usize) -> String,
    axis: Axis,
) -> Gantt {
    let together = gpus.len().div_ceil(ROWS_MAX).max(1);
    let rows = gpus.len().div_ceil(together);
    let mut used = vec![vec![0.0; COLUMNS]; rows];
    for i in &run.intervals {
        let row = &mut used[i.node as usize / together];
        axis.spread(i.start_s, i.end_s, |column, time| row[column] += gpus_of(i) * time);
    }
    let mut away = vec![vec![0.0; COLUMNS]; rows];
    for a in &run.absences {
        let row = &mut away[a.node as usize / together];
        axis.spread(a.from_s, a.to_s, |column, time| row[column] += time / together as f64);
    }
    let full_gpus: Vec<f64> =
        gpus.chunks(together).map(|nodes| f64::from(nodes.iter().sum::<u32>())).collect();
    let cells = used.iter().zip(&away).zip(&full_gpus).map(|((used, away), full)| {
        let cell = |(used, away): (&f64, &f64)| {
            if *away > 0.5 { AWAY } else { level(used / full.max(1e-9)) }
        };
        letters(used.iter().zip(away).map(cell))
    });
    let label = |row: usize| {
        let (first, last) = (row * together, ((row + 1) * together).min(gpus.len()) - 1);
        match together {
            1 => node_name(first),
            _ => format!("{} to {}", node_name(first), node_name(last)),
        }
    };
    let cells = cells.collect();
    let of = if together == 1 { "node" } else { "nodes" };
    Gantt::Map {
        of,
        rows: (0..rows).map(label).collect(),
        step_s: round(axis.step_s, 3),
        full_gpus,
        cells,
    }
}

/// A pool has no nodes: its rows are those who held its GPUs.
fn map_of_parties(trace: &Trace, run: &TraceRun, axis: Axis) -> Gantt {
    const SHOWN: usize = 24;
    let order = by_gpu_time(trace, run);
    let others = order.len() > SHOWN;
    let shown = if others { SHOWN - 1 } else { order.len() };
    let places: BTreeMap<Option<u32>, usize> =
        order.iter().enumerate().map(|(place, party)| (*party, place.min(shown))).collect();
    let mut used = vec![vec![0.0; COLUMNS]; shown + usize::from(others)];
    for i in &run.intervals {
        let row = &mut used[places[&party_of(trace, &trace.jobs[i.job as usize])]];
        axis.spread(i.start_s, i.end_s, |column, time| row[column] += gpus_of(i) * time);
    }
    let most = used.iter().flatten().fold(1e-9, |most: f64, cell| most.max(*cell));
    let cells = used.iter().map(|row| letters(row.iter().map(|cell| level(cell / most))));
    let mut rows: Vec<String> =
        order.iter().take(shown).map(|party| party_name(trace, *party)).collect();
    if others {
        rows.push(format!("{} others", order.len() - shown));
    }
    let cells = cells.collect();
    let full_gpus = vec![round(most, 3); rows.len()];
    Gantt::Map { of: "party", rows, step_s: round(axis.step_s, 3), full_gpus, cells }
}

fn level(part: f64) -> u8 {
    LEVELS[(part.clamp(0.0, 1.0) * 63.0).round() as usize]
}

fn letters(cells: impl Iterator<Item = u8>) -> String {
    cells.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::runs_of_bits;

    #[test]
    fn neighbouring_gpus_make_one_bar() {
        assert_eq!(runs_of_bits(0b1101_1000), [(3, 2), (6, 2)]);
        assert_eq!(runs_of_bits(u64::MAX), [(0, 64)]);
        assert_eq!(runs_of_bits(1 << 63), [(63, 1)]);
        assert!(runs_of_bits(0).is_empty());
    }
}
