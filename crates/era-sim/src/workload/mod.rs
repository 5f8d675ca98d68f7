//! Workloads that we make ourselves: the same jobs for the same seed, on every machine.
//!
//! Everything is drawn by [`Seeded`](crate::seeded::Seeded) and computed in integers: curves are
//! interpolated between whole numbers, so no floating-point function decides anything. What a
//! scheduler makes of the jobs is not known here.

mod curve;
mod cycle;
mod fitted;
mod paper;
mod philly;
#[cfg(test)]
mod tests;
pub mod usage;

pub use paper::paper;
pub use philly::{JOBS_MAX, Philly, PhillySpec, philly, philly_names};
