//! The one binary of ERA.

fn main() {}
