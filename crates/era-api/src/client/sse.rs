//! Server-sent events: lines in, frames out.

use std::io::{self, BufRead, Read};

/// Most bytes of one line.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Most bytes of one frame's data.
const DATA_BYTES_MAX: usize = 4 << 20;

/// One event as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) id: Option<String>,
    /// Its lines of data, joined.
    pub(super) data: String,
}

/// The next frame; `None` at the end. Comments, which are heartbeats, are passed over.
pub(super) fn next(lines: &mut impl BufRead) -> io::Result<Option<Frame>> {
    let mut frame = Frame::default();
    let mut begun = false;
    loop {
        let mut line = Vec::new();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            // What was not closed by an empty line does not count.
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && read as u64 == LINE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            if begun {
                return Ok(Some(frame));
            }
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if begun && !frame.data.is_empty() {
                    frame.data.push('\n');
                }
                frame.data.push_str(value);
                begun = true;
            }
            "id" => frame.id = Some(value.to_owned()),
            _ => {}
        }
        if frame.data.len() > DATA_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an event without an end"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &str) -> Vec<Frame> {
        let mut lines = text.as_bytes();
        std::iter::from_fn(|| next(&mut lines).unwrap()).collect()
    }

    #[test]
    fn frames_end_with_an_empty_line_and_heartbeats_are_passed_over() {
        let text = ": hello\n\nid: 4.1\nevent: running\ndata: {\"a\":1}\n\n: beat\n\n\
                    data: one\r\ndata: two\r\n\r\ndata: cut";
        let expected = [(Some("4.1"), "{\"a\":1}"), (None, "one\ntwo")];
        let expected =
            expected.map(|(id, data)| Frame { id: id.map(str::to_owned), data: data.to_owned() });
        assert_eq!(frames(text), expected);
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let endless = io::repeat(b'x');
        assert!(next(&mut io::BufReader::new(endless)).is_err());
    }
}
