//! Counter-offers: what a refused bid would have to change to be accepted.

use serde::{Deserialize, Serialize};

use super::decide::{cheapest, window};
use crate::bid::{Bid, Request, Shape};
use crate::refusal::Refusal;
use crate::state::State;
use crate::units::{Money, Span, Time, UserId};

/// What would be possible instead. Each stands alone: the rest of the bid as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterOffers {
    /// The least value that would win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Money>,
    /// The nearest run that fits, and its price: a later deadline, or an earlier start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Offer>,
    /// The most replicas (or GPUs of a total) that fit in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, Offer)>,
    /// The longest duration that fits in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<(Span, Offer)>,
}

/// A run that would be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// From when.
    pub start: Time,
    /// Until when.
    pub finish: Time,
    /// For how much.
    pub price: Money,
}

/// What would make the bid's first alternative possible. Bids of several requests get the price
/// only: which of them should give way is for the user to say.
pub(crate) fn counter_offers(
    state: &State,
    bid: &Bid,
    now: Time,
    refusal: &Refusal,
) -> CounterOffers {
    let mut counter = CounterOffers::default();
    if let Refusal::TooDear { price, .. } = refusal {
        counter.value = Some(*price);
    }
    let single = match &bid.one_of[..] {
        [alternative, ..] => match &alternative.all_of[..] {
            [request] => Some(request),
            _ => None,
        },
        [] => None,
    };
    let possible = matches!(
        refusal,
        Refusal::NoRoom | Refusal::QuotaConcurrent { .. } | Refusal::LevelShare { .. }
    );
    if let (Some(request), true) = (single, possible) {
        counter.window = nearest_window(state, bid.user, request, now);
        counter.size = largest(state, bid.user, request, now);
        counter.duration = longest(state, bid.user, request, now);
    }
    counter
}

fn offer(
    state: &State,
    user: UserId,
    request: &Request,
    now: Time,
    range: (Time, Time),
) -> Option<Offer> {
    let (found, price) = cheapest(state, user, request, now, range)?;
    Some(Offer { start: found.start, finish: found.start + request.duration, price })
}

/// The earliest run after the window, or the latest before it, whichever is nearer.
fn nearest_window(state: &State, user: UserId, request: &Request, now: Time) -> Option<Offer> {
    let (from, to) = window(state, request, now);
    let horizon = now + state.settings.horizon - request.duration;
    // Double the reach until something fits: the first reach that has room holds the nearest,
    // and halving finds it to the slot.
    let slot = state.settings.slot;
    let reach_of = |after: bool, reach: Span| match after {
        true => (Time(to.0 + 1), (to + reach).min(horizon)),
        false => ((from - reach).max(now), Time(from.0 - 1)),
    };
    let nearest = |after: bool| {
        let mut reach = slot;
        let limit = state.settings.horizon;
        while offer(state, user, request, now, reach_of(after, reach)).is_none() {
            if reach >= limit {
                return None;
            }
            reach = Span((reach.0 * 2).min(limit.0));
        }
        let (mut short, mut long) = (reach.0 / 2 / slot.0, slots_in(reach, slot));
        while short + 1 < long {
            let middle = short + (long - short) / 2;
            match offer(state, user, request, now, reach_of(after, Span(middle * slot.0))) {
                Some(_) => long = middle,
                None => short = middle,
            }
        }
        offer(state, user, request, now, reach_of(after, Span(long * slot.0)))
    };
    let later = nearest(true);
    let earlier = if from > now { nearest(false) } else { None };
    match (later, earlier) {
        (Some(l), Some(e)) if from.since(e.start) <= l.start.since(to) => Some(e),
        (l, e) => l.or(e),
    }
}

/// The most replicas that fit: room for more is room for fewer, so halving finds it.
fn largest(state: &State, user: UserId, request: &Request, now: Time) -> Option<(u32, Offer)> {
    let range = window(state, request, now);
    let sized = |n: u32| Request {
        shape: match request.shape {
            Shape::Replicas { .. } => Shape::gang(n),
            Shape::Gpus { .. } => Shape::Gpus { total: n },
        },
        ..request.clone()
    };
    let (mut fits, mut fails) = (0, request.shape.promised());
    let mut best = None;
    while fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        match offer(state, user, &sized(middle), now, range) {
            Some(found) => (fits, best) = (middle, Some((middle, found))),
            None => fails = middle,
        }
    }
    best
}

/// The longest duration that fits, in whole slots.
fn longest(state: &State, user: UserId, request: &Request, now: Time) -> Option<(Span, Offer)> {
    let slot = state.settings.slot;
    let (mut fits, mut fails) = (0, slots_in(request.duration, slot));
    let mut best = None;
    while fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        let shorter = Request { duration: Span(middle * slot.0), ..request.clone() };
        let range = window(state, &shorter, now);
        match offer(state, user, &shorter, now, range) {
            Some(found) => (fits, best) = (middle, Some((shorter.duration, found))),
            None => fails = middle,
        }
    }
    best
}

/// Slots that a span touches.
fn slots_in(span: Span, slot: Span) -> i64 {
    (span.0 + slot.0 - 1) / slot.0
}
