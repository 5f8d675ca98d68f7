//! Upkeep of what a server keeps, on its own machine and with the server stopped: make the tables
//! anew, back up, restore. Part of `era admin`.

mod backup;
mod rebuild;

pub(crate) use backup::{Backup, Restore};
pub(crate) use rebuild::Rebuild;
