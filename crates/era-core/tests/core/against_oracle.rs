//! The core against the naive oracle, on random worlds, histories and bids.

use era_core::bid::{Bid, Value};
use era_core::oracle::{self, OracleAnswer};
use era_core::units::{Money, Time};
use era_core::{Command, Event, Refusal, Reply, State, quote};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bed::Bed;
use crate::worlds::{Act, act, ask, some_cases, with_bid, world};

/// When and at what price everything that was promised or held takes place.
pub(crate) fn told(state: &State) -> Vec<(String, Time, Time, Money)> {
    let mut told = Vec::new();
    for job in state.jobs().filter(|job| job.promise().is_some() && job.ended.is_none()) {
        for part in &job.parts {
            for plan in part.plan.iter().chain(&part.next) {
                told.push((format!("{}", job.id), plan.from, plan.to, part.escrow));
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
    let Reply::Accepted { job, quote: Some(quote) } = &reply else { panic!("{reply:?}") };
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
