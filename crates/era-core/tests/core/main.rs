//! The core as a whole, driven through `step` and `quote`.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop

mod against_oracle;
mod arrays;
mod backfill;
mod bad_input;
mod bed;
mod changes;
mod dependencies;
mod elastic;
mod estimated;
mod events;
mod explanations;
mod failing;
mod forgetting;
mod house;
mod machines;
mod orders;
mod placement;
mod posted_prices;
mod predictions;
mod preemption;
mod promises;
mod random;
mod rearranging;
mod reports;
mod settlement;
mod several;
mod shares;
mod submissions;
mod transcripts;
mod verbs;
mod wire;
mod wire_examples;
mod worlds;
