//! What prices promise: they are the paper's, they do not depend on the value, and neither a
//! wider window nor splitting a request beats them. The menu and the counter-offers tell the
//! prices that a bid then gets.

use std::sync::Arc;

use era_core::bid::{Bid, Constraints, Request, Shape, Value, Window};
use era_core::cluster::Rates;
use era_core::forecast::{Curve, Forecast, Series};
use era_core::input::NewNode;
use era_core::market::MarketRules;
use era_core::offer::Offer;
use era_core::oracle::{self, OracleAnswer};
use era_core::quote::menu;
use era_core::resources::Capacity;
use era_core::settings::Settings;
use era_core::units::{Milli, Money, Span, Time};
use era_core::{Command, Refusal, Reply, quote};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bed::{ALICE, Bed, T0, gang, min, name, node, pool};
use crate::worlds::{Ask, ask, bed_of, lived_in, some_cases, with_bid};

/// More than anything in these worlds costs.
const PLENTY: Money = Money::credits(1_000_000);

/// The paper's Basic-Econ on plain arrays: total price and start, or `None`.
struct Paper {
    capacity: u64,
    /// Per slot: units wanted at exactly each price.
    demand: Vec<Vec<(u64, u64)>>,
    promised: Vec<u64>,
}

impl Paper {
    fn price(&self, t: usize, i: u64) -> Option<u64> {
        let demand = |p: u64| self.demand[t].iter().filter(|d| d.0 >= p).map(|d| d.1).sum::<u64>();
        let over = |p: u64| demand(p) + self.promised[t] + i > self.capacity;
        (self.promised[t] + i <= self.capacity)
            .then(|| (1..=10_000).rev().find(|p| over(*p)).unwrap_or(0))
    }

    fn cheapest(&self, w: u64, t: usize, a: usize, d: usize) -> Option<(u64, usize)> {
        let cost = |t: usize| (1..=w).map(|i| self.price(t, i)).sum::<Option<u64>>();
        let total = |s: usize| (s..s + t).map(cost).sum::<Option<u64>>();
        (a..=d - t).filter_map(|s| Some((total(s)?, s))).min()
    }
}

proptest! {
    #![proptest_config(some_cases(1))]

    /// A unit is a thousandth of a core, and a core costs 60 credits an hour: a unit for a slot of
    /// a minute at density `p` thousandths costs `p` micro-credits.
    #[test]
    fn with_floor_zero_base_rate_one_and_one_pool_the_price_is_the_papers(
        capacity in 1u64..30,
        demand in vec(vec((1u64..40, 1u64..20), 0..4), 20),
        requests in vec((1u64..12, 1usize..7, 0usize..14, 0usize..10, 0i64..2000), 1..12),
    ) {
        let rules = MarketRules { floor: Milli(0), ceiling: Milli(10_000), ..MarketRules::default() };
        let settings = Settings { horizon: Span::from_min(25), ..Settings::default() };
        let mut bed = Bed::with(0, settings, rules);
        let rates = Rates { cpu: Money::credits(60), memory: Money::ZERO, gpu: Money::ZERO };
        bed.done(Command::PutPool { pool: era_core::cluster::Pool { rates, ..pool("main") } });
        let capacity_of = Capacity { cpu: capacity as u32, ..Capacity::default() };
        bed.send(Command::Join { nodes: vec![NewNode { capacity: capacity_of, ..node(0) }] });
        let curve = |parts: &Vec<(u64, u64)>| {
            Curve::from_parts(parts.iter().map(|(p, q)| (Milli(*p as u32), *q)))
        };
        let slots = demand.iter().enumerate().map(|(t, parts)| (min(t as i64), curve(parts)));
        let mut forecast = Forecast::default();
        let nothing = Series::default();
        forecast.pools.insert(name("main"), [Series::from_curves(slots), nothing.clone(), nothing]);
        bed.done(Command::PublishForecast { forecast: Arc::new(forecast) });

        let mut paper = Paper { capacity, demand, promised: vec![0; 20] };
        for (w, t, a, slack, value) in requests {
            let d = (a + t + slack).min(20);
            let request = gang(1, &format!("cpu={w}m"), t as i64, (a as i64, d as i64));
            let bid = Bid::single(ALICE, request, Money(value));
            let answer = quote(&bed.state, &bid, bed.at);
            match paper.cheapest(w, t, a, d) {
                Some((total, start)) if total <= value as u64 => {
                    let quoted = answer.unwrap();
                    prop_assert_eq!(quoted.price, Money(total as i64));
                    prop_assert_eq!(quoted.start, min(start as i64));
                    bed.send(Command::Submit { key: None, job: with_bid(bid) });
                    for promised in &mut paper.promised[start..start + t] {
                        *promised += w;
                    }
                }
                Some((total, _)) => {
                    prop_assert_eq!(answer.unwrap_err().counter.value, Some(Money(total as i64)));
                }
                None => prop_assert!(answer.is_err()),
            }
        }
    }
}

fn flat(bid: &Bid, worth: Money) -> Bid {
    Bid { value: Value::Flat(worth), ..bid.clone() }
}

fn with_request(bid: &Bid, change: impl FnOnce(&mut Request)) -> Bid {
    let mut bid = bid.clone();
    change(&mut bid.one_of[0].all_of[0]);
    bid
}

/// Whether the plain search has room for it.
fn plain(bed: &Bed, bid: &Bid) -> bool {
    oracle::quote(&bed.state, &flat(bid, PLENTY), bed.at) != OracleAnswer::NoRoom
}

proptest! {
    #![proptest_config(some_cases(1))]

    #[test]
    fn the_price_told_never_depends_on_the_value(
        lived in lived_in(), asks in vec((ask(), 0i64..3_000_000), 1..6),
    ) {
        let bed = bed_of(&lived);
        for (ask, more) in asks {
            let bid = ask.bid(bed.at);
            // Whatever is bid, the same start costs the same, and the least value that wins is
            // the price.
            if let Ok(most) = quote(&bed.state, &flat(&bid, PLENTY), bed.at) {
                for worth in [most.price, Money(most.price.0 + more)] {
                    prop_assert_eq!(&quote(&bed.state, &flat(&bid, worth), bed.at).unwrap(), &most);
                }
                if most.price > Money::ZERO {
                    let less = Money(most.price.0 - 1);
                    prop_assert!(quote(&bed.state, &flat(&bid, less), bed.at).is_err());
                }
            }
            // A value that falls in steps picks the start; raising all of it changes nothing.
            let Value::Steps(steps) = &bid.value else { continue };
            let Ok(quoted) = quote(&bed.state, &bid, bed.at) else { continue };
            let mut raised = steps.clone();
            raised.iter_mut().for_each(|step| step.worth = Money(step.worth.0 + more));
            let raised = Bid { value: Value::Steps(raised), ..bid.clone() };
            prop_assert_eq!(&quote(&bed.state, &raised, bed.at).unwrap(), &quoted);
            // And the start that it picks costs what it costs anybody.
            let pool = quoted.parts[0].pool.clone();
            let there = with_request(&flat(&bid, PLENTY), |r| {
                r.window = Window { earliest: quoted.start, deadline: quoted.finish };
                r.constraints.pool = Some(pool);
            });
            prop_assert_eq!(&quote(&bed.state, &there, bed.at).unwrap(), &quoted);
        }
    }

    #[test]
    fn a_wider_window_never_costs_more(
        lived in lived_in(), asks in vec((ask(), 0i64..4_000_000, 0i64..9_000_000), 1..8),
    ) {
        let bed = bed_of(&lived);
        for (ask, before, after) in asks {
            let bid = flat(&ask.bid(bed.at), PLENTY);
            let wider = with_request(&bid, |r| {
                r.window.earliest = r.window.earliest - Span(before);
                r.window.deadline = r.window.deadline + Span(after);
            });
            if !plain(&bed, &bid) {
                continue;
            }
            let (narrow, wide) =
                (quote(&bed.state, &bid, bed.at).unwrap(), quote(&bed.state, &wider, bed.at).unwrap());
            prop_assert!(wide.price <= narrow.price, "{wide:?} / {narrow:?}");
        }
    }

    #[test]
    fn splitting_a_gang_over_the_same_slots_never_costs_less(
        lived in lived_in(), asks in vec((ask(), 1u32..6), 1..8),
    ) {
        let bed = bed_of(&lived);
        for (ask, first) in asks {
            let Shape::Replicas { min: replicas, .. } = ask.shape else { continue };
            let Ok(whole) = quote(&bed.state, &flat(&ask.bid(bed.at), PLENTY), bed.at) else {
                continue;
            };
            if first >= replicas || !plain(&bed, &ask.bid(bed.at)) {
                continue;
            }
            // Both parts in the same pool, at the same time.
            let part = |replicas: u32| {
                with_request(&flat(&ask.bid(bed.at), PLENTY), |r| {
                    r.shape = Shape::gang(replicas);
                    r.window = Window { earliest: whole.start, deadline: whole.finish };
                    r.constraints.pool = Some(whole.parts[0].pool.clone());
                })
            };
            let mut split = Bed { state: bed.state.clone(), ..Bed::new(0) };
            split.at = bed.at;
            let mut sum = 0;
            for replicas in [first, replicas - first] {
                match split.send(Command::Hold { key: None, bid: part(replicas) }) {
                    Reply::Held { quote, .. } => sum += quote.price.0,
                    // Kept nodes are for large requests; a part may not be one.
                    _ => sum = i64::MAX,
                }
                if sum == i64::MAX {
                    break;
                }
            }
            prop_assert!(sum >= whole.price.0, "{sum} for both, {whole:?}");
        }
    }

    #[test]
    fn every_line_of_the_menu_is_what_a_bid_for_that_deadline_gets(
        lived in lived_in(), asks in vec((ask(), 0i64..9_000_000), 1..4),
    ) {
        let bed = bed_of(&lived);
        for (ask, later) in asks {
            let bid = flat(&ask.bid(bed.at), PLENTY);
            let Ok(lines) = menu(&bed.state, &bid, bed.at) else { continue };
            let by = |deadline: Time| with_request(&bid, |r| r.window.deadline = deadline);
            for line in &lines {
                let quoted = quote(&bed.state, &by(line.by), bed.at).unwrap();
                prop_assert_eq!(quoted.price, line.price);
                prop_assert!(plain(&bed, &by(line.by)));
            }
            prop_assert!(lines.windows(2).all(|w| w[0].by < w[1].by && w[0].price > w[1].price));
            match lines.first() {
                Some(first) => prop_assert!(!plain(&bed, &by(Time(first.by.0 - 1)))),
                None => prop_assert!(!plain(&bed, &by(bed.at + Span::from_days(1)))),
            }
            // A deadline between two lines costs what the line before it says.
            let Some(first) = lines.first() else { continue };
            let deadline = first.by + Span(later);
            let line = lines.iter().rfind(|line| line.by <= deadline).unwrap();
            prop_assert_eq!(quote(&bed.state, &by(deadline), bed.at).unwrap().price, line.price);
        }
    }
}

/// A counter-offer, taken: the same start for the same price.
fn assert_taken(bed: &Bed, bid: &Bid, offer: Offer) {
    let quoted = quote(&bed.state, bid, bed.at).unwrap();
    assert_eq!(
        (quoted.start, quoted.finish, quoted.price),
        (offer.start, offer.finish, offer.price)
    );
}

/// Everything that is offered in place of a bid without room is accepted, and nothing nearer is.
fn check_counter_offers(bed: &Bed, ask: &Ask) {
    let bid = flat(&ask.bid(bed.at), PLENTY);
    let Err(declined) = quote(&bed.state, &bid, bed.at) else { return };
    if declined.refusal != Refusal::NoRoom {
        return;
    }
    let (counter, slot) = (declined.counter, bed.state.settings().slot);
    let request = &bid.one_of[0].all_of[0];
    match counter.window {
        Some(offer) if offer.finish > request.window.deadline => {
            let later = |deadline| with_request(&bid, |r| r.window.deadline = deadline);
            assert_taken(bed, &later(offer.finish), offer);
            assert!(!plain(bed, &later(Time(offer.finish.0 - 1))));
        }
        Some(offer) => {
            let earlier = |earliest| with_request(&bid, |r| r.window.earliest = earliest);
            assert_taken(bed, &earlier(offer.start), offer);
            // To the slot: now and the next boundary may lie in one.
            assert!(!plain(bed, &earlier(offer.start + slot)));
        }
        None => {
            let whenever = Window { earliest: Time(0), deadline: Time::LATEST };
            assert!(!plain(bed, &with_request(&bid, |r| r.window = whenever)));
        }
    }
    let sized = |n: u32| {
        with_request(&bid, |r| match &mut r.shape {
            Shape::Replicas { min, max } => (*min, *max) = (n, n),
            Shape::Gpus { total } => *total = n,
        })
    };
    if let Some((size, offer)) = counter.size {
        assert_taken(bed, &sized(size), offer);
    }
    let size = counter.size.map_or(0, |(size, _)| size);
    // Nodes may be kept for large requests, so that more can fit than less: only the next is sure.
    if size + 1 < request.shape.promised() && ask_keeps_no_nodes(bed) {
        assert!(!plain(bed, &sized(size + 1)));
    }
    let lasting = |duration: Span| with_request(&bid, |r| r.duration = duration);
    if let Some((duration, offer)) = counter.duration {
        assert_taken(bed, &lasting(duration), offer);
    }
    let longer = counter.duration.map_or(Span::ZERO, |(duration, _)| duration).0 + slot.0;
    if longer < request.duration.0 {
        assert!(!plain(bed, &lasting(Span(longer))));
    }
}

fn ask_keeps_no_nodes(bed: &Bed) -> bool {
    bed.state.cluster().nodes().all(|node| node.kept.is_none())
}

proptest! {
    #![proptest_config(some_cases(1))]

    #[test]
    fn counter_offers_are_accepted_and_nothing_nearer_is(
        lived in lived_in(), asks in vec(ask(), 1..8),
    ) {
        let bed = bed_of(&lived);
        for ask in &asks {
            check_counter_offers(&bed, ask);
        }
    }
}

#[test]
fn a_run_may_begin_in_the_slot_in_progress_and_pays_for_its_milliseconds() {
    let mut bed = Bed::new(1);
    bed.at = T0 + Span(59_999);
    bed.send(Command::Tick);
    let request = Request {
        duration: Span(1500),
        window: Window { earliest: T0, deadline: min(2) },
        constraints: Constraints::default(),
        ..gang(1, "cpu=1", 1, (0, 2))
    };
    let quoted = quote(&bed.state, &Bid::single(ALICE, request, PLENTY), bed.at).unwrap();
    // Half the base rate is the floor: 1,500 ms of a core at 0.5 credits an hour, rounded up.
    assert_eq!((quoted.start, quoted.price), (bed.at, Money(209)));
}
