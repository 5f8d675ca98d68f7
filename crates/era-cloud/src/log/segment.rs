//! The files that a log is cut into: their names, and which there are.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The task that a log belongs to, within its job. In the order of a merged log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) attempt: u32,
    pub(super) part: u16,
    pub(super) rank: u32,
}

/// One file of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogSegment {
    /// The offset of its first byte.
    pub(super) base: u64,
    /// How many bytes it had when it was looked at.
    pub(super) bytes: u64,
}

impl LogSegment {
    pub(super) fn end(&self) -> u64 {
        self.base + self.bytes
    }
}

pub(super) fn path(folder: &Path, key: Key, base: u64) -> PathBuf {
    folder.join(format!("{}.{}.{}.{base}.log", key.attempt, key.part, key.rank))
}

fn parse(name: &str) -> Option<(Key, u64)> {
    let mut parts = name.strip_suffix(".log")?.split('.');
    let key = Key {
        attempt: parts.next()?.parse().ok()?,
        part: parts.next()?.parse().ok()?,
        rank: parts.next()?.parse().ok()?,
    };
    let base = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((key, base))
}

/// Every segment in a folder, by task and offset. A folder that is not there yet has none.
pub(super) fn list(folder: &Path) -> io::Result<Vec<(Key, LogSegment)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some((key, base)) = entry.file_name().to_str().and_then(parse) else { continue };
        // One that was dropped since it was listed is none.
        let Ok(facts) = entry.metadata() else { continue };
        if facts.is_file() {
            found.push((key, LogSegment { base, bytes: facts.len() }));
        }
    }
    found.sort_unstable_by_key(|(key, segment)| (*key, segment.base));
    Ok(found)
}

/// Opens for reading, never through a link: whoever could put one there would read what it
/// points to with our rights.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(no_link).open(path)
}

/// Reads up to `most` bytes at `at`, fewer only at the end.
pub(super) fn read_at(file: &File, at: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; most];
    let mut filled = 0;
    while filled < most {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    buffer.truncate(filled);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_log_is_called_is_a_segment() {
        let key = Key { attempt: 2, part: 1, rank: 30 };
        let written = path(Path::new("x"), key, 4096);
        assert_eq!(parse(written.file_name().unwrap().to_str().unwrap()), Some((key, 4096)));
        for other in ["a.log", "1.2.3.log", "1.2.3.4.5.log", "1.2.3.4", "-1.0.0.0.log", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
