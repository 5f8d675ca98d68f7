//! What a task finds where it runs, whichever engine runs it: its folders, its environment, and what
//! the machine's owner settled about all tasks.

mod carried;
mod environment;
mod places;
#[cfg(test)]
mod planted;
mod settings;

use era_core::units::Time;

pub(crate) use environment::{MARK, TaskFolders, environment, words};
pub(crate) use places::give;
pub use places::{Places, Unready};
pub use settings::SupervisorSettings;

/// The wall clock.
pub fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}
