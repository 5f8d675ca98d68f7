//! A server that is connected to the supervisor.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use era_core::job::TaskId;
use serde::Serialize;

use super::protocol::{LineBuffer, ToShim, put};

/// A server that does not read for so long is cut off; what it must know is told again when it
/// comes back.
const BACKLOG_BYTES_MAX: usize = 64 << 20;
/// How much is read in one turn.
const PIECE_BYTES: usize = 256 << 10;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: UnixStream,
    /// Whether it has said hello, and is told what happens.
    pub(super) greeted: bool,
    /// Whose terminal it watches.
    pub(super) watches: Option<TaskId>,
    /// Whether it could not keep up with that terminal, and is shown nothing until it has.
    pub(super) behind: bool,
    lines: LineBuffer,
    out: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        let (lines, out) = (LineBuffer::default(), Vec::new());
        Ok(Connection { stream, greeted: false, watches: None, behind: false, lines, out })
    }

    /// Reads what is there. An error means that the connection is over.
    pub(super) fn hear(&mut self) -> io::Result<Vec<Result<ToShim, serde_json::Error>>> {
        let mut piece = vec![0; PIECE_BYTES];
        let read = match self.stream.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error)
                if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted]
                    .contains(&error.kind()) =>
            {
                return Ok(Vec::new());
            }
            read => read?,
        };
        let mut said = Vec::new();
        self.lines.feed(&piece[..read], |line| said.push(serde_json::from_slice(line)))?;
        Ok(said)
    }

    /// Has something to be sent at the next [`Connection::flush`].
    pub(super) fn tell(&mut self, message: &impl Serialize) {
        put(&mut self.out, message);
    }

    /// Whether something waits to be sent.
    pub(super) fn has_more(&self) -> bool {
        self.backlog_bytes() > 0
    }

    /// How much waits to be sent.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.out.len()
    }

    /// Sends what it can without waiting. An error means that the connection is over.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => sent += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.out.drain(..sent);
        if self.out.len() > BACKLOG_BYTES_MAX {
            return Err(io::Error::other("the server does not read"));
        }
        Ok(())
    }
}
