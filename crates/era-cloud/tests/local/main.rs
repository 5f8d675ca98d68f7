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

/// Whether only what every Unix has is used.
const PORTABLE: bool = false;

/// The same tests as other systems than Linux would run them.
#[path = "."]
#[allow(clippy::duplicate_mod)]
mod portable {
    #[allow(dead_code)]
    mod bed;
    mod elsewhere;
    mod ends;
    mod hostile;
    mod restarts;
    mod runs;
    mod terminals;

    const PORTABLE: bool = true;
}
