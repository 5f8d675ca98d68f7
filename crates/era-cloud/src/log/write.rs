//! A task's log as it is written: lines get their time, long ones are split, old segments go.
//!
//! Memory is bounded whatever is printed: at most one unfinished line of [`LINE_BYTES_MAX`] for
//! each stream and one buffer of records. A disk that is full loses what it cannot take, and
//! nothing else: the task goes on, what was lost is counted, and the log says so once there is
//! room.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use era_core::job::TaskId;
use era_core::units::Time;

use super::directive::{self, LogDirective};
use super::record::{End, LINE_BYTES_MAX, Stream, header};
use super::segment::{self, Key, LogSegment};

/// Least that is kept of a log, whatever limit is given.
pub const LOG_BYTES_MIN: u64 = 1 << 20;
/// Records are gathered up to this before they are handed to the system.
const BUFFER_BYTES: usize = 128 << 10;
/// Most values a second that a task may tell; a burst may be ten times as large.
const VALUES_PER_SECOND_MAX: i64 = 1000;
const VALUES_BURST_MAX: i64 = 10 * VALUES_PER_SECOND_MAX;

/// Writes the log of one task.
#[derive(Debug)]
pub struct LogWriter {
    folder: PathBuf,
    key: Key,
    limit_bytes: u64,
    segment_bytes: u64,
    /// Segments that are there, the one that is written last.
    segments: Vec<LogSegment>,
    file: Option<File>,
    last: Time,
    unfinished: [Unfinished; 2],
    records: Vec<u8>,
    numbered_lines: u64,
    allowance: Allowance,
    lost: Option<Loss>,
}

/// A line whose end has not come.
#[derive(Debug, Default)]
struct Unfinished {
    /// What has not been written.
    text: Vec<u8>,
    /// What has, of a line that may tell something.
    head: Vec<u8>,
    /// Whether part of the line was written already.
    begun: bool,
}

/// What could not be written.
#[derive(Debug)]
struct Loss {
    bytes: u64,
    because: io::Error,
}

impl LogWriter {
    /// A writer for a task's log in its job's folder of logs, of which at most `limit_bytes` are
    /// kept (never less than [`LOG_BYTES_MIN`]). Nothing is made there before the first byte
    /// comes. A log that is there already is gone on with.
    pub fn open(folder: &Path, task: TaskId, limit_bytes: u64) -> LogWriter {
        let key = Key { attempt: task.attempt, part: task.part, rank: task.rank };
        let limit_bytes = limit_bytes.max(LOG_BYTES_MIN);
        // Where the folder cannot be listed, writing into it will say why.
        let listed = segment::list(folder).unwrap_or_default();
        LogWriter {
            folder: folder.to_owned(),
            key,
            limit_bytes,
            segment_bytes: (limit_bytes / 8).min(32 << 20),
            segments: listed.into_iter().filter(|(k, _)| *k == key).map(|(_, s)| s).collect(),
            file: None,
            last: Time(0),
            unfinished: Default::default(),
            records: Vec::new(),
            numbered_lines: 0,
            allowance: Allowance { left: VALUES_BURST_MAX, at: None, refused: 0 },
            lost: None,
        }
    }

    /// Takes what a task printed, and says what it told. A line whose end has not come is kept;
    /// [`flush`](LogWriter::flush) shows it before.
    pub fn write(&mut self, stream: Stream, bytes: &[u8], at: Time) -> Vec<LogDirective> {
        // In a log, time never runs backwards: readers search by it.
        self.last = self.last.max(at);
        let mut directives = Vec::new();
        let whole = header(self.last, stream, End::Line);
        let mut rest = bytes;
        while let Some(n) = memchr::memchr(b'\n', rest) {
            self.finish_line(stream, &rest[..n], &whole, &mut directives);
            rest = &rest[n + 1..];
            if self.records.len() >= BUFFER_BYTES {
                self.commit();
            }
        }
        self.keep_unfinished(stream, rest);
        self.commit();
        directives
    }

    /// Shows lines whose end has not come, such as a prompt or a progress bar. To be called a
    /// moment after the last byte.
    pub fn flush(&mut self, at: Time) {
        self.last = self.last.max(at);
        for stream in [Stream::Out, Stream::Err] {
            if !self.unfinished[stream as usize].text.is_empty() {
                self.show_unfinished(stream);
            }
        }
        self.commit();
    }

    /// Whether a line waits for its end: whether [`flush`](LogWriter::flush) would show anything.
    pub fn has_unfinished(&self) -> bool {
        self.unfinished.iter().any(|line| !line.text.is_empty())
    }

    /// How many bytes could not be written since the last that could, and why.
    pub fn lost(&self) -> Option<(u64, &io::Error)> {
        self.lost.as_ref().map(|loss| (loss.bytes, &loss.because))
    }

    /// The offset of what comes next.
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(0, LogSegment::end)
    }

    /// How much memory it has taken.
    #[cfg(test)]
    pub(super) fn bytes_held(&self) -> usize {
        let lines = self.unfinished.iter().map(|line| line.text.capacity() + line.head.capacity());
        self.records.capacity() + lines.sum::<usize>()
    }

    fn finish_line(
        &mut self,
        stream: Stream,
        text: &[u8],
        whole: &[u8],
        directives: &mut Vec<LogDirective>,
    ) {
        let line = &self.unfinished[stream as usize];
        if line.text.is_empty() && !line.begun && text.len() <= LINE_BYTES_MAX {
            self.records.reserve(whole.len() + text.len() + 1);
            self.records.extend_from_slice(whole);
            self.records.extend_from_slice(text);
            self.records.push(b'\n');
            if text.starts_with(b"era: ") {
                self.hear(text, directives);
            }
            return;
        }
        self.keep_unfinished(stream, text);
        let line = std::mem::take(&mut self.unfinished[stream as usize]);
        self.push_record(whole, &line.text);
        let all = [line.head.as_slice(), &line.text].concat();
        // What was written of a line that can tell nothing is not in `head`.
        if directive::may_tell(&all) && (!line.begun || !line.head.is_empty()) {
            self.hear(&all, directives);
        }
        let mut text = line.text;
        text.clear();
        self.unfinished[stream as usize].text = text;
    }

    fn push_record(&mut self, header: &[u8], text: &[u8]) {
        self.records.extend_from_slice(header);
        self.records.extend_from_slice(text);
        self.records.push(b'\n');
    }

    fn keep_unfinished(&mut self, stream: Stream, mut text: &[u8]) {
        loop {
            let line = &mut self.unfinished[stream as usize].text;
            let room = LINE_BYTES_MAX - line.len();
            if text.len() <= room {
                line.extend_from_slice(text);
                return;
            }
            line.extend_from_slice(&text[..room]);
            text = &text[room..];
            self.show_unfinished(stream);
            if self.records.len() >= BUFFER_BYTES {
                self.commit();
            }
        }
    }

    /// Writes what there is of a line, and remembers it if it may tell something once it is whole.
    fn show_unfinished(&mut self, stream: Stream) {
        let mut line = std::mem::take(&mut self.unfinished[stream as usize]);
        self.push_record(&header(self.last, stream, End::Open), &line.text);
        if !line.begun || !line.head.is_empty() {
            line.head.extend_from_slice(&line.text);
            if !directive::may_tell(&line.head) {
                line.head = Vec::new();
            }
        }
        line.begun = true;
        line.text.clear();
        self.unfinished[stream as usize] = line;
    }

    fn hear(&mut self, line: &[u8], directives: &mut Vec<LogDirective>) {
        let Some(heard) = directive::read(line, self.last, self.numbered_lines) else { return };
        let values = match &heard {
            LogDirective::Samples(samples) => samples.len() as i64,
            LogDirective::Checkpoint(_) => 1,
        };
        let Ok(refused_before) = self.allowance.take(values, self.last) else { return };
        self.numbered_lines += 1;
        directives.push(heard);
        if refused_before > 0 {
            let most = VALUES_PER_SECOND_MAX;
            self.note(&format!(
                "era: {refused_before} values were not recorded: tell at most {most} a second"
            ));
        }
    }

    /// A line of our own in the log.
    fn note(&mut self, text: &str) {
        let whole = header(self.last, Stream::Err, End::Line);
        self.push_record(&whole, text.as_bytes());
    }

    /// Hands the gathered records to the system.
    fn commit(&mut self) {
        if self.records.is_empty() {
            return;
        }
        if let Some(loss) = &self.lost {
            let note = format!("era: {} bytes of this log were lost: {}", loss.bytes, loss.because);
            let mut first = header(self.last, Stream::Err, End::Line);
            first.extend_from_slice(note.as_bytes());
            first.push(b'\n');
            self.records.splice(0..0, first);
        }
        match self.append() {
            Ok(()) => self.lost = None,
            Err(because) => {
                let before = self.lost.take().map_or(0, |loss| loss.bytes);
                if before == 0 {
                    tracing::warn!(folder = %self.folder.display(), %because, "a log cannot be written");
                }
                let bytes = before + self.records.len() as u64;
                self.lost = Some(Loss { bytes, because });
            }
        }
        self.records.clear();
    }

    fn append(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.start_segment()?;
        }
        let (Some(file), Some(segment)) = (&self.file, self.segments.last_mut()) else {
            return Err(io::Error::other("no segment is open"));
        };
        if let Err(e) = file.write_all_at(&self.records, segment.bytes) {
            // Half a record must not stay: what comes next goes to the same place. If even that
            // fails, the next segment begins behind whatever is there.
            if file.set_len(segment.bytes).is_err() {
                segment.bytes = file.metadata().map_or(segment.bytes, |facts| facts.len());
                self.file = None;
            }
            return Err(e);
        }
        segment.bytes += self.records.len() as u64;
        if segment.bytes >= self.segment_bytes {
            self.file = None;
            self.drop_oldest();
        }
        Ok(())
    }

    /// A log that is gone on with begins a new segment: the last one may end in half a record.
    fn start_segment(&mut self) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let base = self.end();
        if self.segments.last().is_some_and(|last| last.bytes == 0) {
            self.segments.pop();
        }
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o640)
            .custom_flags(no_link)
            .open(segment::path(&self.folder, self.key, base))?;
        self.segments.push(LogSegment { base, bytes: 0 });
        self.file = Some(file);
        Ok(())
    }

    /// Makes room for one more full segment.
    fn drop_oldest(&mut self) {
        let mut kept: u64 = self.segments.iter().map(|s| s.bytes).sum();
        let mut gone = 0;
        for oldest in &self.segments[..self.segments.len() - 1] {
            if kept + self.segment_bytes <= self.limit_bytes {
                break;
            }
            let path = segment::path(&self.folder, self.key, oldest.base);
            if let Err(e) = std::fs::remove_file(&path)
                && e.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), error = %e, "an old log cannot be removed");
                break;
            }
            kept -= oldest.bytes;
            gone += 1;
        }
        self.segments.drain(..gone);
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.flush(self.last);
    }
}

/// How many values a task may still tell: so many a second, and a burst.
#[derive(Debug)]
struct Allowance {
    left: i64,
    at: Option<Time>,
    refused: u64,
}

struct TooMany;

impl Allowance {
    /// Takes so many; says how many were refused since the last that were not.
    fn take(&mut self, values: i64, now: Time) -> Result<u64, TooMany> {
        let since_ms = self.at.map_or(0, |at| now.since(at).ms()).clamp(0, 60_000);
        let earned = since_ms * VALUES_PER_SECOND_MAX / 1000;
        self.left = (self.left + earned).min(VALUES_BURST_MAX);
        self.at = Some(now);
        if self.left < values {
            self.refused += values as u64;
            return Err(TooMany);
        }
        self.left -= values;
        Ok(std::mem::take(&mut self.refused))
    }
}
