//! What tasks use: cores, memory, disk, network and GPUs, all tasks in one pass.
//!
//! A task is watched by its control groups where it has them, else by its processes: those below
//! it, and those of its session whatever became of their parents. What cannot be told is left out
//! rather than guessed: on the machine's network what the kernel counts by connection, a share of a
//! GPU only where the driver tells processes apart.
//!
//! What a task may use, and what becomes of one that uses more, is not decided here.

mod gpu;
mod group;
mod idle;
#[cfg_attr(not(target_os = "linux"), path = "no_network.rs")]
mod network;
mod process;

use std::collections::BTreeMap;
use std::path::PathBuf;

use era_core::job::TaskId;
use era_core::units::Time;

pub use idle::{Idle, IdleRule};

use crate::Sample;
use crate::discover::GpuDevice;
use gpu::Gpus;
use network::Network;
pub(crate) use process::Processes;

/// A task that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    pub task: TaskId,
    /// Its first processes: all below them and in their sessions are its own.
    pub processes: Vec<u32>,
    /// The folders of its control groups, if it has any of its own (one in version 2, one for
    /// each controller in version 1).
    pub groups: Vec<PathBuf>,
    /// How much memory it may use. Where its processes seem to use more, what they share is
    /// counted once, which is exact and dear.
    pub memory_limit: Option<u64>,
    /// The node's GPUs that it was given.
    pub gpus: Vec<u8>,
}

/// What a task uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskUsage {
    /// Cores, on average since the last look; unknown at the first.
    pub cpu_cores: Option<f64>,
    /// Memory now, without what the system could take back at once.
    pub memory_bytes: u64,
    /// The most memory so far.
    pub memory_peak_bytes: u64,
    /// Read from disk so far.
    pub disk_read_bytes: Option<u64>,
    /// Written to disk so far.
    pub disk_written_bytes: Option<u64>,
    /// Received over the network so far; on the machine's own at least so much.
    pub received_bytes: Option<u64>,
    /// Sent over the network so far; on the machine's own at least so much.
    pub sent_bytes: Option<u64>,
    /// How many processes it has.
    pub processes: u32,
    pub gpus: Vec<GpuUse>,
}

/// What a task uses of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuUse {
    /// Which of the node.
    pub gpu: u8,
    /// How much of the time it was busy: 0 to 1.
    pub busy: Option<f64>,
    /// Its memory in use.
    pub memory_bytes: Option<u64>,
}

impl TaskUsage {
    /// As values that are recorded: `usage/cpu` in cores, `usage/memory` in bytes, and so on.
    /// Bytes read, written, sent and received are totals.
    pub fn samples(&self, step: u64, at: Time) -> Vec<Sample> {
        let bytes = |n: Option<u64>| n.map(|n| n as f64);
        let mut values = vec![
            ("usage/cpu".to_owned(), self.cpu_cores),
            ("usage/memory".to_owned(), Some(self.memory_bytes as f64)),
            ("usage/memory_peak".to_owned(), Some(self.memory_peak_bytes as f64)),
            ("usage/disk_read".to_owned(), bytes(self.disk_read_bytes)),
            ("usage/disk_written".to_owned(), bytes(self.disk_written_bytes)),
            ("usage/net_received".to_owned(), bytes(self.received_bytes)),
            ("usage/net_sent".to_owned(), bytes(self.sent_bytes)),
        ];
        for gpu in &self.gpus {
            values.push((format!("usage/gpu{}", gpu.gpu), gpu.busy));
            values.push((format!("usage/gpu{}_memory", gpu.gpu), bytes(gpu.memory_bytes)));
        }
        values
            .into_iter()
            .filter_map(|(name, value)| Some(Sample { name, step, at, value: value? }))
            .collect()
    }
}

/// Looks at tasks now and then, and remembers what it needs to tell rates and peaks.
pub struct Sampler {
    gpus: Gpus,
    network: Network,
    before: BTreeMap<TaskId, Before>,
}

/// What was seen of a task at the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    at: Time,
    cpu_us: u64,
    memory_peak_bytes: u64,
    disk_read_bytes: u64,
    disk_written_bytes: u64,
}

/// What the system says of a task at one look, from whichever source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UsageReading {
    cpu_us: Option<u64>,
    memory_bytes: Option<u64>,
    memory_peak_bytes: Option<u64>,
    disk_read_bytes: Option<u64>,
    disk_written_bytes: Option<u64>,
}

impl Sampler {
    /// A sampler on a machine with these GPUs, as [`discover`](crate::discover) found them.
    pub fn new(gpus: &[GpuDevice]) -> Sampler {
        Sampler { gpus: Gpus::new(gpus), network: Network::default(), before: BTreeMap::new() }
    }

    /// Looks at all tasks at once. A task that has no process any more is left out.
    pub fn sample(&mut self, watched: &[Watched], at: Time) -> Vec<(TaskId, TaskUsage)> {
        let needs_processes = |task: &Watched| !task.processes.is_empty();
        let processes = match watched.iter().any(needs_processes) {
            true => Processes::now(),
            false => Processes::default(),
        };
        self.sample_of(&processes, watched, at)
    }

    /// The same, of processes that were looked at already.
    pub(crate) fn sample_of(
        &mut self,
        processes: &Processes,
        watched: &[Watched],
        at: Time,
    ) -> Vec<(TaskId, TaskUsage)> {
        let trees = processes.trees(watched);
        let pids: Vec<&[u32]> = trees.iter().map(Vec::as_slice).collect();
        let gpus = self.gpus.sample(watched, &pids);
        let own: Vec<Option<(u64, u64)>> = pids.iter().map(|t| process::own_network(t)).collect();
        let on_ours = watched.iter().zip(&pids).zip(&own).filter(|(_, own)| own.is_none());
        let on_ours: Vec<(TaskId, &[u32])> =
            on_ours.map(|((task, tree), _)| (task.task, *tree)).collect();
        let shared = self.network.look(&on_ours);
        let mut usages = Vec::new();
        let mut now_seen = BTreeMap::new();
        for (((task, tree), gpus), own) in watched.iter().zip(&trees).zip(gpus).zip(own) {
            let by_group = group::look(&task.groups);
            if tree.is_empty() && by_group.cpu_us.is_none() {
                continue;
            }
            let by_process = processes.look(tree, task.memory_limit, by_group);
            let network = own.or_else(|| shared.get(&task.task).copied());
            let before = self.before.get(&task.task).copied();
            let (mut usage, now) = weigh(by_group, by_process, before, at);
            usage.processes = u32::try_from(tree.len()).unwrap_or(u32::MAX);
            (usage.received_bytes, usage.sent_bytes) = network.unzip();
            usage.gpus = gpus;
            now_seen.insert(task.task, now);
            usages.push((task.task, usage));
        }
        self.before = now_seen;
        usages
    }
}

/// What a task uses, from what was seen now and before. A group's word counts before that of the
/// processes, which may have ended unseen in between.
fn weigh(
    group: UsageReading,
    process: UsageReading,
    before: Option<Before>,
    at: Time,
) -> (TaskUsage, Before) {
    let pick = |field: fn(&UsageReading) -> Option<u64>| field(&group).or(field(&process));
    let was = before.unwrap_or_default();
    // A process that ended without being waited for takes its count with it: totals never fall.
    let cpu_us = pick(|seen| seen.cpu_us).unwrap_or(0).max(was.cpu_us);
    let memory_bytes = pick(|seen| seen.memory_bytes).unwrap_or(0);
    let peak = pick(|seen| seen.memory_peak_bytes).unwrap_or(0);
    let total = |now: Option<u64>, was: u64| now.map(|now| now.max(was));
    let read = total(pick(|seen| seen.disk_read_bytes), was.disk_read_bytes);
    let written = total(pick(|seen| seen.disk_written_bytes), was.disk_written_bytes);
    let now = Before {
        at,
        cpu_us,
        memory_peak_bytes: memory_bytes.max(peak).max(was.memory_peak_bytes),
        disk_read_bytes: read.unwrap_or(was.disk_read_bytes),
        disk_written_bytes: written.unwrap_or(was.disk_written_bytes),
    };
    let elapsed_ms = before.map(|before| at.since(before.at).ms()).filter(|ms| *ms > 0);
    let usage = TaskUsage {
        cpu_cores: elapsed_ms.map(|ms| (cpu_us - was.cpu_us) as f64 / (ms as f64 * 1000.0)),
        memory_bytes,
        memory_peak_bytes: now.memory_peak_bytes,
        disk_read_bytes: read,
        disk_written_bytes: written,
        ..TaskUsage::default()
    };
    (usage, now)
}

#[cfg(test)]
mod tests;
