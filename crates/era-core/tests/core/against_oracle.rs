//! The core against the naive oracle, on random worlds, histories and bids.

use era_core::bid::{Bid, Shape, Topology, Value};
use era_core::input::NewNode;
use era_core::oracle::{self, OracleAnswer};
use era_core::units::{Money, NodeId, Span, Time};
use era_core::{Command, Event, Refusal, Reply, State, quote};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::bed::{Bed, bid, gang, min, name, node, pool};
use crate::worlds::{Act, act, ask, bed_of, lived_in, some_cases, with_bid, world};

/// When and at what price everything that was promised or held takes place.
pub(crate) fn told(state: &State) -> Vec<(String, Time, Time, Money)> {
    let mut told = Vec::new();
    for job in state.jobs().filter(|job| job.promise().is_some() && job.ended.is_none()) {
        for part in &job.parts {
            for plan in part.plan().into_iter().chain(part.next()) {
                told.push((format!("{}", job.id), plan.from, plan.to, part.escrow()));
            }
        }
    }
    for hold in state.holds() {
        for (plan, price) in &hold.parts {
            told.push((format!("{}", hold.id), plan.from, plan.to, *price));
        }
    }
    told
}

/// The oracle found no room, the core did: only by moving promises, and none of them changes.
fn assert_made_room_by_moves(bed: &Bed, bid: &Bid) {
    let mut bed = Bed {
        state: bed.state.clone(),
        at: bed.at,
        inputs: Vec::new(),
        events: Vec::new(),
        effects: Default::default(),
        checks: true,
    };
    let before = told(&bed.state);
    let reply = bed.send(Command::Submit { key: None, job: with_bid(bid.clone()) });
    let Reply::Accepted { job, quote: Some(quote), .. } = &reply else { panic!("{reply:?}") };
    let moved = |e: &Event| matches!(e, Event::Moved { .. } | Event::HoldMoved { .. });
    assert!(bed.events.iter().any(moved), "room without a move: {quote:?}");
    let own = format!("{job}");
    let mut after = told(&bed.state);
    after.retain(|line| line.0 != own);
    assert_eq!(before, after);
    let request = &bid.one_of[0].all_of[0];
    assert!(request.window.earliest <= quote.start && quote.finish <= request.window.deadline);
    assert!(quote.price <= bid.value.at(quote.finish));
}

/// Both say the same to a bid; returns the price where there is one.
pub(crate) fn assert_agree(bed: &Bed, bid: &Bid, now: Time) -> Option<Money> {
    let plain = oracle::quote(&bed.state, bid, now);
    let answer = quote(&bed.state, bid, now);
    let context = || format!("{bid:#?}\nat {now}");
    match (&plain, &answer) {
        (OracleAnswer::Accept { price, start, pool }, Ok(quote)) => {
            let told = (quote.price, quote.start, &quote.parts[0].pool);
            assert_eq!(told, (*price, *start, pool), "{}", context());
            Some(*price)
        }
        (OracleAnswer::TooDear { price }, Err(declined)) => {
            let Refusal::TooDear { price: told, .. } = &declined.refusal else {
                panic!("{plain:?} but {declined:?}: {}", context());
            };
            assert_eq!(told, price, "{}", context());
            assert_eq!(declined.counter.value, Some(*price));
            Some(*price)
        }
        (OracleAnswer::NoRoom, Ok(_)) if now == bed.state.now() => {
            assert_made_room_by_moves(bed, bid);
            None
        }
        (OracleAnswer::NoRoom, Ok(_)) => None,
        (OracleAnswer::NoRoom, Err(declined)) => {
            let dear = matches!(declined.refusal, Refusal::TooDear { .. });
            assert!(!dear, "{declined:?} but no room: {}", context());
            None
        }
        _ => panic!("the oracle says {plain:?}, the core {answer:?}: {}", context()),
    }
}

/// The same with the value at and just below the price, where everything is decided.
fn assert_agree_on_the_edge(bed: &Bed, bid: &Bid, now: Time) {
    let Some(price) = assert_agree(bed, bid, now) else { return };
    let flat = |worth: Money| Bid { value: Value::Flat(worth), ..bid.clone() };
    if let Some(cheapest) = assert_agree(bed, &flat(price), now) {
        assert_agree(bed, &flat(cheapest), now);
        if cheapest > Money::ZERO {
            assert_agree(bed, &flat(Money(cheapest.0 - 1)), now);
        }
    }
}

proptest! {
    #![proptest_config(some_cases(1))]

    #[test]
    fn quotes_are_what_the_oracle_says(
        world in world(),
        acts in vec((act(), prop_oneof![3 => Just(0i64), 1 => 1i64..60_000]), 1..40),
        last in vec(ask(), 1..5),
    ) {
        let mut bed = world.bed();
        for (act, later) in &acts {
            if let Act::Submit(ask) | Act::Hold(ask) = act {
                let now = Time(bed.at.0 + later);
                assert_agree_on_the_edge(&bed, &ask.bid(now), now);
                let bid = ask.bid(bed.at);
                let quoted = quote(&bed.state, &bid, bed.at);
                if let Act::Submit(_) = act {
                    let reply = bed.send(Command::Submit { key: None, job: with_bid(bid) });
                    match (reply, quoted) {
                        (Reply::Accepted { quote, .. }, quoted) => {
                            prop_assert_eq!(quote.unwrap(), quoted.unwrap());
                        }
                        (Reply::Refused { refusal, .. }, quoted) => {
                            prop_assert_eq!(refusal, quoted.unwrap_err().refusal);
                        }
                        (reply, _) => panic!("{reply:?}"),
                    }
                    continue;
                }
            }
            bed.act(act);
        }
        for ask in &last {
            assert_agree_on_the_edge(&bed, &ask.bid(bed.at), bed.at);
        }
    }
}

#[test]
fn random_worlds_give_every_kind_of_answer() {
    let mut runner = TestRunner::deterministic();
    let mut draw = || (lived_in(), vec(ask(), 20)).new_tree(&mut runner).unwrap().current();
    let (mut accepted, mut later, mut dear, mut none, mut moved) = (0, 0, 0, 0, 0);
    for _ in 0..100 {
        let (lived, asks) = draw();
        let bed = bed_of(&lived);
        for bid in asks.iter().map(|ask| ask.bid(bed.at)) {
            match (oracle::quote(&bed.state, &bid, bed.at), quote(&bed.state, &bid, bed.at)) {
                (OracleAnswer::Accept { start, .. }, _) => {
                    accepted += 1;
                    later += u32::from(start > bid.one_of[0].all_of[0].window.earliest.max(bed.at));
                }
                (OracleAnswer::TooDear { .. }, _) => dear += 1,
                (OracleAnswer::NoRoom, Ok(_)) => moved += 1,
                (OracleAnswer::NoRoom, Err(_)) => none += 1,
            }
        }
    }
    let counts = [accepted, later, dear, none];
    assert!(counts.iter().all(|count| *count >= 100) && moved > 0, "{counts:?} {moved}");
}

#[test]
fn a_total_of_gpus_in_one_place_is_not_split_over_others() {
    let mut bed = Bed::new(0);
    let racked =
        |index: usize| NewNode { rack: Some(name(&format!("r{}", index / 2))), ..node(index) };
    bed.send(Command::Join { nodes: (0..4).map(racked).collect() });
    let total = |total: u32, same: Topology| {
        let mut request = gang(1, "gpu=1", 60, (0, 60));
        request.shape = Shape::Gpus { total };
        request.constraints.same = Some(same);
        bid(request)
    };
    let fits = |bed: &Bed, total: &Bid| {
        assert_agree(bed, total, bed.at);
        let quoted = quote(&bed.state, total, bed.at).is_ok();
        let reply =
            Bed { state: bed.state.clone(), at: bed.at, ..Bed::new(0) }.submit(total.clone());
        assert_eq!(quoted, matches!(reply, Reply::Accepted { .. }));
        quoted
    };
    assert!(fits(&bed, &total(8, Topology::Node)));
    assert!(!fits(&bed, &total(9, Topology::Node)));
    assert!(fits(&bed, &total(16, Topology::Rack)));
    assert!(!fits(&bed, &total(17, Topology::Rack)));
    // Room for the larger part in one rack and for the smaller part in another is no room.
    bed.promise(gang(1, "gpu=6", 60, (0, 60)));
    bed.promise(gang(2, "gpu=8", 60, (0, 60)));
    assert!(!fits(&bed, &total(11, Topology::Rack)));
    assert!(fits(&bed, &total(10, Topology::Rack)));
}

#[test]
fn a_node_that_is_away_twice_in_a_slot_is_missed_once() {
    let mut bed = Bed::new(2);
    let at = |s: i64| min(10) + Span::from_s(s);
    let windows = vec![(at(5), at(10)), (at(10), at(15)), (at(40), at(70))];
    bed.done(Command::SetMaintenance { node: NodeId(0), windows });
    let prices =
        era_core::quote::price_calendar(&bed.state, &name("main"), min(9), min(13)).unwrap();
    let gpus: Vec<u64> = prices.iter().map(|slot| slot.capacity[2]).collect();
    assert_eq!(gpus, [16_000, 8000, 8000, 16_000]);
    assert_agree(&bed, &bid(gang(2, "gpu=8", 5, (5, 30))), bed.at);
}

#[test]
fn prices_are_compared_before_they_are_rounded() {
    let mut bed = Bed::new(1);
    let mut cheaper = pool("spare");
    cheaper.rates.cpu = Money(900_000);
    bed.done(Command::PutPool { pool: cheaper });
    bed.send(Command::Join { nodes: vec![NewNode { pool: name("spare"), ..node(1) }] });
    // Less than a micro-credit in either pool, and still not the same.
    let mut request = gang(1, "cpu=1m", 1, (0, 1));
    request.duration = Span::from_s(1);
    assert_agree(&bed, &bid(request.clone()), bed.at);
    let quoted = quote(&bed.state, &bid(request), bed.at).unwrap();
    assert_eq!((quoted.price, &quoted.parts[0].pool), (Money(1), &name("spare")));
}
