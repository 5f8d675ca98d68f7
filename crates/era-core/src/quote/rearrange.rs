//! The second try: when the plain search finds no room, promises that have not started may move
//! to other nodes. Their starts stay as they were told.
//!
//! One step deep and greedy: a node is cleared for a replica by moving the fewest promises off
//! it, each to a seat that is free as things are. It may miss what a deeper search would find.
//! Which starts may be served so is said in `gap`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::counter::nearest_of;
use super::decision::{Decision, Move, Notes};
use super::gap::{Bar, CLEARINGS_MAX, Gap};
use super::places::{places, window};
use crate::bid::{Bid, Request, Shape};
use crate::calendar::{Booking, BookingHolder, Calendar, Layer, NodeCalendar, Seat};
use crate::cluster::{Eligibility, Purpose};
use crate::market::Weights;
use crate::placement::Gang;
use crate::refusal::Refusal;
use crate::search::{Found, Search};
use crate::state::State;
use crate::units::{HoldId, Money, Name, NodeId, Time, UserId};

/// How many nodes are tried for each start at most, and at least.
const NODES_MAX: usize = 32;
const NODES_MIN: usize = 8;
/// Nodes that are tried times nodes that are looked at for each.
const LOOKS_MAX: usize = 8192;

/// Room for a request by moving others, at the best of the starts that may be served so.
pub(super) fn rearrange(
    state: &State,
    bid: &Bid,
    (alternative, request): (usize, &Request),
    now: Time,
    notes: &mut Notes,
) -> Result<(Decision, Money), Refusal> {
    let simple = matches!(request.shape, Shape::Replicas { .. })
        && request.constraints.same.is_none()
        && request.constraints.per_node_max.is_none();
    if !simple {
        return Err(Refusal::NoRoom);
    }
    let (from, to) = window(state, request, now);
    // Nobody wants a run that ends when it is worth nothing any more.
    let last_step = bid.value.steps().last().map_or(Time::MIN, |step| step.by);
    let to = to.min(last_step - request.duration);
    if from > to {
        return Err(Refusal::NoRoom);
    }
    // Around the window as well: what is there decides which starts may be served.
    let whole = (now, now + state.settings.horizon - request.duration);
    let places = places(state, bid.user, request, whole)?;
    let searches: Vec<Search<'_>> =
        places.iter().map(|place| place.search(state, bid.user, request, now)).collect();
    let gaps: Vec<Gap<'_>> =
        searches.iter().map(|search| Gap::around(search, (from, to), whole.1)).collect();
    let nearest = Bar::nearest(&gaps);
    if (from, to) == window(state, request, now) {
        let ends = gaps.iter().flat_map(|gap| gap.bar.ends());
        notes.window = Some(nearest_of(ends, request, (from, to)));
    }
    let mut tries = Vec::new();
    for (place, gap) in gaps.iter().enumerate() {
        let bars = [&gap.bar, &nearest];
        let may_serve = |found: &Found| bars.iter().all(|bar| bar.lets(*found, bid, request));
        for found in gap.tries(bid, may_serve) {
            let worth = bid.value.at(found.start + request.duration);
            let Some(price) = Weights::price(found.raw).filter(|price| *price <= worth) else {
                continue;
            };
            let left = Weights::raw_of(worth) - found.raw;
            tries.push((Reverse(left), found, place, price, worth));
        }
    }
    tries.sort_unstable();
    for (_, found, place, price, worth) in tries {
        let (place, search) = (&places[place], &searches[place]);
        if let Some((seats, moves)) = make_room(state, search, &place.pool.pool.name, found.start) {
            let plan = place.plan(request, found, seats);
            return Ok((Decision { alternative, parts: vec![(plan, price)], moves }, worth));
        }
    }
    Err(Refusal::NoRoom)
}

/// Seats for the gang at a start, and the moves that free them.
fn make_room(
    state: &State,
    search: &Search<'_>,
    pool: &Name,
    start: Time,
) -> Option<(Vec<Seat>, Vec<Move>)> {
    let gang = search.gang(start);
    let wanted = search.request.shape.promised();
    let calendar = state.calendar.clone();
    let mut scratch = Scratch { state, calendar, moves: Vec::new(), budget: CLEARINGS_MAX };
    let mut seats = gang.place_some(search.pool, wanted, state.choice());
    let nodes = scratch.nodes_by_load(&gang, pool, &seats);
    // Whoever has room has seats of the gang now. Of the others one at least must be cleared:
    // most tries end here, before anything is copied.
    let seated = |node: &NodeId| seats.iter().any(|seat| seat.node == *node);
    let may_be_cleared =
        |node: &NodeId| scratch.what_must_go(&gang, pool, *node, search.now).is_some();
    if !nodes.iter().any(|node| seated(node) || may_be_cleared(node)) {
        return None;
    }
    for (rank, seat) in seats.iter().enumerate() {
        scratch.seat(&gang, rank, *seat);
    }
    for node in nodes {
        while seats.len() < wanted as usize {
            let Some(seat) = scratch.clear(&gang, pool, node, seats.len(), search.now) else {
                break;
            };
            seats.push(seat);
        }
    }
    scratch.moves.retain(|m| m.from != m.to);
    (seats.len() == wanted as usize).then_some((seats, scratch.moves))
}

struct Scratch<'a> {
    state: &'a State,
    calendar: Calendar,
    moves: Vec<Move>,
    /// How many nodes may still be cleared for trial.
    budget: u32,
}

/// A holder that nobody else has: the scratch calendar is thrown away.
fn newcomer(rank: usize) -> BookingHolder {
    BookingHolder::Hold { hold: HoldId(u64::MAX), part: 0, rank: rank as u32 }
}

impl Scratch<'_> {
    fn seat(&mut self, gang: &Gang<'_>, rank: usize, seat: Seat) {
        let each = &gang.request.each;
        self.calendar.book(newcomer(rank), seat, each, Layer::Firm, gang.from, gang.to);
    }

    /// Some eligible nodes: first those without a seat of the gang, and of these the ones with
    /// fewest bookings during the run.
    fn nodes_by_load(&self, gang: &Gang<'_>, pool: &Name, seats: &[Seat]) -> Vec<NodeId> {
        let Some(pool) = self.calendar.pool(pool) else { return Vec::new() };
        let overlapping = |b: &Booking| b.from < gang.to && gang.from < b.to;
        let seated: BTreeSet<NodeId> = seats.iter().map(|seat| seat.node).collect();
        // Bookings stand in the order of their starts.
        let load = |node_calendar: &NodeCalendar| {
            let bookings = node_calendar.bookings().iter().take_while(|b| b.from < gang.to);
            bookings.filter(|b| overlapping(b)).count()
        };
        let mut nodes: Vec<_> = pool
            .nodes
            .iter()
            .filter(|l| gang.eligible.allows(&l.node))
            .map(|l| (seated.contains(&l.node.id), load(l), l.node.id))
            .collect();
        nodes.sort_unstable();
        nodes.truncate((LOOKS_MAX / pool.nodes.len().max(1)).clamp(NODES_MIN, NODES_MAX));
        nodes.into_iter().map(|(_, _, node)| node).collect()
    }

    /// Seats one replica on a node by moving promises off it, or changes nothing.
    fn clear(
        &mut self,
        gang: &Gang<'_>,
        pool: &Name,
        node: NodeId,
        rank: usize,
        now: Time,
    ) -> Option<Seat> {
        let (gpus, removed) = self.what_must_go(gang, pool, node, now)?;
        self.budget = self.budget.checked_sub(1)?;
        let before = (self.calendar.clone(), self.moves.clone());
        let seat = Seat { node, gpus };
        for booking in &removed {
            self.calendar.unbook(booking.holder, node);
        }
        self.seat(gang, rank, seat);
        for booking in removed {
            let from = Seat { node, gpus: booking.take.gpus };
            let Some(to) = self.reseat(pool, &booking, gang) else {
                (self.calendar, self.moves) = before;
                return None;
            };
            // What was moved before moves on from where it really sits.
            match self.moves.iter_mut().find(|m| m.holder == booking.holder) {
                Some(earlier) => earlier.to = to,
                None => self.moves.push(Move { holder: booking.holder, from, to }),
            }
        }
        Some(seat)
    }

    /// The promises to be moved off a node for a replica to fit, smallest first, and the GPUs
    /// that it then gets. Each of them has a seat elsewhere as things are. Most nodes end here,
    /// and nothing was copied but one node's calendar.
    fn what_must_go(
        &self,
        gang: &Gang<'_>,
        pool: &Name,
        node: NodeId,
        now: Time,
    ) -> Option<(u64, Vec<Arc<Booking>>)> {
        let each = &gang.request.each;
        let node_calendar = self.calendar.node(node)?;
        let mut movable: Vec<&Arc<Booking>> = node_calendar
            .bookings()
            .iter()
            .filter(|b| b.from < gang.to && gang.from < b.to && b.from > now)
            .filter(|b| self.request_of(b.holder).is_some())
            .collect();
        movable.sort_by_key(|b| (b.take.gpus.count_ones(), b.from, b.holder));
        let mut emptied = NodeCalendar::clone(node_calendar);
        let mut removed = Vec::new();
        let mut movable = movable.into_iter();
        loop {
            let taken = emptied.peak(gang.from, gang.to, gang.soft_to);
            if emptied.count(&taken, each, 1) > 0 {
                return emptied.choose_gpus(&taken, each).map(|gpus| (gpus, removed));
            }
            let next = movable.find(|b| self.has_other_seat(pool, b, gang))?;
            emptied.remove(next.holder);
            removed.push(next.clone());
        }
    }

    fn has_other_seat(&self, pool: &Name, booking: &Booking, gang: &Gang<'_>) -> bool {
        let Some((request, user)) = self.request_of(booking.holder) else { return false };
        let one = Request { shape: Shape::gang(1), ..request.clone() };
        let moved = self.moved(&one, request, user, booking, gang);
        self.calendar.pool(pool).is_some_and(|pool| moved.fits(pool))
    }

    /// One replica of a promise, for the time that it was told.
    fn moved<'a>(
        &self,
        one: &'a Request,
        whole: &Request,
        user: UserId,
        booking: &Booking,
        gang: &Gang<'_>,
    ) -> Gang<'a> {
        let eligible = Eligibility {
            gpus: whole.units()[2],
            ..self.state.eligibility(one, user, Purpose::Promise)
        };
        let (from, to, soft_to) = (booking.from, booking.to, gang.soft_to);
        Gang { request: one, eligible, from, to, soft_to }
    }

    /// Seats a promise that was moved somewhere else for the time that it was told.
    fn reseat(&mut self, pool: &Name, booking: &Booking, gang: &Gang<'_>) -> Option<Seat> {
        let (request, user) = self.request_of(booking.holder)?;
        let request = request.clone();
        let one = Request { shape: Shape::gang(1), ..request.clone() };
        let moved = self.moved(&one, &request, user, booking, gang);
        let seats = moved.place_some(self.calendar.pool(pool)?, 1, self.state.choice());
        let seat = *seats.first()?;
        self.calendar.book(
            booking.holder,
            seat,
            &request.each,
            Layer::Firm,
            booking.from,
            booking.to,
        );
        Some(seat)
    }

    /// The request of a promise or hold that may move: like replicas without a demanded topology.
    fn request_of(&self, holder: BookingHolder) -> Option<(&Request, UserId)> {
        let (request, user) = match holder {
            BookingHolder::Job { job, part, .. } => {
                let job = self.state.jobs.get(&job)?;
                job.promise()?;
                (&*job.parts.get(usize::from(part))?.request, job.user)
            }
            BookingHolder::Hold { hold, part, .. } => {
                let hold = self.state.holds.get(&hold)?;
                (hold.requests().get(usize::from(part))?, hold.bid.user)
            }
            BookingHolder::Maintenance => return None,
        };
        let free = matches!(request.shape, Shape::Replicas { .. })
            && request.constraints.same.is_none()
            && request.constraints.per_node_max.is_none();
        free.then_some((request, user))
    }
}
