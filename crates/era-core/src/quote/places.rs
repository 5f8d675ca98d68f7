//! Where and when a request may be searched for: its window, and in each pool that it may use the
//! starts that quotas and caps leave. Neither values nor other requests are known here.

use crate::bid::{Request, Window};
use crate::calendar::{PoolCalendar, Seat};
use crate::cluster::Purpose;
use crate::job::Plan;
use crate::market::Weights;
use crate::refusal::Refusal;
use crate::search::{Found, Search};
use crate::starts::Starts;
use crate::state::State;
use crate::units::{Money, Time, UserId};

/// The window of a request, clipped to now, the horizon and an earlier request's finish.
pub(super) fn starts_of(state: &State, request: &Request, now: Time, after: Time) -> (Time, Time) {
    let Window { earliest, deadline } = request.window;
    let deadline = deadline.min(now + state.settings.horizon);
    (earliest.max(now).max(after), deadline - request.duration)
}

/// The same, of a request by itself.
pub(super) fn window(state: &State, request: &Request, now: Time) -> (Time, Time) {
    starts_of(state, request, now, now)
}

/// A request in a pool, ready to be searched, and the starts that quotas and caps leave.
pub(super) struct Place<'a> {
    pub(super) pool: &'a PoolCalendar,
    pub(super) allowed: Starts,
}

impl Place<'_> {
    /// A search for a promise here.
    pub(super) fn search<'a>(
        &'a self,
        state: &'a State,
        user: UserId,
        request: &'a Request,
        now: Time,
    ) -> Search<'a> {
        Search {
            calendar: &state.calendar,
            pool: self.pool,
            request,
            eligible: state.eligibility(request, user, Purpose::Promise),
            now,
            soft_to: state.soft_to(now),
            with_soft: false,
            allowed: &self.allowed,
        }
    }

    /// A run of the request that was found here.
    pub(super) fn plan(&self, request: &Request, found: Found, seats: Vec<Seat>) -> Plan {
        Plan {
            pool: self.pool.pool.name.clone(),
            from: found.start,
            to: found.start + request.duration,
            seats,
            gpus_per_node: self.pool.gpus_per_node,
        }
    }
}

/// The pools that a request may use. Refused if quotas or caps leave no start in any.
pub(super) fn places<'a>(
    state: &'a State,
    user: UserId,
    request: &Request,
    range: (Time, Time),
) -> Result<Vec<Place<'a>>, Refusal> {
    let units = request.units();
    let duration = request.duration;
    let by_quota = state.usage.allowed_starts(&state.accounts, user, range, duration, units)?;
    if by_quota.is_empty() {
        let (from, to) = range;
        state.usage.room(&state.accounts, user, from, to + duration, units)?;
        return Err(Refusal::NoRoom);
    }
    let eligible = state.eligibility(request, user, Purpose::Promise);
    let mut places = Vec::new();
    let mut refused = None;
    for pool in state.calendar.pools() {
        let named = request.constraints.pool.as_ref();
        if named.is_some_and(|name| *name != pool.pool.name)
            || !pool.nodes.iter().any(|l| eligible.allows(&l.node))
        {
            continue;
        }
        match state.level_starts(&pool.pool.name, user, range, duration, units) {
            Ok(by_level) => places.push(Place { pool, allowed: by_quota.clone().and(by_level) }),
            Err(refusal) => refused = Some(refusal),
        }
    }
    match refused {
        Some(refusal) if places.is_empty() => Err(refusal),
        _ => Ok(places),
    }
}

/// The cheapest start of one request, whatever it is worth, in `[from, to]`.
pub(super) fn cheapest(
    state: &State,
    user: UserId,
    request: &Request,
    now: Time,
    (from, to): (Time, Time),
) -> Option<(Found, Money)> {
    if from > to {
        return None;
    }
    let places = places(state, user, request, (from, to)).ok()?;
    let found = places
        .iter()
        .filter_map(|place| place.search(state, user, request, now).cheapest(from, to))
        .min()?;
    Some((found, Weights::price(found.raw)?))
}
