//! The core as a whole, driven through `step` and `quote`.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

mod against_oracle;
mod bed;
mod posted_prices;
mod promises;
mod rearranging;
mod several;
mod worlds;
