//! The scheduling core of ERA: one deterministic state machine.
//!
//! A bid becomes a promise here. Nothing in this crate reads a clock, does IO, starts a thread,
//! draws a random number or depends on the order of a hash table: time and everything else that
//! happens arrives as an input, and what must be done leaves as an effect.

pub mod accounts;
pub mod bid;
pub mod calendar;
pub mod cluster;
pub mod forecast;
pub mod job;
pub mod ledger;
pub mod market;
pub mod placement;
pub mod queue;
pub mod quota;
pub mod refusal;
pub mod resources;
pub mod search;
pub mod settings;
pub mod starts;
pub mod units;
