//! What goes between whoever is attached to a task's terminal and the executor that runs the task.
//!
//! Who may attach is not known here.

use std::pin::Pin;

use tokio::sync::mpsc;

/// What an executor does when it is asked to attach.
pub type Attaching<'a> = Pin<Box<dyn Future<Output = Result<Attached, NoTerminal>> + Send + 'a>>;

/// A connection to a task's terminal; it is over once either end is dropped. Both ends are
/// bounded: what is typed waits until the task reads it, and who does not take what is shown in time
/// misses some of it.
#[derive(Debug)]
pub struct Attached {
    pub typed: mpsc::Sender<Typed>,
    /// What is shown, beginning with the last of what was shown before.
    pub shown: mpsc::Receiver<Shown>,
}

/// From whoever is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Bytes(Vec<u8>),
    /// The window has this size from now on.
    Size {
        rows: u16,
        /// Characters in a line.
        cols: u16,
    },
}

/// To whoever is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// What the task printed, or the echo of what was typed.
    Bytes(Vec<u8>),
    /// The task is over; nothing follows.
    Exited(i32),
    /// The task is gone through no fault of its own; nothing follows.
    Lost(String),
}

/// Why one cannot attach.
#[derive(Debug, thiserror::Error)]
pub enum NoTerminal {
    /// Nothing here has a terminal.
    #[error("tasks of this executor have no terminals")]
    NoneHere,
    /// The task's own supervisor is too old.
    #[error(
        "the supervisor of its node was started by an older version, which knows no terminals: it \
         is replaced once its tasks are over"
    )]
    Older,
    /// This task has none, or not now.
    #[error("{0}")]
    Refused(String),
    /// The supervisor cannot be reached.
    #[error("the supervisor of its node cannot be reached: {0}")]
    Unreachable(#[from] std::io::Error),
}
