//! Policies improved offline: weights of a priority formula, searched on the first part of a
//! recorded workload and judged on a later part that the search never saw.
//!
//! [`Objective`] says what is better, [`Template`] what may be changed, a [`Bench`] runs a
//! candidate on the production core, and [`tune`] searches and reports: what is gained against
//! the rules one would use otherwise, how much of it is left on unseen work, and which factors
//! waiting and run time depend on. What comes out is a formula for a person to review; nothing
//! here puts it in force.

mod bench;
mod candidate;
mod factors;
mod measured;
mod objective;
mod report;
mod search;
mod template;
#[cfg(test)]
mod tests;

pub use bench::{Bench, JournalBench, TraceBench, WorkSplit};
pub use candidate::{MarketPoint, PolicyCandidate};
pub use factors::{Factor, FactorRow, factors};
pub use measured::{Measured, NAMES};
pub use objective::Objective;
pub use report::{Scored, Tuned, tune};
pub use search::{PolicySearch, SearchSpec};
pub use template::{DEFAULT_TEMPLATE, Template};
