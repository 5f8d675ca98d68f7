//! What tasks use of GPUs, as NVML says.

use std::collections::HashMap;

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::{Device, Nvml};

use super::{GpuUse, Watched};
use crate::discover::GpuDevice;

/// The GPUs of a machine. Without any, nothing is asked of the driver.
pub(super) struct Gpus {
    nvml: Option<Nvml>,
    uuids: Vec<String>,
    /// The driver's clock at the last look, for each GPU, in microseconds.
    seen_us: Vec<u64>,
}

/// What the driver says of one GPU.
#[derive(Clone, Debug, Default, PartialEq)]
struct Look {
    busy: Option<f64>,
    memory_bytes: Option<u64>,
    /// Part of the time that each process kept it busy.
    busy_by: HashMap<u32, f64>,
    memory_by: HashMap<u32, u64>,
}

impl Gpus {
    pub(super) fn new(gpus: &[GpuDevice]) -> Gpus {
        let nvml = if gpus.is_empty() { None } else { Nvml::init().ok() };
        let uuids: Vec<String> = gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        Gpus { nvml, seen_us: vec![0; uuids.len()], uuids }
    }

    /// For each task what it uses of its GPUs, given the processes of each.
    pub(super) fn sample(&mut self, watched: &[Watched], pids: &[&[u32]]) -> Vec<Vec<GpuUse>> {
        let mut users: HashMap<u8, u32> = HashMap::new();
        for gpu in watched.iter().flat_map(|task| &task.gpus) {
            *users.entry(*gpu).or_default() += 1;
        }
        let looks: HashMap<u8, Look> =
            users.keys().map(|gpu| (*gpu, self.look(usize::from(*gpu)))).collect();
        let of_task = |task: &Watched, pids: &[u32]| {
            let gpus = task.gpus.iter();
            gpus.map(|gpu| attribute(*gpu, &looks[gpu], pids, users[gpu] > 1)).collect()
        };
        watched.iter().zip(pids).map(|(task, pids)| of_task(task, pids)).collect()
    }

    fn look(&mut self, gpu: usize) -> Look {
        let device = self.nvml.as_ref().zip(self.uuids.get(gpu));
        let device = device.and_then(|(nvml, uuid)| nvml.device_by_uuid(uuid.as_str()).ok());
        device.map_or_else(Look::default, |device| ask(&device, &mut self.seen_us[gpu]))
    }
}

/// Asks the driver. What it does not tell, as old or virtual GPUs do not, stays unknown.
fn ask(device: &Device<'_>, seen_us: &mut u64) -> Look {
    let mut look = Look {
        busy: device.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
        memory_bytes: device.memory_info().ok().map(|info| info.used),
        ..Look::default()
    };
    for process in device.running_compute_processes().unwrap_or_default() {
        if let UsedGpuMemory::Used(bytes) = process.used_gpu_memory {
            *look.memory_by.entry(process.pid).or_default() += bytes;
        }
    }
    // The newest of each process counts: they come several times a second.
    let mut stats = device.process_utilization_stats(*seen_us).unwrap_or_default();
    stats.sort_unstable_by_key(|stat| stat.timestamp);
    for stat in stats {
        *seen_us = (*seen_us).max(stat.timestamp);
        look.busy_by.insert(stat.pid, f64::from(stat.sm_util.min(100)) / 100.0);
    }
    look
}

/// What one task uses of a GPU. One that has it alone uses all that is used. Of a shared one it is
/// known only where the driver names processes that are the task's: inside a container it names
/// those of the host.
fn attribute(gpu: u8, look: &Look, pids: &[u32], shared: bool) -> GpuUse {
    let of = |pid: &u32| look.memory_by.get(pid).copied();
    let memory: Vec<u64> = pids.iter().filter_map(of).collect();
    let memory_own = (!memory.is_empty()).then(|| memory.iter().sum());
    if !shared {
        return GpuUse { gpu, busy: look.busy, memory_bytes: memory_own.or(look.memory_bytes) };
    }
    let busy: Vec<f64> = pids.iter().filter_map(|pid| look.busy_by.get(pid).copied()).collect();
    // A process that holds memory and is not named among the busy ones does nothing.
    let busy = match (busy.is_empty(), memory_own) {
        (false, _) => Some(busy.iter().sum::<f64>().min(1.0)),
        (true, Some(_)) => Some(0.0),
        (true, None) => None,
    };
    GpuUse { gpu, busy, memory_bytes: memory_own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look() -> Look {
        Look {
            busy: Some(0.8),
            memory_bytes: Some(1000),
            busy_by: HashMap::from([(10, 0.5), (11, 0.2)]),
            memory_by: HashMap::from([(10, 300), (11, 100), (20, 50)]),
        }
    }

    #[test]
    fn one_that_has_a_gpu_alone_uses_all_that_is_used() {
        let alone = attribute(3, &look(), &[10, 11, 12], false);
        assert_eq!(alone, GpuUse { gpu: 3, busy: Some(0.8), memory_bytes: Some(400) });
        let unnamed = attribute(3, &look(), &[99], false);
        assert_eq!(unnamed, GpuUse { gpu: 3, busy: Some(0.8), memory_bytes: Some(1000) });
    }

    #[test]
    fn a_share_is_told_only_where_the_driver_names_its_processes() {
        let share = |pids: &[u32]| {
            let use_ = attribute(0, &look(), pids, true);
            (use_.busy, use_.memory_bytes)
        };
        assert_eq!(share(&[10, 11]), (Some(0.7), Some(400)));
        assert_eq!(share(&[20]), (Some(0.0), Some(50)));
        assert_eq!(share(&[99]), (None, None));
    }

    #[test]
    fn without_a_driver_nothing_is_known_and_nothing_fails() {
        let mut gpus = Gpus::new(&[]);
        let task =
            era_core::job::TaskId { job: era_core::units::JobId(1), part: 0, attempt: 1, rank: 0 };
        let watched =
            Watched { task, processes: vec![], groups: vec![], memory_limit: None, gpus: vec![0] };
        let unknown = GpuUse { gpu: 0, busy: None, memory_bytes: None };
        assert_eq!(gpus.sample(&[watched], &[&[]]), [[unknown]]);
    }
}
