//! Workloads as they were recorded: one value for all formats, whoever wrote them.
//!
//! Times are whole seconds after the trace's first submission. What a trace does not say is
//! `None` or zero, never a guess; whoever runs it decides what to assume.
//!
//! [`read`] takes any of the formats in [`TraceFormat`], compressed or not; [`write()`] writes our own.
//! Each format has a file that knows its columns and nothing else; [`BadInput`](crate::BadInput)
//! says where a file is wrong. What a job means to a scheduler is not known here.

mod alibaba;
mod chronus;
mod era_csv;
mod format;
mod gather;
mod helios;
mod number;
mod philly;
pub(crate) mod source;
mod swf;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use era_core::resources::PerResource;
use era_core::units::Milli;

pub use format::{TraceFormat, read};
pub use write::{write, write_with_use};

/// A recorded or generated workload, in order of submission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The jobs: by submission, and as in the file among those submitted at the same time.
    pub jobs: Vec<TraceJob>,
    /// The users that the jobs name.
    pub users: NameTable,
    /// The groups that the jobs name.
    pub groups: NameTable,
    /// How many jobs the file lists that are not in `jobs`, because they never ran.
    pub skipped: u64,
    /// The same by reason; the sum is `skipped`.
    pub skipped_because: BTreeMap<&'static str, u64>,
}

/// One job of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceJob {
    /// What the trace calls it.
    pub id: Box<str>,
    /// When it was submitted, in seconds after the first submission. Formats whose times are
    /// relative already (our own and SWF) are kept as they are written.
    pub submit_s: i64,
    /// How long it ran, or runs, in seconds; at least 1.
    pub duration_s: i64,
    /// How long its owner said that it would run.
    pub stated_s: Option<i64>,
    /// GPUs in thousandths; processors where the trace is of a machine without GPUs.
    pub gpu_milli: u32,
    /// Processors in thousandths, 0 where the trace does not say.
    pub cpu_milli: u32,
    /// Memory, 0 where the trace does not say.
    pub memory_mib: u32,
    /// Its owner, as an index into [`Trace::users`].
    pub user: Option<u32>,
    /// Its group, as an index into [`Trace::groups`].
    pub group: Option<u32>,
    /// How it ended.
    pub status: Status,
    /// Until when it is worth something, in seconds after the first submission.
    pub deadline_s: Option<i64>,
    /// What it is worth, in micro-credits.
    pub value: Option<i64>,
    /// What it was measured to use of what it asked for.
    pub used: MeasuredUse,
}

/// What a job was measured to use, in the mean over its run; nothing where nobody measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredUse {
    /// Processors in thousandths.
    pub cpu_milli: Option<u32>,
    pub memory_mib: Option<u32>,
    /// GPUs in thousandths.
    pub gpu_milli: Option<u32>,
}

impl TraceJob {
    /// What it used as shares of what it asked for, where both are known.
    pub fn shares_used(&self) -> PerResource<Option<Milli>> {
        let share = |used: Option<u32>, asked: u32| share_used(used?.into(), asked.into());
        [
            share(self.used.cpu_milli, self.cpu_milli),
            share(self.used.memory_mib, self.memory_mib),
            share(self.used.gpu_milli, self.gpu_milli),
        ]
    }
}

/// What was used as a share of what was asked for: at most all of it, and nothing where nothing
/// was asked for.
pub fn share_used(used: u64, asked: u64) -> Option<Milli> {
    let whole = u64::from(Milli::ONE.0);
    let share = used.saturating_mul(whole).checked_div(asked)?.min(whole);
    u32::try_from(share).ok().map(Milli)
}

/// How a recorded job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The trace does not say.
    #[default]
    Unknown,
    /// It did what it was to do.
    Completed,
    Failed,
    /// It was cancelled or killed.
    Cancelled,
}

/// Names that many jobs share, each kept once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTable {
    list: Vec<Box<str>>,
    index: BTreeMap<Box<str>, u32>,
}

impl NameTable {
    /// The number of a name: a new one if it was not known.
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.index.get(name) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(name.into());
        self.index.insert(name.into(), number);
        number
    }

    pub fn name(&self, number: u32) -> Option<&str> {
        self.list.get(number as usize).map(|name| &**name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
