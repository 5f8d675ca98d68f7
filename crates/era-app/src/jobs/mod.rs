//! Jobs: how they are handed in, changed and read, and what they print and tell.

pub mod change;
pub mod logs;
pub mod metrics;
pub mod rows;
pub mod status;
pub mod terminal;
pub mod view;
