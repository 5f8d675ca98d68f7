//! The order of service over all queues: who is tried next in a pass.
//!
//! Only the first of each kind is ranked beforehand; those alike follow one by one, and not at all
//! once the pass has found that none of them could start. Where a single queue serves the oldest
//! first, nothing is ranked beforehand.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Bound;

use imbl::OrdMap;

use super::rank::{Context, Rank, ranked};
use crate::queue::{PolicyRule, Queue};
use crate::state::State;
use crate::waiting::{First, Kind, Place, WaitingJobs};

/// How many of the oldest are looked up at a time.
const AT_ONCE: usize = 16;

/// A job whose turn it is. In the order of service: those whose patience is over, whatever their
/// queue, then queue by queue.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) rank: Rank,
    queue: u16,
    pub(super) kind: Kind,
}

impl Turn {
    fn new(queue: usize, rank: Rank, kind: Kind) -> Turn {
        Turn { rank, queue: queue as u16, kind }
    }

    /// The index of its queue.
    pub(super) fn queue(&self) -> usize {
        usize::from(self.queue)
    }

    /// What orders turns; no two are the same, since no two jobs are.
    fn order(&self) -> (u16, Rank) {
        // All whose patience is over come before every queue.
        (if self.rank.is_aged() { 0 } else { self.queue + 1 }, self.rank)
    }
}

impl Ord for Turn {
    fn cmp(&self, other: &Turn) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Turn) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Turn {
    fn eq(&self, other: &Turn) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Turn {}

/// All waiting jobs in the order in which they are served.
pub(super) struct Order<'a> {
    queues: &'a [Queue],
    /// What ranks the jobs of each queue; none where nothing waits, or age alone decides.
    contexts: Vec<Option<Context<'a>>>,
    /// How many of each queue may still be looked at.
    left: Vec<u32>,
    /// The next of each kind that has had a turn, and others that may come now.
    next: BinaryHeap<Reverse<Turn>>,
    given: Option<Turn>,
    unseen: Unseen,
}

/// The kinds that have had no turn yet.
enum Unseen {
    /// Any policies: ranked beforehand.
    Ranked(std::iter::Peekable<std::vec::IntoIter<Turn>>),
    /// One queue, the oldest first: as they come.
    Oldest(Oldest),
}

/// The kinds of a queue by age, as they were when the pass began.
struct Oldest {
    queue: usize,
    firsts: OrdMap<Place, First>,
    /// The last one that was looked up.
    last: Option<Place>,
    some: VecDeque<Turn>,
}

impl<'a> Order<'a> {
    pub(super) fn new(state: &State, queues: &'a [Queue]) -> Order<'a> {
        let line = |queue: &Queue| state.waiting.get(&queue.name);
        let mut waiting = queues.iter().enumerate().filter(|(_, queue)| line(queue).is_some());
        let mut contexts: Vec<Option<Context<'a>>> = queues.iter().map(|_| None).collect();
        let unseen = match (waiting.next(), waiting.next()) {
            (Some((queue, of)), None) if *state.rule_of(of) == PolicyRule::Fifo => {
                let firsts = line(of).map(|line| line.firsts().clone()).unwrap_or_default();
                Unseen::Oldest(Oldest { queue, firsts, last: None, some: VecDeque::new() })
            }
            _ => {
                let mut turns = Vec::new();
                for (index, queue) in queues.iter().enumerate() {
                    let Some(line) = line(queue) else { continue };
                    let mut context = Context::new(state, queue, state.rule_of(queue));
                    add_turns(state, index, line, &mut context, &mut turns);
                    contexts[index] = Some(context);
                }
                turns.sort_unstable();
                Unseen::Ranked(turns.into_iter().peekable())
            }
        };
        let left = vec![state.settings.pass_depth; queues.len()];
        Order { queues, contexts, left, next: BinaryHeap::new(), given: None, unseen }
    }

    /// The next one; none is given twice.
    pub(super) fn next(&mut self, state: &State) -> Option<Turn> {
        if let Some(given) = self.given.take() {
            let next = self.next_alike(state, &given);
            self.next.extend(next.map(Reverse));
        }
        loop {
            self.see(state);
            let Reverse(turn) = self.next.pop()?;
            let left = &mut self.left[turn.queue()];
            if *left > 0 {
                *left -= 1;
                self.given = Some(turn.clone());
                return Some(turn);
            }
        }
    }

    /// None of those like the one whose turn it is gets one.
    pub(super) fn pass_over_alike(&mut self) {
        self.given = None;
    }

    /// The turn of the next of a kind, of those that follow in their own order.
    pub(super) fn next_alike(&mut self, state: &State, turn: &Turn) -> Option<Turn> {
        let queue = self.queues.get(turn.queue())?;
        let place = state.waiting.get(&queue.name)?.next_alike(&turn.kind, turn.rank.place())?;
        let rank = match &mut self.contexts[turn.queue()] {
            None => Rank::by_age(state, queue, place),
            Some(context) if context.oldest_of_kind_first() || place.since == turn.rank.since => {
                context.rank(state, turn.kind.example(), place)
            }
            Some(_) => return None,
        };
        Some(Turn { rank, queue: turn.queue, kind: turn.kind.clone() })
    }

    /// Looks at kinds until it is known who comes next.
    fn see(&mut self, state: &State) {
        loop {
            let first = self.next.peek().map(|Reverse(turn)| turn);
            let sooner = |turn: &Turn| first.is_none_or(|first| turn < first);
            let seen = match &mut self.unseen {
                Unseen::Ranked(ranked) => ranked.next_if(sooner),
                Unseen::Oldest(oldest) => oldest.next_if(state, self.queues, sooner),
            };
            let Some(turn) = seen else { return };
            self.next.push(Reverse(turn));
        }
    }
}

impl Oldest {
    fn next_if(
        &mut self,
        state: &State,
        queues: &[Queue],
        wanted: impl Fn(&Turn) -> bool,
    ) -> Option<Turn> {
        if self.some.is_empty() {
            self.look_up(state, queues);
        }
        self.some.pop_front_if(|turn| wanted(turn))
    }

    /// Looks up some more.
    fn look_up(&mut self, state: &State, queues: &[Queue]) {
        let from = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        for (place, first) in self.firsts.range((from, Bound::Unbounded)).take(AT_ONCE) {
            let rank = Rank::by_age(state, &queues[self.queue], *place);
            self.some.push_back(Turn::new(self.queue, rank, first.kind.clone()));
            self.last = Some(*place);
        }
    }
}

/// The turns of all kinds of a queue that do not follow from others.
fn add_turns(
    state: &State,
    queue: usize,
    line: &WaitingJobs,
    context: &mut Context<'_>,
    turns: &mut Vec<Turn>,
) {
    let oldest_first = context.oldest_of_kind_first();
    let mut add = |place, kind: &Kind| {
        let rank = context.rank(state, kind.example(), place);
        turns.push(Turn::new(queue, rank, kind.clone()));
    };
    for (place, first) in line.firsts() {
        if oldest_first {
            add(*place, &first.kind);
        } else {
            line.instants(*place, first).for_each(|place| add(place, &first.kind));
        }
    }
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
