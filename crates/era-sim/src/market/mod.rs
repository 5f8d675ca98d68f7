//! Markets compared: the same stream of bids under one mechanism after another.
//!
//! Every bid goes through the production `step` at the time of its submission, on a virtual
//! clock; a forecast is learned outside and published, as in production. What a mechanism is
//! worth is the value of the bids that it accepted, as a share of all that was asked for and of
//! the most that any scheduler could have attained ([`bound`]).

pub mod bound;
mod driver;
pub mod experiment;
mod learn;
mod run;
pub mod stream;
#[cfg(test)]
mod tests;

pub use experiment::MarketExperiment;
pub use learn::{ForecastLearner, LearningSchedule, TrueAt};
pub use run::{MarketOutcome, MarketSetup};
