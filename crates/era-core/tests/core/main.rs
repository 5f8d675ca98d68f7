//! The core as a whole, driven through `step` and `quote`.

mod against_oracle;
mod bed;
mod posted_prices;
mod promises;
mod rearranging;
mod several;
mod worlds;
