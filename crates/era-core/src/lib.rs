//! The scheduling core of ERA: one deterministic state machine.
//!
//! A bid becomes a promise here. Nothing in this crate reads a clock, does IO, starts a thread,
//! draws a random number or depends on the order of a hash table: time and everything else that
//! happens arrives as an input, and what must be done leaves as an effect.
//!
//! [`step`] carries out one [`Input`]; [`quote()`] asks what a bid would get; [`explain()`] says why
//! a job waits; [`check()`] re-derives every invariant.

pub mod accounts;
pub mod bid;
pub mod calendar;
mod check;
pub mod cluster;
pub mod estimate;
pub mod event;
pub mod explain;
pub mod forecast;
pub mod input;
pub mod job;
pub mod ledger;
pub mod market;
pub mod offer;
mod openings;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod outlook;
pub mod output;
pub mod placement;
pub mod queue;
pub mod quota;
pub mod quote;
pub mod reason;
pub mod refusal;
pub mod resources;
mod scheduler;
pub mod search;
pub mod settings;
pub mod starts;
mod state;
mod timer;
pub mod units;
pub mod usage;
mod waiting;
pub mod wire;

pub use check::check;
pub use event::Event;
pub use explain::{dearest_run, explain, explain_queue, likely_starts};
pub use input::{Command, Input};
pub use output::{Effect, Output, Reply};
pub use quote::quote;
pub use refusal::Refusal;
pub use scheduler::{next_pass, next_wakeup, outstanding, step};
pub use state::{CORE_VERSION, Snapshot, State, WrongVersion};
pub use waiting::ArrayBook;
