//! One event file that still grows: records are taken once they are there whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::event::{self, Scalar};
use super::frame::{self, FOOTER_BYTES, HEADER_BYTES};

/// Longest record that is looked into. Those of scalars are short; images and graphs are stepped
/// over unread.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// How far a file was read.
#[derive(Debug, Default)]
pub(super) struct Tail {
    offset: u64,
    /// It made no sense, and is left alone.
    given_up: bool,
}

impl Tail {
    /// The scalars of whatever records have come, within what may still be taken.
    pub(super) fn read(
        &mut self,
        path: &Path,
        values_max: usize,
        bytes_left: &mut u64,
    ) -> Vec<Scalar> {
        let mut scalars = Vec::new();
        if self.given_up || values_max == 0 || *bytes_left == 0 {
            return scalars;
        }
        if let Err(problem) = self.read_records(path, values_max, bytes_left, &mut scalars) {
            // Gone means that the job removed it; anything else will not mend itself either.
            if problem.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %problem, "an event file is left alone");
            }
            self.given_up = true;
        }
        scalars
    }

    fn read_records(
        &mut self,
        path: &Path,
        values_max: usize,
        bytes_left: &mut u64,
        scalars: &mut Vec<Scalar>,
    ) -> io::Result<()> {
        let Some(file) = self.open_if_grown(path)? else { return Ok(()) };
        let end = file.metadata()?.len();
        while scalars.len() < values_max && *bytes_left > 0 {
            let mut header = [0; HEADER_BYTES];
            let framing = (HEADER_BYTES + FOOTER_BYTES) as u64;
            if end < self.offset + framing {
                break;
            }
            file.read_exact_at(&mut header, self.offset)?;
            let broken = || io::Error::new(io::ErrorKind::InvalidData, "a record has no length");
            let bytes = frame::data_bytes(&header).ok_or_else(broken)?;
            let behind = bytes.checked_add(self.offset + framing).ok_or_else(broken)?;
            if behind > end {
                break;
            }
            if bytes <= RECORD_BYTES_MAX {
                let mut data = vec![0; bytes as usize + FOOTER_BYTES];
                file.read_exact_at(&mut data, self.offset + HEADER_BYTES as u64)?;
                // One whose checksum is wrong is passed over: its length was right.
                scalars.extend(frame::checked(&data).map(event::scalars).unwrap_or_default());
                *bytes_left = bytes_left.saturating_sub(bytes);
            }
            *bytes_left = bytes_left.saturating_sub(framing);
            self.offset = behind;
        }
        Ok(())
    }

    /// Opens it without following a link, and without waiting where it turned into a pipe.
    fn open_if_grown(&self, path: &Path) -> io::Result<Option<File>> {
        if std::fs::symlink_metadata(path)?.len() <= self.offset {
            return Ok(None);
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let is_file = file.metadata()?.is_file();
        is_file.then_some(Some(file)).ok_or_else(|| io::Error::other("it is no plain file"))
    }
}
