//! The journal as a file: every input with what was decided about it, in order, one JSON object a
//! line.
//!
//! A journal is one segment after another. A segment begins with the state that it starts from:
//!
//! ```text
//! {"segment":1,"core_version":4,"wire_version":1,"state":{…}}
//! ```
//!
//! and goes on with one line for each input, and nothing that follows from it but its events:
//!
//! ```text
//! {"input":{"seq":1,"at":0,"command":{"type":"tick"}},"events":[]}
//! ```
//!
//! [`Reader`] takes one line at a time, so memory does not grow with the file; [`Writer`] and
//! [`Recorder`] write one. A line that a crash cut off is the last one and has no end: it is told
//! apart from damage elsewhere, which is an error. What inputs mean is not known here: whoever
//! wants to see whether they lead to these events asks [`replay`](crate::replay).

mod lines;
mod read;
#[cfg(test)]
mod tests;
mod write;

use era_core::{Input, State};

pub use read::Reader;
pub use write::{Recorder, Writer};

/// Longest line of a state, in bytes. A state of a hundred thousand jobs takes about a tenth.
pub const STATE_BYTES_MAX: usize = 1 << 30;
/// Longest line of an input, in bytes. The longest that is written is a forecast.
pub const INPUT_BYTES_MAX: usize = 1 << 26;

/// One line of a journal.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // lines live one at a time
pub enum JournalRecord {
    /// A segment begins.
    Segment(SegmentStart),
    /// An input and its events.
    Entry(RecordedEntry),
}

/// The beginning of a segment.
#[derive(Debug)]
pub struct SegmentStart {
    /// The line it stands on, from 1.
    pub line: u64,
    /// Its number, from 1.
    pub number: u64,
    /// The state that it starts from.
    pub state: Box<State>,
    /// The state as it is written.
    pub state_text: Box<str>,
}

/// An input and what was decided about it.
#[derive(Debug)]
pub struct RecordedEntry {
    /// The line it stands on, from 1.
    pub line: u64,
    pub input: Input,
    /// The list of its events, as it is written: bytes are what a replay compares.
    pub events_text: Box<str>,
}

/// The last line, which a crash cut off before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Torn {
    /// Which line, from 1.
    pub line: u64,
    /// How much of it is there.
    pub bytes: u64,
}
