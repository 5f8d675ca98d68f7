//! The conversation with a supervisor.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use era_core::job::TaskId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::{Host, Known, LocalError, SupervisorCommand, lock};
use crate::executor::{ExecutorReport, Order, Reports};
use crate::shim::protocol::{FromShim, Hello, LineBuffer, ToShim, put};

/// Most orders in one write.
const BATCH_MAX: usize = 512;
/// How long to wait before trying again to reach a supervisor that cannot be reached.
const AGAIN: Duration = Duration::from_secs(1);

/// An open conversation.
pub(super) struct Talk {
    stream: UnixStream,
    lines: LineBuffer,
    /// What was heard and not taken yet.
    heard: Vec<FromShim>,
    piece: Vec<u8>,
}

/// What a supervisor said first.
pub(super) struct Greeting {
    pub(super) known: Vec<TaskId>,
    pub(super) notes: Vec<String>,
    pub(super) ended: Vec<ExecutorReport>,
}

impl Talk {
    /// Reaches the supervisor and greets it. One of another version that has nothing to look after
    /// makes room for ours.
    pub(super) async fn begin(host: &mut Host) -> Result<(Talk, Greeting), LocalError> {
        loop {
            let stream = host.connect().await?;
            let (lines, heard, piece) = (LineBuffer::default(), Vec::new(), vec![0; 64 << 10]);
            let mut talk = Talk { stream, lines, heard, piece };
            let ours = Hello::ours();
            talk.say(&[ToShim::Hello(ours.clone())]).await?;
            while talk.heard.is_empty() {
                talk.hear().await?;
            }
            match talk.heard.remove(0) {
                FromShim::Hello { hello, known, notes, ended, .. } => {
                    let stays = hello.version == ours.version || !known.is_empty();
                    if stays || !talk.leave().await? {
                        return Ok((talk, Greeting { known, notes, ended }));
                    }
                }
                FromShim::Refused(why) => return Err(LocalError::Refused(why)),
                other => {
                    let why = format!("it did not say hello but {other:?}");
                    return Err(LocalError::Refused(why));
                }
            }
        }
    }

    async fn say(&mut self, messages: &[ToShim]) -> io::Result<()> {
        let mut lines = Vec::with_capacity(1024 * messages.len());
        for message in messages {
            put(&mut lines, message);
        }
        self.stream.write_all(&lines).await
    }

    /// Waits for something to be said. Nothing is lost if the wait is given up.
    async fn hear(&mut self) -> io::Result<()> {
        let read = self.stream.read(&mut self.piece).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let heard = &mut self.heard;
        self.lines.feed(&self.piece[..read], |line| match serde_json::from_slice(line) {
            Ok(message) => heard.push(message),
            // A newer supervisor may say what we do not know; what we must know, we know.
            Err(error) => tracing::warn!(%error, "a supervisor was not understood"),
        })
    }

    /// Asks the supervisor to exit, and says whether it does.
    async fn leave(&mut self) -> io::Result<bool> {
        self.say(&[ToShim::Leave]).await?;
        loop {
            if let Some(at) = self
                .heard
                .iter()
                .position(|said| matches!(said, FromShim::Leaving | FromShim::Refused(_)))
            {
                return Ok(matches!(self.heard.remove(at), FromShim::Leaving));
            }
            match self.hear().await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
                heard => heard?,
            }
        }
    }
}

/// Talks until the executor is dropped or nobody takes reports any more. If the supervisor goes,
/// another is started, and what the old one took with it is told.
pub(super) async fn go_on(
    mut host: Host,
    mut talk: Talk,
    mut says: mpsc::UnboundedReceiver<SupervisorCommand>,
    reports: Reports,
    known: Known,
) {
    loop {
        match converse(&mut talk, &mut says, &reports, &known).await {
            Over::Done => return,
            Over::Left(answer) => {
                // Reaped here if it is our child, so that none is left of it.
                while host.is_starting().unwrap_or(false) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                let _ = answer.send(true);
                return;
            }
            Over::Gone(error) => tracing::warn!(%error, "the supervisor of this node is gone"),
        }
        let greeting = loop {
            // A server that ends as its supervisor does is not to start another.
            if says.is_closed() && says.is_empty() {
                return;
            }
            match Talk::begin(&mut host).await {
                Ok((again, greeting)) => {
                    talk = again;
                    break greeting;
                }
                Err(error) => tracing::error!(%error, "this node cannot run tasks now"),
            }
            tokio::time::sleep(AGAIN).await;
        };
        for task in lost(&known, &greeting.known) {
            let reason = "supervisor-gone".to_owned();
            if reports.send(ExecutorReport::Lost { task, reason }).await.is_err() {
                return;
            }
        }
    }
}

/// Tasks that the mirror has and the supervisor no longer lists. They leave the mirror, so after a
/// restart before the report was handled they are unknown, which means the same.
fn lost(known: &Known, now: &[TaskId]) -> Vec<TaskId> {
    let now: BTreeSet<TaskId> = now.iter().copied().collect();
    let mut known = lock(known);
    let lost: Vec<TaskId> = known.difference(&now).copied().collect();
    *known = now;
    lost
}

/// How a conversation ended.
enum Over {
    /// Nobody needs it any more.
    Done,
    /// The supervisor left, as it was asked to.
    Left(oneshot::Sender<bool>),
    /// The supervisor is gone.
    Gone(io::Error),
}

async fn converse(
    talk: &mut Talk,
    says: &mut mpsc::UnboundedReceiver<SupervisorCommand>,
    reports: &Reports,
    known: &Known,
) -> Over {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        for message in std::mem::take(&mut talk.heard) {
            match message {
                FromShim::Report(report) => {
                    if reports.send(*report).await.is_err() {
                        return Over::Done;
                    }
                }
                FromShim::Refused(why) => tracing::warn!(%why, "a supervisor refused an order"),
                FromShim::Hello { .. } | FromShim::Leaving => {}
                // To whoever is attached to a terminal, which is another connection.
                FromShim::Attached | FromShim::Unattached(_) | FromShim::Shown(_) => {}
            }
        }
        tokio::select! {
            heard = talk.hear() => {
                if let Err(error) = heard {
                    return Over::Gone(error);
                }
            }
            count = says.recv_many(&mut batch, BATCH_MAX) => {
                if count == 0 {
                    return Over::Done;
                }
                let (messages, leave) = messages(&mut batch);
                // Not when they were queued: what is told to be lost must never be sent after all.
                lock(known).extend(messages.iter().filter_map(launched));
                if let Err(error) = talk.say(&messages).await {
                    return Over::Gone(error);
                }
                if let Some(answer) = leave {
                    match talk.leave().await {
                        Ok(true) => return Over::Left(answer),
                        Ok(false) => { let _ = answer.send(false); }
                        Err(error) => return Over::Gone(error),
                    }
                }
            }
        }
    }
}

/// The task that a message starts.
fn launched(message: &ToShim) -> Option<TaskId> {
    match message {
        ToShim::Order(order) => match &**order {
            Order::Launch(launch) => Some(launch.task),
            _ => None,
        },
        _ => None,
    }
}

/// What is to be said, in order; acknowledgements in a row are one message.
fn messages(batch: &mut Vec<SupervisorCommand>) -> (Vec<ToShim>, Option<oneshot::Sender<bool>>) {
    let (mut messages, mut leave) = (Vec::with_capacity(batch.len()), None);
    for say in batch.drain(..) {
        match say {
            SupervisorCommand::Order(order) => messages.push(ToShim::Order(order)),
            SupervisorCommand::Acknowledge(task) => match messages.last_mut() {
                Some(ToShim::Acknowledge(tasks)) => tasks.push(task),
                _ => messages.push(ToShim::Acknowledge(vec![task])),
            },
            SupervisorCommand::Leave(answer) => leave = Some(answer),
        }
    }
    (messages, leave)
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::JobId;

    fn task(job: u64) -> TaskId {
        TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 }
    }

    #[test]
    fn what_a_new_supervisor_does_not_know_is_lost_once() {
        let known = Known::default();
        lock(&known).extend([task(1), task(2)]);
        assert_eq!(lost(&known, &[task(2), task(9)]), [task(1)]);
        assert_eq!(lost(&known, &[task(2), task(9)]), []);
    }

    #[test]
    fn acknowledgements_in_a_row_are_one_message() {
        let mut batch =
            vec![SupervisorCommand::Acknowledge(task(1)), SupervisorCommand::Acknowledge(task(2))];
        let (messages, _) = messages(&mut batch);
        assert_eq!(messages, [ToShim::Acknowledge(vec![task(1), task(2)])]);
    }
}
