//! What tasks print: written as it comes, kept within a limit, read while it still grows.
//!
//! Each task has a log of its own in its job's folder of logs, cut into segments. A segment is
//! called `ATTEMPT.PART.RANK.OFFSET.log` after the task and the offset of its first byte. Offsets
//! count every byte that was ever written for the task; they grow for ever, and rotation only
//! drops segments from the front, so an offset that a reader remembers stays right.
//!
//! A segment holds lines of text: `MILLISECONDS o|e TEXT`, in the order of time. `O` and `E`
//! instead say that the line goes on in the next record of its stream: it was longer than
//! [`LINE_BYTES_MAX`], or was shown before its end had come. So `cat` and `grep` can read it, and
//! what was printed can be put together again byte for byte.
//!
//! A job's log is that of all its tasks, attempt after attempt, and within an attempt by time. Its
//! offset is the sum of its tasks' offsets: one number from which a reader can go on.
//!
//! Who may read a log is not known here.

mod directive;
mod read;
mod record;
mod seek;
mod segment;
mod write;

pub use directive::{DIRECTIVE_BYTES_MAX, DIRECTIVE_VALUES_MAX, LogDirective};
pub(crate) use directive::{METRIC_NAME_MAX, STEP_MAX, is_metric_name};
pub use read::{LogEntry, LogReader, Only};
pub use record::{LINE_BYTES_MAX, Stream};
pub use write::{LOG_BYTES_MIN, LogWriter};

use std::path::{Path, PathBuf};

use era_core::job::TaskId;
use era_core::units::Time;

use crate::executor::TaskLimits;

/// Writes a line of our own into the log of a task that has not begun, in its job's folder.
pub fn note(job: &Path, task: TaskId, line: &str, now: Time) {
    let mut log = LogWriter::open(&job.join("logs"), task, TaskLimits::default().log_bytes);
    log.write(Stream::Err, format!("{line}\n").as_bytes(), now);
    log.flush(now);
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system does not let us.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// More tasks than are merged.
    #[error("the log has more than {most} tasks: ask for one attempt, or for one rank")]
    TooManyTasks {
        /// How many are merged at most.
        most: usize,
    },
}

#[cfg(test)]
mod tests;
