//! What the jobs of a generated workload ask for beside GPUs, and what they use of it all.
//!
//! Users have habits: each asks for so many processors and so much memory with a GPU, and keeps
//! them busy to a degree of his own; wide jobs wait for one another and keep their GPUs less busy.
//! Each run is off its habit by some chance. So the truth behind what is measured is known
//! ([`Habit::share`]), and with it how well it could be predicted at best.

use era_core::resources::{PerResource, Resource};

use crate::seeded::Seeded;
use crate::trace::{MeasuredUse, TraceJob};

/// A run is off its owner's habit by at most this, in thousandths of what was asked for: evenly,
/// so half as much in the mean.
pub const CHANCE: u32 = 100;

/// Adds resources and use to jobs of a workload. The same seed and job give the same.
#[derive(Clone, Copy, Debug)]
pub struct UsageModel {
    seed: u64,
}

/// What an owner asks for with a GPU, and uses of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habit {
    cpu_milli: u32,
    memory_mib: u32,
    /// Thousandths of what he asks for.
    shares: PerResource<u32>,
}

impl Habit {
    /// The share, in thousandths, that runs on so many GPUs use in the mean.
    pub fn share(&self, resource: Resource, gpus: u32) -> u32 {
        let alone = self.shares[resource as usize];
        match resource {
            // A tenth is lost with every doubling.
            Resource::Gpu => (0..gpus.max(1).ilog2()).fold(alone, |share, _| share * 9 / 10),
            Resource::Cpu | Resource::Memory => alone,
        }
    }
}

impl UsageModel {
    /// Those of the workload with this seed.
    pub fn new(seed: u64) -> UsageModel {
        UsageModel { seed }
    }

    /// What an owner is like.
    pub fn habit(&self, user: u32) -> Habit {
        let mut seeded = self.seeded(1, u64::from(user));
        // Far enough from nothing and from all that chance is not cut off.
        let mut share = || seeded.range(150, 900) as u32;
        let shares = [share(), share(), share()];
        Habit {
            cpu_milli: 1000 * seeded.pick(&[2, 4, 6, 8, 12]) as u32,
            memory_mib: 1024 * seeded.pick(&[8, 16, 32, 64]) as u32,
            shares,
        }
    }

    /// The job with its processors, its memory, and what it used of everything.
    pub fn of(&self, job: TraceJob) -> TraceJob {
        let gpus = (job.gpu_milli / 1000).max(1);
        let habit = self.habit(job.user.unwrap_or(0));
        let (cpu_milli, memory_mib) = (habit.cpu_milli * gpus, habit.memory_mib * gpus);
        let mut seeded = self.seeded(2, hash(&job.id));
        let mut used = |resource: Resource, asked: u32| {
            let share = i64::from(habit.share(resource, gpus));
            let chance = i64::from(CHANCE);
            let today = (share + seeded.range(-chance, chance + 1)).clamp(0, 1000);
            u32::try_from(i64::from(asked) * today / 1000).ok()
        };
        let used = MeasuredUse {
            cpu_milli: used(Resource::Cpu, cpu_milli),
            memory_mib: used(Resource::Memory, memory_mib),
            gpu_milli: used(Resource::Gpu, job.gpu_milli),
        };
        TraceJob { cpu_milli, memory_mib, used, ..job }
    }

    /// Chance of its own for each thing, so that nothing else about a workload changes by it.
    fn seeded(&self, what: u64, number: u64) -> Seeded {
        let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Seeded::new(self.seed ^ mixed.rotate_left(17) ^ what)
    }
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
