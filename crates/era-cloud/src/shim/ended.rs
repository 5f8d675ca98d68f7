//! Ends that nobody has acknowledged yet, also in a file.
//!
//! The file is written without being forced to disk: it is there for a supervisor that dies, not
//! for a machine that does. After a power cut its tasks are gone in any case, and whoever believed
//! them to run learns that they are lost.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use era_core::job::TaskId;
use serde::{Deserialize, Serialize};

use crate::executor::ExecutorReport;

/// The file is written anew once it holds so many lines that say nothing any more.
const STALE_MAX: usize = 100_000;

/// Ends by task, and the file that they are kept in.
#[derive(Debug)]
pub(super) struct EndedTasks {
    path: PathBuf,
    file: File,
    ends: BTreeMap<TaskId, End>,
    stale: usize,
    /// What is to be written at the next [`EndedTasks::flush`].
    lines: Vec<u8>,
}

/// How a task ended, and what was told of it before: nobody may have heard that either.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) report: ExecutorReport,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) before: Vec<ExecutorReport>,
}

impl End {
    /// All that there is to tell, in its order.
    pub(super) fn told(&self) -> impl Iterator<Item = &ExecutorReport> {
        self.before.iter().chain([&self.report])
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndedLine<E> {
    Ended {
        task: TaskId,
        #[serde(flatten)]
        end: E,
    },
    Acknowledged(TaskId),
}

impl EndedTasks {
    /// Reads what an earlier supervisor left. A line that was cut off is the last, and is dropped.
    pub(super) fn open(folder: &Path) -> io::Result<EndedTasks> {
        let path = folder.join("ended");
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut ends = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<EndedLine<End>>(line) {
                Ok(EndedLine::Ended { task, end }) => {
                    ends.insert(task, end);
                }
                Ok(EndedLine::Acknowledged(task)) => {
                    ends.remove(&task);
                }
                Err(_) => {}
            }
        }
        let file = write_anew(&path, &ends)?;
        Ok(EndedTasks { path, file, ends, stale: 0, lines: Vec::new() })
    }

    pub(super) fn keep(&mut self, task: TaskId, end: End) {
        super::protocol::put(&mut self.lines, &EndedLine::Ended { task, end: &end });
        self.ends.insert(task, end);
    }

    /// Forgets an end, and says whether it was kept.
    pub(super) fn acknowledge(&mut self, task: TaskId) -> bool {
        let kept = self.ends.remove(&task).is_some();
        if kept {
            super::protocol::put(&mut self.lines, &EndedLine::<&End>::Acknowledged(task));
            self.stale += 2;
        }
        kept
    }

    /// All that are kept.
    pub(super) fn all(&self) -> &BTreeMap<TaskId, End> {
        &self.ends
    }

    /// What there is to tell of them, the first to end first.
    pub(super) fn in_order(&self) -> Vec<ExecutorReport> {
        let mut told: Vec<ExecutorReport> =
            self.ends.values().flat_map(End::told).cloned().collect();
        ExecutorReport::put_in_order(&mut told);
        told
    }

    /// Writes what changed since the last time, in one go.
    pub(super) fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.lines);
        let written = if self.stale >= STALE_MAX || (self.ends.is_empty() && self.stale > 0) {
            self.stale = 0;
            self.file
                .set_len(0)
                .and_then(|()| write_anew(&self.path, &self.ends).map(|file| self.file = file))
        } else {
            self.file.write_all(&lines)
        };
        if let Err(error) = written {
            // A full disk must not stop supervision: the ends are in memory still.
            tracing::warn!(%error, "ends of tasks could not be written down");
        }
    }
}

fn write_anew(path: &Path, ends: &BTreeMap<TaskId, End>) -> io::Result<File> {
    let mut lines = Vec::new();
    for (task, end) in ends {
        super::protocol::put(&mut lines, &EndedLine::Ended { task: *task, end });
    }
    if lines.is_empty() {
        // The common case: no new file, and no rename.
        return File::options().create(true).append(true).open(path).and_then(|file| {
            file.set_len(0)?;
            Ok(file)
        });
    }
    let new = path.with_extension("new");
    std::fs::write(&new, &lines)?;
    std::fs::rename(&new, path)?;
    File::options().append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Ending;
    use crate::shim::tests::launch;
    use era_core::units::{Span, Time};

    fn exited(job: u64) -> (TaskId, End) {
        let task = launch(job, &["true"]).task;
        let report = ExecutorReport::Exited { task, at: Time(5), code: 3, ending: Ending::Itself };
        let started = ExecutorReport::Started { task, at: Time(2), prepared: Span(1) };
        (task, End { report, before: vec![started] })
    }

    #[test]
    fn an_end_outlives_the_supervisor_until_it_is_acknowledged() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ended = EndedTasks::open(folder.path()).expect("open");
        for job in [1, 2] {
            let (task, end) = exited(job);
            ended.keep(task, end);
        }
        ended.flush();
        ended.acknowledge(exited(1).0);
        ended.flush();
        drop(ended);
        let mut again = EndedTasks::open(folder.path()).expect("open");
        assert_eq!(again.all().clone(), BTreeMap::from([exited(2)]));
        assert!(again.acknowledge(exited(2).0));
        assert!(!again.acknowledge(exited(2).0));
        again.flush();
        assert_eq!(std::fs::metadata(folder.path().join("ended")).expect("there").len(), 0);
    }

    #[test]
    fn ends_are_told_in_the_order_in_which_they_were() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ended = EndedTasks::open(folder.path()).expect("open");
        let first = launch(1, &["true"]).task;
        let task = |rank| TaskId { rank, ..first };
        let exit = |rank, at, code| ExecutorReport::Exited {
            task: task(rank),
            at: Time(at),
            code,
            ending: Ending::Itself,
        };
        let lost = ExecutorReport::Lost { task: task(0), reason: "keeper-gone".into() };
        let began = |rank, at| ExecutorReport::Started {
            task: task(rank),
            at: Time(at),
            prepared: Span(0),
        };
        let told = [
            began(3, 3),
            exit(3, 4, 9),
            exit(1, 7, 0),
            began(2, 2),
            exit(2, 7, 143),
            began(0, 1),
            lost,
        ];
        for (report, before) in [(6, Some(5)), (2, None), (4, Some(3)), (1, Some(0))] {
            let (report, before) = (&told[report], before.map(|one: usize| told[one].clone()));
            let Some(task) = report.task() else { panic!("{report:?}") };
            let before = before.into_iter().collect();
            ended.keep(task, End { report: report.clone(), before });
        }
        assert_eq!(ended.in_order(), told);
    }

    #[test]
    fn an_end_that_an_older_version_wrote_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (task, end) = exited(1);
        let end = End { before: Vec::new(), ..end };
        let line = serde_json::json!({ "ended": { "task": task, "report": end.report } });
        std::fs::write(folder.path().join("ended"), format!("{line}\n")).expect("written");
        let ended = EndedTasks::open(folder.path()).expect("open");
        assert_eq!(ended.all().clone(), BTreeMap::from([(task, end)]));
    }

    #[test]
    fn a_line_that_was_cut_off_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ended = EndedTasks::open(folder.path()).expect("open");
        let (task, end) = exited(1);
        ended.keep(task, end);
        ended.flush();
        let mut file =
            File::options().append(true).open(folder.path().join("ended")).expect("open");
        file.write_all(b"{\"ended\":{\"task\":{\"jo").expect("write");
        let again = EndedTasks::open(folder.path()).expect("open");
        assert_eq!(again.all().len(), 1);
    }
}
