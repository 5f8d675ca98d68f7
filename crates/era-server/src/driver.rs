//! The driver: one thread that owns the state.
//!
//! Inputs come by a bounded channel. Up to [`BATCH_MAX`] of them are stepped and appended to the
//! journal in one transaction; only then are callers answered, effects released and a new snapshot
//! published.

use std::sync::Arc;

use arc_swap::ArcSwap;
use era_core::units::Time;
use era_core::{Command, Reply, Snapshot};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

/// Most inputs in one transaction.
pub const BATCH_MAX: usize = 256;

/// The road to the driver. A clone shares.
#[derive(Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Asked>,
    newest: Arc<ArcSwap<Snapshot>>,
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
        let (answer, answered) = oneshot::channel();
        let asked = Asked { command, note, answer };
        self.inbox.try_send(asked).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::error::TrySendError::Closed(_) => Unanswered::Stopped,
        })?;
        answered.await.map_err(|_| Unanswered::Stopped)
    }

    /// The newest durable state, to read.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.newest.load_full()
    }
}
