//! What a running task prints and uses, taken from the engine and the guard into the same logs and
//! samples as those of every other executor.

use std::cmp::Ordering;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use era_core::job::TaskId;
use era_core::units::Time;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::engine::DockerEngine;
use super::layer::Layer;
use super::lease::{Measured, Shared};
use crate::clock::MachineClock;
use crate::executor::{ExecutorReport, Launch, Reports};
use crate::limits::disk::{ENTRIES_MAX, counted, walk};
use crate::log::{LogDirective, LogWriter, Stream};
use crate::scalars::Scalars;
use crate::task::Places;
use crate::usage::{Idle, IdleRule};

/// Lines that are taken at once.
const LINES_MAX: usize = 512;
/// How long the rest of a log may take to come.
const REST_TIME: Duration = Duration::from_secs(10);
/// How long to wait before a log is asked for again.
const AGAIN: Duration = Duration::from_millis(500);

/// The log of one task as it comes from the engine: written once, whoever asks how often.
#[derive(Clone)]
pub(super) struct LogTail {
    engine: DockerEngine,
    task: TaskId,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    log: LogWriter,
    cursor: std::path::PathBuf,
    /// How far each stream was taken.
    taken: [StreamPosition; 2],
}

/// How far a stream was taken: the engine's time of the last piece, in nanoseconds, and how many
/// of that time. A long line comes in pieces that all have the time of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StreamPosition {
    ns: i128,
    count: u32,
}

impl StreamPosition {
    /// Whether a piece is new. An engine tells whole seconds again, so what has been taken comes
    /// first; `again` counts what one answer has of the last time.
    fn is_new(&mut self, ns: i128, again: &mut u32) -> bool {
        match ns.cmp(&self.ns) {
            Ordering::Less => return false,
            Ordering::Equal => *again += 1,
            Ordering::Greater => (*self, *again) = (StreamPosition { ns, count: 0 }, 1),
        }
        let new = *again > self.count;
        self.count = self.count.max(*again);
        new
    }
}

impl LogTail {
    /// The log of a task, gone on with where an earlier server left it.
    pub(super) fn new(engine: DockerEngine, launch: &Launch) -> LogTail {
        let spec = &launch.spec;
        let shared = Shared::of(&spec.folder, launch.task);
        let cursor = shared.folder.join("log-at");
        let inner = Inner {
            log: LogWriter::open(&spec.folder.join("logs"), launch.task, spec.limits.log_bytes),
            taken: read_cursor(&cursor),
            cursor,
        };
        LogTail { engine, task: launch.task, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Takes lines as they come, until it is dropped.
    pub(super) async fn follow(self, reports: Reports) {
        loop {
            let taken = self.take(true, &reports).await;
            if let Err(error) = taken {
                tracing::debug!(task = %self.task, %error, "a log is asked for again");
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Takes what is left once the task is over.
    pub(super) async fn rest(&self, reports: &Reports) {
        let rest = tokio::time::timeout(REST_TIME, self.take(false, reports)).await;
        let problem = match rest {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the engine took too long".to_owned()),
        };
        if let Some(problem) = problem {
            self.note(&format!("era: the end of this log could not be had: {problem}"));
        }
        self.with(|inner| inner.log.flush(self.engine.clock.now()));
    }

    /// Writes a line of our own.
    pub(super) fn note(&self, line: &str) {
        self.with(|inner| {
            let now = self.engine.clock.now();
            inner.log.write(Stream::Err, format!("{line}\n").as_bytes(), now);
            inner.log.flush(now);
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        // A log is right as far as it was written, whoever panicked beside it.
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn take(&self, follow: bool, reports: &Reports) -> Result<(), super::DockerError> {
        let since =
            self.with(|inner| inner.taken.map(|taken| taken.ns).into_iter().min().unwrap_or(0));
        let since = i64::try_from(since / 1_000_000_000).unwrap_or(0);
        let lines = self.engine.logs(self.task, since, follow);
        let mut again = [0; 2];
        let mut batches = lines.ready_chunks(LINES_MAX);
        while let Some(batch) = batches.next().await {
            let mut failed = None;
            let mut lines = Vec::new();
            for line in batch {
                match line {
                    Ok(line) => lines.push(line),
                    Err(error) => failed = Some(error),
                }
            }
            let told = self.with(|inner| inner.write(&lines, &mut again));
            for told in told {
                let task = self.task;
                let report = match told {
                    LogDirective::Samples(samples) => ExecutorReport::Samples { task, samples },
                    LogDirective::Checkpoint(done) => ExecutorReport::Checkpointed { task, done },
                };
                let _ = reports.send(report).await;
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Inner {
    fn write(&mut self, lines: &[(bool, Vec<u8>)], again: &mut [u32; 2]) -> Vec<LogDirective> {
        let mut told = Vec::new();
        let mut new = false;
        for (is_error, line) in lines {
            let Some((ns, text)) = split_time(line) else { continue };
            let which = usize::from(*is_error);
            if !self.taken[which].is_new(ns, &mut again[which]) {
                continue;
            }
            new = true;
            let stream = if *is_error { Stream::Err } else { Stream::Out };
            let at = Time(i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX));
            told.extend(self.log.write(stream, text, at));
        }
        if new && let Err(error) = write_cursor(&self.cursor, self.taken) {
            tracing::debug!(%error, "lines may be repeated in a log after a restart");
        }
        told
    }
}

/// A line's time in nanoseconds, and the line.
fn split_time(line: &[u8]) -> Option<(i128, &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let time = std::str::from_utf8(&line[..space]).ok()?;
    let time: jiff::Timestamp = time.parse().ok()?;
    Some((time.as_nanosecond(), &line[space + 1..]))
}

fn read_cursor(path: &Path) -> [StreamPosition; 2] {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut numbers = text.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    let mut next = |or| numbers.next().unwrap_or(or);
    let (out, err) = (next(0), next(0));
    let mut count = || u32::try_from(next(1)).unwrap_or(1);
    [StreamPosition { ns: out, count: count() }, StreamPosition { ns: err, count: count() }]
}

fn write_cursor(path: &Path, [out, err]: [StreamPosition; 2]) -> io::Result<()> {
    std::fs::write(path, format!("{} {} {} {}\n", out.ns, err.ns, out.count, err.count))
}

/// Looks every second at what a task uses and writes, until it is dropped. A task that fills more
/// disk than it may is told to `full`.
pub(super) async fn watch(
    engine: DockerEngine,
    launch: Launch,
    owner: Option<u32>,
    reports: Reports,
    full: mpsc::UnboundedSender<TaskId>,
) {
    let task = launch.task;
    let mut watch = Watch::new(launch, owner, engine.clock.clone());
    let mut layer = Layer::new(engine, task);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        layer.look().await;
        watch.layer_bytes = layer.bytes;
        let looked = tokio::task::spawn_blocking(move || {
            let seen = watch.look();
            (watch, seen)
        });
        let Ok((back, seen)) = looked.await else { return };
        watch = back;
        for report in seen.reports {
            if reports.send(report).await.is_err() {
                return;
            }
        }
        // The other end lives as long as the executor.
        if seen.full && full.send(task).is_err() {
            return;
        }
    }
}

struct Watch {
    launch: Launch,
    shared: Shared,
    owner: Option<u32>,
    scalars: Option<Scalars>,
    before: Option<(Time, Measured)>,
    looks: u64,
    idle: Idle,
    clock: MachineClock,
    disk_due: Instant,
    /// What it wrote beside its folders, as far as that is known.
    layer_bytes: u64,
}

struct Looked {
    reports: Vec<ExecutorReport>,
    full: bool,
}

impl Watch {
    fn new(launch: Launch, owner: Option<u32>, clock: MachineClock) -> Watch {
        let places = Places::of(&launch);
        Watch {
            shared: Shared::of(&launch.spec.folder, launch.task),
            // The outputs are the job's: the first replica reads them for all.
            scalars: (launch.task.rank == 0).then(|| Scalars::new(&places.outputs)),
            launch,
            owner,
            before: None,
            looks: 0,
            idle: Idle::default(),
            clock,
            disk_due: Instant::now(),
            layer_bytes: 0,
        }
    }

    fn look(&mut self) -> Looked {
        let task = self.launch.task;
        let mut reports = Vec::new();
        let after = self.before.as_ref().map(|(at, _)| *at);
        if let Some((at, measured)) = self.shared.usage(&self.launch, after) {
            let usage = measured.usage(at, self.before.as_ref());
            self.looks += 1;
            let (idle, tell) = self.idle.look(&usage.gpus, at, IdleRule::default());
            self.idle = idle;
            reports.push(ExecutorReport::Samples { task, samples: usage.samples(self.looks, at) });
            if tell {
                reports.push(ExecutorReport::GpusIdle { task });
            }
            self.before = Some((at, measured));
        }
        if let Some(scalars) = &mut self.scalars {
            let samples = scalars.look(self.clock.now());
            if !samples.is_empty() {
                reports.push(ExecutorReport::Samples { task, samples });
            }
        }
        let mut full = false;
        if self.disk_due <= Instant::now() {
            let walked =
                walk(&counted(&Places::of(&self.launch)), self.owner, ENTRIES_MAX, &self.clock);
            self.disk_due = Instant::now() + walked.rest;
            let bytes = walked.bytes.saturating_add(self.layer_bytes);
            full = bytes > self.launch.spec.limits.disk_bytes;
        }
        Looked { reports, full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_an_engine_has_its_time_in_front() {
        let (ns, text) = split_time(b"2026-11-15T17:45:05.272010203Z  hi\n").expect("a line");
        assert_eq!((ns % 1_000_000_000, text), (272_010_203, &b" hi\n"[..]));
        assert_eq!(split_time(b"no time"), None);
        assert_eq!(split_time(b""), None);
    }

    #[test]
    fn lines_that_an_engine_tells_again_are_written_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let launch = crate::shim::tests::launch(1, &["true"]);
        let cursor = folder.path().join("log-at");
        let lines: Vec<(bool, Vec<u8>)> = [
            (false, "2026-11-15T17:45:05.1Z one\n"),
            (true, "2026-11-15T17:45:05.05Z an error, a little earlier\n"),
            (false, "2026-11-15T17:45:05.2Z era: metric loss=1\n"),
        ]
        .map(|(error, line)| (error, line.as_bytes().to_vec()))
        .into();
        let logs = folder.path().join("logs");
        let open = || Inner {
            log: LogWriter::open(&logs, launch.task, 1 << 20),
            cursor: cursor.clone(),
            taken: read_cursor(&cursor),
        };
        let mut first = open();
        assert_eq!(first.write(&lines, &mut [0; 2]).len(), 1, "the metric");
        assert_eq!(first.write(&lines, &mut [0; 2]).len(), 0);
        drop(first);
        assert_eq!(open().write(&lines, &mut [0; 2]).len(), 0, "nor after a restart");
        let mut text = String::new();
        for file in std::fs::read_dir(&logs).expect("logs") {
            text += &std::fs::read_to_string(file.expect("a file").path()).expect("read");
        }
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn pieces_of_a_line_have_one_time_and_each_is_taken_once() {
        let (mut taken, mut again) = (StreamPosition::default(), 0);
        let tell = |taken: &mut StreamPosition, again: &mut u32, times: &[i128]| -> Vec<bool> {
            times.iter().map(|ns| taken.is_new(*ns, again)).collect()
        };
        assert_eq!(tell(&mut taken, &mut again, &[5, 5]), [true, true]);
        assert_eq!(tell(&mut taken, &mut again, &[5]), [true], "the same answer goes on");
        again = 0;
        let told = tell(&mut taken, &mut again, &[4, 5, 5, 5, 5, 6, 6]);
        assert_eq!(told, [false, false, false, false, true, true, true], "asked anew");
        again = 0;
        assert_eq!(tell(&mut taken, &mut again, &[6, 6, 7]), [false, false, true]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log-at");
        let both = [taken, StreamPosition { ns: 9, count: 3 }];
        write_cursor(&path, both).expect("written");
        assert_eq!(read_cursor(&path), both);
    }
}
