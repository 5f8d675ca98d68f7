//! The core as a whole, driven through `step` and `quote`.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

mod bed;
mod promises;
