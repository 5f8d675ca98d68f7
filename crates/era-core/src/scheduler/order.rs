//! The order of service over all queues: who is tried next in a pass.
//!
//! Only the first of each kind is ranked beforehand; those alike follow one by one, and not at all
//! once the pass has found that none of them could start. Where a single queue serves the oldest
//! first, nothing is ranked beforehand.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::rank::{Rank, rank_kinds, ranked, rule_of};
use crate::job::Job;
use crate::queue::{PolicyRule, Queue};
use crate::state::State;
use crate::units::{JobId, Name, Time};
use crate::waiting::{Place, kinds_from, next_alike};

/// How many of the oldest are looked up at a time.
const AT_ONCE: usize = 16;

/// A job whose turn it is. In the order of service: those whose patience is over, whatever their
/// queue, then queue by queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// The index of its queue; the same for all whose patience is over.
    group: u16,
    pub(super) rank: Rank,
    queue: u16,
    /// The kind that it may be one of several of.
    kind: Option<JobId>,
}

impl Turn {
    fn new(queue: usize, rank: Rank, job: &Job) -> Turn {
        let queue = queue as u16;
        let group = if rank.is_aged() { 0 } else { queue + 1 };
        Turn { group, rank, queue, kind: job.array.map(|_| job.kind()) }
    }

    /// The index of its queue.
    pub(super) fn queue(&self) -> usize {
        usize::from(self.queue)
    }

    /// What no other of its kind comes before in the line of its queue.
    fn first_of_kind(&self) -> (Time, JobId) {
        (self.rank.since, self.kind.unwrap_or(self.rank.job))
    }

    /// The turn of the next of its kind.
    pub(super) fn next_alike(&self, state: &State) -> Option<Turn> {
        let kind = self.kind?;
        let line = state.waiting.get(&state.queues.get(self.queue())?.name)?;
        let Rank { since, job, .. } = self.rank;
        let place = next_alike(line, Place { since, kind, job })?;
        Some(Turn { rank: self.rank.of_alike(place.job), ..*self })
    }
}

/// All waiting jobs in the order in which they are served.
pub(super) struct Order {
    /// How many of each queue may still be looked at.
    left: Vec<u32>,
    /// The next of each kind that has had a turn, and others that may come now.
    next: BinaryHeap<Reverse<Turn>>,
    /// The one whose turn it is.
    given: Option<Turn>,
    unseen: Unseen,
}

/// The kinds that have had no turn yet.
enum Unseen {
    /// Any policies: ranked beforehand.
    Ranked(std::iter::Peekable<std::vec::IntoIter<Turn>>),
    /// One queue, the oldest first: as they come.
    Oldest { queue: usize, name: Name, from: Option<Place>, some: VecDeque<Turn> },
}

impl Order {
    pub(super) fn new(state: &State, queues: &[Queue]) -> Order {
        let waits = |queue: &(usize, &Queue)| state.waiting.contains_key(&queue.1.name);
        let mut waiting = queues.iter().enumerate().filter(waits);
        let unseen = match (waiting.next(), waiting.next()) {
            (Some((queue, of)), None) if *rule_of(state, of) == PolicyRule::Fifo => {
                let start = Place { since: Time::MIN, kind: JobId(0), job: JobId(0) };
                let (name, some) = (of.name.clone(), VecDeque::new());
                Unseen::Oldest { queue, name, from: Some(start), some }
            }
            _ => Unseen::Ranked(turns_of_kinds(state, queues).into_iter().peekable()),
        };
        let left = vec![state.settings.pass_depth; queues.len()];
        Order { left, next: BinaryHeap::new(), given: None, unseen }
    }

    /// The next one; none is given twice.
    pub(super) fn next(&mut self, state: &State) -> Option<Turn> {
        if let Some(given) = self.given.take()
            && let Some(next) = given.next_alike(state)
        {
            self.next.push(Reverse(next));
        }
        loop {
            self.see(state);
            let Reverse(turn) = self.next.pop()?;
            let left = &mut self.left[turn.queue()];
            if *left > 0 {
                *left -= 1;
                self.given = Some(turn);
                return Some(turn);
            }
        }
    }

    /// None of those like the one whose turn it is gets one.
    pub(super) fn pass_over_alike(&mut self) {
        self.given = None;
    }

    /// Looks at kinds until it is known who comes next.
    fn see(&mut self, state: &State) {
        loop {
            let first = self.next.peek().map(|Reverse(turn)| *turn);
            match &mut self.unseen {
                Unseen::Ranked(ranked) => {
                    let sooner = |turn: &Turn| first.is_none_or(|first| *turn < first);
                    let Some(turn) = ranked.next_if(sooner) else { return };
                    self.next.push(Reverse(turn));
                }
                Unseen::Oldest { queue, name, from, some } => {
                    if some.is_empty() {
                        look_up(state, *queue, name, from, some);
                    }
                    // Of a kind, none has a number below the kind's.
                    let may_be_sooner = |turn: &&Turn| {
                        first.is_none_or(|first| {
                            turn.first_of_kind() < (first.rank.since, first.rank.job)
                        })
                    };
                    if some.front().filter(may_be_sooner).is_none() {
                        return;
                    }
                    self.next.extend(some.pop_front().map(Reverse));
                }
            }
        }
    }
}

/// Looks up some more of the oldest kinds of a queue.
fn look_up(
    state: &State,
    queue: usize,
    name: &Name,
    from: &mut Option<Place>,
    some: &mut VecDeque<Turn>,
) {
    let (Some(start), Some(line)) = (from.take(), state.waiting.get(name)) else { return };
    let mut last = start;
    for (place, job) in kinds_from(line, start).take(AT_ONCE) {
        some.push_back(Turn::new(queue, Rank::by_age(state, &state.queues[queue], job), job));
        last = place;
    }
    if some.len() == AT_ONCE {
        *from = Some(last.after_kind());
    }
}

/// The first of each kind, in the order of service.
fn turns_of_kinds(state: &State, queues: &[Queue]) -> Vec<Turn> {
    let mut turns = Vec::new();
    for (index, queue) in queues.iter().enumerate() {
        let Some(line) = state.waiting.get(&queue.name) else { continue };
        let kinds = rank_kinds(state, queue, &rule_of(state, queue), line);
        turns.extend(kinds.into_iter().map(|(rank, job)| Turn::new(index, rank, job)));
    }
    turns.sort_unstable();
    turns
}

/// The whole order at once, with the index of each one's queue.
pub(super) fn service_order(state: &State, queues: &[Queue]) -> Vec<(usize, Rank)> {
    let depth = state.settings.pass_depth as usize;
    let mut aged = Vec::new();
    let mut order = Vec::new();
    for (index, queue) in queues.iter().enumerate() {
        for rank in ranked(state, queue).into_iter().take(depth) {
            if rank.is_aged() {
                aged.push((index, rank));
            } else {
                order.push((index, rank));
            }
        }
    }
    aged.sort_by_key(|(_, rank)| *rank);
    aged.extend(order);
    aged
}
