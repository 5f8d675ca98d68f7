//! Which starts may be served by moving promises, when a window has no start with room.
//!
//! Such a window lies in a *gap*: all starts between the last one before it and the first one
//! after it that have room. What may be served there depends on the gap, never on the window, and
//! costs what is posted, no less and no more; so a wider window that still lies in the gap has
//! all choices of a narrower one. A window that reaches beyond the gap is served without moves,
//! at an end of the gap or better: therefore only starts are served that are no better a bargain
//! than either end (the *bar*). Together: widening a window never raises the price. See decision
//! 0011.

use crate::bid::{Bid, Request};
use crate::market::Weights;
use crate::search::{Found, Search, Survey};
use crate::units::{Span, Time};

/// How many nodes are cleared for trial for each start, and so how many replicas moves can seat.
pub(super) const CLEARINGS_MAX: u32 = 12;
/// Stretches of like starts that are tried in a gap at most.
const STRETCHES_MAX: usize = 16;
/// Nodes times stretches that are tried: every try looks at all nodes of the pool.
const LOOKS_MAX: usize = 1024;

/// Starts with room at the ends of a gap, with their raw prices.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bar {
    before: Option<Found>,
    after: Option<Found>,
}

impl Bar {
    /// The ends that come first in any pool: the later one before, the earlier one after, the
    /// cheaper where both fall on the same time.
    pub(super) fn nearest(gaps: &[Gap<'_>]) -> Bar {
        let before = gaps.iter().filter_map(|gap| gap.bar.before);
        let after = gaps.iter().filter_map(|gap| gap.bar.after);
        Bar {
            before: before.min_by_key(|found| (std::cmp::Reverse(found.start), found.raw)),
            after: after.min_by_key(|found| (found.start, found.raw)),
        }
    }

    /// Both ends, as far as there are any, the later one first.
    pub(super) fn ends(&self) -> impl Iterator<Item = Found> {
        self.after.into_iter().chain(self.before)
    }

    /// Whether neither end is a worse bargain than this start.
    pub(super) fn lets(&self, found: Found, bid: &Bid, request: &Request) -> bool {
        let worth = |start: Time| Weights::raw_of(bid.value.at(start + request.duration));
        let last_step = bid.value.steps().last().map_or(Time::MIN, |step| step.by);
        // Earlier is never worth less.
        let before = self.before.is_none_or(|before| before.raw <= found.raw);
        let after = self.after.is_none_or(|after| {
            // Where the end would be worth nothing, no window of this bid reaches it.
            let reached = after.start + request.duration <= last_step;
            let lost = if reached { worth(found.start) - worth(after.start) } else { 0 };
            after.raw + lost <= found.raw
        });
        before && after
    }
}

/// The gap around a window, in one pool.
pub(super) struct Gap<'a> {
    search: &'a Search<'a>,
    window: (Time, Time),
    survey: Survey,
    pub(super) bar: Bar,
}

/// Starts that lack equally many replicas, and at which equal bookings are in the way: either all
/// of them can be served by moves, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    lack: i64,
    first: Time,
    last: Time,
}

impl<'a> Gap<'a> {
    /// The gap around starts in `[from, to]`, none of which has room; `latest` is the last start
    /// of any window.
    pub(super) fn around(
        search: &'a Search<'a>,
        (from, to): (Time, Time),
        latest: Time,
    ) -> Gap<'a> {
        let survey = search.survey(from, to, latest);
        let price = |start: Time| search.price_at(start).map(|raw| Found { raw, start });
        let bar =
            Bar { before: survey.before.and_then(price), after: survey.after.and_then(price) };
        Gap { search, window: (from, to), survey, bar }
    }

    /// The starts to be tried: the best of each stretch that lies in the window.
    pub(super) fn tries(&self, bid: &Bid, may_serve: impl Fn(&Found) -> bool) -> Vec<Found> {
        let (from, to) = self.window;
        let (now, slot) = (self.search.now, self.search.pool.slots.slot_len());
        let mut tries = Vec::new();
        let allowed = |found: &Found| self.search.allowed.contains(found.start) && may_serve(found);
        let now_is_boundary = now == now.floor_to(slot) && !self.search.now_only();
        if from == now && !now_is_boundary {
            let raw = self.search.price_at(now);
            tries.extend(raw.map(|raw| Found { raw, start: now }).filter(allowed));
        }
        let duration = self.search.request.duration;
        let merit = |found: &Found| {
            let worth = Weights::raw_of(bid.value.at(found.start + duration));
            (std::cmp::Reverse(worth as i128 - found.raw as i128), *found)
        };
        for stretch in self.stretches() {
            let mut best: Option<Found> = None;
            let (first, last) = (stretch.first.max(from), stretch.last.min(to));
            self.search.each_price(first, last, |found| {
                let better = best.is_none_or(|best| merit(&found) < merit(&best));
                if better && allowed(&found) {
                    best = Some(found);
                }
            });
            tries.extend(best);
        }
        tries
    }

    /// The stretches of the gap that lack the fewest replicas, the earliest among equals.
    fn stretches(&self) -> Vec<Stretch> {
        let nodes = self.search.pool.nodes.len().max(1);
        let most = (LOOKS_MAX / nodes).clamp(1, STRETCHES_MAX);
        let mut runs = self.runs();
        runs.sort_unstable();
        // Every run has a stretch at least, and no stretch of a later run comes first.
        runs.truncate(most);
        let mut stretches: Vec<Stretch> = Vec::new();
        for run in runs {
            if stretches.len() < most {
                self.cut(run, &mut stretches);
            }
        }
        stretches.truncate(most);
        stretches
    }

    /// Starts of the gap in a row that lack equally many replicas, but not too many.
    fn runs(&self) -> Vec<Stretch> {
        let by_slot = &self.survey.by_slot;
        let wanted = i64::from(self.search.request.shape.promised());
        let low = self.survey.before.map_or(Time::MIN, |start| Time(start.0 + 1));
        let high = self.survey.after.map_or(Time::MAX, |start| Time(start.0 - 1));
        let mut runs: Vec<Stretch> = Vec::new();
        for (start, count) in by_slot.within(low, high) {
            let lack = (wanted - count).max(0);
            if lack > i64::from(CLEARINGS_MAX) || !self.search.allowed.contains(start) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.lack == lack && run.last + by_slot.slot == start => {
                    run.last = start;
                }
                _ => runs.push(Stretch { lack, first: start, last: start }),
            }
        }
        runs
    }

    /// Cuts a run where other bookings come in the way, or go out of it.
    fn cut(&self, run: Stretch, stretches: &mut Vec<Stretch>) {
        let slot = self.search.pool.slots.slot_len();
        let starts = (run.last.since(run.first).0 / slot.0 + 1) as usize;
        let mut cuts = vec![false; starts];
        let mut mark = |at: Time| {
            let index = at.ceil_to(slot).since(run.first).0 / slot.0;
            if let Some(cut) = usize::try_from(index).ok().and_then(|index| cuts.get_mut(index)) {
                *cut = true;
            }
        };
        let duration = self.search.request.duration;
        if starts > 1 {
            for node_calendar in &self.search.pool.nodes {
                // A run meets what begins before its end, and no longer what ends by its start.
                node_calendar.turns(run.first, run.last, &mut mark);
                node_calendar.turns(run.first + duration - Span(1), run.last + duration, |at| {
                    mark(Time(at.0 - duration.0 + 1));
                });
            }
        }
        let mut open = run.first;
        for (index, cut) in cuts.iter().enumerate().skip(1) {
            let start = Time(run.first.0 + index as i64 * slot.0);
            // While preemptible work may be in the way, every boundary is another case.
            if *cut || start <= self.search.soft_to {
                stretches.push(Stretch { first: open, last: start - slot, ..run });
                open = start;
            }
        }
        stretches.push(Stretch { first: open, last: run.last, ..run });
    }
}
