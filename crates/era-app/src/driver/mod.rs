//! The driver: one thread that owns the state.
//!
//! Inputs come by a bounded channel. Up to [`BATCH_MAX`] of them are stepped and appended to the
//! journal in one transaction; only then is a new snapshot published, callers are answered and
//! effects are released. If the journal cannot be written, nobody is answered and the thread ends:
//! what was not acknowledged did not happen.
//!
//! What commands mean is the core's to say, who may send them is HTTP's and TCP's, and what is done
//! about effects is the launcher's.

#[cfg(test)]
mod tests;
mod thread;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use era_core::{Command, Snapshot};
use era_drive::{Answer, Released};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{AppError, Kind};

pub use thread::{Driver, SegmentRules};

/// Most inputs in one transaction.
pub const BATCH_MAX: usize = 256;

/// Most inputs that wait for the driver; whoever comes later is told to try again.
pub const INBOX_MAX: usize = 8192;

/// The road to the driver, be it a thread of this process or another server's. A clone shares.
#[derive(Clone)]
pub struct Handle {
    pub(crate) inbox: mpsc::Sender<DriverRequest>,
    pub(crate) newest: Arc<ArcSwap<Snapshot>>,
    pub(crate) committed: watch::Receiver<u64>,
}

/// Something that is asked of the driver.
pub struct DriverRequest {
    /// What is to happen.
    pub command: Command,
    /// What the platform keeps with it and the core need not know, such as a job's command.
    pub note: Option<Box<RawValue>>,
    /// Whether it waits for as long as it takes until there is somebody to carry it out.
    pub patient: bool,
    /// Who waits for the answer.
    pub answer: oneshot::Sender<Result<Answer, Unanswered>>,
}

/// An answer to come: once it is durable, and never if the driver stops before.
pub struct Pending(oneshot::Receiver<Result<Answer, Unanswered>>);

impl Future for Pending {
    type Output = Result<Answer, Unanswered>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = Pin::new(&mut self.0).poll(context);
        answered.map(|answered| answered.unwrap_or(Err(Unanswered::Stopped)))
    }
}

/// The end of a task that is told to a scheduler before it goes on, and its note.
pub type TaskEndReport = (Command, Option<Box<RawValue>>);

/// Where effects come out.
pub type Releases = mpsc::UnboundedReceiver<Released<Box<RawValue>>>;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Too many wait already.
    #[error("the scheduler is busy: try again in a moment")]
    Busy,
    /// The server is going down, or its journal cannot be written.
    #[error("the scheduler has stopped: see the server's log")]
    Stopped,
    /// There is none at the moment: nothing was done.
    #[error("no scheduler leads at the moment, and nothing was done: try again in a moment")]
    NoLeader,
    /// It went away after it was asked.
    #[error(
        "the scheduler changed hands before it answered: whether this was done is not known; look, \
         or ask again with the same idempotency key"
    )]
    Unknown,
}

impl From<Unanswered> for AppError {
    fn from(unanswered: Unanswered) -> AppError {
        let (code, seconds) = match unanswered {
            Unanswered::Busy => ("busy", 1),
            Unanswered::Stopped => ("stopped", 5),
            Unanswered::NoLeader => ("no_leader", 2),
            Unanswered::Unknown => ("outcome_unknown", 1),
        };
        AppError::new(Kind::Unavailable, code, unanswered.to_string()).after(seconds)
    }
}

impl Handle {
    /// Hands something in and waits until it is durable.
    pub async fn ask(
        &self,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> Result<Answer, Unanswered> {
        self.hand_in(command, note)?.await
    }

    /// Hands something in without waiting for its answer.
    pub fn hand_in(
        &self,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> Result<Pending, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let asked = DriverRequest { command, note, patient: false, answer };
        self.inbox.try_send(asked).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::error::TrySendError::Closed(_) => Unanswered::Stopped,
        })?;
        Ok(Pending(answered))
    }

    /// The same for what must not be turned away, such as the report of a task's end: waits for
    /// room.
    pub async fn hand_in_patiently(
        &self,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> Result<Pending, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inbox.send(DriverRequest { command, note, patient: true, answer }).await;
        sent.map_err(|_| Unanswered::Stopped)?;
        Ok(Pending(answered))
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

    /// Whether the state is kept up to date.
    pub fn is_following(&self) -> bool {
        self.committed.has_changed().is_ok()
    }

    /// Whether the driver takes inputs.
    pub fn is_running(&self) -> bool {
        !self.inbox.is_closed()
    }
}
