//! What a server and a supervisor say to each other: one JSON object a line.
//!
//! Both sides begin with a hello that names the newest and the oldest protocol they speak, and go
//! on with the newest that both do, so a newer server can talk to a supervisor that was started
//! before an upgrade and still has tasks. Unknown fields are ignored; an unknown message is
//! answered with [`FromShim::Refused`] and does no harm.

use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use era_core::job::TaskId;
use serde::{Deserialize, Serialize};

use crate::executor::{ExecutorReport, Order};

/// The newest protocol that we speak.
pub const PROTOCOL: u32 = 1;
/// The oldest protocol that we speak.
pub const PROTOCOL_OLDEST: u32 = 1;
/// Longest line: a launch with many thousands of files of code and inputs.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// What each side says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The newest protocol that it speaks.
    pub protocol: u32,
    pub oldest: u32,
    /// The version of the program.
    pub version: String,
}

impl Hello {
    pub fn ours() -> Hello {
        Hello {
            protocol: PROTOCOL,
            oldest: PROTOCOL_OLDEST,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// The newest protocol that both speak.
    pub fn agree(&self, other: &Hello) -> Option<u32> {
        let newest = self.protocol.min(other.protocol);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

/// From the server to the supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToShim {
    /// The first line.
    Hello(Hello),
    Order(Box<Order>),
    /// Ends that need not be told again.
    Acknowledge(Vec<TaskId>),
    /// Exit if there is nothing to look after.
    Leave,
    /// Show this task's terminal on this connection from now on, and take what is typed there.
    Attach(TaskId),
    /// It was typed where the connection is attached.
    Type(Bytes),
    /// The window there has this size.
    Size {
        rows: u16,
        /// Characters in a line.
        cols: u16,
    },
}

/// From the supervisor to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromShim {
    /// The first line.
    Hello {
        hello: Hello,
        pid: u32,
        /// What runs, or has ended without acknowledgement.
        known: Vec<TaskId>,
        /// What this machine does not permit, in words.
        notes: Vec<String>,
        /// What has ended without acknowledgement; each is also told as a report.
        #[serde(default)]
        ended: Vec<ExecutorReport>,
    },
    Report(Box<ExecutorReport>),
    /// A line that was not understood or cannot be obeyed.
    Refused(String),
    /// It exits, as it was asked to.
    Leaving,
    /// The answer to [`ToShim::Attach`]. What was shown last follows, then what comes, and last a
    /// report of the task's end.
    Attached,
    /// Why there is no terminal to attach to. A supervisor that is too old to know terminals
    /// refuses instead.
    Unattached(String),
    /// It was printed to the terminal.
    Shown(Bytes),
}

/// Any bytes, in a line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        BASE64_STANDARD.decode(&*text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

/// Adds a message as a line.
pub fn put<T: Serialize>(line: &mut Vec<u8>, message: &T) {
    let before = line.len();
    if let Err(error) = serde_json::to_writer(&mut *line, message) {
        // Every message is made of types that JSON can hold; if one is not, none of it may leave.
        line.truncate(before);
        tracing::error!(%error, "a message could not be written");
        return;
    }
    line.push(b'\n');
}

/// Bytes that arrive in pieces, cut into lines.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Up to here they were looked at, and held no end of line.
    seen: usize,
}

impl LineBuffer {
    /// Takes what arrived, and gives back whole lines to `each`.
    pub fn feed(&mut self, piece: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.bytes.extend_from_slice(piece);
        let mut begin = 0;
        while let Some(at) = self.bytes[self.seen..].iter().position(|byte| *byte == b'\n') {
            let end = self.seen + at;
            each(&self.bytes[begin..end]);
            begin = end + 1;
            self.seen = begin;
        }
        self.bytes.drain(..begin);
        self.seen = self.bytes.len();
        if self.bytes.len() > LINE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(oldest: u32, protocol: u32) -> Hello {
        Hello { protocol, oldest, version: "x".into() }
    }

    #[test]
    fn both_sides_take_the_newest_protocol_that_both_speak() {
        assert_eq!(hello(1, 3).agree(&hello(1, 1)), Some(1));
        assert_eq!(hello(2, 3).agree(&hello(1, 2)), Some(2));
        assert_eq!(hello(3, 4).agree(&hello(1, 2)), None);
    }

    #[test]
    fn a_newer_hello_with_fields_that_we_do_not_know_is_understood() {
        let text = r#"{"hello":{"protocol":9,"oldest":1,"version":"9","shiny":true}}"#;
        let read: ToShim = serde_json::from_str(text).expect("understood");
        assert_eq!(read, ToShim::Hello(Hello { protocol: 9, oldest: 1, version: "9".into() }));
    }

    #[test]
    fn what_is_typed_and_shown_may_be_any_bytes() {
        let bytes = Bytes((0..=255).collect());
        let mut line = Vec::new();
        put(&mut line, &ToShim::Type(bytes.clone()));
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: ToShim = serde_json::from_slice(&line).expect("understood");
        assert_eq!(read, ToShim::Type(bytes));
        assert!(serde_json::from_str::<ToShim>(r#"{"type":"no base64"}"#).is_err());
    }

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        let text = b"one\ntwo\n\nthree\nrest";
        for size in 1..text.len() {
            let (mut lines, mut out) = (LineBuffer::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.feed(piece, |line| out.push(line.to_vec())).expect("short");
            }
            assert_eq!(out, [&b"one"[..], b"two", b"", b"three"], "pieces of {size}");
        }
    }
}
