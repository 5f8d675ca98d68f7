//! A log as one plain file a task.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use era_core::job::TaskId;
use era_core::units::{Span, Time};

use crate::executor::Sample;

#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Out,
    Err,
}

#[derive(Debug)]
#[allow(dead_code)]
pub(super) enum Told {
    Samples(Vec<Sample>),
    Checkpoint(Span),
}

#[derive(Debug)]
pub(super) struct LogWriter {
    path: PathBuf,
    left: u64,
    file: Option<File>,
}

impl LogWriter {
    pub(super) fn open(folder: &Path, task: TaskId, limit_bytes: u64) -> LogWriter {
        let name = format!("{}.{}.{}.log", task.attempt, task.part, task.rank);
        LogWriter { path: folder.join(name), left: limit_bytes, file: None }
    }

    pub(super) fn write(&mut self, _stream: Stream, bytes: &[u8], _at: Time) -> Vec<Told> {
        if self.file.is_none() {
            let _ = std::fs::create_dir_all(self.path.parent().unwrap_or(Path::new("/")));
            self.file = File::options().create(true).append(true).open(&self.path).ok();
        }
        if let Some(file) = &mut self.file
            && self.left > 0
        {
            self.left = self.left.saturating_sub(bytes.len() as u64);
            let _ = file.write_all(bytes);
        }
        Vec::new()
    }

    pub(super) fn flush(&mut self, _at: Time) {}

    pub(super) fn has_unfinished(&self) -> bool {
        false
    }
}
