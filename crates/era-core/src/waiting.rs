//! Who waits, as what, and for whom: the lines of waiting jobs, the books of arrays, and the index
//! of jobs that wait for others.
//!
//! Jobs that were never started and ask for the same on the same terms are of one kind: they
//! differ in their numbers and in how long they wait, and in nothing else that orders, admits or
//! places them. Whoever orders or tries what waits looks at the first of a kind and passes over
//! the rest. Nothing here decides who starts.

use std::cmp::Ordering;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::job::{Job, Member};
use crate::units::{JobId, Time};

/// Where a job stands among those that wait in its queue: the longest wait first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) since: Time,
    pub(crate) job: JobId,
}

impl Place {
    pub(crate) fn of(job: &Job) -> Place {
        Place { since: job.waits_since(), job: job.id }
    }

    /// The place after all that wait since the same instant.
    pub(crate) fn after_instant(self) -> Place {
        Place { job: JobId(u64::MAX), ..self }
    }

    fn next(self) -> Place {
        Place { job: JobId(self.job.0.saturating_add(1)), ..self }
    }
}

/// What a waiting job is one of, shown by any job of the kind.
#[derive(Clone, Debug)]
pub(crate) struct Kind(Arc<Job>);

impl Kind {
    pub(crate) fn of(job: &Arc<Job>) -> Kind {
        Kind(job.clone())
    }

    /// A job of this kind. It may wait no longer: only what all of the kind have in common counts.
    pub(crate) fn example(&self) -> &Job {
        &self.0
    }

    /// Whether it is the kind of an array's jobs.
    pub(crate) fn is_of_array(&self) -> bool {
        self.0.array.is_some()
    }

    /// Whether no other job is of this kind: what has run, or was set apart from its array.
    fn alone(&self) -> Option<JobId> {
        let apart = matches!(self.0.array, Some(Member { edited: true, .. }));
        (apart || self.0.first_part().attempt > 0).then_some(self.0.id)
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Kind) -> Ordering {
        let (one, two) = (&*self.0, &*other.0);
        if std::ptr::eq(one, two) {
            return Ordering::Equal;
        }
        let owner = |job: &Job| (job.user, job.group, job.priority, job.array.map(|m| m.first));
        let not_before = |job: &Job| job.first_part().not_before();
        let (asked, other_asked) = (&one.first_part().request, &two.first_part().request);
        let by_request = || match Arc::ptr_eq(asked, other_asked) {
            true => Ordering::Equal,
            false => asked.cmp(other_asked),
        };
        (owner(one).cmp(&owner(two)))
            .then_with(by_request)
            .then_with(|| self.alone().cmp(&other.alone()))
            .then_with(|| not_before(one).cmp(&not_before(two)))
            .then_with(|| one.queue().cmp(&two.queue()))
            .then_with(|| one.attributes.cmp(&two.attributes))
            .then_with(|| one.outlook.prediction.cmp(&two.outlook.prediction))
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Kind) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Kind {}

/// The places of a kind. Most kinds have one only, and a set would be large for that.
#[derive(Clone, Debug, PartialEq)]
enum Alike {
    One(Place),
    Several(OrdSet<Place>),
}

impl Alike {
    fn first(&self) -> Option<Place> {
        match self {
            Alike::One(place) => Some(*place),
            Alike::Several(places) => places.get_min().copied(),
        }
    }

    /// The first place from one on.
    fn from(&self, from: Place) -> Option<Place> {
        match self {
            Alike::One(place) => Some(*place).filter(|place| *place >= from),
            Alike::Several(places) => places.range(from..).next().copied(),
        }
    }

    fn add(&mut self, place: Place) {
        match self {
            Alike::One(first) => *self = Alike::Several(OrdSet::from_iter([*first, place])),
            Alike::Several(places) => {
                places.insert(place);
            }
        }
    }

    /// Takes a place out; `None` if it was the last.
    fn without(&mut self, place: Place) -> Option<()> {
        let Alike::Several(places) = self else { return None };
        places.remove(&place);
        if places.len() == 1 {
            *self = Alike::One(*places.get_min()?);
        }
        Some(())
    }
}

/// The jobs that wait in a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WaitingJobs {
    kinds: OrdMap<Kind, Alike>,
    /// The kinds by the places of their first.
    firsts: OrdMap<Place, First>,
    len: usize,
}

/// The first of a kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct First {
    pub(crate) kind: Kind,
    /// Whether it is the only one, as most are: then nothing else need be looked up.
    only: bool,
}

impl WaitingJobs {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The kinds, by the places of their first.
    pub(crate) fn firsts(&self) -> &OrdMap<Place, First> {
        &self.firsts
    }

    /// All places of a kind, by its first.
    pub(crate) fn places(&self, place: Place, first: &First) -> impl Iterator<Item = Place> {
        let alike = if first.only { None } else { self.kinds.get(&first.kind) };
        let (one, several) = match alike {
            Some(Alike::Several(places)) => (None, Some(places.iter().copied())),
            _ => (Some(place), None),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    /// The first of each instant since which jobs of a kind wait, by the first of all.
    pub(crate) fn instants(&self, place: Place, first: &First) -> impl Iterator<Item = Place> {
        let alike = if first.only { None } else { self.kinds.get(&first.kind) };
        let later = move |place: &Place| alike.and_then(|a| a.from(place.after_instant()));
        std::iter::successors(Some(place), later)
    }

    pub(crate) fn next_alike(&self, kind: &Kind, after: Place) -> Option<Place> {
        self.kinds.get(kind)?.from(after.next())
    }

    /// All places, the longest wait first.
    pub(crate) fn all(&self) -> Vec<Place> {
        let mut all: Vec<Place> = Vec::with_capacity(self.len);
        for (place, first) in &self.firsts {
            all.extend(self.places(*place, first));
        }
        all.sort_unstable();
        all
    }

    pub(crate) fn join(&mut self, job: &Arc<Job>) {
        let (kind, place) = (Kind::of(job), Place::of(job));
        self.len += 1;
        let Some(alike) = self.kinds.get_mut(&kind) else {
            self.firsts.insert(place, First { kind: kind.clone(), only: true });
            self.kinds.insert(kind, Alike::One(place));
            return;
        };
        let was = alike.first();
        alike.add(place);
        let is = alike.first();
        self.set_first(was, is.map(|is| (is, First { kind, only: false })));
    }

    pub(crate) fn leave(&mut self, job: &Arc<Job>) {
        let (kind, place) = (Kind::of(job), Place::of(job));
        let Some(alike) = self.kinds.get_mut(&kind) else { return };
        self.len -= 1;
        let was = alike.first();
        let left = alike.without(place).and_then(|()| alike.first());
        let only = matches!(alike, Alike::One(_));
        if left.is_none() {
            self.kinds.remove(&kind);
        }
        self.set_first(was, left.map(|left| (left, First { kind, only })));
    }

    /// The first of a kind is another one, or no longer the only one, or the only one now.
    fn set_first(&mut self, was: Option<Place>, is: Option<(Place, First)>) {
        let before = was.and_then(|was| self.firsts.get(&was)).map(|first| first.only);
        if was == is.as_ref().map(|(place, _)| *place)
            && before == is.as_ref().map(|(_, first)| first.only)
        {
            return;
        }
        if let Some(was) = was {
            self.firsts.remove(&was);
        }
        self.firsts.extend(is);
    }
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
pub(crate) fn counts(job: Option<&Arc<Job>>) -> [u32; 3] {
    let Some(job) = job else { return [0; 3] };
    let running = job.parts.iter().any(|part| part.is_active());
    [1, u32::from(job.ended.is_none()), u32::from(running)]
}
