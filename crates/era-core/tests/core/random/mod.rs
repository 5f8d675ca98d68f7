//! Property tests: random worlds and random inputs of every kind, driven through `step`.
//!
//! After each step `check` must hold, an executor that obeys every effect must find that what
//! runs fits and runs once, and a book of what users were told must find it kept.

#![allow(unreachable_pub)] // as in the bench: nothing leaves these tests

mod alike;
mod bids;
mod commands;
mod dice;
mod executor;
mod hostile;
mod invariants;
mod periods;
mod reach;
mod regressions;
mod rig;
mod starving;
mod told;
mod world;
