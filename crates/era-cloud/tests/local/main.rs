//! The local executor on real processes: server, supervisor, keepers and tasks as they run in
//! production. What needs root is left out where there is none.

#![cfg(target_os = "linux")]

#[path = "../../../skipped.rs"]
mod skipped;

mod bed;
mod ends;
mod hostile;
mod isolated;
mod restarts;
mod runs;
mod terminals;
