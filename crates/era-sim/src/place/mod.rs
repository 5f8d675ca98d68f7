//! The placement experiment of fragmentation gradient descent (Weng et al., ATC '23): pods are
//! drawn at random from a list and placed one by one on an empty cluster; nothing ever leaves,
//! and a pod that fits nowhere is dropped. What is measured is how much of the cluster's GPUs is
//! allocated once so much demand has arrived.
//!
//! Pods are placed by `era_core::placement::Gang::place` on the core's own calendar, where they
//! stay booked for ever. `step` is left out on purpose: prices, queues, ageing and backfilling
//! would decide which pod is placed next, and here only *where* is of interest. Rules that no
//! administrator would want, but which the paper compares with, are in `comparator`.

mod comparator;
mod draw;
mod experiment;
mod lists;
mod typical;

pub use comparator::Comparator;
pub use draw::draw;
pub use experiment::{DEMANDS, Experiment, Outcome, Summary, run_seeds};
pub use lists::{NodeRow, Pod, read_nodes, read_pods};
pub use typical::{Learned, Weighing, learn};

use era_core::placement::Scorer;

/// A rule for choosing the node and the GPUs of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One of the core's.
    Core(Scorer),
    /// One that is only compared with.
    Compared(Comparator),
}

impl Policy {
    /// All of them, by name.
    pub const ALL: [(&'static str, Policy); 9] = [
        ("first-fit", Policy::Core(Scorer::FirstFit)),
        ("best-fit", Policy::Core(Scorer::BestFit)),
        ("consolidate", Policy::Core(Scorer::Consolidate)),
        ("fgd", Policy::Core(Scorer::Fgd)),
        ("least-stranded", Policy::Core(Scorer::LeastStranded)),
        ("random", Policy::Compared(Comparator::Random)),
        ("dot-product", Policy::Compared(Comparator::DotProduct)),
        ("gpu-packing", Policy::Compared(Comparator::GpuPacking)),
        ("gpu-clustering", Policy::Compared(Comparator::GpuClustering)),
    ];

    /// The policy of this name.
    pub fn named(name: &str) -> Option<Policy> {
        Policy::ALL.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }
}
