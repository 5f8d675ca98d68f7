//! The cheapest start at which a request fits in a pool.
//!
//! Exact, and lazy: chunks of slots are opened in the order of a lower bound of what any start
//! in them could cost, starts are tried in the order of their price, and most searches end at
//! the first one tried. When several cheap starts have no room, all starts with room are worked
//! out at once, so that a full calendar costs one sweep and not one per start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::bid::{Request, Shape};
use crate::calendar::{
    CHUNK, Calendar, DensitySums, Load, LowestPrice, NodeCalendar, PoolCalendar, Pricing,
};
use crate::cluster::Eligibility;
use crate::market::StartRule;
use crate::openings::{BySlot, Openings};
use crate::placement::Gang;
use crate::resources::{PerResource, Resources};
use crate::starts::Starts;
use crate::units::{Span, Time};

/// Starts without room that are tried one by one before all starts with room are worked out.
const TRIES_MAX: u32 = 8;

/// Slots around a window that are looked at before all others.
const NEAR_SLOTS: i64 = 512;

/// What lies around a window in which no start has room.
pub(crate) struct Survey {
    /// The last start before the window that has room.
    pub(crate) before: Option<Time>,
    /// The first start after it that has.
    pub(crate) after: Option<Time>,
    /// How many replicas could start, at least from `before` to `after`.
    pub(crate) by_slot: BySlot,
}

/// A start with room, and its raw price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Raw price; see [`crate::market::Weights::price`].
    pub raw: u128,
    pub start: Time,
}

/// A start that may turn out to have room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StartCandidate {
    found: Found,
    /// The chunk of which it is the cheapest start, if the others of that chunk are not
    /// candidates yet.
    stands_for: Option<usize>,
}

/// A request to be placed in one pool.
pub struct Search<'a> {
    pub calendar: &'a Calendar,
    pub pool: &'a PoolCalendar,
    pub request: &'a Request,
    /// Which nodes it may use.
    pub eligible: Eligibility<'a>,
    pub now: Time,
    /// Until when preemptible work is in the way.
    pub soft_to: Time,
    /// Whether preemptible work counts like any other, for as long as it may last.
    pub with_soft: bool,
    /// Starts that quotas and caps leave.
    pub allowed: &'a Starts,
}

impl<'a> Search<'a> {
    pub fn gang(&self, start: Time) -> Gang<'a> {
        Gang {
            request: self.request,
            eligible: self.eligible,
            from: start,
            to: start + self.request.duration,
            soft_to: if self.with_soft { start + self.request.duration } else { self.soft_to },
        }
    }

    /// The first instant in `[from, to]` at which it has room, slot boundary or not.
    pub fn earliest(&self, from: Time, to: Time) -> Option<Time> {
        if from > to {
            return None;
        }
        if self.has_room(from) {
            return Some(from);
        }
        // Room begins only where something ends.
        let Starts::Only(intervals) = self.starts_with_room(from, to) else { return None };
        if self.is_simple() && *self.allowed == Starts::All {
            return intervals.first().map(|(start, _)| *start);
        }
        // Enough nodes may not be the right nodes yet: try every change.
        let node_calendars = self.pool.nodes.iter().filter(|l| l.admits(&self.eligible));
        let mut points: Vec<Time> = intervals.iter().map(|(start, _)| *start).collect();
        for node_calendar in node_calendars {
            points.extend(node_calendar.taken(self.with_soft).changes(from, to));
        }
        if let Starts::Only(allowed) = self.allowed {
            points.extend(allowed.iter().map(|(start, _)| *start));
        }
        points.sort_unstable();
        points.dedup();
        let room = Starts::Only(intervals);
        points.into_iter().find(|p| room.contains(*p) && self.has_room(*p))
    }

    /// Whether the request may start then and has room.
    fn has_room(&self, start: Time) -> bool {
        self.allowed.contains(start) && self.gang(start).fits(self.pool)
    }

    /// The raw price of a start, wherever it lies in its slot.
    pub fn price_at(&self, start: Time) -> Option<u128> {
        let market = self.calendar.market();
        let pricing = market.pricing(&self.pool.pool.name);
        Costs::new(self.pool, self.request.units(), &pricing).total(start, self.request.duration.0)
    }

    /// The cheapest start with room in `[from, to]`, the earliest among equals. Starts are now,
    /// and the slot boundaries.
    pub fn cheapest(&self, from: Time, to: Time) -> Option<Found> {
        let slots = &self.pool.slots;
        let to = to.min(slots.start_of(slots.end()) - self.request.duration);
        let from = from.max(self.now);
        if from > to {
            return None;
        }
        let market = self.calendar.market();
        let pricing = market.pricing(&self.pool.pool.name);
        let mut costs = Costs::new(self.pool, self.request.units(), &pricing);
        let now_only = self.now_only();
        let at_once = if from == self.now && (now_only || from != from.floor_to(slots.slot_len())) {
            costs
                .total(from, self.request.duration.0)
                .map(|raw| Found { raw, start: from })
                .filter(|found| self.has_room(found.start))
        } else {
            None
        };
        if now_only {
            return at_once;
        }
        let first = slots.slot_at(from.ceil_to(slots.slot_len()));
        let last = slots.slot_at(to);
        let on_boundary = self.cheapest_boundary(&mut costs, first, last, at_once);
        match (at_once, on_boundary) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The cheapest boundary with room among slots `first..=last`, unless it is no better than
    /// `known`.
    fn cheapest_boundary(
        &self,
        costs: &mut Costs<'_>,
        first: i64,
        last: i64,
        known: Option<Found>,
    ) -> Option<Found> {
        let slots = &self.pool.slots;
        let mut chunks = costs.bounds(first, last, self.request.duration.0);
        let mut starts: BinaryHeap<Reverse<StartCandidate>> = BinaryHeap::new();
        let mut tries = 0;
        let mut room = Starts::All;
        loop {
            // Open every chunk that may hold something better than the best known start.
            while let Some(Reverse((bound, chunk))) = chunks.peek().copied() {
                let chunk_start = slots.start_of(slots.first() + (chunk * CHUNK) as i64);
                let best = starts.peek().map(|Reverse(best)| best.found).into_iter().chain(known);
                if best.min().is_some_and(|best| (bound, chunk_start) >= (best.raw, best.start)) {
                    break;
                }
                chunks.pop();
                let chunk_end = chunk_start + Span(slots.slot_len().0 * CHUNK as i64);
                if room.touches(chunk_start, chunk_end) {
                    starts.extend(self.best_of(costs, chunk, (first, last), &room).map(Reverse));
                }
            }
            let Reverse(StartCandidate { found, stands_for }) = starts.pop()?;
            if known.is_some_and(|known| known < found) {
                return None;
            }
            if self.has_room(found.start) {
                return Some(found);
            }
            if let Some(chunk) = stands_for {
                costs.open(chunk, first, last, self.request.duration.0, |other| {
                    if other > found && room.contains(other.start) {
                        starts.push(Reverse(StartCandidate { found: other, stands_for: None }));
                    }
                });
            }
            tries += 1;
            if tries == TRIES_MAX {
                room = self.boundaries_with_room(slots.start_of(first), slots.start_of(last));
                let kept = starts.drain().filter_map(|Reverse(start)| match start.stands_for {
                    Some(chunk) => self.best_of(costs, chunk, (first, last), &room),
                    None => room.contains(start.found.start).then_some(start),
                });
                starts = kept.map(Reverse).collect();
            }
        }
    }

    /// The cheapest of a chunk's starts among slots `first..=last` and `room`, the earliest among
    /// equals, for all of them.
    fn best_of(
        &self,
        costs: &mut Costs<'_>,
        chunk: usize,
        (first, last): (i64, i64),
        room: &Starts,
    ) -> Option<StartCandidate> {
        let mut best: Option<Found> = None;
        costs.open(chunk, first, last, self.request.duration.0, |found| {
            if best.is_none_or(|best| found < best) && room.contains(found.start) {
                best = Some(found);
            }
        });
        best.map(|found| StartCandidate { found, stands_for: Some(chunk) })
    }

    /// Every start with room in `[from, to]`, with its raw price.
    pub fn each_with_room(&self, from: Time, to: Time, mut each: impl FnMut(Found)) {
        let slots = &self.pool.slots;
        let to = to.min(slots.start_of(slots.end()) - self.request.duration);
        let from = from.max(self.now);
        if from > to {
            return;
        }
        let market = self.calendar.market();
        let pricing = market.pricing(&self.pool.pool.name);
        let mut costs = Costs::new(self.pool, self.request.units(), &pricing);
        let now_only = self.now_only();
        let room = self.starts_with_room(from, to);
        let exact_from = self.soft_to;
        let simple = self.is_simple();
        let mut offer = |found: Found| {
            let sure = simple && found.start >= exact_from && self.allowed.contains(found.start);
            if room.contains(found.start) && (sure || self.has_room(found.start)) {
                each(found);
            }
        };
        let on_boundary = from == from.floor_to(slots.slot_len());
        if from == self.now && (now_only || !on_boundary) {
            let raw = costs.total(from, self.request.duration.0);
            if let Some(raw) = raw {
                offer(Found { raw, start: from });
            }
        }
        if now_only {
            return;
        }
        let first = slots.slot_at(from.ceil_to(slots.slot_len()));
        let last = slots.slot_at(to);
        for chunk in 0..((slots.end() - slots.first()) as usize / CHUNK) {
            costs.open(chunk, first, last, self.request.duration.0, &mut offer);
        }
    }

    /// Now and the slot boundaries are the starts that there are; the first of them in `[from, to]`
    /// with room, among those that [`Search::starts_with_room`] told.
    pub fn first_with_room(&self, room: &Starts, from: Time, to: Time) -> Option<Time> {
        let (from, to) = (from.max(self.now), self.latest(to));
        let slot = self.pool.slots.slot_len();
        if self.now_only() || from == self.now {
            let now = (from == self.now && from <= to && self.has_room(from)).then_some(from);
            if now.is_some() || self.now_only() {
                return now;
            }
        }
        // Within a segment one start is as good as another.
        let starts = self.segments(room, from, to).into_iter().map(|(open, close)| {
            let start = open.ceil_to(slot);
            (start <= close).then_some(start)
        });
        starts.flatten().find(|start| self.has_room(*start))
    }

    /// The last of them.
    pub fn last_with_room(&self, room: &Starts, from: Time, to: Time) -> Option<Time> {
        let (from, to) = (from.max(self.now), self.latest(to));
        let slot = self.pool.slots.slot_len();
        if !self.now_only() {
            let starts = self.segments(room, from, to).into_iter().rev().map(|(open, close)| {
                let start = close.floor_to(slot);
                (start >= open).then_some(start)
            });
            let last = starts.flatten().find(|start| self.has_room(*start));
            if last.is_some() {
                return last;
            }
        }
        (from == self.now && from <= to && self.has_room(from)).then_some(from)
    }

    /// Stretches of starts in `[from, to]` of which all have room or none has.
    fn segments(&self, room: &Starts, from: Time, to: Time) -> Vec<(Time, Time)> {
        let room = room.clone().and(self.allowed.clone());
        let duration = self.request.duration;
        let mut cuts: Vec<Time> = Vec::new();
        if !self.is_simple() {
            for node_calendar in self.pool.nodes.iter().filter(|l| l.admits(&self.eligible)) {
                for change in node_calendar.taken(self.with_soft).changes(from, to + duration) {
                    cuts.push(change);
                    cuts.push(Time(change.0 - duration.0 + 1));
                }
            }
        }
        // While preemptible work may be in the way, every boundary is another case.
        let slot = self.pool.slots.slot_len();
        let mut boundary = from.ceil_to(slot);
        while boundary <= to.min(self.soft_to) {
            cuts.push(boundary);
            cuts.push(Time(boundary.0 + 1));
            boundary = boundary + slot;
        }
        cuts.push(Time(self.soft_to.0.saturating_add(1)));
        cuts.sort_unstable();
        cuts.dedup();
        let mut segments = Vec::new();
        for (mut open, close) in intervals_of(&room, from, to) {
            let first = cuts.partition_point(|cut| *cut <= open);
            for cut in cuts[first..].iter().take_while(|cut| **cut <= close) {
                segments.push((open, Time(cut.0 - 1)));
                open = *cut;
            }
            segments.push((open, close));
        }
        segments
    }

    pub(crate) fn now_only(&self) -> bool {
        self.calendar.market().mechanism().starts() == StartRule::NowOnly
    }

    /// The last start whose run ends where prices do.
    fn latest(&self, to: Time) -> Time {
        let slots = &self.pool.slots;
        to.min(slots.start_of(slots.end()) - self.request.duration)
    }

    /// The most replicas that could start together at any start in `[from, to]`, of which
    /// `by_slot` tells how many could at each slot boundary.
    pub(crate) fn most_replicas(&self, by_slot: &BySlot, from: Time, to: Time) -> u32 {
        let (from, to) = (from.max(self.now), self.latest(to));
        let at_once = (from == self.now && from <= to).then(|| (from, self.replicas_at(from)));
        let boundaries = by_slot.within(from, to).filter(|_| !self.now_only());
        let allowed = |(start, _): &(Time, i64)| self.allowed.contains(*start);
        let counts = boundaries.chain(at_once).filter(allowed).map(|(_, count)| count);
        u32::try_from(counts.max().unwrap_or(0)).unwrap_or(0)
    }

    /// How many replicas could start at an instant, preemptible work aside.
    fn replicas_at(&self, start: Time) -> i64 {
        let (to, each, most) = (start + self.request.duration, &self.request.each, self.per_node());
        let mut taken = Load::zero(0);
        let node_calendars = self.pool.nodes.iter().filter(|l| l.admits(&self.eligible));
        node_calendars.map(|l| i64::from(l.room(start, to, start, each, most, &mut taken))).sum()
    }

    /// Whether enough nodes are always the right nodes.
    pub(crate) fn is_simple(&self) -> bool {
        matches!(self.request.shape, Shape::Replicas { .. })
            && self.request.constraints.same.is_none()
    }

    /// The slot boundaries in `[from, to]` at which enough nodes have room, and perhaps instants
    /// between two of them; otherwise as [`Search::starts_with_room`].
    fn boundaries_with_room(&self, from: Time, to: Time) -> Starts {
        if !self.is_simple() || self.with_soft {
            return self.starts_with_room(from, to);
        }
        let wanted = i64::from(self.request.shape.promised());
        let by_slot = self.by_slot(from, to);
        let mut intervals: Vec<(Time, Time)> = Vec::new();
        for (start, _) in by_slot.within(from, to).filter(|(_, count)| *count >= wanted) {
            match intervals.last_mut() {
                Some((_, last)) if *last + by_slot.slot == start => *last = start,
                _ => intervals.push((start, start)),
            }
        }
        Starts::Only(intervals)
    }

    /// All starts in `[from, to]` at which enough nodes have room. For requests with a demanded
    /// topology, and near now where preemptible work is in the way, some of them may still have
    /// none: whoever uses this asks again.
    pub fn starts_with_room(&self, from: Time, to: Time) -> Starts {
        let Some(block) = self.request.blocks(self.pool.gpus_per_node).into_iter().next() else {
            return Starts::All;
        };
        let per_node = match self.request.shape {
            Shape::Gpus { .. } => 1,
            Shape::Replicas { .. } => {
                self.request.constraints.per_node_max.unwrap_or(block.count).min(block.count)
            }
        };
        let mut intervals: Vec<(Time, Time)> = Vec::new();
        let mut open = None;
        for (time, count) in self.counts(&block.each, per_node, from, to) {
            let enough = count >= i64::from(block.count);
            match (open, enough) {
                (None, true) => open = Some(time),
                (Some(start), false) => {
                    intervals.push((start, Time(time.0 - 1)));
                    open = None;
                }
                _ => {}
            }
        }
        intervals.extend(open.map(|start| (start, to)));
        Starts::Only(intervals)
    }

    /// How many replicas could start at each slot boundary in `[from, to]`, for requests of like
    /// replicas. Exact but for preemptible work, which is in the way of starts before `soft_to`.
    pub(crate) fn by_slot(&self, from: Time, to: Time) -> BySlot {
        let (slot, duration) = (self.pool.slots.slot_len(), self.request.duration);
        if from > to {
            return BySlot::none(from, to, slot);
        }
        if let Some(openings) = self.openings(from, to) {
            return openings.by_slot(duration, from, to, slot);
        }
        let mut by_slot = BySlot::none(from, to, slot);
        let mut last: Option<(Time, i64)> = None;
        for (time, count) in self.counts(&self.request.each, self.per_node(), from, to) {
            if let Some((open, before)) = last {
                by_slot.add(open, Time(time.0 - 1), before);
            }
            last = Some((time, count));
        }
        if let Some((open, count)) = last {
            by_slot.add(open, to, count);
        }
        by_slot.sum()
    }

    /// What is free for the request's replicas from `from` until a run that starts at `to` ends.
    pub(crate) fn openings(&self, from: Time, to: Time) -> Option<Openings> {
        if self.with_soft {
            return None;
        }
        let node_calendars = self.pool.nodes.iter().map(|node_calendar| &**node_calendar);
        let during = (from, to + self.request.duration);
        Openings::of(node_calendars, &self.eligible, &self.request.each, self.per_node(), during)
    }

    fn per_node(&self) -> u32 {
        let wanted = self.request.shape.promised();
        self.request.constraints.per_node_max.unwrap_or(wanted).min(wanted)
    }

    /// Whether the request has room at a start of which it is known how many replicas fit.
    pub(crate) fn has_room_for(&self, start: Time, replicas: i64) -> bool {
        replicas >= i64::from(self.request.shape.promised())
            && self.allowed.contains(start)
            && (start >= self.soft_to || self.gang(start).fits(self.pool))
    }

    /// Whether any start in `[from, to]` has room, for a request of like replicas.
    pub(crate) fn has_room_in(&self, openings: &Openings, from: Time, to: Time) -> bool {
        let (from, to) = (from.max(self.now), self.latest(to));
        if from > to {
            return false;
        }
        if from == self.now && self.has_room(from) {
            return true;
        }
        let (slot, duration) = (self.pool.slots.slot_len(), self.request.duration);
        !self.now_only()
            && openings
                .by_slot(duration, from, to, slot)
                .within(from, to)
                .any(|(start, count)| self.has_room_for(start, count))
    }

    /// The surroundings of a window in which no start has room, for a request of like replicas
    /// that may start until `latest`.
    pub(crate) fn survey(&self, from: Time, to: Time, latest: Time) -> Survey {
        let slots = &self.pool.slots;
        let end = self.latest(latest);
        if self.now_only() {
            let by_slot = BySlot::none(Time(1), Time(0), slots.slot_len());
            let before = (from > self.now && self.has_room(self.now)).then_some(self.now);
            return Survey { before, after: None, by_slot };
        }
        // Most often there is room not far away; otherwise everything is looked at once.
        let margin = Span((self.request.duration.0 * 2).max(slots.slot_len().0 * NEAR_SLOTS));
        let near = (self.now.max(from.min(to) - margin), end.min(from.max(to) + margin));
        let survey = self.survey_within(near, (from, to));
        let whole = near.0 == self.now && near.1 == end;
        let found = (survey.before.is_some() || near.0 == self.now)
            && (survey.after.is_some() || near.1 == end);
        if whole || found { survey } else { self.survey_within((self.now, end), (from, to)) }
    }

    fn survey_within(&self, (low, high): (Time, Time), (from, to): (Time, Time)) -> Survey {
        let by_slot = self.by_slot(low, high);
        let has_room = |(start, count): &(Time, i64)| self.has_room_for(*start, *count);
        let after = by_slot.within(Time(to.0 + 1), high).find(has_room).map(|(start, _)| start);
        let before = by_slot.within(low, Time(from.0 - 1)).rfind(has_room).map(|(start, _)| start);
        let at_once = || (low == self.now && from > self.now && self.has_room(low)).then_some(low);
        Survey { before: before.or_else(at_once), after, by_slot }
    }

    /// Every start in `[from, to]` that is a slot boundary, with its raw price, room or not.
    pub(crate) fn each_price(&self, from: Time, to: Time, each: impl FnMut(Found)) {
        let slots = &self.pool.slots;
        let (from, to) = (from.max(self.now).ceil_to(slots.slot_len()), self.latest(to));
        if from > to {
            return;
        }
        let market = self.calendar.market();
        let pricing = market.pricing(&self.pool.pool.name);
        let mut costs = Costs::new(self.pool, self.request.units(), &pricing);
        let (first, last) = (slots.slot_at(from), slots.slot_at(to));
        let chunk = |slot: i64| (slot - slots.first()) as usize / CHUNK;
        let mut each = each;
        for chunk in chunk(first)..=chunk(last) {
            costs.open(chunk, first, last, self.request.duration.0, &mut each);
        }
    }

    /// How many replicas could start in the pool, as a step function of the start.
    fn counts(
        &self,
        each: &Resources,
        per_node: u32,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = (Time, i64)> {
        // (instant, change of the number of replicas that could start then)
        let mut changes: Vec<(Time, i64)> = Vec::new();
        for node_calendar in self.pool.nodes.iter().filter(|l| l.admits(&self.eligible)) {
            self.starts_on(node_calendar, each, per_node, from, to, &mut changes);
        }
        changes.sort_unstable();
        let mut sum = 0;
        let mut index = 0;
        std::iter::from_fn(move || {
            let time = changes.get(index)?.0;
            while changes.get(index).is_some_and(|c| c.0 == time) {
                sum += changes[index].1;
                index += 1;
            }
            Some((time, sum))
        })
    }

    /// How many replicas a node can take, as a step function of the start.
    fn starts_on(
        &self,
        node_calendar: &NodeCalendar,
        each: &Resources,
        most: u32,
        from: Time,
        to: Time,
        changes: &mut Vec<(Time, i64)>,
    ) {
        let duration = self.request.duration;
        let profile = node_calendar.taken(self.with_soft);
        for (open_from, open_to) in
            node_calendar.open_stretches(&profile, each, from, to + duration)
        {
            let (first, last) = (open_from.max(from), (open_to - duration).min(to));
            if first > last {
                continue;
            }
            // The count changes where the run's start passes a change, or its end reaches one.
            let mut points = vec![first];
            for change in profile.changes(first, last + duration) {
                points.push(change);
                points.push(Time(change.0 - duration.0 + 1));
            }
            points.retain(|p| *p >= first && *p <= last);
            points.sort_unstable();
            points.dedup();
            let mut before = 0;
            for point in points {
                let taken = profile.peak(point, point + duration);
                let count = i64::from(node_calendar.count(&taken, each, most));
                if count != before {
                    changes.push((point, count - before));
                    before = count;
                }
            }
            if before != 0 {
                changes.push((Time(last.0 + 1), -before));
            }
        }
    }
}

/// The parts of a set of starts that lie in `[from, to]`.
fn intervals_of(starts: &Starts, from: Time, to: Time) -> Vec<(Time, Time)> {
    if from > to {
        return Vec::new();
    }
    match starts {
        Starts::All => vec![(from, to)],
        Starts::Only(intervals) => intervals
            .iter()
            .map(|(open, close)| ((*open).max(from), (*close).min(to)))
            .filter(|(open, close)| open <= close)
            .collect(),
    }
}

/// Prices of a request in a pool, worked out chunk by chunk as they are needed.
struct Costs<'a> {
    pool: &'a PoolCalendar,
    units: PerResource<u64>,
    pricing: &'a Pricing<'a>,
    /// Prefix sums of the raw cost of a millisecond in each slot of a chunk.
    chunks: Vec<Option<Box<[u128; CHUNK + 1]>>>,
    sums: DensitySums<'a>,
}

impl<'a> Costs<'a> {
    fn new(pool: &'a PoolCalendar, units: PerResource<u64>, pricing: &'a Pricing<'a>) -> Costs<'a> {
        Costs { pool, units, pricing, chunks: Vec::new(), sums: DensitySums::default() }
    }

    fn chunk(&mut self, index: usize) -> &[u128; CHUNK + 1] {
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, || None);
        }
        self.chunks[index].get_or_insert_with(|| {
            let mut prefix = Box::new([0; CHUNK + 1]);
            let slots = &self.pool.slots;
            let (weights, units) = (&self.pool.weights, &self.units);
            slots.costs(index, weights, units, self.pricing, &mut self.sums, &mut prefix);
            prefix
        })
    }

    /// The raw cost of a millisecond in a slot, by its offset from the first.
    fn slot(&mut self, offset: usize) -> u128 {
        let prefix = self.chunk(offset / CHUNK);
        prefix[offset % CHUNK + 1] - prefix[offset % CHUNK]
    }

    /// The sum of the raw costs of a millisecond in each slot of `from..to`.
    fn range(&mut self, from: usize, to: usize) -> u128 {
        let (mut at, mut sum) = (from, 0);
        while at < to {
            let end = ((at / CHUNK + 1) * CHUNK).min(to);
            let start = at / CHUNK * CHUNK;
            let prefix = self.chunk(at / CHUNK);
            sum += prefix[end - start] - prefix[at - start];
            at = end;
        }
        sum
    }

    /// The raw price of `[start, start + ms)`, or `None` if a slot of it has no price.
    fn total(&mut self, start: Time, ms: i64) -> Option<u128> {
        let slots = &self.pool.slots;
        let len = slots.slot_len().0;
        let base = slots.first();
        let end = Time(start.0 + ms);
        let (first, last) = (slots.slot_at(start), slots.slot_at(Time(end.0 - 1)));
        if first < base || last >= slots.end() {
            return None;
        }
        let (from, to) = ((first - base) as usize, (last - base) as usize);
        if from == to {
            return Some(self.slot(from) * ms.unsigned_abs() as u128);
        }
        let head = slots.start_of(first + 1).since(start).0.unsigned_abs();
        let tail = end.since(slots.start_of(last)).0.unsigned_abs();
        Some(
            self.slot(from) * u128::from(head)
                + self.range(from + 1, to) * len.unsigned_abs() as u128
                + self.slot(to) * u128::from(tail),
        )
    }

    /// Whole slots of a run that starts on a boundary, and the milliseconds in its last slot.
    fn split(&self, ms: i64) -> (usize, u128) {
        let len = self.pool.slots.slot_len().0;
        ((ms / len) as usize, (ms % len).unsigned_abs().into())
    }

    /// For each chunk that holds starts among slots `first..=last`: a lower bound of the raw
    /// price of any of them.
    fn bounds(&mut self, first: i64, last: i64, ms: i64) -> BinaryHeap<Reverse<(u128, usize)>> {
        let slots = &self.pool.slots;
        if first > last {
            return BinaryHeap::new();
        }
        let (whole, tail) = self.split(ms);
        let len = u128::from(slots.slot_len().0.unsigned_abs());
        let first = (first - slots.first()) as usize / CHUNK;
        let last = (last - slots.first()) as usize / CHUNK;
        let end = (slots.end() - slots.first()) as usize / CHUNK;
        // Chunks that every start of a chunk covers wholly, and all that any of them touches.
        let covered = (whole / CHUNK).saturating_sub(1);
        let touched = whole.div_ceil(CHUNK);
        let upto = (last + touched + 1).min(end);
        let (weights, units) = (&self.pool.weights, &self.units);
        let least: Vec<LowestPrice> = (first..upto)
            .map(|c| slots.least(c, weights, units, self.pricing, &mut self.sums))
            .collect();
        let mut sums = Vec::with_capacity(upto - first + 1);
        let mut sum = 0;
        sums.push(0);
        for chunk in &least {
            sum += chunk.all;
            sums.push(sum);
        }
        let mut heap = Vec::with_capacity(last - first + 1);
        for c in first..=last {
            let at = c - first;
            let inner_end = (at + 1 + covered).min(upto - first);
            let inner = sums[inner_end] - sums[(at + 1).min(inner_end)];
            let edge = (whole - covered * CHUNK) as u128;
            let near = (at + touched + 1).min(upto - first);
            let cheapest = least[at..near].iter().map(|chunk| chunk.each).min().unwrap_or(0);
            heap.push(Reverse((inner * len + cheapest * (edge * len + tail), c)));
        }
        BinaryHeap::from(heap)
    }

    /// Every start of a chunk among slots `first..=last`, with its raw price.
    fn open(&mut self, chunk: usize, first: i64, last: i64, ms: i64, mut found: impl FnMut(Found)) {
        let slots = &self.pool.slots;
        let base = slots.first();
        let (whole, tail) = self.split(ms);
        let len = u128::from(slots.slot_len().0.unsigned_abs());
        let from = ((first - base) as usize).max(chunk * CHUNK);
        let to = ((last - base) as usize).min(chunk * CHUNK + CHUNK - 1);
        if from > to {
            return;
        }
        let limit = (slots.end() - base) as usize;
        let mut sum = self.range(from, from + whole);
        for offset in from..=to {
            let end = offset + whole;
            let last_slot = if end < limit { self.slot(end) } else { 0 };
            let start = slots.start_of(base + offset as i64);
            found(Found { raw: sum * len + last_slot * tail, start });
            sum = sum + last_slot - self.slot(offset);
        }
    }
}
