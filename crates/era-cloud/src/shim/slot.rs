//! A keeper as its supervisor knows it: the process, its slot of control groups, and the three
//! channels to it.

use std::io::{self, PipeReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use era_core::job::TaskId;
use rustix::fs::OFlags;

use super::keeper::{FromKeeper, Node, ToKeeper};
use super::protocol::{Lines, put};
use crate::limits::cgroups::Slot;
use crate::log::{LogWriter, Stream};

/// How much is read of a pipe in one turn, so that one task's output does not starve the others.
const PIECE_BYTES: usize = 64 << 10;

/// A keeper and what it keeps.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) child: Child,
    pub(super) slot: Slot,
    /// Where it may have put a temporary folder aside.
    spare: PathBuf,
    pub(super) task: Option<TaskId>,
    /// How often its slot was out of memory when it was last looked at.
    pub(super) oom_kills: u64,
    /// The log of its task, once there is a byte to write.
    pub(super) log: Option<LogWriter>,
    pub(super) control: UnixStream,
    pub(super) out: PipeReader,
    pub(super) err: PipeReader,
    lines: Lines,
}

impl Kept {
    /// Starts a keeper: our own program again, told by its arguments to be one.
    pub(super) fn start(
        arguments: &[String],
        node: &Node,
        number: u64,
        slot: Slot,
    ) -> io::Result<Kept> {
        let (control, theirs) = UnixStream::pair()?;
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        for pipe in [&out, &err] {
            rustix::fs::fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        // The file that we run may have been replaced since; this is still the one that we are.
        let child = Command::new("/proc/self/exe")
            .args(arguments)
            .env_clear()
            // So that the sweep of a later supervisor finds keepers too.
            .env(crate::task::MARK, &node.mark)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(out_end)
            .stderr(err_end)
            .spawn()?;
        let lines = Lines::default();
        let spare = node.spare.join(format!("k{number}"));
        let node = Node { groups: slot.paths(), spare: spare.clone(), ..node.clone() };
        let (task, oom_kills, log) = (None, 0, None);
        let mut kept = Kept { child, slot, spare, task, oom_kills, log, control, out, err, lines };
        kept.tell(&ToKeeper::Node(Box::new(node)))?;
        Ok(kept)
    }

    /// Removes what is left of it once its process is gone.
    pub(super) fn remove(&self) {
        self.slot.remove();
        // Most often there is none.
        let _ = std::fs::remove_dir(&self.spare);
    }

    pub(super) fn tell(&mut self, message: &ToKeeper) -> io::Result<()> {
        let mut line = Vec::with_capacity(1024);
        put(&mut line, message);
        self.control.write_all(&line)
    }

    /// Reads what the keeper says. An error means that it is gone.
    pub(super) fn hear(&mut self) -> io::Result<Vec<FromKeeper>> {
        let mut piece = [0; 4096];
        let read = match self.control.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Vec::new()),
            read => read?,
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut said, mut wrong) = (Vec::new(), None);
        self.lines.feed(&piece[..read], |line| match serde_json::from_slice(line) {
            Ok(message) => said.push(message),
            Err(error) => wrong = Some(error),
        })?;
        wrong.map_or(Ok(said), |error| Err(error.into()))
    }

    /// Reads one piece of what the task prints; empty if there is nothing now.
    pub(super) fn listen(&mut self, stream: Stream, piece: &mut Vec<u8>) -> usize {
        piece.resize(PIECE_BYTES, 0);
        let read = match stream {
            Stream::Out => self.out.read(piece),
            Stream::Err => self.err.read(piece),
        };
        // Nothing to read now is the common case; anything else shows on the control socket too.
        let read = read.unwrap_or(0);
        piece.truncate(read);
        read
    }
}
