//! Jobs on their way into a trace: what holds of every trace, whatever format it came from.

use std::ops::RangeInclusive;

use super::number::SECONDS_MAX;
use super::{Status, Trace, TraceJob};
use crate::BadInput;

/// What becomes of the order and the zero of a file's times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The file must be in order of submission, and its times stay.
    AsWritten,
    /// Jobs are sorted (those submitted at the same time stay as they are), and times begin with
    /// the first submission.
    Sorted,
}

/// A trace that is being read.
pub(super) struct Gather {
    trace: Trace,
    order: Order,
}

impl Gather {
    pub(super) fn new(order: Order) -> Gather {
        Gather { trace: Trace::default(), order }
    }

    /// The number of a user, unless the name is empty.
    pub(super) fn user(&mut self, name: &str) -> Option<u32> {
        (!name.is_empty()).then(|| self.trace.users.number(name))
    }

    /// The number of a group, unless the name is empty.
    pub(super) fn group(&mut self, name: &str) -> Option<u32> {
        (!name.is_empty()).then(|| self.trace.groups.number(name))
    }

    /// Leaves a job out, and says so in the trace.
    pub(super) fn skip(&mut self, reason: &'static str) {
        self.trace.skipped += 1;
        *self.trace.skipped_because.entry(reason).or_default() += 1;
    }

    /// Takes a job in. `field` is what the format calls the submission.
    pub(super) fn job(&mut self, job: TraceJob, line: u64, field: &str) -> Result<(), BadInput> {
        let last = self.trace.jobs.last().map(|last| last.submit_s);
        if self.order == Order::AsWritten && last.is_some_and(|last| job.submit_s < last) {
            let last = last.unwrap_or_default();
            let problem =
                format!("{} comes before {last} of the job above: sort by {field}", job.submit_s);
            return Err(BadInput::new(problem).line(line).field(field));
        }
        self.trace.jobs.push(job);
        Ok(())
    }

    /// The trace, if there is a job in it.
    pub(super) fn finish(self) -> Result<Trace, BadInput> {
        let Gather { mut trace, order } = self;
        if trace.jobs.is_empty() {
            return Err(BadInput::new(match trace.skipped {
                0 => "there is no job in it".to_owned(),
                n => format!("none of its {n} jobs ever ran"),
            }));
        }
        if order == Order::Sorted {
            trace.jobs.sort_by_key(|job| job.submit_s);
            let first = trace.jobs[0].submit_s;
            for job in &mut trace.jobs {
                job.submit_s -= first;
                job.deadline_s = job.deadline_s.map(|deadline| deadline - first);
            }
        }
        Ok(trace)
    }
}

/// `value` if it is in the range that a time, a size or an amount may have.
pub(super) fn within(value: i64, range: RangeInclusive<i64>) -> Result<i64, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(if value < least && least == 0 {
        format!("{value} is negative")
    } else {
        format!("{value} is out of range: give {least} to {most}")
    })
}

/// A time in seconds, of any clock, from its zero on.
pub(super) fn seconds(value: i64) -> Result<i64, String> {
    within(value, 0..=SECONDS_MAX)
}

/// How a job ended, in the words of Slurm, Philly and PAI; `None` for a word of none of them.
pub(super) fn status(word: &str) -> Option<Status> {
    const WORDS: [(&[&str], Status); 4] = [
        (&["unknown"], Status::Unknown),
        (&["completed", "pass", "passed", "terminated"], Status::Completed),
        (&["failed", "fail", "timeout", "node_fail", "out_of_memory"], Status::Failed),
        (&["cancelled", "canceled", "killed"], Status::Cancelled),
    ];
    // Slurm writes `CANCELLED by 1000`.
    let Some(first) = word.split_whitespace().next() else { return Some(Status::Unknown) };
    let is_named = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(first));
    WORDS.iter().find(|(words, _)| is_named(words)).map(|(_, status)| *status)
}
