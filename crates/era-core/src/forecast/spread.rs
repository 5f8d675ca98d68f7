//! The simple learner: each past request is spread evenly over its window.
//!
//! A request of W units for T in a window of length L counts as W·T/L units at every moment of
//! the window. That is unbiased where requests have no choice, and blurs those that have: a
//! cluster that is full at noon and empty at night looks half full at both to a request that
//! could have run at either. [`super::relaxation`] knows better; this one needs no capacity, and
//! is what to begin with.
//!
//! Each part is exact to the millisecond of the request's duration: up to the end of a slot,
//! `floor(T × elapsed / L)` of it has been spread, so what one slot loses by rounding the next
//! one gains, and the parts of a request add up to T. What the published curve counts of them is
//! told in `outlook`.

use crate::forecast::Forecast;
use crate::forecast::history::{BadHistory, Demand, DemandHistory, DemandPart, Wanted};
use crate::forecast::outlook;
use crate::units::Span;

/// The forecast as of `wanted.from`.
pub fn forecast(history: &DemandHistory, wanted: &Wanted) -> Result<Forecast, BadHistory> {
    outlook::forecast(history, wanted, &parts(history)?)
}

/// Where spreading puts each request, by request and then by time.
pub fn parts(history: &DemandHistory) -> Result<Vec<DemandPart>, BadHistory> {
    let demands = history.demands()?;
    Ok(demands.iter().flat_map(|d| over_window(d, d.past.duration, history.slot)).collect())
}

/// Spreads `run` of a request evenly over its window.
pub(super) fn over_window(
    demand: &Demand<'_>,
    run: Span,
    slot: Span,
) -> impl Iterator<Item = DemandPart> + use<> {
    let (index, start, end) = (demand.index, demand.start, demand.end);
    let first = demand.first_slot(slot);
    let length = i128::from(end.since(start).ms().max(1));
    let mut spread = 0;
    (0..demand.slots(slot)).map_while(move |nth| {
        let at = first + Span(slot.ms() * i64::try_from(nth).ok()?);
        let elapsed = (at + slot).min(end).since(start).ms();
        let until = i128::from(run.ms()) * i128::from(elapsed) / length;
        let until = i64::try_from(until).ok()?;
        let part = DemandPart { request: index, at, run: Span(until - spread) };
        spread = until;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::forecast::history::fixture::{daily, day, name, request};
    use crate::resources::Resource;
    use crate::units::{Milli, Time};

    #[test]
    fn an_empty_history_gives_the_empty_forecast() {
        let wanted = daily(Time(0), Span::from_days(30));
        assert_eq!(forecast(&day(10, vec![]), &wanted), Ok(Forecast::default()));
    }

    #[test]
    fn a_request_counts_evenly_in_every_slot_of_its_window() {
        let history = day(60, vec![request(30, 10, (60, 90), 2)]);
        let forecast = forecast(&history, &daily(Time(0), Span::from_h(24))).unwrap();
        assert_eq!(forecast.check(), Ok(()));
        for min in 0..1440 {
            let curve = forecast.at(&name(), Resource::Gpu, Time(min * 60_000));
            let expected = if (60..90).contains(&min) { 10 } else { 0 };
            assert_eq!(curve.demand(Milli(2000)), expected, "minute {min}");
            assert_eq!(curve.demand(Milli(2001)), 0);
        }
        assert_eq!(forecast.at(&name(), Resource::Cpu, Time::from_s(4000)).steps(), []);
    }

    proptest! {
        #[test]
        fn spreading_conserves_demand_and_stays_in_the_window(
            wanted in prop::collection::vec((0i64..40_000, 1i64..90_000, 0i64..200_000), 1..20),
        ) {
            let requests: Vec<_> = wanted.into_iter().map(|(start, length, slack)| {
                let mut past = request(3, 1, (0, 1), 1);
                past.submitted = Time(start);
                past.duration = Span(length);
                past.window.earliest = Time(start);
                past.window.deadline = Time(start + length + slack);
                past
            }).collect();
            let history = day(10, requests);
            let parts = parts(&history).unwrap();
            for (index, past) in (0u32..).zip(&history.requests) {
                let own = || parts.iter().filter(|part| part.request == index);
                prop_assert_eq!(own().map(|part| part.run.ms()).sum::<i64>(), past.duration.ms());
                for part in own() {
                    prop_assert!(part.at + history.slot > past.window.earliest);
                    prop_assert!(part.at < past.window.deadline);
                    prop_assert!(part.run >= Span::ZERO && part.run <= history.slot);
                }
            }
        }
    }
}
