//! From where past demand was placed to what is still to come.
//!
//! A learner says in which slot it places each part of each past request. Demand repeats itself
//! after a cycle, so a request that was submitted at u and placed at s stands for one that will
//! be submitted at u + k cycles and placed at s + k cycles, for every whole k. The curve that is
//! published at p for slot t counts, of all these, those *placed at t and submitted at p or
//! later*: what is submitted before p is promised already or gone. Clipping to the submission
//! makes s follow u, so this is the paper's demand(t)(d), "arriving from now until t". Soon after
//! p a curve is small, and the further ahead the slot, the more of its demand is yet to arrive.
//!
//! The counts are divided by the number of whole cycles in the history. Its last whole cycles
//! are taken, and requests by their *submission* in them: each is counted once, wherever it was
//! placed, and the edges of the history bias nothing. A history shorter than a cycle counts as
//! one cycle, in whose unseen phases nothing is asked for.
//!
//! Amounts are summed in unit-milliseconds and rounded once, to the nearest unit, at each step of
//! the curve. As a step includes all that is denser, many small demands do not vanish.
//!
//! A published forecast does not shrink as its demand arrives: it over-counts by what arrived
//! since p, until the next one is published.

use crate::forecast::history::{BadHistory, DemandHistory, DemandPart, PastRequest, Wanted};
use crate::forecast::{CURVE_STEPS_MAX, Curve, DemandStep, Forecast, QUANTITY_MAX, Series};
use crate::resources::{PerResource, Resource};
use crate::units::{Milli, Name, Span, Time};

/// A part at its phase of the cycle.
struct PhasedPart {
    density: Milli,
    /// From the submission to the slot; negative if it was submitted within the slot.
    lead: Span,
    request: u32,
    run: Span,
}

/// All parts of one pool, by the phase of the cycle.
struct Phases<'a> {
    requests: &'a [PastRequest],
    slot: Span,
    wanted: &'a Wanted,
    entries: Vec<Vec<PhasedPart>>,
    /// Unit-milliseconds in the history for each unit in an average slot.
    per_unit: u128,
}

/// The forecast that parts of a checked history make.
pub(super) fn forecast(
    history: &DemandHistory,
    wanted: &Wanted,
    parts: &[DemandPart],
) -> Result<Forecast, BadHistory> {
    wanted.check(history.slot)?;
    let mut forecast = Forecast::default();
    for name in history.pools.keys() {
        let phases = Phases::new(history, wanted, name, parts);
        if phases.entries.iter().any(|entries| !entries.is_empty()) {
            let asked = |r| history.requests.iter().any(|past| past.units[r as usize] > 0);
            let series: PerResource<Series> =
                Resource::ALL.map(|r| if asked(r) { phases.series(r) } else { Series::default() });
            forecast.pools.insert(name.clone(), series);
        }
    }
    Ok(forecast)
}

impl<'a> Phases<'a> {
    fn new(
        history: &'a DemandHistory,
        wanted: &'a Wanted,
        pool: &Name,
        parts: &[DemandPart],
    ) -> Phases<'a> {
        let cycle = wanted.cycle.ms();
        let cycles = (history.to.since(history.from).ms() / cycle).max(1);
        let since = history.from.max(history.to - Span(cycles.saturating_mul(cycle)));
        let count = usize::try_from(cycle / history.slot.ms()).unwrap_or(0);
        let mut phases = Phases {
            requests: &history.requests,
            slot: history.slot,
            wanted,
            entries: (0..count).map(|_| Vec::new()).collect(),
            per_unit: u128::from(cycles.unsigned_abs())
                * u128::from(history.slot.ms().unsigned_abs()),
        };
        // Parts come by request, so a request's density is worked out once.
        for of_request in parts.chunk_by(|a, b| a.request == b.request) {
            let past = &history.requests[of_request[0].request as usize];
            if past.pool == *pool && past.submitted >= since {
                phases.add(past, history.density(past), of_request);
            }
        }
        for entries in &mut phases.entries {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.density));
        }
        phases
    }

    fn add(&mut self, past: &PastRequest, density: Milli, parts: &[DemandPart]) {
        for part in parts.iter().filter(|part| part.run > Span::ZERO) {
            let lead = part.at.since(past.submitted);
            let phase = self.phase(part.at);
            self.entries[phase].push(PhasedPart {
                density,
                lead,
                request: part.request,
                run: part.run,
            });
        }
    }

    fn phase(&self, at: Time) -> usize {
        usize::try_from(at.0.rem_euclid(self.wanted.cycle.ms()) / self.slot.ms()).unwrap_or(0)
    }

    fn series(&self, resource: Resource) -> Series {
        let mut series = Series::default();
        // A phase's curve only grows from one cycle to the next, and soon no more. Then it is
        // shared: a month of days is about as large as a day.
        let mut latest: Vec<Option<u32>> = vec![None; self.entries.len()];
        let end = (self.wanted.from + self.wanted.horizon).ceil_to(self.slot);
        let mut at = self.wanted.from.floor_to(self.slot);
        while at < end {
            let phase = self.phase(at);
            latest[phase] = push(&mut series, at, self.curve(resource, at), latest[phase]);
            at = at + self.slot;
        }
        push(&mut series, end, Curve::default(), None);
        series
    }

    fn curve(&self, resource: Resource, at: Time) -> Curve {
        let lead_max = at.since(self.wanted.from);
        let amount = |entry: &PhasedPart| {
            let units = self.requests[entry.request as usize].units[resource as usize];
            u128::from(units) * u128::from(entry.run.ms().unsigned_abs())
        };
        let mut steps: Vec<DemandStep> = Vec::new();
        let mut sum: u128 = 0;
        let entries = &self.entries[self.phase(at)];
        for alike in entries.chunk_by(|a, b| a.density == b.density) {
            sum += alike.iter().filter(|e| e.lead <= lead_max).map(amount).sum::<u128>();
            let rounded = (sum + self.per_unit / 2) / self.per_unit;
            let quantity = u64::try_from(rounded).unwrap_or(u64::MAX).min(QUANTITY_MAX);
            if quantity > steps.last().map_or(0, |step| step.quantity) {
                steps.push(DemandStep { density: alike[0].density, quantity });
            }
        }
        Curve { steps: thinned(steps) }
    }
}

/// Appends a run, and gives the index of its curve: that of the run before if it is the same
/// (then there is no new run), or `known` if it is the same, or a new one.
pub(super) fn push(series: &mut Series, at: Time, curve: Curve, known: Option<u32>) -> Option<u32> {
    let before = series.runs.last().map(|(_, index)| *index);
    if before.map_or(&Curve::default(), |index| &series.curves[index as usize]) == &curve {
        return before;
    }
    let known = known.filter(|index| series.curves[*index as usize] == curve);
    let index = known.unwrap_or(series.curves.len() as u32);
    if known.is_none() {
        series.curves.push(curve);
    }
    series.runs.push((at, index));
    Some(index)
}

/// At most [`CURVE_STEPS_MAX`] of the steps, about as many units from one to the next. What lay
/// between counts at the density below it: rounded down, like densities themselves.
pub(super) fn thinned(steps: Vec<DemandStep>) -> Vec<DemandStep> {
    let total = steps.last().map_or(0, |step| step.quantity);
    if steps.len() <= CURVE_STEPS_MAX {
        return steps;
    }
    let bucket = |step: &DemandStep| {
        u128::from(step.quantity - 1) * CURVE_STEPS_MAX as u128 / u128::from(total)
    };
    let buckets = steps.chunk_by(|a, b| bucket(a) == bucket(b));
    buckets.filter_map(|steps| steps.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::history::fixture::{daily, day, name, request};
    use crate::forecast::spread;
    use crate::units::Money;

    fn gpus_at(history: &DemandHistory, wanted: &Wanted, min: i64) -> u64 {
        let forecast = spread::forecast(history, wanted).unwrap();
        assert_eq!(forecast.check(), Ok(()));
        let at = Time(0) + Span::from_min(min);
        forecast.at(&name(), Resource::Gpu, at).demand(Milli(0))
    }

    fn at_min(min: i64) -> Time {
        Time(0) + Span::from_min(min)
    }

    #[test]
    fn only_demand_that_arrives_after_publishing_counts() {
        let history = day(60, vec![request(6, 10, (60, 70), 1), request(4, 30, (66, 96), 1)]);
        let hour = Span::from_h(1);
        assert_eq!(gpus_at(&history, &daily(at_min(60), hour), 68), 10);
        assert_eq!(gpus_at(&history, &daily(at_min(61), hour), 68), 4);
        assert_eq!(gpus_at(&history, &daily(at_min(67), hour), 68), 0);
    }

    #[test]
    fn tomorrow_expects_what_today_asked_for() {
        let history = day(60, vec![request(6, 10, (60, 70), 1)]);
        let tomorrow = 1440 + 65;
        let two_days = Span::from_days(2);
        assert_eq!(gpus_at(&history, &daily(at_min(65), two_days), 65), 0);
        assert_eq!(gpus_at(&history, &daily(at_min(65), two_days), tomorrow), 6);
        assert_eq!(gpus_at(&history, &daily(at_min(100 * 1440), two_days), 100 * 1440 + 65), 6);
    }

    #[test]
    fn demand_placed_after_midnight_is_expected_after_midnight() {
        let history = day(60, vec![request(6, 60, (1410, 1470), 1)]);
        let wanted = daily(at_min(1440), Span::from_days(2));
        assert_eq!(gpus_at(&history, &wanted, 1440 + 10), 0, "submitted before publishing");
        assert_eq!(gpus_at(&history, &wanted, 1440 + 1420), 6);
        assert_eq!(gpus_at(&history, &wanted, 2 * 1440 + 10), 6);
    }

    #[test]
    fn the_last_whole_cycles_are_averaged_and_rounded_to_the_nearest_unit() {
        let old = request(60, 10, (10, 20), 1);
        let mut history =
            day(60, vec![old, request(6, 10, (1500, 1510), 1), request(3, 10, (2940, 2950), 1)]);
        history.from = at_min(720);
        history.to = at_min(3 * 1440);
        let wanted = daily(at_min(3 * 1440), Span::from_days(1));
        assert_eq!(gpus_at(&history, &wanted, 3 * 1440 + 65), 5, "4.5 rounds up");
        assert_eq!(gpus_at(&history, &wanted, 3 * 1440 + 15), 0, "not in the history");
    }

    #[test]
    fn many_small_demands_do_not_vanish() {
        let third = |density| request(1, 10, (60, 90), density);
        let history = day(60, (1..=30).map(third).collect());
        assert_eq!(gpus_at(&history, &daily(Time(0), Span::from_h(2)), 75), 10);
    }

    #[test]
    fn nothing_is_expected_beyond_the_horizon_and_before_the_start() {
        let history = day(60, vec![request(6, 1440, (0, 1440), 1)]);
        let wanted = daily(at_min(1440), Span::from_h(1));
        assert_eq!(gpus_at(&history, &wanted, 1499), 6);
        assert_eq!(gpus_at(&history, &wanted, 1500), 0);
        assert_eq!(gpus_at(&history, &wanted, 1439), 0);
    }

    #[test]
    fn a_month_of_like_days_is_no_larger_than_two() {
        let history = day(60, vec![request(6, 10, (60, 70), 1), request(3, 10, (90, 120), 2)]);
        let month = spread::forecast(&history, &daily(Time(0), Span::from_days(30))).unwrap();
        let two = spread::forecast(&history, &daily(Time(0), Span::from_days(2))).unwrap();
        let curves = |forecast: &Forecast| forecast.pools[&name()][2].curves.len();
        assert!(curves(&month) <= curves(&two));
    }

    #[test]
    fn a_curve_with_too_many_densities_is_thinned_downwards() {
        let mut requests = Vec::new();
        for nth in 1..=1000 {
            let mut past = request(1, 10, (60, 70), 1);
            past.value = Money(past.value.0 / 1000 * nth);
            requests.push(past);
        }
        let history = day(2000, requests);
        let forecast = spread::forecast(&history, &daily(Time(0), Span::from_h(2))).unwrap();
        assert_eq!(forecast.check(), Ok(()));
        let curve = forecast.at(&name(), Resource::Gpu, at_min(65));
        assert!(curve.steps().len() > CURVE_STEPS_MAX / 2);
        for density in 1..=1000 {
            let exact = 1001 - u64::from(density);
            let thin = curve.demand(Milli(density));
            assert!(thin <= exact && thin + 4 >= exact, "{density}: {thin} of {exact}");
        }
    }
}
