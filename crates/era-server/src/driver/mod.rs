//! The driver: one thread that owns the state.
//!
//! Inputs come by a bounded channel. Up to [`BATCH_MAX`] of them are stepped and appended to the
//! journal in one transaction; only then is a new snapshot published, callers are answered and
//! effects are released. If the journal cannot be written, nobody is answered and the thread ends:
//! what was not acknowledged did not happen.
//!
//! What commands mean is the core's to say, who may send them is HTTP's and TCP's, and what is done
//! about effects is the launcher's.

mod engine;
mod openings;
#[cfg(test)]
mod tests;
mod thread;

use std::sync::Arc;

use arc_swap::ArcSwap;
use era_core::units::{JobId, Time};
use era_core::{Command, Effect, Reply, Snapshot};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

pub use thread::{Driver, Rules};

/// Most inputs in one transaction.
pub const BATCH_MAX: usize = 256;

/// Most inputs that wait for the driver; whoever comes later is told to try again.
pub const INBOX_MAX: usize = 8192;

/// The road to the driver. A clone shares.
#[derive(Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Asked>,
    newest: Arc<ArcSwap<Snapshot>>,
    committed: watch::Receiver<u64>,
}

/// Something that is asked of the driver.
pub struct Asked {
    /// What is to happen.
    pub command: Command,
    /// What the platform keeps with it and the core need not know, such as a job's command.
    pub note: Option<Box<RawValue>>,
    /// Who waits for the answer.
    pub answer: oneshot::Sender<Answer>,
}

/// What became of an input, once it is durable.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its number in the journal.
    pub seq: u64,
    /// When it happened.
    pub at: Time,
    /// What the core says.
    pub reply: Reply,
}

/// What is to be done outside, once it is durable.
#[derive(Debug, Default)]
pub struct Released {
    /// Jobs that were accepted, with what the platform keeps with them; of an array the first.
    pub accepted: Vec<(JobId, Box<RawValue>)>,
    /// What is to be done, in order.
    pub effects: Vec<Effect>,
}

/// Where effects come out.
pub type Releases = mpsc::UnboundedReceiver<Released>;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Too many wait already.
    #[error("the scheduler is busy: try again in a moment")]
    Busy,
    /// The server is going down, or its journal cannot be written.
    #[error("the scheduler has stopped: see the server's log")]
    Stopped,
}

impl Handle {
    /// Hands something in and waits until it is durable.
    pub async fn ask(
        &self,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> Result<Answer, Unanswered> {
        self.hand_in(command, note)?.await.map_err(|_| Unanswered::Stopped)
    }

    /// Hands something in without waiting: the answer comes once it is durable, and never if the
    /// driver stops before.
    pub fn hand_in(
        &self,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> Result<oneshot::Receiver<Answer>, Unanswered> {
        let (answer, answered) = oneshot::channel();
        self.inbox.try_send(Asked { command, note, answer }).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::error::TrySendError::Closed(_) => Unanswered::Stopped,
        })?;
        Ok(answered)
    }

    /// The same for what must not be turned away, such as the report of a task's end: waits for
    /// room.
    pub async fn hand_in_patiently(
        &self,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> Result<oneshot::Receiver<Answer>, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inbox.send(Asked { command, note, answer }).await;
        sent.map_err(|_| Unanswered::Stopped)?;
        Ok(answered)
    }

    /// The newest durable state, to read.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }

    /// The number of the last durable input, and word of every later one: what feeds wait for.
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.committed.clone()
    }

    /// Comes back when the driver has stopped.
    pub async fn stopped(&self) {
        let mut committed = self.committed.clone();
        while committed.changed().await.is_ok() {}
    }

    /// Whether the driver takes inputs.
    pub fn is_running(&self) -> bool {
        !self.inbox.is_closed()
    }
}
