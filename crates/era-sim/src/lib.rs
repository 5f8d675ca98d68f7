//! The laboratory: simulate, compare, bound, replay and tune, on the production core.
//!
//! Everything here drives the same [`era_core::step`] that production runs, on a virtual clock:
//! what is measured here is what runs. Nothing here decides where or when a job runs.

pub mod accuracy;
mod bad_input;
#[cfg(test)]
#[path = "../tests/beside/mod.rs"]
mod beside;
pub mod estimate;
pub mod faults;
pub mod journal;
pub mod market;
pub mod measure;
pub mod place;
pub mod replay;
pub mod report;
pub mod run;
pub mod seeded;
pub mod trace;
pub mod training;
pub mod tune;
pub mod workload;

pub use bad_input::BadInput;
