//! The second try: when the plain search finds no room, promises that have not started may move
//! to other nodes. Their starts stay as they were told.
//!
//! One step deep and greedy: a node is cleared for a replica by moving the fewest promises off
//! it, each to a seat that is free as things are. It may miss what a deeper search would find.

use std::cmp::Reverse;
use std::sync::Arc;

use super::decide::{Decision, Move, plan_of, search_in, search_places, window};
use crate::bid::{Bid, Request, Shape};
use crate::calendar::{Booking, Calendar, Holder, Lane, Layer, Seat};
use crate::cluster::{Eligibility, Purpose};
use crate::market::{StartRule, Weights};
use crate::placement::Gang;
use crate::refusal::Refusal;
use crate::search::{Found, Search};
use crate::starts::Starts;
use crate::state::State;
use crate::units::{HoldId, Money, Name, NodeId, Time, UserId};

/// How many starts are tried.
const STARTS_MAX: usize = 8;
/// How many nodes are tried for each start.
const NODES_MAX: usize = 32;

/// How many nodes are cleared for trial in all.
const CLEARINGS_MAX: u32 = 12;

/// Room for a request by moving others, at the cheapest of a few starts.
pub(super) fn rearrange(
    state: &State,
    bid: &Bid,
    alternative: usize,
    request: &Request,
    now: Time,
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
    let places = search_places(state, bid.user, request, (from, to))?;
    let search_at =
        |place: usize| search_in(state, bid.user, request, now, places[place].0, &places[place].1);
    // Which starts are tried does not depend on the value; of those that could be had, the value
    // picks as it does among starts with room.
    let mut tries = Vec::new();
    for (place, (_, allowed)) in places.iter().enumerate() {
        for found in starts_to_try(&search_at(place), allowed, from, to) {
            let worth = bid.value.at(found.start + request.duration);
            let Some(price) = Weights::price(found.raw).filter(|price| *price <= worth) else {
                continue;
            };
            let left = Weights::raw_of(worth) - found.raw;
            tries.push((Reverse(left), found, place, price, worth));
        }
    }
    tries.sort_unstable();
    let mut budget = CLEARINGS_MAX;
    for (_, found, place, price, worth) in tries {
        let (pool, search) = (places[place].0, search_at(place));
        if let Some((seats, moves)) =
            make_room(state, &search, &pool.pool.name, found.start, &mut budget)
        {
            let plan = plan_of(request, pool, found, seats);
            return Ok((Decision { alternative, parts: vec![(plan, price)], moves }, worth));
        }
    }
    Err(Refusal::NoRoom)
}

/// A few starts spread over the window, cheapest first.
fn starts_to_try(search: &Search<'_>, allowed: &Starts, from: Time, to: Time) -> Vec<Found> {
    let slot = search.pool.slots.slot_len();
    let (first, last) = (from.ceil_to(slot), to.floor_to(slot));
    let mut starts = Vec::new();
    if from == search.now {
        starts.push(from);
    }
    let now_only = search.calendar.market().mechanism().starts() == StartRule::NowOnly;
    if first <= last && !now_only {
        let slots = last.since(first).0 / slot.0;
        let stride = (slots / STARTS_MAX as i64).max(1);
        starts.extend((0..=slots).step_by(stride as usize).map(|n| Time(first.0 + n * slot.0)));
    }
    let mut found: Vec<Found> = starts
        .into_iter()
        .filter(|start| allowed.contains(*start))
        .filter_map(|start| search.price_at(start).map(|raw| Found { raw, start }))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.truncate(STARTS_MAX);
    found
}

/// Seats for the gang at a start, and the moves that free them.
fn make_room(
    state: &State,
    search: &Search<'_>,
    pool: &Name,
    start: Time,
    budget: &mut u32,
) -> Option<(Vec<Seat>, Vec<Move>)> {
    let gang = search.gang(start);
    let wanted = search.request.shape.promised();
    let calendar = state.calendar.clone();
    let mut scratch = Scratch { state, calendar, moves: Vec::new(), budget: *budget };
    let mut seats = gang.place_some(scratch.calendar.pool(pool)?, wanted, state.choice());
    for (rank, seat) in seats.iter().enumerate() {
        scratch.seat(&gang, rank, *seat);
    }
    let mut nodes = scratch.nodes_by_load(&gang, pool);
    nodes.truncate(NODES_MAX);
    for node in nodes {
        while seats.len() < wanted as usize {
            let Some(seat) = scratch.clear(&gang, pool, node, seats.len(), search.now) else {
                break;
            };
            seats.push(seat);
        }
    }
    *budget = scratch.budget;
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
fn newcomer(rank: usize) -> Holder {
    Holder::Hold { hold: HoldId(u64::MAX), part: 0, rank: rank as u32 }
}

impl Scratch<'_> {
    fn seat(&mut self, gang: &Gang<'_>, rank: usize, seat: Seat) {
        let each = &gang.request.each;
        self.calendar.book(newcomer(rank), seat, each, Layer::Firm, gang.from, gang.to);
    }

    /// Eligible nodes, those with fewest bookings during the run first.
    fn nodes_by_load(&self, gang: &Gang<'_>, pool: &Name) -> Vec<NodeId> {
        let Some(pool) = self.calendar.pool(pool) else { return Vec::new() };
        let overlapping = |b: &Booking| b.from < gang.to && gang.from < b.to;
        let mut nodes: Vec<_> = pool
            .lanes
            .iter()
            .filter(|l| gang.eligible.allows(&l.node))
            .map(|l| (l.bookings().iter().filter(|b| overlapping(b)).count(), l.node.id))
            .collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|(_, node)| node).collect()
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
    /// and nothing was copied but one lane.
    fn what_must_go(
        &self,
        gang: &Gang<'_>,
        pool: &Name,
        node: NodeId,
        now: Time,
    ) -> Option<(u64, Vec<Arc<Booking>>)> {
        let each = &gang.request.each;
        let lane = self.calendar.lane(node)?;
        let mut movable: Vec<&Arc<Booking>> = lane
            .bookings()
            .iter()
            .filter(|b| b.from < gang.to && gang.from < b.to && b.from > now)
            .filter(|b| self.request_of(b.holder).is_some())
            .collect();
        movable.sort_by_key(|b| (b.take.gpus.count_ones(), b.from, b.holder));
        let mut emptied = Lane::clone(lane);
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
    fn request_of(&self, holder: Holder) -> Option<(&Request, UserId)> {
        let (request, user) = match holder {
            Holder::Job { job, part, .. } => {
                let job = self.state.jobs.get(&job)?;
                job.promise()?;
                (&job.parts.get(usize::from(part))?.request, job.user)
            }
            Holder::Hold { hold, part, .. } => {
                let hold = self.state.holds.get(&hold)?;
                (hold.requests().get(usize::from(part))?, hold.bid.user)
            }
            Holder::Maintenance => return None,
        };
        let free = matches!(request.shape, Shape::Replicas { .. })
            && request.constraints.same.is_none()
            && request.constraints.per_node_max.is_none();
        free.then_some((request, user))
    }
}
