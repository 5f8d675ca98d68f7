//! Jobs: how they are handed in, changed and read.

pub mod change;
pub mod rows;
pub mod view;
