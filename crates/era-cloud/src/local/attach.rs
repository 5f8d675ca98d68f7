//! A connection of its own to the supervisor, for a task's terminal.

use std::path::Path;
use std::time::Duration;

use era_core::job::TaskId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc};

use crate::executor::ExecutorReport;
use crate::shim::protocol::{Bytes, FromShim, LineBuffer, ToShim, put};
use crate::terminal::{Attached, NoTerminal, Shown, Typed};

/// Most pieces that wait on their way, in each direction.
const PIECES_MAX: usize = 4;
/// How long a supervisor may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How many ask at a time: until it is told what a connection is for, it counts as a server's.
static ASKING: Semaphore = Semaphore::const_new(4);

/// What is heard from a supervisor, message by message.
struct SupervisorMessages {
    from: OwnedReadHalf,
    lines: LineBuffer,
    heard: std::collections::VecDeque<FromShim>,
    piece: Vec<u8>,
}

impl SupervisorMessages {
    async fn next(&mut self) -> std::io::Result<FromShim> {
        loop {
            if let Some(message) = self.heard.pop_front() {
                return Ok(message);
            }
            let read = self.from.read(&mut self.piece).await?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let heard = &mut self.heard;
            self.lines.feed(&self.piece[..read], |line| match serde_json::from_slice(line) {
                Ok(message) => heard.push_back(message),
                Err(error) => tracing::warn!(%error, "a supervisor was not understood"),
            })?;
        }
    }
}

/// Attaches to a task's terminal by the supervisor's socket.
pub(super) async fn attach(socket: &Path, task: TaskId) -> Result<Attached, NoTerminal> {
    let silent = |_| NoTerminal::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(ANSWER_MAX, ask(socket, task)).await.map_err(silent)?
}

async fn ask(socket: &Path, task: TaskId) -> Result<Attached, NoTerminal> {
    let _turn = ASKING.acquire().await;
    let (from, mut to) = UnixStream::connect(socket).await?.into_split();
    say(&mut to, &ToShim::Attach(task)).await?;
    let (lines, piece) = (LineBuffer::default(), vec![0; 64 << 10]);
    let mut heard = SupervisorMessages { from, lines, heard: Default::default(), piece };
    match heard.next().await? {
        FromShim::Attached => {}
        FromShim::Unattached(why) => return Err(NoTerminal::Refused(why)),
        _ => return Err(NoTerminal::Older),
    }
    let (typed, types) = mpsc::channel(PIECES_MAX);
    let (shows, shown) = mpsc::channel(PIECES_MAX);
    // Each by itself: a task that does not read what is typed is still shown. Once nobody types
    // any more our end is closed, then the supervisor's is, and nothing is shown.
    tokio::spawn(pass_on_typed(to, types));
    tokio::spawn(pass_on_shown(heard, shows));
    Ok(Attached { typed, shown })
}

async fn say(to: &mut OwnedWriteHalf, message: &ToShim) -> std::io::Result<()> {
    let mut line = Vec::new();
    put(&mut line, message);
    to.write_all(&line).await
}

async fn pass_on_typed(mut to: OwnedWriteHalf, mut types: mpsc::Receiver<Typed>) {
    while let Some(typed) = types.recv().await {
        let message = match typed {
            Typed::Bytes(bytes) => ToShim::Type(Bytes(bytes)),
            Typed::Size { rows, cols } => ToShim::Size { rows, cols },
        };
        if say(&mut to, &message).await.is_err() {
            return;
        }
    }
}

async fn pass_on_shown(mut heard: SupervisorMessages, shows: mpsc::Sender<Shown>) {
    // An error is its end: whoever listens sees that nothing more comes.
    while let Ok(message) = heard.next().await {
        let shown = match message {
            FromShim::Shown(Bytes(bytes)) => Shown::Bytes(bytes),
            FromShim::Report(report) => match *report {
                ExecutorReport::Exited { code, .. } => Shown::Exited(code),
                ExecutorReport::Lost { reason, .. } => Shown::Lost(reason),
                _ => continue,
            },
            _ => continue,
        };
        let over = !matches!(shown, Shown::Bytes(_));
        if shows.send(shown).await.is_err() || over {
            return;
        }
    }
}
