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

use crate::executor::Report;

/// The file is written anew once it holds so many lines that say nothing any more.
const STALE_MAX: usize = 100_000;

/// Ends by task, and the file that they are kept in.
#[derive(Debug)]
pub(super) struct Ended {
    path: PathBuf,
    file: File,
    ends: BTreeMap<TaskId, Report>,
    stale: usize,
    /// What is to be written at the next [`Ended::flush`].
    lines: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Ended { task: TaskId, report: Report },
    Acknowledged(TaskId),
}

impl Ended {
    /// Reads what an earlier supervisor left. A line that was cut off is the last, and is dropped.
    pub(super) fn open(folder: &Path) -> io::Result<Ended> {
        let path = folder.join("ended");
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut ends = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Ended { task, report }) => {
                    ends.insert(task, report);
                }
                Ok(Line::Acknowledged(task)) => {
                    ends.remove(&task);
                }
                Err(_) => {}
            }
        }
        let file = write_anew(&path, &ends)?;
        Ok(Ended { path, file, ends, stale: 0, lines: Vec::new() })
    }

    /// Keeps an end.
    pub(super) fn keep(&mut self, task: TaskId, report: Report) {
        super::protocol::put(&mut self.lines, &Line::Ended { task, report: report.clone() });
        self.ends.insert(task, report);
    }

    /// Forgets an end, and says whether it was kept.
    pub(super) fn acknowledge(&mut self, task: TaskId) -> bool {
        let kept = self.ends.remove(&task).is_some();
        if kept {
            super::protocol::put(&mut self.lines, &Line::Acknowledged(task));
            self.stale += 2;
        }
        kept
    }

    /// All that are kept.
    pub(super) fn all(&self) -> &BTreeMap<TaskId, Report> {
        &self.ends
    }

    /// The same, the first to end first.
    pub(super) fn in_order(&self) -> Vec<Report> {
        let mut ends: Vec<Report> = self.ends.values().cloned().collect();
        Report::put_in_order(&mut ends);
        ends
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

fn write_anew(path: &Path, ends: &BTreeMap<TaskId, Report>) -> io::Result<File> {
    let mut lines = Vec::new();
    for (task, report) in ends {
        super::protocol::put(&mut lines, &Line::Ended { task: *task, report: report.clone() });
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
    use era_core::units::Time;

    fn exited(job: u64) -> (TaskId, Report) {
        let task = launch(job, &["true"]).task;
        (task, Report::Exited { task, at: Time(5), code: 3, ending: Ending::Itself })
    }

    #[test]
    fn an_end_outlives_the_supervisor_until_it_is_acknowledged() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ended = Ended::open(folder.path()).expect("open");
        for job in [1, 2] {
            let (task, report) = exited(job);
            ended.keep(task, report);
        }
        ended.flush();
        ended.acknowledge(exited(1).0);
        ended.flush();
        drop(ended);
        let mut again = Ended::open(folder.path()).expect("open");
        assert_eq!(again.all().clone(), BTreeMap::from([exited(2)]));
        assert!(again.acknowledge(exited(2).0));
        assert!(!again.acknowledge(exited(2).0));
        again.flush();
        assert_eq!(std::fs::metadata(folder.path().join("ended")).expect("there").len(), 0);
    }

    #[test]
    fn ends_are_told_in_the_order_in_which_they_were() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ended = Ended::open(folder.path()).expect("open");
        let first = launch(1, &["true"]).task;
        let task = |rank| TaskId { rank, ..first };
        let exit = |rank, at, code| Report::Exited {
            task: task(rank),
            at: Time(at),
            code,
            ending: Ending::Itself,
        };
        let lost = Report::Lost { task: task(0), reason: "keeper-gone".into() };
        let told = [exit(3, 4, 9), exit(1, 7, 0), exit(2, 7, 143), lost];
        for report in [&told[3], &told[1], &told[2], &told[0]] {
            let (Report::Exited { task, .. } | Report::Lost { task, .. }) = report else { return };
            ended.keep(*task, report.clone());
        }
        assert_eq!(ended.in_order(), told);
    }

    #[test]
    fn a_line_that_was_cut_off_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ended = Ended::open(folder.path()).expect("open");
        let (task, report) = exited(1);
        ended.keep(task, report);
        ended.flush();
        let mut file =
            File::options().append(true).open(folder.path().join("ended")).expect("open");
        file.write_all(b"{\"ended\":{\"task\":{\"jo").expect("write");
        let again = Ended::open(folder.path()).expect("open");
        assert_eq!(again.all().len(), 1);
    }
}
