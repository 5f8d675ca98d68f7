//! The second try: promises that have not started move to other seats, and nothing else about
//! them changes.

use era_core::bid::{Constraints, Request, Value};
use era_core::input::NewNode;
use era_core::market::{MarketRules, MechanismChoice};
use era_core::oracle::{self, OracleAnswer};
use era_core::settings::Settings;
use era_core::units::{Milli, Money, Name};
use era_core::{Command, Event, Refusal, Reply, quote};

use crate::against_oracle::told;
use crate::bed::{Bed, bid, gang, min, name, node, pool, steps};

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
