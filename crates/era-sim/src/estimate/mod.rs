//! Learning from history how long jobs take and what they use: outside of the core, for the core.
//!
//! A booster grows trees over the core's own features ([`boost`]), the trees are frozen into the
//! core's format, and a [`EstimateLearner`] decides when to learn anew and what to publish. It only ever
//! sees jobs that have ended, as they were when they were submitted. What the core does with what
//! is published is not known here.

pub mod boost;
pub mod distribution;
mod learner;
mod past;
mod table;

pub use learner::{EstimateLearner, LearnerSettings};
pub use past::Past;
pub use table::{Cut, Table};
