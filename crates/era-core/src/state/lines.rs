//! The lists of who waits, kept true: the lines of the queues, the jobs that are held back behind
//! others, and the books of arrays.

use std::sync::Arc;

use super::State;
use crate::job::Job;
use crate::units::{JobId, Name};
use crate::waiting::{ArrayBook, counts};

impl State {
    /// The array that a job is of, by any of its jobs that is remembered, or by its first.
    pub fn array(&self, job: JobId) -> Option<&ArrayBook> {
        let first = self.jobs.get(&job).map_or(Some(job), |job| job.array.map(|m| m.first))?;
        self.arrays.get(&first)
    }

    /// How many jobs of a queue wait for other jobs to be over. They stand in no order yet.
    pub fn held(&self, queue: &Name) -> usize {
        self.held.get(queue).copied().unwrap_or(0)
    }

    /// How many jobs a queue keeps waiting, for their turn or for other jobs.
    pub(crate) fn waiting_count(&self, queue: &Name) -> usize {
        self.waiting.get(queue).map_or(0, |line| line.len()) + self.held(queue)
    }

    /// Counts a job in its array's book. The book goes with the last job that is remembered.
    pub(crate) fn count_member(&mut self, before: Option<&Arc<Job>>, after: Option<&Arc<Job>>) {
        let Some(member) = before.or(after).and_then(|job| job.array) else { return };
        let (was, is) = (counts(before), counts(after));
        if was == is {
            return;
        }
        let Some(book) = self.arrays.get_mut(&member.first) else { return };
        for (count, index) in [(&mut book.kept, 0), (&mut book.open, 1), (&mut book.running, 2)] {
            *count = *count + is[index] - was[index];
        }
        if book.kept == 0 {
            self.arrays.remove(&member.first);
        }
    }

    /// Takes a waiting job out of the line of its queue, or from among those held back.
    pub(crate) fn leave_line(&mut self, job: &Arc<Job>) {
        let Some(terms) = job.queue().filter(|_| job.is_waiting()) else { return };
        if job.is_held() {
            for before in &job.after {
                self.followers.remove(&(before.job, job.id));
            }
            let left = self.held.get_mut(&terms.queue).map(|held| {
                *held -= 1;
                *held
            });
            if left == Some(0) {
                self.held.remove(&terms.queue);
            }
            return;
        }
        if let Some(earliest) = job.first_part().not_before() {
            self.not_before.remove(&(earliest, job.id));
        }
        let empty = self.waiting.get_mut(&terms.queue).is_some_and(|line| {
            line.leave(job);
            line.len() == 0
        });
        if empty {
            self.waiting.remove(&terms.queue);
        }
    }

    /// Puts a waiting job into the line of its queue, or among those held back.
    pub(crate) fn join_line(&mut self, job: &Arc<Job>) {
        let Some(terms) = job.queue().filter(|_| job.is_waiting()) else { return };
        if job.is_held() {
            self.followers.extend(job.after.iter().map(|before| (before.job, job.id)));
            *self.held.entry(terms.queue.clone()).or_default() += 1;
            return;
        }
        let earliest = job.first_part().not_before().filter(|time| *time > self.passed);
        self.not_before.extend(earliest.map(|time| (time, job.id)));
        self.waiting.entry(terms.queue.clone()).or_default().join(job);
    }
}
