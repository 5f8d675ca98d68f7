//! A task's terminal: the supervisor's end of it, what was shown last and what was typed, and how a
//! shell is hung up. Whoever is attached to it is not known here.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::limits::tree::Process;

/// So much of what was shown last is shown to whoever attaches: a screenful or two.
const RECENT_BYTES_MAX: usize = 16 << 10;
/// So much that was typed waits for the task to read it; then those who type wait too.
const TYPED_BYTES_MAX: usize = 64 << 10;
/// How much is read of a terminal in one turn.
const PIECE_BYTES: usize = 64 << 10;
/// More than a terminal holds when its task is gone.
pub(super) const UNREAD_BYTES_MAX: u64 = 1 << 20;
/// The size of a window before somebody tells it.
const SIZE: (u16, u16) = (24, 80);
/// How often it is looked whether a shell can be hung up.
pub(super) const HANG_UP_EVERY: Duration = Duration::from_millis(50);

/// Our end of a task's terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    master: OwnedFd,
    recent: VecDeque<u8>,
    typed: VecDeque<u8>,
    /// A return was shown last, which the log only has if no end of line follows.
    returned: bool,
}

impl Terminal {
    /// Makes a terminal, and the task's end of it, which is its user's.
    pub(super) fn open(owner: Option<u32>) -> io::Result<(Terminal, OwnedFd)> {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let end = rustix::fs::open(&name, flags, Mode::empty())?;
        if let Some(uid) = owner {
            rustix::fs::fchown(&end, Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid)))?;
        }
        rustix::fs::fchmod(&end, Mode::from_raw_mode(0o600))?;
        let (recent, typed) = (VecDeque::new(), VecDeque::new());
        let terminal = Terminal { master, recent, typed, returned: false };
        terminal.set_size(SIZE.0, SIZE.1);
        Ok((terminal, end))
    }

    /// What to wait for.
    pub(super) fn poll(&self) -> PollFd<'_> {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, !self.typed.is_empty());
        PollFd::new(&self.master, flags)
    }

    /// Reads what is there, up to a limit; a terminal gives it in small portions.
    pub(super) fn read(&self, piece: &mut Vec<u8>) -> usize {
        piece.resize(PIECE_BYTES, 0);
        let mut read = 0;
        while read < PIECE_BYTES {
            match rustix::io::read(&self.master, &mut piece[read..]) {
                Ok(more) if more > 0 => read += more,
                Err(rustix::io::Errno::INTR) => {}
                // Nothing now, or never again: the keeper tells that too.
                _ => break,
            }
        }
        piece.truncate(read);
        read
    }

    /// Remembers what was shown, and returns it as it stands in a log: a terminal ends a line with
    /// a return too, which is no part of the line.
    pub(super) fn shown<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let much = (self.recent.len() + piece.len()).saturating_sub(RECENT_BYTES_MAX);
        self.recent.drain(..much.min(self.recent.len()));
        self.recent.extend(&piece[piece.len().saturating_sub(RECENT_BYTES_MAX)..]);
        if !self.returned && !piece.contains(&b'\r') {
            return piece.into();
        }
        let mut lines = Vec::with_capacity(piece.len() + 1);
        for byte in piece {
            if self.returned && *byte != b'\n' {
                lines.push(b'\r');
            }
            self.returned = *byte == b'\r';
            if !self.returned {
                lines.push(*byte);
            }
        }
        lines.into()
    }

    /// What was shown last, from the beginning of a line where something was forgotten.
    pub(super) fn recent(&self) -> Vec<u8> {
        let bytes: Vec<u8> = self.recent.iter().copied().collect();
        if bytes.len() < RECENT_BYTES_MAX {
            return bytes;
        }
        // Not where a long line would take most of it.
        let head = &bytes[..bytes.len() / 2];
        let line = head.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes[line..].to_vec()
    }

    /// Takes what is to be typed, and types what it can of that without waiting.
    pub(super) fn type_in(&mut self, bytes: &[u8]) {
        self.typed.extend(bytes);
        self.flush();
    }

    /// Whether more can be taken to be typed.
    pub(super) fn is_full(&self) -> bool {
        self.typed.len() >= TYPED_BYTES_MAX
    }

    /// Types what it can without waiting.
    pub(super) fn flush(&mut self) {
        while !self.typed.is_empty() {
            match rustix::io::write(&self.master, self.typed.as_slices().0) {
                Ok(typed) => drop(self.typed.drain(..typed)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                // Nobody reads there any more.
                Err(_) => self.typed.clear(),
            }
        }
    }

    pub(super) fn set_size(&self, rows: u16, cols: u16) {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        if let Err(error) = rustix::termios::tcsetwinsize(&self.master, size) {
            tracing::warn!(%error, "a terminal could not be told its size");
        }
    }
}

/// Has a shell leave that ignores being asked to, as shells at a terminal do: by hanging up, once
/// all that it started is gone. Not before, since it would pass that on to what is still saving
/// its work. Says whether there is nothing more to do.
pub(super) fn hang_up(task: &[Process], root: Pid) -> bool {
    let mut alone = true;
    for process in task {
        if process.zombie || process.pid == root.as_raw_pid() {
            continue;
        }
        alone = false;
        if let Some(pid) = Pid::from_raw(process.pid) {
            // One that was stopped by a key has not heard that it is to end.
            let _ = rustix::process::kill_process(pid, Signal::CONT);
        }
    }
    if alone && ignores_term(root) {
        // It may be gone, which is what we want.
        let _ = rustix::process::kill_process(root, Signal::HUP);
    }
    alone
}

/// Whether a process ignores that it is asked to end; so it seems where that cannot be told.
fn ignores_term(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid()));
    let ignored = status.ok().and_then(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?.trim().to_owned();
        u64::from_str_radix(&mask, 16).ok()
    });
    ignored.is_none_or(|mask| mask >> (Signal::TERM.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_lines_where_a_terminal_has_returns_too() {
        let shown = b"one\r\ntwo\rthree\r\r\n\r\nrest";
        for size in 1..shown.len() {
            let (mut terminal, _end) = Terminal::open(None).expect("a terminal");
            let mut log = Vec::new();
            for piece in shown.chunks(size) {
                log.extend_from_slice(&terminal.shown(piece));
            }
            assert_eq!(log, b"one\ntwo\rthree\r\n\nrest", "pieces of {size}");
        }
    }

    #[test]
    fn what_was_shown_last_is_remembered_from_a_line_on() {
        let (mut terminal, _end) = Terminal::open(None).expect("a terminal");
        terminal.shown(b"first\r\n");
        assert_eq!(terminal.recent(), b"first\r\n");
        for _ in 0..RECENT_BYTES_MAX / 10 {
            terminal.shown(b"123456789\n");
        }
        terminal.shown(b"last");
        let recent = terminal.recent();
        assert!(recent.len() <= RECENT_BYTES_MAX && recent.starts_with(b"1234"), "{recent:?}");
        assert!(recent.ends_with(b"\nlast"));
        terminal.shown(&[b'x'; 2 * RECENT_BYTES_MAX]);
        terminal.shown(b"end\r\n$ ");
        assert_eq!(terminal.recent().len(), RECENT_BYTES_MAX);
    }
}
