//! A job's log as it is read: the tasks' logs merged, from any offset, while they still grow.
//!
//! A reader keeps no file open and waits for nothing. [`LogReader::refresh`] looks which segments
//! there are, [`LogReader::read`] takes what is in them; whoever follows a log calls both now and
//! then.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use era_core::units::Time;

use super::LogError;
use super::record::{self, End, RECORD_BYTES_MAX, Stream};
use super::segment::{self, Key, LogSegment};

/// Most tasks whose logs are merged.
pub(super) const TASKS_MAX: usize = 16_384;
/// How much is read of a file at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// A record of a job's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The offset of what follows it in what is read: where to go on from.
    pub next: u64,
    /// When it was printed.
    pub at: Time,
    /// Which request of the job's bid.
    pub part: u16,
    pub attempt: u32,
    /// Of which replica.
    pub rank: u32,
    /// Where it was printed.
    pub stream: Stream,
    /// Whether the line ends here; else it goes on in the next entry of the stream.
    pub ends: bool,
    /// What was printed, without the line end.
    pub text: Vec<u8>,
}

/// Which tasks' logs are read. Every field narrows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Only {
    pub attempt: Option<u32>,
    /// Of this replica.
    pub rank: Option<u32>,
}

impl Only {
    fn admits(self, key: Key) -> bool {
        self.attempt.is_none_or(|attempt| attempt == key.attempt)
            && self.rank.is_none_or(|rank| rank == key.rank)
    }
}

/// Reads a job's log.
#[derive(Debug)]
pub struct LogReader {
    pub(super) folder: PathBuf,
    only: Only,
    pub(super) sources: BTreeMap<Key, Source>,
    /// The attempt that is read; offsets of later ones do not count yet.
    pub(super) attempt: u32,
    pub(super) position: u64,
}

/// The log of one task, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) segments: Vec<LogSegment>,
    /// The offset of the first byte that was not handed out.
    pub(super) offset: u64,
    /// What was read from there on.
    ahead: Vec<u8>,
    /// Where in `ahead` that is.
    start: usize,
    /// The last time seen, for a record that has none.
    last: Time,
}

impl LogReader {
    /// A reader of the logs in a job's folder of logs, from the first byte that is still there.
    pub fn open(folder: &Path, only: Only) -> Result<LogReader, LogError> {
        let mut reader = LogReader {
            folder: folder.to_owned(),
            only,
            sources: BTreeMap::new(),
            attempt: 0,
            position: 0,
        };
        reader.refresh()?;
        Ok(reader)
    }

    /// The offset of what is read next.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many tasks of the newest attempt have printed anything. Where there are several, the
    /// order of what was printed a moment ago is not settled yet.
    pub fn tasks_merged(&self) -> usize {
        let newest = self.sources.keys().next_back().map(|key| key.attempt);
        self.sources.keys().filter(|key| Some(key.attempt) == newest).count()
    }

    /// Looks again which segments there are.
    pub fn refresh(&mut self) -> Result<(), LogError> {
        let listed = segment::list(&self.folder)
            .map_err(|source| LogError::File { path: self.folder.clone(), source })?;
        for source in self.sources.values_mut() {
            source.segments.clear();
        }
        for (key, segment) in listed {
            if !self.only.admits(key) {
                continue;
            }
            let attempt = self.attempt;
            let mut is_new = false;
            let source = self.sources.entry(key).or_insert_with(|| {
                is_new = true;
                Source { offset: segment.base, ..Source::default() }
            });
            source.segments.push(segment);
            if is_new && key.attempt <= attempt {
                self.position += segment.base;
            }
        }
        if self.sources.len() > TASKS_MAX {
            return Err(LogError::TooManyTasks { most: TASKS_MAX });
        }
        Ok(())
    }

    /// Takes what comes next: at most so many lines, of about so many bytes together, and nothing
    /// that was printed after `until`. Nothing means that there is no more for now.
    pub fn read(
        &mut self,
        lines_max: usize,
        bytes_max: usize,
        until: Time,
    ) -> Result<Vec<LogEntry>, LogError> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        while entries.len() < lines_max && bytes < bytes_max {
            let Some(entry) = self.take(until)? else { break };
            bytes += entry.text.len() + 32;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Takes the next entry in the order of the merged log.
    pub(super) fn take(&mut self, until: Time) -> Result<Option<LogEntry>, LogError> {
        let mut next: Option<(u32, Time, Key)> = None;
        for (key, source) in &mut self.sources {
            // Attempts follow one another: a later one is looked at once nothing is left before.
            if next.is_some_and(|(attempt, ..)| attempt < key.attempt) {
                break;
            }
            let before = source.offset;
            let at = source
                .peek(&self.folder, *key)
                .map_err(|source| LogError::File { path: self.folder.clone(), source })?;
            // What was dropped or is damaged is stepped over, and counts.
            if key.attempt <= self.attempt {
                self.position += source.offset - before;
            }
            if let Some(at) = at {
                let this = (key.attempt, at, *key);
                next = Some(next.map_or(this, |best| best.min(this)));
            }
        }
        let Some((attempt, at, key)) = next else { return Ok(None) };
        if at > until {
            return Ok(None);
        }
        self.begin_attempt(attempt);
        Ok(self.sources.get_mut(&key).and_then(|source| {
            let (mut entry, bytes) = source.pop(key)?;
            self.position += bytes;
            entry.next = self.position;
            Some(entry)
        }))
    }

    /// From here on the offsets of this attempt's tasks count.
    pub(super) fn begin_attempt(&mut self, attempt: u32) {
        let begun = self.attempt;
        let later = self.sources.iter().filter(|(k, _)| k.attempt > begun && k.attempt <= attempt);
        self.position += later.map(|(_, source)| source.offset).sum::<u64>();
        self.attempt = begun.max(attempt);
    }
}

impl Source {
    /// Goes on from another offset.
    pub(super) fn go_to(&mut self, offset: u64) {
        self.offset = offset;
        self.ahead.clear();
        self.start = 0;
    }

    /// The time of the next record, once it is there whole.
    pub(super) fn peek(&mut self, folder: &Path, key: Key) -> io::Result<Option<Time>> {
        loop {
            let ahead = &self.ahead[self.start..];
            if let Some(n) = memchr::memchr(b'\n', ahead) {
                let at = record::parse(&ahead[..n]).map_or(self.last, |record| record.at);
                return Ok(Some(at));
            }
            if ahead.len() > RECORD_BYTES_MAX {
                // No writer of ours made this. It is passed over, in bounded memory.
                let behind = self.offset + ahead.len() as u64;
                self.go_to(behind);
            }
            if !self.read_on(folder, key)? {
                return Ok(None);
            }
        }
    }

    /// Reads a little further, or steps to the next segment; `false` where there is nothing.
    fn read_on(&mut self, folder: &Path, key: Key) -> io::Result<bool> {
        let at = self.offset + (self.ahead.len() - self.start) as u64;
        // No record goes on in another segment, so the one that it begins in is looked at.
        let here = self.segments.iter().rposition(|segment| segment.base <= self.offset);
        let later = self.segments.get(here.map_or(0, |n| n + 1)).map(|segment| segment.base);
        if let Some(segment) = here.map(|n| self.segments[n]) {
            let read = segment::open(&segment::path(folder, key, segment.base))
                .and_then(|file| segment::read_at(&file, at - segment.base, CHUNK_BYTES));
            match read {
                Ok(bytes) if !bytes.is_empty() => {
                    self.ahead.drain(..self.start);
                    self.start = 0;
                    self.ahead.extend_from_slice(&bytes);
                    return Ok(true);
                }
                Ok(_) => {}
                // Dropped since it was listed.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        // A segment that another follows is complete: half a record at its end stays half.
        match later {
            Some(base) => {
                self.go_to(base);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Takes the record that `peek` found, with its length.
    fn pop(&mut self, key: Key) -> Option<(LogEntry, u64)> {
        let ahead = &self.ahead[self.start..];
        let n = memchr::memchr(b'\n', ahead)?;
        let line = &ahead[..n];
        let record = record::parse(line).unwrap_or(record::LogRecord {
            at: self.last,
            stream: Stream::Out,
            end: End::Line,
            text: line,
        });
        let entry = LogEntry {
            next: 0,
            at: record.at,
            part: key.part,
            attempt: key.attempt,
            rank: key.rank,
            stream: record.stream,
            ends: record.end == End::Line,
            text: record.text.to_vec(),
        };
        self.last = record.at;
        self.start += n + 1;
        self.offset += n as u64 + 1;
        Some((entry, n as u64 + 1))
    }
}
