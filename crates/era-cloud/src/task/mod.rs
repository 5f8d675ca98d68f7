//! What a task finds where it runs, whichever engine runs it: its folders, its environment, and what
//! the machine's owner settled about all tasks.

mod carried;
mod environment;
mod places;
#[cfg(test)]
mod planted;
mod settings;

pub(crate) use environment::{MARK, TaskFolders, environment, words};
pub(crate) use places::give;
pub use places::{Places, Unready};
pub use settings::SupervisorSettings;
