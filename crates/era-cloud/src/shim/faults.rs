//! What to do when this machine, and not the task, is the reason that a task cannot be started: a
//! full disk, no more processes, a mount that fails.
//!
//! Such a thing often passes, so the task is tried again here a few times, and then told to be
//! lost, so that it is planned anew, elsewhere where there is an elsewhere, and nobody pays for it.
//! What nobody can start ends all the same: after some such losses its job has failed.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use era_core::job::TaskId;
use era_core::units::JobId;
use rustix::io::Errno;

/// After how long a task is tried again.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// So often a job may be lost in a row before it has failed.
const LOST_MAX: u32 = 3;
/// Of so many jobs it is remembered.
const JOBS_MAX: usize = 1024;

/// Whether an error is the machine's, whatever was asked of it.
pub(super) fn is_the_machines(error: &io::Error) -> bool {
    let errors = [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::NOMEM,
        Errno::AGAIN,
        Errno::MFILE,
        Errno::NFILE,
        Errno::IO,
        Errno::ROFS,
        Errno::STALE,
    ];
    Errno::from_io_error(error).is_some_and(|errno| errors.contains(&errno))
}

/// What is to be done with a task that could not be started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is tried again, not before this.
    Again(Instant),
    Lost,
    Failed,
}

/// Which tasks could not be started, and how often.
#[derive(Debug, Default)]
pub(super) struct Faults {
    held: BTreeMap<TaskId, (usize, Instant)>,
    lost: BTreeMap<(JobId, u16), u32>,
}

impl Faults {
    /// A task could not be started.
    pub(super) fn came(&mut self, task: TaskId, now: Instant) -> Next {
        let (tries, until) = self.held.entry(task).or_insert((0, now));
        if let Some(wait) = AGAIN.get(*tries) {
            *tries += 1;
            *until = now + *wait;
            return Next::Again(*until);
        }
        self.held.remove(&task);
        let lost = self.lost.entry((task.job, task.part)).or_default();
        *lost += 1;
        if *lost > LOST_MAX {
            self.lost.remove(&(task.job, task.part));
            return Next::Failed;
        }
        if self.lost.len() > JOBS_MAX {
            // The oldest job: the likeliest to be over.
            self.lost.pop_first();
        }
        Next::Lost
    }

    /// Whether a task is not to be tried yet.
    pub(super) fn holds(&self, task: TaskId, now: Instant) -> bool {
        self.held.get(&task).is_some_and(|(_, until)| *until > now)
    }

    /// It has begun: all is well.
    pub(super) fn began(&mut self, task: TaskId) {
        if !self.held.is_empty() || !self.lost.is_empty() {
            self.held.remove(&task);
            self.lost.remove(&(task.job, task.part));
        }
    }

    /// It is over, begun or not.
    pub(super) fn over(&mut self, task: TaskId) {
        self.held.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::tests::instant;

    fn task(attempt: u32) -> TaskId {
        TaskId { job: JobId(1), part: 0, attempt, rank: 0 }
    }

    /// Lets a task fail until it is no longer tried.
    fn all_tries(faults: &mut Faults, attempt: u32) -> Next {
        let mut now = instant();
        loop {
            match faults.came(task(attempt), now) {
                Next::Again(until) => {
                    assert!(
                        faults.holds(task(attempt), now) && !faults.holds(task(attempt), until)
                    );
                    now = until;
                }
                next => return next,
            }
        }
    }

    #[test]
    fn a_task_is_tried_again_then_lost_and_after_some_losses_it_has_failed() {
        let mut faults = Faults::default();
        for attempt in 1..=LOST_MAX {
            assert_eq!(all_tries(&mut faults, attempt), Next::Lost);
        }
        assert_eq!(all_tries(&mut faults, 9), Next::Failed);
        assert!(faults.held.is_empty() && faults.lost.is_empty());
    }

    #[test]
    fn a_start_forgives_all() {
        let mut faults = Faults::default();
        for attempt in 1..20 {
            assert_eq!(all_tries(&mut faults, attempt), Next::Lost);
            faults.began(task(attempt));
        }
    }

    #[test]
    fn a_full_disk_is_the_machines_and_a_missing_file_is_not() {
        assert!(is_the_machines(&Errno::NOSPC.into()));
        assert!(!is_the_machines(&Errno::NOENT.into()) && !is_the_machines(&Errno::ACCESS.into()));
        assert!(!is_the_machines(&io::Error::other("of ours")));
    }
}
