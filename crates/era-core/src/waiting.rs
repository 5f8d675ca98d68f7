//! Who waits, as what, and for whom: the places of waiting jobs, the books of arrays, and the
//! index of jobs that wait for others.
//!
//! Jobs of an array that were never started nor changed are alike: they differ in their numbers
//! only. Their places stand side by side, so that whoever orders or tries what waits looks at one
//! of a kind and passes over the rest. Nothing here decides who starts.

use std::sync::Arc;

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::state::State;
use crate::units::{JobId, Name, Time};

/// Where a job stands among those that wait in its queue: the longest wait first, those of a kind
/// side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) since: Time,
    pub(crate) kind: JobId,
    pub(crate) job: JobId,
}

impl Place {
    pub(crate) fn of(job: &Job) -> Place {
        Place { since: job.waits_since(), kind: job.kind(), job: job.id }
    }

    /// The place after all of its kind.
    pub(crate) fn after_kind(self) -> Place {
        Place { job: JobId(u64::MAX), ..self }
    }

    fn is_alike(self, other: Place) -> bool {
        (self.since, self.kind) == (other.since, other.kind)
    }
}

/// The jobs that wait in a queue.
pub(crate) type Line = OrdMap<Place, Arc<Job>>;

/// The first of each kind from a place on, in the order of their places.
pub(crate) fn kinds_from(line: &Line, from: Place) -> impl Iterator<Item = (Place, &Arc<Job>)> {
    let mut rest = line.range(from..);
    std::iter::from_fn(move || {
        let (place, job) = rest.next()?;
        if place.kind != place.job || job.array.is_some() {
            rest = line.range(place.after_kind()..);
        }
        Some((*place, job))
    })
}

/// The first of each kind.
pub(crate) fn kinds(line: &Line) -> impl Iterator<Item = (Place, &Arc<Job>)> {
    let first = Place { since: Time::MIN, kind: JobId(0), job: JobId(0) };
    kinds_from(line, first)
}

/// The places of a kind, from one of its places on.
pub(crate) fn alike(line: &Line, from: Place) -> impl Iterator<Item = Place> {
    line.range(from..).map(|(place, _)| *place).take_while(move |place| place.is_alike(from))
}

/// The next of a kind.
pub(crate) fn next_alike(line: &Line, after: Place) -> Option<Place> {
    let next = Place { job: JobId(after.job.0.checked_add(1)?), ..after };
    alike(line, next).next()
}

/// What is known of an array as a whole, while any of its jobs is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayBook {
    /// Its first job.
    pub first: JobId,
    /// How many jobs it has.
    pub count: u32,
    /// Most of them that may run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_max: Option<u32>,
    /// The first of them that ended otherwise than in success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoiled: Option<JobId>,
    /// How many of them run. This and what follows is counted anew when a state is loaded.
    #[serde(skip)]
    pub running: u32,
    /// How many of them have not ended.
    #[serde(skip)]
    pub open: u32,
    /// How many of them are remembered.
    #[serde(skip)]
    pub kept: u32,
}

impl ArrayBook {
    /// Of an array that has no jobs yet.
    pub(crate) fn new(first: JobId, count: u32, running_max: Option<u32>) -> ArrayBook {
        ArrayBook { first, count, running_max, spoiled: None, running: 0, open: 0, kept: 0 }
    }

    /// Whether as many of it run as may.
    pub fn is_full(&self) -> bool {
        self.running_max.is_some_and(|most| self.running >= most)
    }

    /// The numbers of its jobs.
    pub fn jobs(&self) -> std::ops::Range<JobId> {
        self.first..JobId(self.first.0 + u64::from(self.count))
    }

    /// This one, with nothing counted.
    pub(crate) fn uncounted(self) -> ArrayBook {
        ArrayBook { running: 0, open: 0, kept: 0, ..self }
    }
}

/// What a job counts for in its array's book: remembered, open, running.
fn counts(job: Option<&Arc<Job>>) -> [u32; 3] {
    let Some(job) = job else { return [0; 3] };
    let running = job.parts.iter().any(|part| part.is_active());
    [1, u32::from(job.ended.is_none()), u32::from(running)]
}

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
        let empty = self.waiting.get_mut(&terms.queue).is_some_and(|line| {
            line.remove(&Place::of(job));
            line.is_empty()
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
        let line = self.waiting.entry(terms.queue.clone()).or_default();
        line.insert(Place::of(job), job.clone());
    }
}
