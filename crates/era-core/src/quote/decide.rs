//! The decision on a bid: which alternative, where, when, at what price.

use std::cmp::Reverse;

use super::decision::{Decision, Notes};
use super::places::{places, starts_of};
use super::{MenuLine, rearrange};
use crate::bid::{Bid, Request, units_in_range};
use crate::cluster::Purpose;
use crate::job::Plan;
use crate::market::Weights;
use crate::refusal::Refusal;
use crate::search::Found;
use crate::state::State;
use crate::units::{Money, Time, UserId};
use crate::usage::Usage;

/// Decides on a bid. Refuses, or returns what maximises value minus price.
pub(crate) fn decide(
    state: &State,
    bid: &Bid,
    now: Time,
    with_seats: bool,
) -> Result<Decision, Refusal> {
    decide_noting(state, bid, now, with_seats, &mut Notes::default())
}

/// The same, noting what was found on the way.
pub(super) fn decide_noting(
    state: &State,
    bid: &Bid,
    now: Time,
    with_seats: bool,
    notes: &mut Notes,
) -> Result<Decision, Refusal> {
    bid.check(now, state.settings.horizon)?;
    state.accounts.user(bid.user)?;
    for request in bid.one_of.iter().flat_map(|a| &a.all_of) {
        check_request(state, bid.user, request)?;
    }
    // The reason that is told is that of the alternative that came nearest.
    let mut refusal = None;
    let mut best: Option<(Decision, Money)> = None;
    for (index, alternative) in bid.one_of.iter().enumerate() {
        let requests = &alternative.all_of[..];
        let could_fit = requests.iter().try_for_each(|r| check_gang(state, bid.user, r));
        let found = could_fit.and_then(|()| match requests {
            [request] => single(state, bid, (index, request), now, with_seats, notes),
            requests => several(state, bid, index, requests, now),
        });
        match found {
            Ok((decision, worth)) => {
                let better = best.as_ref().is_none_or(|(b, w)| decision.merit(worth) > b.merit(*w));
                if better {
                    best = Some((decision, worth));
                }
            }
            Err(r) => refusal = Some(nearer(refusal, r)),
        }
    }
    let Some((decision, worth)) = best else { return Err(refusal.unwrap_or(Refusal::NoRoom)) };
    let price = decision.price();
    if price > worth {
        return Err(Refusal::TooDear { price, value: worth });
    }
    Ok(decision)
}

/// Of two refusals the one that came nearer, or else the first.
fn nearer(a: Option<Refusal>, b: Refusal) -> Refusal {
    let came = |refusal: &Refusal| match refusal {
        Refusal::GangNeverFits { .. } => 0,
        Refusal::NoRoom => 1,
        _ => 2,
    };
    match a {
        Some(a) if came(&a) >= came(&b) => a,
        _ => b,
    }
}

/// What no time and no price could mend.
fn check_request(state: &State, user: UserId, request: &Request) -> Result<(), Refusal> {
    if !units_in_range(request) {
        return Err(Refusal::TooLarge);
    }
    state.cluster.check_request(&state.eligibility(request, user, Purpose::Promise))?;
    Usage::check_size(&state.accounts, user, request.units())
}

/// What no other time could mend, though a smaller gang could.
fn check_gang(state: &State, user: UserId, request: &Request) -> Result<(), Refusal> {
    state.cluster.check_gang(&state.eligibility(request, user, Purpose::Promise), request.shape)
}

/// The best start of one request in any pool.
fn single(
    state: &State,
    bid: &Bid,
    (alternative, request): (usize, &Request),
    now: Time,
    with_seats: bool,
    notes: &mut Notes,
) -> Result<(Decision, Money), Refusal> {
    let (from, to) = starts_of(state, request, now, now);
    let places = places(state, bid.user, request, (from, to))?;
    // Prices are compared as they are before rounding, here as within a search.
    let merit = |found: Found, worth: Money| {
        let gain = Weights::raw_of(worth) as i128 - found.raw as i128;
        (gain, Reverse(found.raw), Reverse(found.start))
    };
    let mut best: Option<(Found, Decision, Money)> = None;
    for place in &places {
        let search = place.search(state, bid.user, request, now);
        // The value is the same for all starts of a step, so the cheapest of each will do.
        let mut step_from = from;
        for step in bid.value.steps() {
            let step_to = to.min(step.by - request.duration);
            if let Some(found) = search.cheapest(step_from, step_to) {
                let price = Weights::price(found.raw).ok_or(Refusal::TooLarge)?;
                let better =
                    best.as_ref().is_none_or(|(b, _, w)| merit(found, step.worth) > merit(*b, *w));
                if better {
                    let plan = place.plan(request, found, Vec::new());
                    let decision =
                        Decision { alternative, parts: vec![(plan, price)], moves: Vec::new() };
                    best = Some((found, decision, step.worth));
                }
            }
            step_from = step_from.max(Time(step_to.0.saturating_add(1)));
        }
    }
    let Some((_, mut decision, worth)) = best else {
        let mut own = Notes::default();
        let rearranged = rearrange::rearrange(state, bid, (alternative, request), now, &mut own);
        // Counter-offers are made to the first alternative.
        if alternative == 0 {
            *notes = own;
        }
        return rearranged;
    };
    if with_seats {
        let plan = &mut decision.parts[0].0;
        let place = places.iter().find(|p| p.pool.pool.name == plan.pool).ok_or(Refusal::NoRoom)?;
        let search = place.search(state, bid.user, request, now);
        let gang = search.gang(plan.from);
        plan.seats = gang.place(place.pool, state.choice()).ok_or(Refusal::NoRoom)?;
    }
    Ok((decision, worth))
}

/// Several requests together: one after the other, each at its cheapest start beside those
/// before it. A heuristic: it may refuse what a cleverer order would place, never the reverse.
fn several(
    state: &State,
    bid: &Bid,
    alternative: usize,
    requests: &[Request],
    now: Time,
) -> Result<(Decision, Money), Refusal> {
    let mut best: Option<(Decision, Money)> = None;
    let mut refusal = None;
    for step in bid.value.steps() {
        match together(state, bid.user, alternative, requests, now, step.by) {
            Ok(decision) => {
                let better =
                    best.as_ref().is_none_or(|(b, w)| decision.merit(step.worth) > b.merit(*w));
                if better {
                    best = Some((decision, step.worth));
                }
            }
            Err(r) => refusal = Some(nearer(refusal, r)),
        }
    }
    best.ok_or(refusal.unwrap_or(Refusal::NoRoom))
}

/// All requests, finished by `by`.
fn together(
    state: &State,
    user: UserId,
    alternative: usize,
    requests: &[Request],
    now: Time,
    by: Time,
) -> Result<Decision, Refusal> {
    // A scratch state: what earlier requests take is not there for later ones.
    let mut scratch = state.clone();
    let group = state.accounts.user(user)?.group;
    let mut parts: Vec<(Plan, Money)> = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let finished = request.after.iter().filter_map(|i| parts.get(usize::from(*i)));
        let after = finished.map(|(plan, _)| plan.to).max().unwrap_or(now);
        let (from, to) = starts_of(state, request, now, after);
        let to = to.min(by - request.duration);
        let places = places(&scratch, user, request, (from, to))?;
        let cheapest = places
            .iter()
            .filter_map(|place| {
                let search = place.search(&scratch, user, request, now);
                search.cheapest(from, to).map(|found| (found, place))
            })
            .min_by_key(|(found, _)| *found);
        let (found, place) = cheapest.ok_or(Refusal::NoRoom)?;
        let gang = place.search(&scratch, user, request, now).gang(found.start);
        let seats = gang.place(place.pool, state.choice()).ok_or(Refusal::NoRoom)?;
        let plan = place.plan(request, found, seats);
        let price = Weights::price(found.raw).ok_or(Refusal::TooLarge)?;
        drop(places);
        scratch.set_aside((user, group), index as u16, request, &plan);
        parts.push((plan, price));
    }
    Ok(Decision { alternative, parts, moves: Vec::new() })
}

/// The flexibility menu of a request.
pub(super) fn menu(
    state: &State,
    user: UserId,
    request: &Request,
    now: Time,
) -> Result<Vec<MenuLine>, Refusal> {
    state.accounts.user(user)?;
    check_request(state, user, request)?;
    check_gang(state, user, request)?;
    let from = request.window.earliest.max(now);
    let to = now + state.settings.horizon - request.duration;
    let places = places(state, user, request, (from, to))?;
    let mut lines: Vec<(Time, u128)> = Vec::new();
    for place in &places {
        let search = place.search(state, user, request, now);
        search.each_with_room(from, to, |found| lines.push((found.start, found.raw)));
    }
    lines.sort_unstable();
    let mut menu = Vec::new();
    let mut cheapest = u128::MAX;
    for (start, raw) in lines.into_iter().filter(|(_, raw)| Weights::price(*raw).is_some()) {
        if raw < cheapest {
            cheapest = raw;
            let price = Weights::price(raw).ok_or(Refusal::TooLarge)?;
            if menu.last().is_none_or(|last: &MenuLine| price < last.price) {
                menu.push(MenuLine { by: start + request.duration, price, start });
            }
        }
    }
    Ok(menu)
}
