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
pub use experiment::{DEMANDS, PlacementExperiment, PlacementOutcome, Summary, run_seeds};
pub use lists::{ListedNode, Pod, read_nodes, read_pods};
pub use typical::{Learned, Weighing, learn};

use era_core::placement::Scorer;

/// A rule for choosing the node and the GPUs of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementPolicy {
    /// One of the core's.
    Core(Scorer),
    /// One that is only compared with.
    Compared(Comparator),
}

impl PlacementPolicy {
    /// All of them, by name.
    pub const ALL: [(&'static str, PlacementPolicy); 9] = [
        ("first-fit", PlacementPolicy::Core(Scorer::FirstFit)),
        ("best-fit", PlacementPolicy::Core(Scorer::BestFit)),
        ("consolidate", PlacementPolicy::Core(Scorer::Consolidate)),
        ("fgd", PlacementPolicy::Core(Scorer::Fgd)),
        ("least-stranded", PlacementPolicy::Core(Scorer::LeastStranded)),
        ("random", PlacementPolicy::Compared(Comparator::Random)),
        ("dot-product", PlacementPolicy::Compared(Comparator::DotProduct)),
        ("gpu-packing", PlacementPolicy::Compared(Comparator::GpuPacking)),
        ("gpu-clustering", PlacementPolicy::Compared(Comparator::GpuClustering)),
    ];

    pub fn named(name: &str) -> Option<PlacementPolicy> {
        PlacementPolicy::ALL.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }
}
