//! The core as a whole, driven through `step` and `quote`.

mod bed;
mod promises;
mod random;
