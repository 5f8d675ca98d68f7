//! What a task may use up, and how that is enforced.
//!
//! Where we have the right to, by control groups ([`cgroups`]): processor time, memory and number
//! of processes, each enforced by the kernel. Where we have not, the memory and the number of a
//! task's processes are sampled and enforced by a kill ([`tree`]); there is no limit on address
//! space in any case, since CUDA maps far more than it uses. Disk use is sampled everywhere
//! ([`disk`]). Systems without `/proc` are asked by other means (`census`). Who is limited, and what
//! ends a task, is decided in [`crate::shim`].

pub(crate) mod census;
pub mod cgroups;
pub mod disk;
pub mod tree;

use crate::executor::Launch;

/// What one task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// Thousandths of a core.
    pub cpu_milli: u32,
    /// Bytes of memory; 0 means that it is not limited.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
}

impl Amounts {
    pub fn of(launch: &Launch) -> Amounts {
        Amounts {
            cpu_milli: launch.each.cpu,
            memory_bytes: u64::from(launch.each.memory) << 20,
            processes: launch.spec.limits.processes,
        }
    }
}
