//! Counter-offers: what a refused bid would have to change to be accepted.

use serde::{Deserialize, Serialize};

use super::decide::{cheapest, search_in, search_places, window};
use crate::bid::{Bid, Request, Shape};
use crate::market::Weights;
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
    let latest = now + state.settings.horizon - request.duration;
    let places = search_places(state, user, request, (now, latest)).ok()?;
    let mut nearest: Option<(Span, Offer)> = None;
    for (pool, allowed) in &places {
        let search = search_in(state, user, request, now, pool, allowed);
        let room = search.starts_with_room(now, latest);
        let later = search.first_with_room(&room, Time(to.0 + 1), latest);
        let earlier = search.last_with_room(&room, now, Time(from.0 - 1));
        let found = [later.map(|s| (s.since(to), s)), earlier.map(|s| (from.since(s), s))];
        for (distance, start) in found.into_iter().flatten() {
            let Some(price) = search.price_at(start).and_then(Weights::price) else { continue };
            let nearer = nearest.as_ref().is_none_or(|(d, o)| (distance, price) < (*d, o.price));
            if nearer {
                let finish = start + request.duration;
                nearest = Some((distance, Offer { start, finish, price }));
            }
        }
    }
    nearest.map(|(_, offer)| offer)
}

/// The most replicas that fit.
fn largest(state: &State, user: UserId, request: &Request, now: Time) -> Option<(u32, Offer)> {
    let range = window(state, request, now);
    let sized = |n: u32| Request {
        shape: match request.shape {
            Shape::Replicas { .. } => Shape::gang(n),
            Shape::Gpus { .. } => Shape::Gpus { total: n },
        },
        ..request.clone()
    };
    let wanted = request.shape.promised();
    let simple =
        matches!(request.shape, Shape::Replicas { .. }) && request.constraints.same.is_none();
    // Like replicas are counted in one sweep; whatever quota or preemptible work leaves fewer,
    // halving finds.
    let mut upper = wanted;
    if simple && range.0 <= range.1 {
        let one = sized(1);
        let places = search_places(state, user, &one, range).ok()?;
        let counts = places.iter().map(|(pool, allowed)| {
            search_in(state, user, request, now, pool, allowed).most_replicas(range.0, range.1)
        });
        let most = counts.max().unwrap_or(0);
        if most == 0 {
            return None;
        }
        if most < wanted
            && let Some(found) = offer(state, user, &sized(most), now, range)
        {
            return Some((most, found));
        }
        upper = most.min(wanted);
    }
    let (mut fits, mut fails) = (0, upper);
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
    let shorter = |slots: i64| Request { duration: Span(slots * slot.0), ..request.clone() };
    let mut fails = slots_in(request.duration, slot);
    let mut fits = fails / 2;
    while fits > 0 && !has_room(state, user, &shorter(fits), now) {
        (fails, fits) = (fits, fits / 2);
    }
    while fits > 0 && fits + 1 < fails {
        let middle = fits + (fails - fits) / 2;
        if has_room(state, user, &shorter(middle), now) {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    if fits == 0 {
        return None;
    }
    let request = shorter(fits);
    let range = window(state, &request, now);
    offer(state, user, &request, now, range).map(|found| (request.duration, found))
}

/// Whether a request has room anywhere in its window.
fn has_room(state: &State, user: UserId, request: &Request, now: Time) -> bool {
    let (from, to) = window(state, request, now);
    let Ok(places) = search_places(state, user, request, (from, to)) else { return false };
    places.iter().any(|(pool, allowed)| {
        let search = search_in(state, user, request, now, pool, allowed);
        let room = search.starts_with_room(from, to);
        search.first_with_room(&room, from, to).is_some()
    })
}

/// Slots that a span touches.
fn slots_in(span: Span, slot: Span) -> i64 {
    (span.0 + slot.0 - 1) / slot.0
}
