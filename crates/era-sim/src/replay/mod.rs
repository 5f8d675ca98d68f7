//! Journals run again: exactly, to see whether they lead where they led; and under another rule,
//! to see who would have gained and lost.
//!
//! [`verify`] drives the recorded inputs through the core and compares every event, byte for
//! byte. [`learn`] does the same and keeps what users asked for, what happened to the hardware,
//! and how long each job really ran; [`rerun`] gives that history to a core with other rules,
//! with an executor of its own in place of the recorded one; [`compare`] sets the two side by
//! side. [`sample`] makes a journal to try it on.
//!
//! What users would have done had they been answered otherwise is not known here: they hand in
//! the same jobs at the same times, at the same worth.

mod book;
mod compare;
mod difference;
mod history;
mod rerun;
mod rules;
mod sample;
#[cfg(test)]
mod tests;
mod verify;

pub use book::{Book, JobHistory, TaskStay};
pub use compare::{ComparedParty, Comparison, Figures, compare};
pub use difference::Difference;
pub use history::{RecordedHistory, RecordedInput, learn};
pub use rerun::{Rerun, rerun};
pub use rules::{RuleOverrides, mechanism_named, scorer_named};
pub use sample::{SampleSpec, sample};
pub use verify::{NotReplayed, ReplayStep, Replayed, verify};
