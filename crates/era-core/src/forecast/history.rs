//! What the learners read: past requests, and the pools that they were made to.
//!
//! A history is everything that was asked for in a span of time, refused and unaccepted requests
//! included, for demand that was turned away is demand. Two kinds of request are passed over in
//! silence, because strangers write them and they must not stop the learning: those that make no
//! sense, and those that no market could have served (wider than their pool, or longer than
//! their window). What the caller sets (slot, spans, capacities, the number of requests) is
//! checked instead, and refused with a reason.
//!
//! This module knows nothing of how demand is placed; [`DemandPart`] is only the word for the answer.

use std::collections::BTreeMap;

use crate::bid::{DURATION_MAX, Window};
use crate::cluster::Rates;
use crate::forecast::RUNS_MAX;
use crate::resources::{PerResource, Resource};
use crate::units::{Milli, Money, Name, Span, Time};

/// Most requests in a history.
pub const PAST_REQUESTS_MAX: usize = 1 << 20;
/// Most slots from a history's start to the end of what it could have asked for.
pub const PAST_SLOTS_MAX: usize = 1 << 20;
/// Most slots in the windows of all requests together. It bounds time and memory.
pub const PARTS_MAX: usize = 1 << 23;
/// Shortest slot.
pub const SLOT_MIN: Span = Span::from_s(1);
/// Longest slot.
pub const SLOT_MAX: Span = Span::from_h(1);
/// Longest cycle, horizon, reach or history.
pub const SPAN_MAX: Span = Span::from_days(3660);
/// Most units of a resource in a pool. A slot's worth of them, in unit-milliseconds, fits 64 bits.
pub const CAPACITY_MAX: u64 = 1 << 40;

/// One request that was made, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRequest {
    /// The pool that suits it.
    pub pool: Name,
    /// What it promised to use, all replicas together.
    pub units: PerResource<u64>,
    /// For how long.
    pub duration: Span,
    pub window: Window,
    /// When it was made.
    pub submitted: Time,
    /// What it was worth.
    pub value: Money,
}

/// A pool as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastPool {
    /// What its resources cost at density 1.
    pub rates: Rates,
    /// What promises could use of it.
    pub capacity: PerResource<u64>,
}

/// All that was asked for in `[from, to)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandHistory {
    /// The length of a slot, counted from the epoch. A learner's work grows with the number of
    /// slots in all windows, so it may be coarser than the market's: 10 minutes, an hour.
    pub slot: Span,
    /// How far ahead of its submission a request could reach: windows are clipped to it, as the
    /// market clips them to its horizon.
    pub reach: Span,
    /// Start of the time that is covered.
    pub from: Time,
    pub to: Time,
    pub pools: BTreeMap<Name, PastPool>,
    /// The requests, in any order. Those submitted outside `[from, to)` are passed over.
    pub requests: Vec<PastRequest>,
}

/// The forecast that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// When it is published: it counts the demand that arrives from then on. What arrives after
    /// publication is promised *and* still expected until the next one is published, so publish
    /// often, every hour for example, with the time of publishing here.
    pub from: Time,
    /// How far ahead it reaches. Nothing is expected beyond, so let it be longer than the
    /// market's horizon by the time between two publications.
    pub horizon: Span,
    /// After how long demand repeats itself: a day, a week. A multiple of the slot.
    pub cycle: Span,
}

/// Why nothing can be learned from a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHistory {
    /// The slot is too short or too long.
    #[error("a slot of {given} is out of range: give 1s to 1h")]
    Slot { given: Span },
    /// A span is negative or too long.
    #[error("a {what} of {given} is out of range: give more than 0s and at most {most}")]
    Span { what: &'static str, given: Span, most: Span },
    /// The cycle is no whole number of slots.
    #[error("a cycle of {cycle} is no multiple of the slot of {slot}")]
    Cycle {
        /// What was given.
        cycle: Span,
        slot: Span,
    },
    /// An instant is out of range, or the history ends before it starts.
    #[error("the time from {from} to {to} is out of range")]
    Times { from: Time, to: Time },
    /// A pool is larger than any.
    #[error("pool {pool} has {given} of {resource}: at most {CAPACITY_MAX}")]
    Capacity { pool: Name, resource: Resource, given: u64 },
    /// Too much for one run.
    #[error("{given} {what} are too many: at most {most}; use longer slots or less history")]
    TooMany { what: &'static str, given: usize, most: usize },
}

/// A part of a request, placed in one slot: its full width for `run` of the slot's time, or the
/// same amount at a lesser width for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandPart {
    /// Index of the request in the history.
    pub request: u32,
    /// Start of the slot.
    pub at: Time,
    /// How much of the request's duration falls here.
    pub run: Span,
}

/// A request that could have been served, its window clipped to when it could have run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand<'a> {
    /// Index in the history.
    pub(super) index: u32,
    pub(super) past: &'a PastRequest,
    pub(super) start: Time,
    pub(super) end: Time,
}

impl Demand<'_> {
    /// Start of the first slot of its window.
    pub(super) fn first_slot(&self, slot: Span) -> Time {
        self.start.floor_to(slot)
    }

    /// How many slots its window touches.
    pub(super) fn slots(&self, slot: Span) -> usize {
        let touched = self.end.ceil_to(slot).since(self.first_slot(slot)).ms() / slot.ms();
        usize::try_from(touched).unwrap_or(0)
    }

    /// How much of its window lies in the slot that starts at `at`.
    pub(super) fn overlap(&self, at: Time, slot: Span) -> Span {
        (at + slot).min(self.end).since(at.max(self.start)).max(Span::ZERO)
    }
}

impl DemandHistory {
    /// A request's value divided by its cost at base rates, in thousandths, rounded down. What
    /// costs nothing is worth infinitely more than its cost: the largest density there is.
    pub fn density(&self, request: &PastRequest) -> Milli {
        let rates = self.pools.get(&request.pool).map_or_else(Rates::default, |pool| pool.rates);
        // A common multiple of the units in a core, a GiB and a GPU, so that nothing is rounded
        // before the one division.
        const WHOLE: u128 = 128_000;
        const HOUR_MS: u128 = 3_600_000;
        let wide = |n: i64| u128::try_from(n).unwrap_or(0);
        let mut cost: u128 = 0;
        for resource in Resource::ALL {
            let scale = WHOLE / u128::from(resource.units_per_whole());
            let rate = wide(rates.of(resource).0) * scale;
            let units = u128::from(request.units[resource as usize]);
            cost = cost.saturating_add(units.saturating_mul(rate));
        }
        let cost = cost.saturating_mul(wide(request.duration.ms()));
        let value = wide(request.value.0).saturating_mul(1000 * WHOLE * HOUR_MS);
        let density = value.checked_div(cost).unwrap_or(u128::MAX);
        Milli(u32::try_from(density).unwrap_or(u32::MAX))
    }

    /// Checks what the caller set, and gives the requests that could have been served.
    pub(super) fn demands(&self) -> Result<Vec<Demand<'_>>, BadHistory> {
        self.check()?;
        let all = self.requests.iter().zip(0..);
        let demands: Vec<_> = all.filter_map(|(past, index)| self.demand(past, index)).collect();
        let parts = demands.iter().map(|d| d.slots(self.slot)).sum();
        at_most("slots in the windows of all requests", parts, PARTS_MAX)?;
        Ok(demands)
    }

    fn demand<'a>(&self, past: &'a PastRequest, index: u32) -> Option<Demand<'a>> {
        let pool = self.pools.get(&past.pool)?;
        let start = past.window.earliest.max(past.submitted);
        let end = past.window.deadline.min(past.submitted + self.reach);
        let makes_sense = (self.from..self.to).contains(&past.submitted)
            && past.duration > Span::ZERO
            && past.duration <= DURATION_MAX
            && past.value > Money::ZERO
            && past.value <= Money::MOST
            && past.units.iter().any(|units| *units > 0);
        let fits = end > start
            && end.since(start) >= past.duration
            && past.units.iter().zip(pool.capacity).all(|(units, most)| *units <= most);
        (makes_sense && fits).then_some(Demand { index, past, start, end })
    }

    fn check(&self) -> Result<(), BadHistory> {
        if self.slot < SLOT_MIN || self.slot > SLOT_MAX {
            return Err(BadHistory::Slot { given: self.slot });
        }
        in_range("reach", self.reach)?;
        let (from, to) = (self.from, self.to);
        if from < Time(0) || to < from || to > Time::LATEST {
            return Err(BadHistory::Times { from, to });
        }
        at_most("requests", self.requests.len(), PAST_REQUESTS_MAX)?;
        let slots = (to + self.reach).since(from).ms() / self.slot.ms();
        at_most("slots", usize::try_from(slots).unwrap_or(usize::MAX), PAST_SLOTS_MAX)?;
        for (name, pool) in &self.pools {
            for resource in Resource::ALL {
                let given = pool.capacity[resource as usize];
                if given > CAPACITY_MAX {
                    return Err(BadHistory::Capacity { pool: name.clone(), resource, given });
                }
            }
        }
        Ok(())
    }
}

impl Wanted {
    /// Checks it against the slot that it will be cut into.
    pub(super) fn check(&self, slot: Span) -> Result<(), BadHistory> {
        in_range("horizon", self.horizon)?;
        in_range("cycle", self.cycle)?;
        if self.cycle.ms() % slot.ms() != 0 {
            return Err(BadHistory::Cycle { cycle: self.cycle, slot });
        }
        if self.from < Time(0) || self.from > Time::LATEST {
            return Err(BadHistory::Times { from: self.from, to: self.from + self.horizon });
        }
        let phases = usize::try_from(self.cycle.ms() / slot.ms()).unwrap_or(usize::MAX);
        at_most("slots in a cycle", phases, RUNS_MAX)?;
        // One run more ends the forecast, and one slot may be cut at either end.
        let slots = usize::try_from(self.horizon.ms() / slot.ms()).unwrap_or(usize::MAX);
        at_most("slots in the horizon", slots, RUNS_MAX - 3)
    }
}

fn in_range(what: &'static str, given: Span) -> Result<(), BadHistory> {
    if given <= Span::ZERO || given > SPAN_MAX {
        return Err(BadHistory::Span { what, given, most: SPAN_MAX });
    }
    Ok(())
}

fn at_most(what: &'static str, given: usize, most: usize) -> Result<(), BadHistory> {
    if given > most {
        return Err(BadHistory::TooMany { what, given, most });
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod fixture {
    use super::*;

    /// A pool whose base rate is 1000 micro-credits for a unit and second of GPU.
    pub(crate) fn pool(capacity: PerResource<u64>) -> PastPool {
        let rates = Rates { cpu: Money(0), memory: Money(0), gpu: Money(3_600_000_000) };
        PastPool { rates, capacity }
    }

    pub(crate) fn name() -> Name {
        Name::new("pool").unwrap()
    }

    /// A day of minutes on a pool of `gpus` units.
    pub(crate) fn day(gpus: u64, requests: Vec<PastRequest>) -> DemandHistory {
        DemandHistory {
            slot: Span::from_min(1),
            reach: Span::from_days(1),
            from: Time(0),
            to: Time::from_s(86_400),
            pools: BTreeMap::from([(name(), pool([0, 0, gpus]))]),
            requests,
        }
    }

    /// A request for `gpus` units, submitted when its window opens; times in minutes.
    pub(crate) fn request(gpus: u64, min: i64, window: (i64, i64), density: i64) -> PastRequest {
        let at = |min: i64| Time(0) + Span::from_min(min);
        PastRequest {
            pool: name(),
            units: [0, 0, gpus],
            duration: Span::from_min(min),
            window: Window { earliest: at(window.0), deadline: at(window.1) },
            submitted: at(window.0),
            value: Money(i64::try_from(gpus).unwrap() * min * 60 * 1000 * density),
        }
    }

    pub(crate) fn daily(from: Time, horizon: Span) -> Wanted {
        Wanted { from, horizon, cycle: Span::from_days(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{daily, day, request};
    use super::*;

    #[test]
    fn density_is_value_over_cost_rounded_down_and_saturating() {
        let history = day(10, vec![]);
        let mut past = request(4, 10, (0, 30), 3);
        assert_eq!(history.density(&past), Milli(3000));
        past.value = Money(past.value.0 - 1);
        assert_eq!(history.density(&past), Milli(2999));
        past.units = [1000, 1024, 0];
        assert_eq!(history.density(&past), Milli(u32::MAX), "what costs nothing");
        past.units = [u64::MAX; 3];
        assert_eq!(history.density(&past), Milli(0));
    }

    #[test]
    fn all_three_resources_count_towards_the_cost() {
        let mut history = day(1000, vec![]);
        let rates = Rates { cpu: Money(100), memory: Money(50), gpu: Money(850) };
        history.pools.values_mut().for_each(|pool| pool.rates = rates);
        let mut past = request(1000, 60, (0, 60), 0);
        past.units = [1000, 1024, 1000];
        past.value = Money(2500);
        assert_eq!(history.density(&past), Milli(2500));
    }

    #[test]
    fn what_could_never_be_served_is_no_demand() {
        let fine = request(4, 10, (0, 30), 1);
        let spoil = |change: fn(&mut PastRequest)| {
            let mut past = fine.clone();
            change(&mut past);
            past
        };
        let bad = [
            spoil(|p| p.units[2] = 11),
            spoil(|p| p.units[0] = 1),
            spoil(|p| p.units = [0; 3]),
            spoil(|p| p.duration = Span(0)),
            spoil(|p| p.duration = Span(i64::MAX)),
            spoil(|p| p.window.deadline = Time(1)),
            spoil(|p| p.window.deadline = Time::MIN),
            spoil(|p| p.window.earliest = Time::MAX),
            spoil(|p| p.submitted = Time::from_s(25 * 60)),
            spoil(|p| p.submitted = Time::MAX),
            spoil(|p| p.submitted = Time::MIN),
            spoil(|p| p.value = Money(0)),
            spoil(|p| p.value = Money(i64::MIN)),
            spoil(|p| p.value = Money(i64::MAX)),
            spoil(|p| p.pool = Name::new("other").unwrap()),
        ];
        for past in bad {
            assert!(day(10, vec![past.clone()]).demands().unwrap().is_empty(), "{past:?}");
        }
        assert_eq!(day(10, vec![fine]).demands().unwrap().len(), 1);
    }

    #[test]
    fn a_window_without_end_is_clipped_to_how_far_bids_reach() {
        let mut past = request(4, 10, (0, 30), 1);
        past.window.deadline = Time::MAX;
        let history = day(10, vec![past]);
        assert_eq!(history.demands().unwrap()[0].end, Time(0) + history.reach);
    }

    #[test]
    fn hostile_sizes_are_refused_with_what_would_be_right() {
        let spoil = |change: fn(&mut DemandHistory)| {
            let mut history = day(10, vec![]);
            change(&mut history);
            history.demands().unwrap_err().to_string()
        };
        assert_eq!(spoil(|h| h.slot = Span(0)), "a slot of 0s is out of range: give 1s to 1h");
        assert!(spoil(|h| h.reach = Span(i64::MAX)).contains("reach"));
        assert!(spoil(|h| h.to = Time(-1)).contains("out of range"));
        assert!(spoil(|h| h.to = Time::LATEST).contains("slots are too many"));
        assert!(
            spoil(|h| h.pools = [(fixture::name(), fixture::pool([0, 0, u64::MAX]))].into())
                .contains("at most 1099511627776")
        );
        let long = vec![request(1, 1, (0, 1440), 1); PARTS_MAX / 1440 + 1];
        assert!(matches!(
            day(10, long).demands(),
            Err(BadHistory::TooMany { most: PARTS_MAX, .. })
        ));
    }

    #[test]
    fn a_forecast_that_would_be_too_large_is_refused() {
        let minute = Span::from_min(1);
        let ok = daily(Time(0), Span::from_days(60));
        assert_eq!(ok.check(minute), Ok(()));
        let too_far = Wanted { horizon: Span::from_days(92), ..ok };
        assert!(matches!(too_far.check(minute), Err(BadHistory::TooMany { .. })));
        let odd = Wanted { cycle: Span::from_s(90), ..ok };
        assert!(matches!(odd.check(minute), Err(BadHistory::Cycle { .. })));
        let backwards = Wanted { horizon: Span(-1), ..ok };
        assert!(matches!(backwards.check(minute), Err(BadHistory::Span { .. })));
        let beyond = Wanted { from: Time::MAX, ..ok };
        assert!(matches!(beyond.check(minute), Err(BadHistory::Times { .. })));
    }
}
