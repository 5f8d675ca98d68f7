//! One record of a log: when, on which stream, and the text.
//!
//! It knows nothing of files.

use era_core::units::Time;

/// Longest text of one record; longer lines are split.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Longest record: the text, thirteen digits or a few more of time, stream, spaces, line end.
pub(super) const RECORD_BYTES_MAX: usize = LINE_BYTES_MAX + 32;

/// Where a task printed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Out,
    Err,
}

impl Stream {
    /// As it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Stream::Out => "out",
            Stream::Err => "err",
        }
    }
}

/// Whether a record ends its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Line,
    /// The line goes on in the next record of the stream.
    Open,
}

/// A record as it stands in a segment, without the line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRecord<'a> {
    pub(super) at: Time,
    pub(super) stream: Stream,
    pub(super) end: End,
    pub(super) text: &'a [u8],
}

/// What stands before the text. Made once for all records of an instant.
pub(super) fn header(at: Time, stream: Stream, end: End) -> Vec<u8> {
    let tag = match (stream, end) {
        (Stream::Out, End::Line) => 'o',
        (Stream::Err, End::Line) => 'e',
        (Stream::Out, End::Open) => 'O',
        (Stream::Err, End::Open) => 'E',
    };
    format!("{} {tag} ", at.0.clamp(0, Time::LATEST.0)).into_bytes()
}

/// Reads a record; `None` where it is none.
pub(super) fn parse(line: &[u8]) -> Option<LogRecord<'_>> {
    let digits = line.iter().take(16).position(|b| *b == b' ')?;
    let (time, rest) = line.split_at(digits);
    let at = std::str::from_utf8(time).ok().filter(|t| !t.starts_with('+'))?.parse().ok()?;
    let [b' ', tag, b' ', text @ ..] = rest else { return None };
    let (stream, end) = match tag {
        b'o' => (Stream::Out, End::Line),
        b'e' => (Stream::Err, End::Line),
        b'O' => (Stream::Out, End::Open),
        b'E' => (Stream::Err, End::Open),
        _ => return None,
    };
    Some(LogRecord { at: Time(at), stream, end, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_it_was_written() {
        for stream in [Stream::Out, Stream::Err] {
            for end in [End::Line, End::Open] {
                for text in [&b""[..], b"a b", b" \x00\xff "] {
                    let mut line = header(Time(1_793_347_200_123), stream, end);
                    line.extend_from_slice(text);
                    let record = parse(&line).unwrap();
                    let same = LogRecord { at: Time(1_793_347_200_123), stream, end, text };
                    assert_eq!(record, same);
                }
            }
        }
    }

    #[test]
    fn what_is_no_record_is_told_apart() {
        for bad in [
            "",
            "x",
            "12",
            "12 o",
            "12 x text",
            "+1 o a",
            "1x o a",
            " o a",
            "99999999999999999999 o a",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
