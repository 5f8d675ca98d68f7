//! A keeper as its supervisor knows it: the process, its slot of control groups, the socket to it,
//! and the pipes of its task.

use std::io::{self, IoSlice, PipeReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use era_core::job::TaskId;
use rustix::fs::OFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};

use super::keeper::{FromKeeper, NodeContext, ToKeeper};
use super::protocol::{LineBuffer, put};
use super::system;
use super::terminal::Terminal;
use super::trail::Trail;
use crate::limits::cgroups::Slot;
use crate::log::{LogWriter, Stream};

/// How much is read of a pipe in one turn, so that one task's output does not starve the others.
const PIECE_BYTES: usize = 64 << 10;

/// A keeper and what it keeps.
#[derive(Debug)]
pub(super) struct KeeperSlot {
    pub(super) child: Child,
    pub(super) slot: Slot,
    /// Where it may have put a temporary folder aside.
    spare: PathBuf,
    pub(super) task: Option<TaskId>,
    /// Who belongs to its task, where orphans do not come to the keeper.
    pub(super) trail: Option<Trail>,
    /// The log of its task, once there is a byte to write.
    pub(super) log: Option<LogWriter>,
    pub(super) control: UnixStream,
    /// Where its task's output comes from.
    pub(super) pipes: Option<Pipes>,
    /// The same of a task that has a terminal instead.
    pub(super) terminal: Option<Terminal>,
    lines: LineBuffer,
    /// What is to be said to it, and how much of that was.
    untold: Vec<u8>,
    told: usize,
    /// The task's ends of its pipes, which go with the byte of `untold` at this place.
    ends: Option<(usize, [OwnedFd; 2])>,
}

/// Our ends of the pipes of one task.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) out: PipeReader,
    pub(super) err: PipeReader,
}

impl KeeperSlot {
    /// Starts a keeper: our own program again, told by its arguments to be one.
    pub(super) fn start(
        arguments: &[String],
        node: &NodeContext,
        number: u64,
        slot: Slot,
    ) -> io::Result<KeeperSlot> {
        let (control, theirs) = UnixStream::pair()?;
        // A launch may be longer than a socket holds, and nobody waits until it is read.
        control.set_nonblocking(true)?;
        let child = Command::new(&node.program)
            .args(arguments)
            .env_clear()
            // So that the sweep of a later supervisor finds keepers too.
            .env(crate::task::MARK, &node.mark)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()?;
        let spare = node.spare.join(format!("k{number}"));
        let node = NodeContext { groups: slot.paths(), spare: spare.clone(), ..node.clone() };
        let mut kept = KeeperSlot {
            child,
            slot,
            spare,
            task: None,
            trail: None,
            log: None,
            control,
            pipes: None,
            terminal: None,
            lines: LineBuffer::default(),
            untold: Vec::new(),
            told: 0,
            ends: None,
        };
        kept.tell(&ToKeeper::Node(Box::new(node)))?;
        Ok(kept)
    }

    /// Removes what is left of it once its process is gone.
    pub(super) fn remove(&self) {
        self.slot.remove();
        // Most often there is none.
        let _ = std::fs::remove_dir(&self.spare);
    }

    /// Makes the pipes of the next task, whose other ends go to the keeper with the next line.
    /// Each task has its own: whoever still holds an end of an earlier one's has no voice in the
    /// log of this one. They are the task's user's, who may then open `/dev/stderr` too.
    pub(super) fn lay_pipes(&mut self, owner: Option<u32>) -> io::Result<()> {
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        let owner =
            owner.map(|uid| (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(uid)));
        for pipe in [&out, &err] {
            rustix::fs::fcntl_setfl(pipe, OFlags::NONBLOCK)?;
            // Elsewhere such a name is a second one of the open file, which belongs to nobody.
            if let Some((user, group)) = owner.filter(|_| cfg!(target_os = "linux")) {
                rustix::fs::fchown(pipe, Some(user), Some(group))?;
            }
        }
        self.pipes = Some(Pipes { out, err });
        self.ends = Some((self.untold.len(), [out_end.into(), err_end.into()]));
        Ok(())
    }

    /// Makes the terminal of the next task in the same way.
    pub(super) fn lay_terminal(&mut self, owner: Option<u32>) -> io::Result<()> {
        let (terminal, end) = Terminal::open(owner)?;
        self.ends = Some((self.untold.len(), [end.try_clone()?, end]));
        self.terminal = Some(terminal);
        Ok(())
    }

    pub(super) fn tell(&mut self, message: &ToKeeper) -> io::Result<()> {
        put(&mut self.untold, message);
        self.flush()
    }

    /// Whether something waits to be said.
    pub(super) fn has_more(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Says what it can without waiting. An error means that the keeper is gone.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.told < self.untold.len() {
            let said = match &self.ends {
                Some((at, ends)) if *at == self.told => {
                    send_with(&self.control, &self.untold[self.told..], ends)
                }
                Some((at, _)) => self.control.write(&self.untold[self.told..*at]),
                None => self.control.write(&self.untold[self.told..]),
            };
            match said {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(said) => {
                    self.ends.take_if(|(at, _)| *at == self.told);
                    self.told += said;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.untold.clear();
        self.told = 0;
        Ok(())
    }

    /// Reads what the keeper says. An error means that it is gone.
    pub(super) fn hear(&mut self) -> io::Result<Vec<FromKeeper>> {
        let mut piece = [0; 4096];
        let nothing = [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock];
        let read = match self.control.read(&mut piece) {
            Err(error) if nothing.contains(&error.kind()) => return Ok(Vec::new()),
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
        if let Some(terminal) = &self.terminal {
            return terminal.read(piece);
        }
        piece.resize(PIECE_BYTES, 0);
        let read = match (stream, &mut self.pipes) {
            (Stream::Out, Some(pipes)) => pipes.out.read(piece),
            (Stream::Err, Some(pipes)) => pipes.err.read(piece),
            (_, None) => Ok(0),
        };
        // Nothing to read now is the common case; anything else shows on the control socket too.
        let read = read.unwrap_or(0);
        piece.truncate(read);
        read
    }

    /// How much the task has printed that was not read yet.
    pub(super) fn unread(&self, stream: Stream) -> u64 {
        if self.terminal.is_some() && stream == Stream::Out {
            return super::terminal::UNREAD_BYTES_MAX;
        }
        let Some(pipes) = &self.pipes else { return 0 };
        let pipe = match stream {
            Stream::Out => &pipes.out,
            Stream::Err => &pipes.err,
        };
        rustix::io::ioctl_fionread(pipe).unwrap_or(0)
    }
}

/// Sends bytes, and with the first of them two files.
fn send_with(to: &UnixStream, bytes: &[u8], files: &[OwnedFd; 2]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let files = [files[0].as_fd(), files[1].as_fd()];
    if !with.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("two files are too many"));
    }
    Ok(rustix::net::sendmsg(to, &[IoSlice::new(bytes)], &mut with, system::SEND)?)
}
