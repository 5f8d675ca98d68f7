//! The better learner: past demand stands where the best fractional schedule puts it.
//!
//! [`solve`] lets every past request of W units for T be served in part and in pieces: at most W
//! at any moment of its window and W·T in all, paid by the part that is served. No promise of
//! contiguous time, of whole gangs or of nodes binds it, so its value is an upper bound on that
//! of any schedule: the offline bound that mechanisms are measured by. In each pool it is solved
//! on one resource, the one of which the history asks for the largest share of the capacity; the
//! others follow in proportion (they only could make the optimum smaller, so the bound holds).
//! Worth is paid by amount, so letting requests in by falling value per unit and second, each as
//! far as it fits once all others have made room, is optimal; see `flow`.
//!
//! [`forecast`] takes the demand at slot t to be what the optimum placed at t, *and what it
//! excluded*. Placed demand alone never exceeds the capacity: wherever fewer requests come than
//! in the past, or part of them has come already, the price would fall to the floor, and a bid
//! that others would outbid would be let in for nothing. The excluded demand (the rest of
//! requests that were served in part, and all of those that were not) is spread evenly over its
//! window, where it is worth no more than anything placed (of the binding resource, of which
//! those slots are full). So it never raises a price above what placed demand pays, and where
//! there is room after all the price settles at the density of the marginal request that was
//! turned away: what one more unit would earn. Where capacity was ample, nothing is excluded,
//! and this forecast is that of [`super::spread`].
//!
//! The optimum sees the history as a whole and knows of nothing before or after it: what was
//! asked for near its end is placed as if nobody came later.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::forecast::Forecast;
use crate::forecast::flow::{FlowLimits, Network, Taker};
use crate::forecast::history::{BadHistory, Demand, DemandHistory, DemandPart, PastPool, Wanted};
use crate::forecast::outlook;
use crate::forecast::spread::over_window;
use crate::resources::Resource;
use crate::units::{Name, Span, Time};

/// The best fractional schedule of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Solution {
    /// What it is worth in micro-credits; rounded up for each request, so that it bounds every
    /// schedule from above.
    pub value: u128,
    /// What all requests together asked for that could have been served, in micro-credits.
    pub asked: u128,
    /// The resource that each pool was solved on.
    pub binding: BTreeMap<Name, Resource>,
    /// What is served, by request and then by time, to the millisecond.
    pub placed: Vec<DemandPart>,
}

/// The paper's own forecast as of `wanted.from`: what the optimum placed, and nothing else. What
/// it excluded will not come again by it, so whoever is excluded finds a low price where fewer
/// come than in the past. [`forecast`] is the better one; this is what to hold it against.
pub fn forecast_of_placed(
    history: &DemandHistory,
    wanted: &Wanted,
) -> Result<Forecast, BadHistory> {
    outlook::forecast(history, wanted, &optimum(history, &history.demands()?).placed)
}

/// The forecast as of `wanted.from`.
pub fn forecast(history: &DemandHistory, wanted: &Wanted) -> Result<Forecast, BadHistory> {
    let demands = history.demands()?;
    let mut parts = optimum(history, &demands).placed;
    let mut served = vec![0; history.requests.len()];
    for part in &parts {
        served[part.request as usize] += part.run.ms();
    }
    for demand in &demands {
        let rest = demand.past.duration.ms() - served[demand.index as usize];
        if rest > 0 {
            parts.extend(over_window(demand, Span(rest), history.slot));
        }
    }
    outlook::forecast(history, wanted, &parts)
}

/// The value-maximising fractional allocation of the past requests on their pools' capacity.
pub fn solve(history: &DemandHistory) -> Result<Solution, BadHistory> {
    Ok(optimum(history, &history.demands()?))
}

fn optimum(history: &DemandHistory, demands: &[Demand<'_>]) -> Solution {
    let mut solution = Solution::default();
    for (name, pool) in &history.pools {
        let of_pool: Vec<_> = demands.iter().filter(|d| d.past.pool == *name).copied().collect();
        if !of_pool.is_empty() {
            solve_pool(history.slot, name, pool, &of_pool, &mut solution);
        }
    }
    solution.placed.sort_by_key(|part| (part.request, part.at));
    solution
}

fn solve_pool(
    slot: Span,
    name: &Name,
    pool: &PastPool,
    demands: &[Demand<'_>],
    solution: &mut Solution,
) {
    let resource = binding(pool, demands);
    solution.binding.insert(name.clone(), resource);
    solution.asked += demands.iter().map(value).sum::<u128>();
    // What needs nothing of the binding resource is in nobody's way.
    let (takers, others): (Vec<_>, Vec<_>) =
        demands.iter().partition::<Vec<Demand<'_>>, _>(|d| width(d, resource) > 0);
    for demand in &others {
        solution.value += value(demand);
        solution.placed.extend(over_window(demand, demand.past.duration, slot));
    }
    let network = fill(slot, pool.capacity[resource as usize], resource, &takers);
    for (index, demand) in takers.iter().enumerate() {
        let flows = network.flows(index);
        let served: u128 = flows.iter().map(|flow| u128::from(*flow)).sum();
        solution.value += (value(demand) * served).div_ceil(work(demand, resource));
        solution.placed.extend(runs(demand, width(demand, resource), flows, slot));
    }
}

/// Lets all takers into the network, in order of worth.
fn fill(slot: Span, capacity: u64, resource: Resource, demands: &[Demand<'_>]) -> Network {
    let starts = demands.iter().map(|d| d.first_slot(slot));
    let base = starts.min().unwrap_or_default();
    let takers: Vec<Taker> = demands.iter().map(|d| taker(d, resource, base, slot)).collect();
    let slots = takers.iter().map(|t| t.first + t.limits.slots).max().unwrap_or(0);
    let mut network = Network::new(takers, slots, capacity * slot.ms().unsigned_abs());
    let mut order: Vec<u32> = (0..demands.len() as u32).collect();
    let worth =
        |a: &u32, b: &u32| by_falling_worth(&demands[*a as usize], &demands[*b as usize], resource);
    // A stable sort: among equals, history's order decides.
    order.sort_by(worth);
    for class in order.chunk_by(|a, b| worth(a, b).is_eq()) {
        network.admit(class);
    }
    network
}

fn taker(demand: &Demand<'_>, resource: Resource, base: Time, slot: Span) -> Taker {
    let first = demand.first_slot(slot);
    let slots = demand.slots(slot);
    let last = demand.end.ceil_to(slot) - slot;
    let width = width(demand, resource);
    let limit = |at: Time| width * demand.overlap(at, slot).ms().unsigned_abs();
    Taker {
        first: usize::try_from(first.since(base).ms() / slot.ms()).unwrap_or(0),
        limits: FlowLimits {
            slots,
            first: limit(first),
            inner: width * slot.ms().unsigned_abs(),
            last: limit(last),
        },
        left: work(demand, resource),
    }
}

/// What flows to each slot, as a part of the duration: rounded down up to the end of each slot,
/// so that the parts of a request that is served in full add up to its duration.
fn runs<'a>(
    demand: &'a Demand<'_>,
    width: u64,
    flows: &'a [u64],
    slot: Span,
) -> impl Iterator<Item = DemandPart> + use<'a> {
    let (mut flown, mut run, mut at) = (0, 0, demand.first_slot(slot));
    let all = flows.iter().map_while(move |flow| {
        flown += u128::from(*flow);
        let until = i64::try_from(flown / u128::from(width)).ok()?;
        let part = DemandPart { request: demand.index, at, run: Span(until - run) };
        run = until;
        at = at + slot;
        Some(part)
    });
    all.filter(|part| part.run > Span::ZERO)
}

/// The resource of which the largest share of the capacity is asked for.
fn binding(pool: &PastPool, demands: &[Demand<'_>]) -> Resource {
    let asked = Resource::ALL.map(|r| {
        let seconds =
            |d: &Demand<'_>| u128::from(d.past.duration.ms().unsigned_abs().div_ceil(1000));
        demands.iter().map(|d| u128::from(width(d, r)) * seconds(d)).sum::<u128>()
    });
    let share_above = |a: Resource, b: Resource| {
        let (a, b) = (a as usize, b as usize);
        asked[a] * u128::from(pool.capacity[b]) > asked[b] * u128::from(pool.capacity[a])
    };
    // From the scarcest kind down, so that equals are decided in its favour.
    let kinds = Resource::ALL.iter().rev().copied();
    let offered = kinds.filter(|r| pool.capacity[*r as usize] > 0);
    offered.reduce(|best, r| if share_above(r, best) { r } else { best }).unwrap_or(Resource::Gpu)
}

fn width(demand: &Demand<'_>, resource: Resource) -> u64 {
    demand.past.units[resource as usize]
}

/// Unit-milliseconds.
fn work(demand: &Demand<'_>, resource: Resource) -> u128 {
    u128::from(width(demand, resource)) * u128::from(demand.past.duration.ms().unsigned_abs())
}

fn value(demand: &Demand<'_>) -> u128 {
    u128::from(demand.past.value.0.unsigned_abs())
}

/// By value per unit and time, compared as fractions; the limits on a history keep the products
/// within 128 bits.
fn by_falling_worth(a: &Demand<'_>, b: &Demand<'_>, resource: Resource) -> Ordering {
    (value(b) * work(a, resource)).cmp(&(value(a) * work(b, resource)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bid::Window;
    use crate::forecast::history::PastRequest;
    use crate::forecast::history::fixture::{daily, day, name, pool, request};
    use crate::forecast::spread;
    use crate::units::{Milli, Money};

    fn price(forecast: &Forecast, capacity: u64, min: i64) -> Option<Milli> {
        let at = Time(0) + Span::from_min(min);
        forecast.at(&name(), Resource::Gpu, at).price_above(capacity - 1)
    }

    fn units_at(history: &DemandHistory, parts: &[DemandPart], at: Time) -> u128 {
        let here = parts.iter().filter(|part| part.at == at);
        let amount = |part: &DemandPart| {
            let units = history.requests[part.request as usize].units[Resource::Gpu as usize];
            u128::from(units) * u128::from(part.run.ms().unsigned_abs())
        };
        here.map(amount).sum()
    }

    #[test]
    fn an_empty_history_gives_the_empty_forecast_and_no_value() {
        let empty = day(10, vec![]);
        let wanted = daily(Time(0), Span::from_days(30));
        assert_eq!(forecast(&empty, &wanted), Ok(Forecast::default()));
        assert_eq!(solve(&empty), Ok(Solution::default()));
    }

    #[test]
    fn where_capacity_is_ample_demand_stands_where_spreading_puts_it() {
        let requests = vec![request(5, 10, (0, 30), 1), request(7, 20, (5, 90), 10)];
        let history = day(100, requests);
        let wanted = daily(Time(0), Span::from_days(3));
        assert_eq!(forecast(&history, &wanted), spread::forecast(&history, &wanted));
        let solution = solve(&history).unwrap();
        assert_eq!(solution.value, solution.asked);
    }

    #[test]
    fn low_density_is_priced_out_where_high_density_will_fill_the_capacity() {
        // As in the paper's first experiment: wide jobs worth 1, asked for many times over, and
        // narrow ones worth 10 that fill two hours of six, and half of another.
        let mut requests: Vec<_> = (0..30).map(|n| request(8, 120, (n, 360), 1)).collect();
        requests.extend((0..40).map(|n| request(2, 30, (120 + n % 2, 240), 10)));
        requests.extend((0..5).map(|n| request(1, 60, (300 + n % 2, 361), 10)));
        let history = day(10, requests);
        let forecast = forecast(&history, &daily(Time(0), Span::from_h(24))).unwrap();
        assert_eq!(forecast.check(), Ok(()));
        for min in 125..235 {
            assert_eq!(price(&forecast, 10, min), Some(Milli(10_000)), "minute {min}");
        }
        for min in (30..120).chain(240..300).chain(305..355) {
            assert_eq!(price(&forecast, 10, min), Some(Milli(1000)), "minute {min}");
        }
        // In the half that is left of the last hour what is dense pays no more than what is not.
        let left = forecast.at(&name(), Resource::Gpu, Time(330 * 60_000)).price_above(5);
        assert_eq!(left, Some(Milli(1000)));
        assert_eq!(price(&forecast, 10, 400), None);
    }

    #[test]
    fn flexible_demand_stands_where_the_optimum_runs_it() {
        // The flexible request gives way to the one that can run in the first hour only, though
        // that one is worth less; spreading would leave half of it in the way.
        let history = day(10, vec![request(10, 60, (0, 120), 10), request(10, 60, (0, 60), 1)]);
        let solution = solve(&history).unwrap();
        assert_eq!(solution.value, solution.asked);
        let forecast = forecast(&history, &daily(Time(0), Span::from_h(24))).unwrap();
        assert_eq!(price(&forecast, 10, 30), Some(Milli(1000)));
        assert_eq!(price(&forecast, 10, 90), Some(Milli(10_000)));
    }

    #[test]
    fn what_is_excluded_keeps_its_price_when_denser_demand_stays_away() {
        let history = day(10, vec![request(10, 60, (0, 60), 5), request(6, 60, (0, 60), 2)]);
        let forecast = forecast(&history, &daily(Time(0), Span::from_h(1))).unwrap();
        let curve = forecast.at(&name(), Resource::Gpu, Time(0));
        assert_eq!(curve.price_above(9), Some(Milli(5000)));
        assert_eq!(curve.price_above(10), Some(Milli(2000)));
        assert_eq!(curve.price_above(16), None);
    }

    #[test]
    fn the_resource_asked_for_most_binds_and_the_others_follow() {
        let mut narrow = request(1, 60, (0, 60), 1);
        narrow.units = [800, 0, 1];
        let mut without = narrow.clone();
        without.units = [0, 512, 0];
        let mut history = day(0, vec![narrow.clone(), narrow, without]);
        history.pools.insert(name(), pool([1000, 1024, 8]));
        let solution = solve(&history).unwrap();
        assert_eq!(solution.binding[&name()], Resource::Cpu);
        assert_eq!(solution.value, 60 * 60_000 * 9 / 4);
        let forecast = forecast(&history, &daily(Time(0), Span::from_h(1))).unwrap();
        let all = Resource::ALL.map(|r| forecast.at(&name(), r, Time(0)).demand(Milli(0)));
        assert_eq!(all, [1600, 512, 2], "what is placed and what is excluded");
    }

    #[test]
    fn the_largest_numbers_that_are_allowed_do_not_overflow() {
        let most = crate::forecast::history::CAPACITY_MAX;
        let mut past = request(1, 1, (0, 1440), 1);
        past.units = [0, 0, most];
        past.duration = Span::from_days(300);
        past.window.deadline = Time::MAX;
        past.value = Money::MOST;
        let mut history = day(most, vec![past; 4]);
        history.slot = Span::from_h(1);
        history.reach = Span::from_days(3660);
        let solution = solve(&history).unwrap();
        assert_eq!(solution.value, 4 * 1_000_000_000_000_000);
        assert!(forecast(&history, &daily(Time(0), Span::from_days(30))).is_ok());
    }

    /// What the same relaxation is worth to a general solver of linear programs.
    #[allow(clippy::disallowed_types, clippy::float_arithmetic)]
    fn value_by_simplex(history: &DemandHistory, capacity: u64) -> f64 {
        let slot = history.slot;
        let mut problem = microlp::Problem::new(microlp::OptimizationDirection::Maximize);
        let mut by_slot: BTreeMap<Time, Vec<(microlp::Variable, f64)>> = BTreeMap::new();
        for past in &history.requests {
            let Window { earliest, deadline } = past.window;
            let work = past.units[2] as f64 * past.duration.ms() as f64;
            let mut own = Vec::new();
            let mut at = earliest.floor_to(slot);
            while at < deadline {
                let overlap = (at + slot).min(deadline).since(at.max(earliest)).ms();
                let most = past.units[2] as f64 * overlap as f64;
                let part = problem.add_var(past.value.0 as f64 / work, (0.0, most));
                own.push((part, 1.0));
                by_slot.entry(at).or_default().push((part, 1.0));
                at = at + slot;
            }
            problem.add_constraint(&own, microlp::ComparisonOp::Le, work);
        }
        for parts in by_slot.values() {
            let most = capacity as f64 * slot.ms() as f64;
            problem.add_constraint(parts, microlp::ComparisonOp::Le, most);
        }
        problem.solve().unwrap().into_solution().unwrap().objective()
    }

    fn any_request() -> impl Strategy<Value = PastRequest> {
        // Worth anything, or one of a few densities, so that classes of several requests occur.
        let worth = prop_oneof![(1i64..100_000).prop_map(Ok), (1i64..4).prop_map(Err)];
        (1u64..8, 1i64..240, 0i64..300, 0i64..400, worth).prop_map(
            |(units, duration_s, start_s, slack_s, worth)| {
                let mut past = request(units, 1, (0, 1), 1);
                let start = Time::from_s(start_s);
                past.submitted = start;
                past.duration = Span::from_s(duration_s);
                let deadline = start + past.duration + Span::from_s(slack_s);
                past.window = Window { earliest: start, deadline };
                let work = i64::try_from(units).unwrap() * duration_s;
                past.value = Money(1000 * worth.unwrap_or_else(|density| density * work));
                past
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        #[allow(clippy::disallowed_types, clippy::float_arithmetic)]
        fn the_optimum_is_that_of_a_general_solver(
            requests in prop::collection::vec(any_request(), 1..14), capacity in 7u64..14,
        ) {
            let history = day(capacity, requests);
            let solution = solve(&history).unwrap();
            let expected = value_by_simplex(&history, capacity);
            let off = (solution.value as f64 - expected).abs();
            // Each request's value is rounded up to a micro-credit.
            prop_assert!(off <= 15.0 + expected * 1e-7, "{} is not {expected}", solution.value);
        }

        #[test]
        fn the_optimum_is_a_schedule(
            requests in prop::collection::vec(any_request(), 1..30), capacity in 7u64..20,
        ) {
            let history = day(capacity, requests);
            let solution = solve(&history).unwrap();
            prop_assert!(solution.value <= solution.asked);
            let mut at = Time(0);
            while at < Time::from_s(1200) {
                // A part may be off by a millisecond of its request's width.
                let rounding = 8 * history.requests.len() as u128;
                let most = u128::from(capacity) * 60_000 + rounding;
                prop_assert!(units_at(&history, &solution.placed, at) <= most);
                at = at + history.slot;
            }
            for (index, past) in (0u32..).zip(&history.requests) {
                let own = || solution.placed.iter().filter(|part| part.request == index);
                prop_assert!(own().map(|p| p.run.ms()).sum::<i64>() <= past.duration.ms());
                for part in own() {
                    let (from, to) = (past.window.earliest, past.window.deadline);
                    let overlap = (part.at + history.slot).min(to).since(part.at.max(from)).ms();
                    prop_assert!(part.run.ms() <= overlap + 1);
                }
            }
        }
    }
}
