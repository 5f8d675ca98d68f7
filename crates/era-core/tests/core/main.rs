//! The core as a whole, driven through `step` and `quote`.

mod bed;
mod changes;
mod promises;
mod submissions;
mod verbs;
mod wire;
mod wire_examples;
