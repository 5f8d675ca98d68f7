//! Counter-offers: what a refused bid would have to change to be accepted.

use super::decision::Notes;
use super::places::{Place, cheapest, places, window};
use crate::bid::{Bid, Request, Shape};
use crate::ledger::Account;
use crate::market::Weights;
use crate::offer::{CounterOffers, Offer};
use crate::openings::Openings;
use crate::refusal::Refusal;
use crate::search::Found;
use crate::starts::Starts;
use crate::state::State;
use crate::units::{Span, Time, UserId};

impl CounterOffers {
    /// With the wallet of whoever asked, where that matters.
    fn beside(mut self, state: &State, user: UserId) -> CounterOffers {
        let balance = state.ledger.balance(Account::Wallet(user));
        let sized = self.size.map(|(_, offer)| offer);
        let shorter = self.duration.map(|(_, offer)| offer);
        let offers = [self.window, sized, shorter].into_iter().flatten().map(|offer| offer.price);
        let beyond = self.value.into_iter().chain(offers).any(|price| price > balance);
        self.wallet = beyond.then_some(balance);
        self
    }
}

/// What would make the bid's first alternative possible. Bids of several requests get the price
/// only: which of them should give way is for the user to say.
pub(crate) fn counter_offers(
    state: &State,
    bid: &Bid,
    now: Time,
    refusal: &Refusal,
) -> CounterOffers {
    counter_offers_by(state, bid, now, refusal, &Notes::default())
}

/// The same, with what was noted when the bid was refused.
pub(super) fn counter_offers_by(
    state: &State,
    bid: &Bid,
    now: Time,
    refusal: &Refusal,
    notes: &Notes,
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
    // Whatever is too large for a whole pool fits at no other time, and in no shorter run.
    if let (Some(request), Refusal::GangNeverFits { .. }) = (single, refusal) {
        counter.size = largest(state, bid.user, request, now);
    }
    if let (Some(request), true) = (single, possible) {
        let look = || nearest_window(state, bid.user, request, now);
        counter.window = notes.window.unwrap_or_else(look);
        counter.size = largest(state, bid.user, request, now);
        counter.duration = longest(state, bid.user, request, now);
    }
    counter.beside(state, bid.user)
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
    let mut ends = Vec::new();
    for place in &places(state, user, request, (now, latest)).ok()? {
        let search = place.search(state, user, request, now);
        let (earlier, later) = if search.is_simple() {
            let survey = search.survey(from, to, latest);
            (survey.before, survey.after)
        } else {
            let room = search.starts_with_room(now, latest);
            let later = search.first_with_room(&room, Time(to.0 + 1), latest);
            (search.last_with_room(&room, now, Time(from.0 - 1)), later)
        };
        let found = |start| search.price_at(start).map(|raw| Found { raw, start });
        ends.extend([later, earlier].into_iter().flatten().filter_map(found));
    }
    nearest_of(ends.into_iter(), request, (from, to))
}

/// Of starts outside a window the nearest, the cheapest among equals.
pub(super) fn nearest_of(
    starts: impl Iterator<Item = Found>,
    request: &Request,
    (from, to): (Time, Time),
) -> Option<Offer> {
    let mut nearest: Option<(Span, Offer)> = None;
    for Found { raw, start } in starts {
        let Some(price) = Weights::price(raw) else { continue };
        let distance = if start > to { start.since(to) } else { from.since(start) };
        if nearest.as_ref().is_none_or(|(d, o)| (distance, price) < (*d, o.price)) {
            nearest = Some((distance, Offer { start, finish: start + request.duration, price }));
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
        let places = places(state, user, &one, range).ok()?;
        let counts = places.iter().map(|place| {
            let search = place.search(state, user, request, now);
            search.most_replicas(&search.by_slot(range.0, range.1), range.0, range.1)
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
    // Whatever the duration, all runs lie in the window: what is free there is read once.
    let (from, to) = window(state, request, now);
    let openings = openings(state, user, request, now, (from, to));
    let fits = |slots: i64| has_room(state, user, &shorter(slots), now, openings.as_deref());
    let (mut most, mut fails) = (1, slots_in(request.duration, slot));
    if fails <= most || !fits(most) {
        return None;
    }
    while most + 1 < fails {
        let middle = most + (fails - most) / 2;
        if fits(middle) {
            most = middle;
        } else {
            fails = middle;
        }
    }
    let request = shorter(most);
    let range = window(state, &request, now);
    offer(state, user, &request, now, range).map(|found| (request.duration, found))
}

/// What each pool of the calendar has free in a window, for requests of like replicas.
fn openings(
    state: &State,
    user: UserId,
    request: &Request,
    now: Time,
    (from, to): (Time, Time),
) -> Option<Vec<Openings>> {
    let of = |pool| {
        let place = Place { pool, allowed: Starts::All };
        let search = place.search(state, user, request, now);
        if search.is_simple() { search.openings(from, to) } else { None }
    };
    state.calendar.pools().iter().map(|pool| of(pool)).collect()
}

/// Whether a request has room anywhere in its window. `openings` tells what each pool has free
/// there, where that is known.
fn has_room(
    state: &State,
    user: UserId,
    request: &Request,
    now: Time,
    openings: Option<&[Openings]>,
) -> bool {
    let (from, to) = window(state, request, now);
    let Ok(places) = places(state, user, request, (from, to)) else { return false };
    places.iter().any(|place| {
        let search = place.search(state, user, request, now);
        let name = &place.pool.pool.name;
        let index = state.calendar.pools().iter().position(|p| p.pool.name == *name);
        match openings.zip(index).and_then(|(openings, index)| openings.get(index)) {
            Some(openings) => search.has_room_in(openings, from, to),
            None => {
                let room = search.starts_with_room(from, to);
                search.first_with_room(&room, from, to).is_some()
            }
        }
    })
}

/// Slots that a span touches.
fn slots_in(span: Span, slot: Span) -> i64 {
    (span.0 + slot.0 - 1) / slot.0
}
