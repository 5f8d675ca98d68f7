//! The second try: promises that have not started move to other seats, and nothing else about
//! them changes.

use std::cell::Cell;
use std::sync::Arc;

use era_core::bid::{Bid, Constraints, Request, Shape, Value, Window};
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::NewNode;
use era_core::market::{MarketRules, MechanismChoice};
use era_core::oracle::{self, OracleAnswer};
use era_core::settings::Settings;
use era_core::units::{Milli, Money, Name, Span};
use era_core::{Command, Event, Refusal, Reply, quote};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::against_oracle::told;
use crate::bed::{Bed, bid, gang, min, name, node, pool, steps};
use crate::worlds::{some_cases, with_bid};

/// Two replicas, one on each of two nodes: both nodes are half full from minute 60 to 120.
fn half_of_each() -> Request {
    let constraints = Constraints { spread: true, ..Constraints::default() };
    Request { constraints, ..gang(2, "gpu=4", 60, (60, 120)) }
}

fn whole_node() -> Request {
    gang(1, "gpu=8", 60, (60, 120))
}

fn moves(bed: &Bed) -> usize {
    let moved = |e: &&Event| matches!(e, Event::Moved { .. } | Event::HoldMoved { .. });
    bed.events.iter().filter(moved).count()
}

#[test]
fn a_whole_node_is_found_by_moving_half_of_another_promise() {
    let mut bed = Bed::new(2);
    let first = bed.promise(half_of_each());
    let before = told(&bed.state);
    assert_eq!(oracle::quote(&bed.state, &bid(whole_node()), bed.at), OracleAnswer::NoRoom);
    let quoted = quote(&bed.state, &bid(whole_node()), bed.at).unwrap();
    let second = bed.promise(whole_node());
    assert_eq!(moves(&bed), 1);
    assert_eq!((bed.start_of(second), quoted.start), (min(60), min(60)));
    let mut after = told(&bed.state);
    after.retain(|line| line.0 != second.to_string());
    assert_eq!(before, after);
    // Both start when they were told.
    bed.until(min(60));
    assert_eq!((bed.run(first).len(), bed.run(second).len()), (2, 1));
    assert_eq!(oracle::quote(&bed.state, &bid(whole_node()), bed.at), OracleAnswer::NoRoom);
}

#[test]
fn a_quote_moves_nothing() {
    let mut bed = Bed::new(2);
    bed.promise(half_of_each());
    let before = bed.state.clone();
    quote(&bed.state, &bid(whole_node()), bed.at).unwrap();
    assert_eq!(bed.state, before);
}

#[test]
fn what_is_held_moves_and_is_still_honoured_at_its_price() {
    let mut bed = Bed::new(2);
    let reply = bed.send(Command::Hold { key: None, bid: bid(half_of_each()) });
    let Reply::Held { hold, quote: held, .. } = reply else { panic!("{reply:?}") };
    bed.promise(whole_node());
    assert_eq!(moves(&bed), 1);
    let terms = era_core::input::Terms::Hold {
        hold,
        overrun: era_core::job::Overrun::Stop,
        release_when_idle: false,
    };
    let job = crate::bed::new_job(crate::bed::ALICE, terms);
    let reply = bed.send(Command::Submit { key: None, job });
    let Reply::Accepted { quote: Some(honoured), .. } = reply else { panic!("{reply:?}") };
    assert_eq!(honoured, held);
}

#[test]
fn several_promises_move_for_a_gang() {
    let mut bed = Bed::new(4);
    let constraints = Constraints { spread: true, ..Constraints::default() };
    bed.promise(Request { constraints, ..gang(4, "gpu=4", 60, (60, 120)) });
    let before = told(&bed.state);
    let wide = gang(2, "gpu=8", 30, (60, 120));
    assert_eq!(oracle::quote(&bed.state, &bid(wide.clone()), bed.at), OracleAnswer::NoRoom);
    let job = bed.promise(wide);
    assert_eq!(moves(&bed), 2);
    let mut after = told(&bed.state);
    after.retain(|line| line.0 != job.to_string());
    assert_eq!(before, after);
}

#[test]
fn what_runs_stays_where_it_is() {
    let mut bed = Bed::new(2);
    let constraints = Constraints { spread: true, ..Constraints::default() };
    bed.promise(Request { constraints, ..gang(2, "gpu=4", 120, (0, 120)) });
    let declined = quote(&bed.state, &bid(whole_node()), bed.at).unwrap_err();
    assert_eq!(declined.refusal, Refusal::NoRoom);
}

#[test]
fn a_promise_that_may_not_share_a_node_stays_apart() {
    let mut bed = Bed::new(2);
    let constraints = Constraints { per_node_max: Some(1), ..Constraints::default() };
    bed.promise(Request { constraints, ..gang(2, "gpu=4", 60, (60, 120)) });
    let declined = quote(&bed.state, &bid(whole_node()), bed.at).unwrap_err();
    assert_eq!(declined.refusal, Refusal::NoRoom);
}

#[test]
fn a_promise_moves_only_to_nodes_that_it_may_use() {
    let mut bed = Bed::new(1);
    let labelled = |index: usize| {
        let labels = [(name("zone"), name("east"))].into_iter().collect();
        NewNode { labels, ..node(index) }
    };
    bed.send(Command::Join { nodes: vec![labelled(1)] });
    let east = Constraints {
        labels: [(name("zone"), name("east"))].into_iter().collect(),
        ..Constraints::default()
    };
    // One may only be in the east, the other came to the rest of the cluster.
    bed.promise(Request { constraints: east.clone(), ..gang(1, "gpu=4", 60, (60, 120)) });
    bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let refused = quote(&bed.state, &bid(gang(1, "gpu=5", 60, (60, 120))), bed.at).unwrap_err();
    assert_eq!(refused.refusal, Refusal::NoRoom);
}

#[test]
fn now_or_never_is_never_later() {
    let market = MarketRules {
        mechanism: MechanismChoice::OnDemand { density: Milli::ONE },
        ..MarketRules::default()
    };
    let mut bed = Bed::with(1, Settings::default(), market);
    bed.promise(gang(1, "gpu=8", 30, (0, 30)));
    let declined = quote(&bed.state, &bid(gang(1, "gpu=8", 30, (0, 300))), bed.at).unwrap_err();
    assert_eq!(declined.refusal, Refusal::NoRoom);
}

#[test]
fn room_is_made_only_while_the_run_is_worth_something() {
    let market = MarketRules { floor: Milli(0), ..MarketRules::default() };
    let mut bed = Bed::with(1, Settings::default(), market);
    bed.promise(gang(1, "gpu=8", 60, (0, 60)));
    let mut late = bid(gang(1, "gpu=8", 60, (0, 300)));
    late.value = steps(&[(90, 1000)]);
    let declined = quote(&bed.state, &late, bed.at).unwrap_err();
    assert_eq!(declined.refusal, Refusal::NoRoom);
}

/// Two pools of two nodes, half full, the first one four times as dear as the second.
fn two_pools() -> Bed {
    let mut bed = Bed::new(2);
    let mut cheap = pool("spare");
    cheap.rates.gpu = Money::credits(2);
    bed.done(Command::PutPool { pool: cheap });
    let there = |index: usize| NewNode { pool: name("spare"), ..node(index) };
    bed.send(Command::Join { nodes: vec![there(2), there(3)] });
    for of in ["main", "spare"] {
        let mut request = half_of_each();
        request.constraints.pool = Some(name(of));
        bed.promise(request);
    }
    bed
}

#[test]
fn the_price_of_a_start_made_free_by_moves_does_not_depend_on_the_value() {
    let bed = two_pools();
    let told: Vec<(Money, Name)> = [1_000_000, 100, 20]
        .map(|worth| {
            let mut bid = bid(whole_node());
            bid.value = Value::Flat(Money::credits(worth));
            let quoted = quote(&bed.state, &bid, bed.at).unwrap();
            (quoted.price, quoted.parts[0].pool.clone())
        })
        .to_vec();
    assert_eq!(told[0].1, name("spare"));
    assert!(told.iter().all(|t| *t == told[0]), "{told:?}");
}

/// A cluster in which promises are scattered over the nodes, and bids that want more of a node
/// than is free on any: what they get is often had by moves alone.
#[derive(Clone, Debug)]
struct Scattered {
    nodes: usize,
    second_pool: bool,
    market: MarketRules,
    /// Per hour: a demand for GPUs, and from which density on.
    demand: Vec<(u64, u32)>,
    /// Replicas, GPUs of each, minutes, and the minute of the start.
    promises: Vec<(u32, u32, i64, i64)>,
    /// The same of a bid, then the slack of its window, and how much wider it is made.
    bids: Vec<(Wanted, Wider)>,
}

#[derive(Clone, Debug)]
struct Wanted {
    replicas: u32,
    gpus: u32,
    minutes: i64,
    from: i64,
    slack: i64,
}

#[derive(Clone, Debug)]
struct Wider {
    before: i64,
    after: i64,
}

const HORIZON_MIN: i64 = 480;

fn scattered() -> impl Strategy<Value = Scattered> {
    let density = || (1u32..3000).prop_map(Milli);
    let mechanism = prop_oneof![
        4 => Just(MechanismChoice::BasicEcon),
        1 => density().prop_map(|density| MechanismChoice::FirstFit { density }),
        2 => (1u32..500, 1u32..4000)
            .prop_map(|(low, more)| MechanismChoice::Surge { low: Milli(low), high: Milli(low + more) }),
    ];
    let market = mechanism.prop_map(|mechanism| MarketRules {
        mechanism,
        floor: Milli(1),
        ceiling: Milli(5000),
    });
    let demand = vec((0u64..20_000, 1u32..5000), 9);
    let promises = vec((1u32..4, 1u32..7, 10i64..120, 1i64..300), 2..14);
    let wanted = (1u32..3, 3u32..9, 5i64..100, 0i64..350, prop_oneof![Just(0i64), 0i64..90])
        .prop_map(|(replicas, gpus, minutes, from, slack)| Wanted {
            replicas,
            gpus,
            minutes,
            from,
            slack,
        });
    let wider = (prop_oneof![Just(0i64), 0i64..120], prop_oneof![Just(0i64), 0i64..200, 0i64..900])
        .prop_map(|(before, after)| Wider { before, after });
    (2usize..5, any::<bool>(), market, demand, promises, vec((wanted, wider), 12)).prop_map(
        |(nodes, second_pool, market, demand, promises, bids)| Scattered {
            nodes,
            second_pool,
            market,
            demand,
            promises,
            bids,
        },
    )
}

impl Scattered {
    fn bed(&self) -> Bed {
        let settings = Settings { horizon: Span::from_min(HORIZON_MIN), ..Settings::default() };
        let mut bed = Bed::with(self.nodes, settings, self.market.clone());
        bed.checks = false;
        if self.second_pool {
            let mut spare = pool("spare");
            spare.rates.gpu = Money::credits(3);
            bed.done(Command::PutPool { pool: spare });
            let there = |index: usize| NewNode { pool: name("spare"), ..node(index) };
            bed.send(Command::Join { nodes: vec![there(10), there(11)] });
        }
        let curves = self.demand.iter().enumerate().map(|(hour, (quantity, density))| {
            (min(hour as i64 * 60), Curve::from_parts([(Milli(*density), *quantity)]))
        });
        let series = Series::from_curves(curves);
        let mut forecast = Forecast::default();
        for of in ["main", "spare"].into_iter().take(1 + usize::from(self.second_pool)) {
            let nothing = Series::default();
            forecast.pools.insert(name(of), [nothing.clone(), nothing, series.clone()]);
        }
        bed.done(Command::PublishForecast { forecast: Arc::new(forecast) });
        for (replicas, gpus, minutes, from) in &self.promises {
            let constraints = Constraints { spread: true, ..Constraints::default() };
            let request =
                gang(*replicas, &format!("gpu={gpus}"), *minutes, (*from, from + minutes));
            let bid = bid(Request { constraints, ..request });
            bed.send(Command::Submit { key: None, job: with_bid(bid) });
        }
        bed
    }
}

impl Wanted {
    fn bid(&self, wider: &Wider) -> Bid {
        let window =
            (self.from - wider.before, self.from + self.minutes + self.slack + wider.after);
        bid(gang(self.replicas, &format!("gpu={}", self.gpus), self.minutes, window))
    }
}

/// Runs a property on scattered promises, and insists that moves were really made in it.
fn on_scattered_promises(
    part: u32,
    mut property: impl FnMut(&Bed, &[(Wanted, Wider)]) -> Result<usize, TestCaseError>,
) {
    let config = ProptestConfig { failure_persistence: None, ..some_cases(part) };
    let cases = config.cases as usize;
    let by_moves = Cell::new(0);
    let property = std::cell::RefCell::new(&mut property);
    let outcome = TestRunner::new(config).run(&scattered(), |world| {
        let found = property.borrow_mut()(&world.bed(), &world.bids)?;
        by_moves.set(by_moves.get() + found);
        Ok(())
    });
    if let Err(failed) = outcome {
        panic!("{failed}");
    }
    // About one in seven needs them: half of that is far from chance, with any seed.
    assert!(by_moves.get() * 20 >= cases, "moves in {} of {cases} cases", by_moves.get());
}

#[test]
fn a_wider_window_never_costs_more_even_where_promises_move() {
    on_scattered_promises(1, |bed, bids| {
        let mut by_moves = 0;
        for (wanted, wider) in bids {
            let narrow = wanted.bid(&Wider { before: 0, after: 0 });
            let wide = wanted.bid(wider);
            let Ok(told) = quote(&bed.state, &narrow, bed.at) else { continue };
            let moved = oracle::quote(&bed.state, &narrow, bed.at) == OracleAnswer::NoRoom;
            by_moves += usize::from(moved);
            let wider = quote(&bed.state, &wide, bed.at)
                .map_err(|d| TestCaseError::fail(format!("{told:?}, wider {:?}", d.refusal)))?;
            prop_assert!(wider.price <= told.price, "{told:?}, wider {wider:?}, moved {moved}");
        }
        Ok(by_moves)
    });
}

#[test]
fn splitting_a_gang_that_was_made_room_for_never_costs_less() {
    on_scattered_promises(4, |bed, bids| {
        let mut by_moves = 0;
        for (wanted, wider) in bids {
            let whole = Wanted { replicas: wanted.replicas.max(2), ..wanted.clone() };
            let bid = whole.bid(wider);
            let Ok(told) = quote(&bed.state, &bid, bed.at) else { continue };
            by_moves +=
                usize::from(oracle::quote(&bed.state, &bid, bed.at) == OracleAnswer::NoRoom);
            let mut split = Bed { state: bed.state.clone(), checks: false, ..Bed::new(0) };
            split.at = bed.at;
            let mut sum = Some(0);
            for _ in 0..whole.replicas {
                let mut part = bid.clone();
                let request = &mut part.one_of[0].all_of[0];
                request.shape = Shape::gang(1);
                request.window = Window { earliest: told.start, deadline: told.finish };
                request.constraints.pool = Some(told.parts[0].pool.clone());
                sum = match split.send(Command::Hold { key: None, bid: part }) {
                    Reply::Held { quote, .. } => sum.map(|sum| sum + quote.price.0),
                    _ => None,
                };
            }
            prop_assert!(sum.is_none_or(|sum| sum >= told.price.0), "{sum:?} for parts, {told:?}");
        }
        Ok(by_moves)
    });
}
