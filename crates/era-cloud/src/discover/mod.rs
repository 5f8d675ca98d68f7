//! This machine as a node: what it has for tasks, once its own limits are respected.
//!
//! A server inside a container or under a batch system must not promise the whole machine: cores
//! are those that this process may run on, memory is no more than its control group allows, and a
//! share is left for the system. GPUs are found through NVML; no driver means that there are none.
//! What is promised on a node is not known here.

mod gpu;
mod limits;
mod reach;

use std::collections::BTreeMap;
use std::path::Path;

use era_core::resources::{Capacity, GPUS_PER_NODE_MAX};
use era_core::units::{NAME_LEN_MAX, Name};

pub use gpu::{GpuDevice, model_name};
pub use reach::{address_towards, names_a_machine};

use crate::FoundNode;

/// This machine, with what only an executor on it needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// As the scheduler sees it.
    pub node: FoundNode,
    /// Its GPUs, in the order of the node's capacity.
    pub gpus: Vec<GpuDevice>,
}

impl Machine {
    /// What `CUDA_VISIBLE_DEVICES` says for a task that was given these GPUs: their UUIDs, which
    /// mean the same to every process, whatever order CUDA would number them in. Empty for none,
    /// so that a task without GPUs sees none.
    pub fn cuda_visible_devices(&self, gpus: &[u8]) -> String {
        let uuids = gpus.iter().filter_map(|n| self.gpus.get(usize::from(*n)));
        uuids.map(|gpu| gpu.uuid.as_str()).collect::<Vec<_>>().join(",")
    }
}

/// This machine, looked at now.
pub fn this_machine() -> Machine {
    let limits = limits::of_this_process(Path::new("/"));
    let mut gpus = gpu::find();
    gpus.truncate(GPUS_PER_NODE_MAX);
    let memory = usable_memory(total_memory(), limits.memory_bytes);
    let capacity = Capacity {
        cpu: usable_cpu(cores_allowed(), limits.cpu_milli),
        memory: u32::try_from(memory >> 20).unwrap_or(u32::MAX),
        gpus: gpus.iter().map(GpuDevice::as_resource).collect(),
        devices: BTreeMap::new(),
    };
    let labels = [("arch", std::env::consts::ARCH), ("os", std::env::consts::OS)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let host = sysinfo::System::host_name().unwrap_or_default();
    let (name, address) = (node_name(&host), None);
    Machine { node: FoundNode { name, capacity, labels, address, simulated: false }, gpus }
}

/// What a machine was given when it was made, where its system keeps no id of its own: on macOS.
pub fn hardware_id() -> Option<String> {
    cfg!(target_os = "macos").then(|| sysinfo::Product::uuid().ok()).flatten()
}

/// How many cores this process may run on.
fn cores_allowed() -> u32 {
    #[cfg(target_os = "linux")]
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        return set.count().max(1);
    }
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

fn total_memory() -> u64 {
    let memory = sysinfo::MemoryRefreshKind::nothing().with_ram();
    let only = sysinfo::RefreshKind::nothing().with_memory(memory);
    match sysinfo::System::new_with_specifics(only) {
        Ok(system) => system.total_memory(),
        Err(error) => {
            tracing::error!(%error, "the system does not say how much memory there is: none is used");
            0
        }
    }
}

/// Thousandths of a core for tasks.
fn usable_cpu(cores: u32, limit_milli: Option<u32>) -> u32 {
    let cores = cores.saturating_mul(1000);
    limit_milli.map_or(cores, |limit| cores.min(limit)).max(1)
}

/// Bytes of memory for tasks: a twentieth, but from 512 MiB to 8 GiB, is left for the system, and
/// never more than half.
pub(crate) fn usable_memory(total: u64, limit: Option<u64>) -> u64 {
    let there = limit.map_or(total, |limit| total.min(limit));
    let left = (there / 20).clamp(512 << 20, 8 << 30).min(there / 2);
    there - left
}

/// A host name as a name that the scheduler takes.
pub(crate) fn node_name(host: &str) -> String {
    let name: String = host
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(NAME_LEN_MAX)
        .collect();
    Name::new(&name).map_or_else(|_| "node".to_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_a_node_that_the_scheduler_takes() {
        let machine = this_machine();
        assert!(Name::new(&machine.node.name).is_ok());
        assert!(machine.node.capacity.cpu > 0 && machine.node.capacity.memory > 0);
        assert_eq!(machine.node.capacity.gpus.len(), machine.gpus.len());
        let cores = std::thread::available_parallelism().unwrap().get() as u32;
        assert!(machine.node.capacity.cpu / 1000 <= cores);
        for (key, value) in &machine.node.labels {
            assert!(Name::new(key).is_ok() && Name::new(value).is_ok(), "{key}={value}");
        }
    }

    #[test]
    fn a_share_of_the_memory_is_left_for_the_system() {
        const GIB: u64 = 1 << 30;
        assert_eq!(usable_memory(100 * GIB, None), 95 * GIB);
        assert_eq!(usable_memory(1024 * GIB, None), 1016 * GIB);
        assert_eq!(usable_memory(4 * GIB, None), 4 * GIB - GIB / 2);
        assert_eq!(usable_memory(64 * GIB, Some(20 * GIB)), 19 * GIB);
        assert_eq!(usable_memory(GIB / 2, None), GIB / 4);
    }

    #[test]
    fn cores_are_those_that_the_process_may_use() {
        assert_eq!(usable_cpu(8, None), 8000);
        assert_eq!(usable_cpu(8, Some(1500)), 1500);
        assert_eq!(usable_cpu(2, Some(4000)), 2000);
    }

    #[test]
    fn any_host_name_becomes_a_name() {
        assert_eq!(node_name("gpu-7.lab.example"), "gpu-7.lab.example");
        assert_eq!(node_name("-größe 1"), "gr--e-1");
        assert_eq!(node_name(""), "node");
        assert_eq!(node_name(&"x".repeat(300)).len(), NAME_LEN_MAX);
    }

    #[test]
    fn a_task_sees_the_gpus_that_it_was_given_and_no_other() {
        let gpu = |n: u32| GpuDevice {
            index: n,
            uuid: format!("GPU-{n}"),
            product: "NVIDIA H100".into(),
            memory_bytes: 80 << 30,
            bus: format!("0000:0{n}:00.0"),
        };
        let mut machine = this_machine();
        machine.gpus = vec![gpu(0), gpu(1), gpu(2)];
        assert_eq!(machine.cuda_visible_devices(&[2, 0]), "GPU-2,GPU-0");
        assert_eq!(machine.cuda_visible_devices(&[]), "");
    }
}
