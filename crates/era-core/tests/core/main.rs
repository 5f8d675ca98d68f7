//! The core as a whole, driven through `step` and `quote`.

mod against_oracle;
mod bed;
mod promises;
mod rearranging;
mod worlds;
