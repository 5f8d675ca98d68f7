//! What a job printed: in pages, as a text, and as it comes.
//!
//! The log is read from the job's folder; nothing of it is kept in memory or in a database. Lines
//! that were just printed by several replicas wait a moment until their order is settled, so that
//! the offset of a line means the same to whoever asks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use era_api::Page;
use era_api::job::{LogFilter, LogLine};
use era_api::page::{PAGE_DEFAULT, PAGE_MAX};
use era_cloud::log::{LogEntry, LogError, LogReader, Only};
use era_core::units::{JobId, Span, Time};

use super::view::is_over;
use crate::Services;
use crate::auth::Caller;
use crate::clock::Clock;
use crate::error::AppError;
use crate::visibility;
use crate::wire::{Wrong, stamp};

/// Most bytes of text on a page. Written as JSON it is at most six times as long.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a piece of a text.
const PIECE_BYTES: usize = 256 << 10;
/// How long the order of what several replicas printed is not settled.
const SETTLED_AFTER: Span = Span(250);
/// What is printed last is written before its task's end is known; this long is waited for it.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// At an offset.
    At(u64),
    /// So that it ends where the log does.
    Last,
}

/// Which lines, and how many at most.
fn lines(filter: &LogFilter) -> Result<(Begin, usize), AppError> {
    let (field, begin, count) = match filter.last {
        Some(_) if filter.from.is_some() => {
            let both = Wrong::NotBoth { one: "from", other: "last" };
            return Err(AppError::bad_field("last", both));
        }
        Some(last) => ("last", Begin::Last, last),
        None => {
            let begin = Begin::At(filter.from.unwrap_or(0));
            ("limit", begin, filter.limit.unwrap_or(PAGE_DEFAULT))
        }
    };
    let wrong = || Wrong::Range { least: 1, most: PAGE_MAX.into() };
    let fits = (1..=PAGE_MAX).contains(&count);
    fits.then_some((begin, count as usize)).ok_or_else(|| AppError::bad_field(field, wrong()))
}

fn only(filter: &LogFilter) -> Only {
    Only { attempt: filter.attempt, rank: filter.rank }
}

/// A page of lines.
///
/// Attempts follow one another, and what replicas printed is in the order of time. The last page
/// has no `next`; while the job runs, more may come behind the last line's `next`.
pub async fn page(
    services: &Services,
    caller: &Caller,
    id: u64,
    filter: &LogFilter,
) -> Result<Page<LogLine>, AppError> {
    let (begin, count) = lines(filter)?;
    let job = visibility::job(services, caller, id).await?.id;
    let (folder, only) = (folder(services, job), only(filter));
    let (is_over, now) = (is_over(services, job), services.clock.now());
    off_runtime(move || read_page(&folder, only, begin, count, is_over, now)).await
}

/// All of a log as a text, from an offset on.
pub async fn text(
    services: &Services,
    caller: &Caller,
    id: u64,
    filter: &LogFilter,
) -> Result<LogText, AppError> {
    lines(filter)?;
    let job = visibility::job(services, caller, id).await?.id;
    Ok(LogText::of(
        folder(services, job),
        only(filter),
        filter.from.unwrap_or(0),
        services.clock.now(),
    ))
}

/// Lines as they come, from an offset on, until the job is over.
pub async fn follow(
    services: &Services,
    caller: &Caller,
    id: u64,
    filter: &LogFilter,
) -> Result<LogTail, AppError> {
    let job = visibility::job(services, caller, id).await?.id;
    let (folder, of) = (folder(services, job), services.clone());
    let over = move || is_over(&of, job);
    let clock = services.clock.clone();
    Ok(LogTail::of(folder, only(filter), filter.from.unwrap_or(0), clock, over))
}

/// Where a job's logs are.
fn folder(services: &Services, job: JobId) -> PathBuf {
    job.folder(services.store.folder()).join("logs")
}

async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, AppError> {
    let worked = tokio::task::spawn_blocking(work).await.map_err(|e| AppError::internal(&e))?;
    worked.map_err(|error| match error {
        LogError::TooManyTasks { most } => AppError::bad_field("rank", Wrong::ManyTasks { most }),
        LogError::File { .. } => AppError::internal(&error),
    })
}

/// Until when what is there is settled.
fn settled(reader: &LogReader, is_over: bool, now: Time) -> Time {
    match is_over || reader.tasks_merged() < 2 {
        true => Time::MAX,
        false => now - SETTLED_AFTER,
    }
}

fn read_page(
    folder: &Path,
    only: Only,
    begin: Begin,
    count: usize,
    is_over: bool,
    now: Time,
) -> Result<Page<LogLine>, LogError> {
    let mut reader = LogReader::open(folder, only)?;
    let until = settled(&reader, is_over, now);
    match begin {
        Begin::At(from) => reader.seek(from)?,
        Begin::Last => reader.seek_last(count, PAGE_BYTES_MAX as u64, until)?,
    }
    let entries = reader.read(count, PAGE_BYTES_MAX, until)?;
    let is_last = reader.read(1, 1, until)?.is_empty();
    let next = entries.last().filter(|_| !is_last).map(|last| last.next.to_string());
    Ok(Page { items: entries.into_iter().map(line).collect(), next })
}

fn line(entry: LogEntry) -> LogLine {
    LogLine {
        next: entry.next,
        at: stamp(entry.at),
        attempt: entry.attempt,
        rank: entry.rank,
        stream: entry.stream.as_str().to_owned(),
        text: match String::from_utf8(entry.text) {
            Ok(text) => text,
            Err(bad) => String::from_utf8_lossy(bad.as_bytes()).into_owned(),
        },
        goes_on: !entry.ends,
    }
}

/// A log that is read as a text, piece by piece: whoever takes it slowly holds no thread.
pub struct LogText(Option<Printed>);

impl LogText {
    /// The log in a folder, from an offset on, as it is now.
    pub fn of(folder: PathBuf, only: Only, from: u64, now: Time) -> LogText {
        LogText(Some(Printed::Unread { folder, only, from, until: now }))
    }

    /// The next piece; nothing at the end, or after a failure.
    pub async fn next(&mut self) -> Option<std::io::Result<Vec<u8>>> {
        let printed = self.0.take()?;
        let read = tokio::task::spawn_blocking(move || printed.piece()).await;
        match read.map_err(std::io::Error::other) {
            Ok(Ok(None)) => None,
            Ok(Ok(Some((piece, printed)))) => {
                self.0 = Some(printed);
                Some(Ok(piece))
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a log cannot be read");
                // Whoever reads it must see that it broke off.
                Some(Err(std::io::Error::other(error)))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// A log that is read as a text.
enum Printed {
    /// Nothing of it yet.
    Unread { folder: PathBuf, only: Only, from: u64, until: Time },
    /// Up to where the reader is. What comes while it is read is left for the next time, else one
    /// could read for ever.
    Read { reader: LogReader, text: Text, until: Time },
}

impl Printed {
    /// The next piece, and what is left; nothing at the end.
    fn piece(self) -> Result<Option<(Vec<u8>, Printed)>, LogError> {
        let (mut reader, mut text, until) = match self {
            Printed::Unread { folder, only, from, until } => {
                let mut reader = LogReader::open(&folder, only)?;
                reader.seek(from)?;
                let text = Text { with_rank: reader.tasks_merged() > 1, open: None };
                (reader, text, until)
            }
            Printed::Read { reader, text, until } => (reader, text, until),
        };
        let entries = reader.read(usize::MAX, PIECE_BYTES, until)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let piece = entries.iter().flat_map(|entry| text.put(entry)).collect();
        Ok(Some((piece, Printed::Read { reader, text, until })))
    }
}

/// Puts lines together as they were printed; of several replicas each with its rank.
struct Text {
    with_rank: bool,
    /// Whose line has not ended.
    open: Option<(u32, u32, &'static str)>,
}

impl Text {
    fn put(&mut self, entry: &LogEntry) -> Vec<u8> {
        let whose = (entry.attempt, entry.rank, entry.stream.as_str());
        let goes_on = self.open == Some(whose);
        let mut bytes = Vec::with_capacity(entry.text.len() + 16);
        // With ranks every line begins with one, so another's line ends the open one.
        if self.with_rank && self.open.is_some() && !goes_on {
            bytes.push(b'\n');
        }
        if self.with_rank && !goes_on {
            bytes.extend(format!("[{}] ", entry.rank).into_bytes());
        }
        bytes.extend_from_slice(&entry.text);
        if entry.ends {
            bytes.push(b'\n');
        }
        self.open = (!entry.ends).then_some(whose);
        bytes
    }
}

/// A log that is read as it grows.
pub struct LogTail {
    /// Until the first look, which log it is, and from which offset on.
    unread: Option<(PathBuf, Only, u64)>,
    reader: Option<LogReader>,
    clock: Arc<dyn Clock>,
    over: Box<dyn Fn() -> bool + Send + Sync>,
    was_over: bool,
}

impl LogTail {
    /// The log in a folder, from an offset on, which grows until it is `over`.
    pub fn of(
        folder: PathBuf,
        only: Only,
        from: u64,
        clock: Arc<dyn Clock>,
        over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> LogTail {
        let unread = Some((folder, only, from));
        LogTail { unread, reader: None, clock, over: Box::new(over), was_over: false }
    }

    /// What came since the last look, or no lines where nothing did; nothing once it is over and
    /// all was given, or after a failure.
    pub async fn next(&mut self) -> Result<Option<Vec<LogLine>>, AppError> {
        // Asked before reading: what was printed before the end is then read.
        let is_over = (self.over)();
        if is_over && !self.was_over {
            tokio::time::sleep(LAST_WORDS).await;
        }
        self.was_over = is_over;
        let (unread, reader) = (self.unread.take(), self.reader.take());
        let now = self.clock.now();
        let read = off_runtime(move || {
            let reader = match unread {
                Some((folder, only, from)) => {
                    let mut reader = LogReader::open(&folder, only)?;
                    reader.seek(from)?;
                    Some(reader)
                }
                None => reader,
            };
            let Some(mut reader) = reader else { return Ok(None) };
            reader.refresh()?;
            let until = settled(&reader, is_over, now);
            let entries = reader.read(PAGE_MAX as usize, PAGE_BYTES_MAX, until)?;
            Ok(Some((reader, entries)))
        });
        let Some((reader, entries)) = read.await? else { return Ok(None) };
        self.reader = Some(reader);
        match entries.is_empty() && is_over {
            true => Ok(None),
            false => Ok(Some(entries.into_iter().map(line).collect())),
        }
    }
}

#[cfg(test)]
mod tests;
