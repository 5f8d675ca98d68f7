//! The order of service over all queues: who is tried next in a pass.

use std::collections::VecDeque;

use super::rank::{Rank, ranked, rule_of};
use crate::queue::{PolicyRule, Queue};
use crate::state::State;
use crate::units::{JobId, Name};

/// How many of the oldest are looked up at a time.
const AT_ONCE: usize = 16;

/// All waiting jobs in the order in which they are served, with the index of their queue.
pub(super) struct Order {
    depth: usize,
    kind: Kind,
}

enum Kind {
    /// Any policies: ranked beforehand.
    Ranked(std::vec::IntoIter<(usize, Rank)>),
    /// One queue, the oldest first: as they come.
    Oldest { queue: usize, name: Name, last: JobId, next: VecDeque<Rank> },
}

impl Order {
    pub(super) fn new(state: &State, queues: &[Queue]) -> Order {
        let depth = state.settings.pass_depth as usize;
        let waits = |queue: &&(usize, &Queue)| state.waiting.contains_key(&queue.1.name);
        let waiting: Vec<(usize, &Queue)> = queues.iter().enumerate().collect();
        let mut waiting = waiting.iter().filter(waits);
        let kind = match (waiting.next(), waiting.next()) {
            (Some((index, queue)), None) if *rule_of(state, queue) == PolicyRule::Fifo => {
                let (name, next) = (queue.name.clone(), VecDeque::new());
                Kind::Oldest { queue: *index, name, last: JobId(0), next }
            }
            _ => Kind::Ranked(service_order(state, queues).into_iter()),
        };
        Order { depth, kind }
    }

    /// The next one; none is given twice.
    pub(super) fn next(&mut self, state: &State) -> Option<(usize, Rank)> {
        match &mut self.kind {
            Kind::Ranked(ranks) => ranks.next(),
            Kind::Oldest { queue, name, last, next } => {
                self.depth = self.depth.checked_sub(1)?;
                if next.is_empty() {
                    let after = JobId(last.0 + 1);
                    let jobs = state.waiting.get(name)?.range(after..).take(AT_ONCE);
                    let rank = |job| Rank::by_age(state, &state.queues[*queue], job);
                    next.extend(jobs.map(|(_, job)| rank(job)));
                }
                let rank = next.pop_front()?;
                *last = rank.job;
                Some((*queue, rank))
            }
        }
    }

    /// All that are still to come.
    pub(super) fn all(&self, state: &State) -> Vec<(usize, Rank)> {
        match &self.kind {
            Kind::Ranked(ranks) => ranks.as_slice().to_vec(),
            Kind::Oldest { .. } => service_order(state, &state.queues),
        }
    }
}

/// The whole order at once.
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
    aged.sort_by_key(|(_, rank)| rank.job);
    aged.extend(order);
    aged
}
