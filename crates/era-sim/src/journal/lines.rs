//! Lines of bounded length out of bytes. Knows when the last one has no end, and not what any of
//! them means.

use std::io::{self, BufRead, ErrorKind};

/// What comes next.
pub(super) enum JournalLine {
    /// A whole line, now in the buffer.
    Whole,
    /// The last line, now in the buffer: its end is missing.
    Unended,
    End,
}

/// Why there is no line.
pub(super) enum NoLine {
    /// It is longer than this many bytes.
    TooLong(usize),
    /// The bytes did not come.
    Unreadable(io::Error),
}

/// Reads a line into the buffer, without its end. `limit` says from its first bytes how long it
/// may be. A compressed stream that stops short is a line without an end, not an error.
pub(super) fn next_line(
    from: &mut dyn BufRead,
    buffer: &mut Vec<u8>,
    limit: impl Fn(&[u8]) -> usize,
) -> Result<JournalLine, NoLine> {
    buffer.clear();
    loop {
        let bytes = match from.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(JournalLine::Unended);
            }
            Err(error) => return Err(NoLine::Unreadable(error)),
        };
        if bytes.is_empty() {
            return Ok(if buffer.is_empty() { JournalLine::End } else { JournalLine::Unended });
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let take = end.unwrap_or(bytes.len());
        buffer.extend_from_slice(&bytes[..take]);
        from.consume(take + usize::from(end.is_some()));
        let most = limit(buffer);
        if buffer.len() > most {
            return Err(NoLine::TooLong(most));
        }
        if end.is_some() {
            return Ok(JournalLine::Whole);
        }
    }
}
