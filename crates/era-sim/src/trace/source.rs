//! Where the bytes of a trace come from: a file, compressed with gzip or not.
//!
//! Whether it is compressed is seen from its first bytes, not from its name. What the bytes mean
//! is not known here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::BadInput;

/// How much of a file is looked at to recognise its format.
const START_BYTES: u64 = 16 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// An opened trace: its first bytes, and all of it (those bytes included).
pub(crate) struct Source {
    pub(crate) start: Vec<u8>,
    pub(crate) all: Box<dyn BufRead>,
}

/// Opens a file and looks at its first bytes.
pub(crate) fn open(path: &Path) -> Result<Source, BadInput> {
    let file = File::open(path).map_err(|e| BadInput::new(format!("cannot be opened: {e}")))?;
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let compressed = file.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
    let mut plain: Box<dyn Read> =
        if compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut start = Vec::new();
    plain.by_ref().take(START_BYTES).read_to_end(&mut start).map_err(unreadable)?;
    let all = Cursor::new(start.clone()).chain(plain);
    Ok(Source { start, all: Box::new(BufReader::with_capacity(BUFFER_BYTES, all)) })
}

/// Says why bytes did not come. A gzip stream knows when it is cut short or damaged.
#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` wants
pub(crate) fn unreadable(error: io::Error) -> BadInput {
    BadInput::new(match error.kind() {
        ErrorKind::UnexpectedEof => {
            "the gzip stream is truncated: it ends before its end; fetch the file again".into()
        }
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            format!("the gzip stream is damaged ({error}); fetch the file again")
        }
        _ => format!("cannot be read: {error}"),
    })
}
