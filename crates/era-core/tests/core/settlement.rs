//! Money by rule, and the market: what is refunded, what overrunning costs, how prices are made.

use era_core::bid::Bid;
use era_core::job::{Outcome, StopReason};
use era_core::ledger::Account;
use era_core::market::{MarketRules, MechanismChoice};
use era_core::quote::{menu, price_calendar};
use era_core::settings::Settings;
use era_core::units::{Milli, Money, Span};
use era_core::{Command, Effect, Event, Refusal, Reply, quote};

use crate::bed::{ALICE, BOB, Bed, bid, gang, min, name};
use crate::verbs::credits;

fn market(nodes: usize, mechanism: MechanismChoice, floor: u32, ceiling: u32) -> Bed {
    let rules = MarketRules { mechanism, floor: Milli(floor), ceiling: Milli(ceiling) };
    Bed::with(nodes, Settings::default(), rules)
}

#[test]
fn an_early_finish_refunds_eighty_percent_of_what_was_not_used() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.promise(gang(1, "gpu=1", 60, (0, 60)));
    bed.run(job);
    bed.until(min(45));
    bed.finish(job);
    // 4 credits an hour: a quarter was not used, and 80 % of one credit comes back.
    assert_eq!(bed.wallet(ALICE), before.minus(Money(3_200_000)).unwrap());
    assert_eq!(bed.state.ledger().balance(Account::Revenue), Money(3_200_000));
}

#[test]
fn the_house_may_refund_otherwise() {
    let mut bed = Bed::new(1);
    bed.set(|s| s.refund_unused = Milli(0));
    let before = bed.wallet(ALICE);
    let job = bed.promise(gang(1, "gpu=1", 60, (0, 60)));
    bed.run(job);
    bed.finish(job);
    assert_eq!(bed.wallet(ALICE), before.minus(credits(4)).unwrap());
}

#[test]
fn queue_work_sets_aside_what_it_may_cost_and_pays_half_the_base_rate_for_what_it_used() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.enqueue(ALICE, gang(1, "gpu=2,cpu=4", 60, (0, 1)), false);
    bed.pass();
    // Two GPUs and four cores: (16 + 4) / 2 an hour.
    assert_eq!(bed.wallet(ALICE), before.minus(credits(10)).unwrap());
    bed.run(job);
    bed.until(min(30));
    bed.finish(job);
    assert_eq!(bed.wallet(ALICE), before.minus(credits(5)).unwrap());
}

#[test]
fn queue_work_is_stopped_at_its_limit_one_grace_period_before() {
    let mut bed = Bed::new(1);
    let job = bed.enqueue(ALICE, gang(1, "gpu=2", 60, (0, 1)), false);
    bed.pass();
    bed.run(job);
    bed.until(min(60) - Span::from_s(31));
    bed.assert_quiet();
    bed.until(min(60) - Span::from_s(30));
    let (_, why, until) = bed.take_stop();
    assert_eq!((why, until), (StopReason::Limit, min(60)));
    bed.until(min(60));
    assert_eq!(bed.outcome(job), Some(Outcome::LimitReached));
}

#[test]
fn a_job_that_overruns_is_extended_at_the_market_price_while_capacity_lasts() {
    let mut bed = Bed::new(1);
    let job = bed.promise_extending(gang(1, "gpu=8", 60, (0, 60)));
    let tasks = bed.run(job);
    let his = Bid { user: BOB, ..bid(gang(1, "gpu=8", 60, (80, 140))) };
    assert!(matches!(bed.submit(his), Reply::Accepted { .. }));
    let before = bed.wallet(ALICE);
    bed.until(min(60));
    // Ten minutes of eight GPUs at half of 8 an hour, rounded up once.
    let price = Money(5_333_334);
    assert_eq!(bed.wallet(ALICE), before.minus(price).unwrap());
    assert!(bed.saw(|e| *e == Event::Extended { job, part: 0, to: min(70), price }));
    let prolong = Effect::Prolong { task: tasks[0], node: crate::verbs::n(0), until: min(70) };
    assert_eq!(bed.effects.pop_front(), Some(prolong));
    bed.until(min(70));
    bed.effects.clear();
    // At 80 the next promise starts: the stop signal comes one grace period before.
    bed.until(min(80) - Span::from_s(30));
    let (_, why, until) = bed.take_stop();
    assert_eq!((why, until), (StopReason::Limit, min(80)));
}

#[test]
fn a_job_that_may_not_overrun_or_cannot_pay_is_stopped_in_time() {
    for extends in [false, true] {
        let mut bed = Bed::new(1);
        let request = gang(1, "gpu=8", 60, (0, 60));
        let job = if extends { bed.promise_extending(request) } else { bed.promise(request) };
        bed.run(job);
        bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
        bed.until(min(60) - Span::from_s(30));
        assert_eq!(bed.take_stop().1, StopReason::Limit);
        bed.until(min(60));
        assert_eq!(bed.outcome(job), Some(Outcome::LimitReached));
        assert_eq!(bed.wallet(ALICE), Money(0), "all of it was used");
    }
}

#[test]
fn the_cheapest_start_wins_and_the_earliest_among_equals() {
    let mut bed = market(1, MechanismChoice::named(&name("surge")).unwrap(), 0, 100_000);
    bed.promise(gang(1, "gpu=4", 60, (0, 60)));
    let told = quote(&bed.state, &bid(gang(1, "gpu=1", 30, (0, 600))), bed.at).unwrap();
    assert_eq!(told.start, min(60), "surge is lowest where nothing is promised");
    let hurried = quote(&bed.state, &bid(gang(1, "gpu=1", 30, (0, 60))), bed.at).unwrap();
    assert!(hurried.price > told.price);
}

#[test]
fn first_fit_has_one_price_and_takes_the_earliest_start() {
    let fixed = MechanismChoice::FirstFit { density: Milli(2000) };
    let mut bed = market(1, fixed, 0, 100_000);
    bed.promise(gang(1, "gpu=8", 60, (0, 60)));
    let told = quote(&bed.state, &bid(gang(1, "gpu=1", 60, (0, 600))), bed.at).unwrap();
    assert_eq!((told.start, told.price), (min(60), credits(16)));
}

#[test]
fn on_demand_is_now_or_never() {
    let mut bed = market(1, MechanismChoice::named(&name("on-demand")).unwrap(), 0, 100_000);
    bed.at = min(0) + Span::from_s(7);
    let told = quote(&bed.state, &bid(gang(1, "gpu=8", 60, (0, 600))), bed.at).unwrap();
    assert_eq!((told.start, told.price), (bed.at, credits(64)), "now is no slot boundary");
    let Reply::Accepted { .. } = bed.submit(bid(gang(1, "gpu=8", 60, (0, 600)))) else { panic!() };
    let later = quote(&bed.state, &bid(gang(1, "gpu=8", 60, (0, 600))), bed.at).unwrap_err();
    assert_eq!(later.refusal, Refusal::NoRoom);
    let future = quote(&bed.state, &bid(gang(1, "gpu=1", 60, (60, 600))), bed.at).unwrap_err();
    assert_eq!(future.refusal, Refusal::NoRoom, "not at a time to come");
}

#[test]
fn no_price_is_below_the_floor_or_above_the_ceiling() {
    let surge = MechanismChoice::Surge { low: Milli(100), high: Milli(900_000) };
    let mut bed = market(1, surge, 700, 3000);
    let price = |bed: &Bed, gpus: u32| {
        let wish = bid(gang(1, &format!("gpu={gpus}"), 60, (0, 60)));
        quote(&bed.state, &wish, bed.at).unwrap().price
    };
    assert_eq!(price(&bed, 1), Money(5_600_000), "0.7 times 8");
    bed.promise(gang(1, "gpu=7", 60, (0, 60)));
    assert_eq!(price(&bed, 1), credits(24), "3 times 8");
}

#[test]
fn the_price_calendar_shows_each_slot_with_what_is_promised_and_what_could_be() {
    let fixed = MechanismChoice::named(&name("surge")).unwrap();
    let mut bed = market(1, fixed, 0, 100_000);
    bed.promise(gang(1, "gpu=4", 2, (1, 3)));
    let slots = price_calendar(&bed.state, &name("main"), min(0), min(4)).unwrap();
    assert_eq!(slots.iter().map(|s| s.from).collect::<Vec<_>>(), [0, 1, 2, 3].map(min));
    assert_eq!(slots.iter().map(|s| s.promised[2]).collect::<Vec<_>>(), [0, 4000, 4000, 0]);
    assert!(slots.iter().all(|s| s.capacity == [64_000, 512 * 1024, 8000]));
    // Half-way from 0.5 to 5 on an exponential: √(0.5 × 5).
    let gpus: Vec<u32> = slots.iter().map(|s| s.density[2].0).collect();
    assert_eq!(gpus, [500, 1581, 1581, 500]);
}

#[test]
fn the_menu_says_what_each_later_deadline_saves() {
    let mut bed = market(1, MechanismChoice::named(&name("surge")).unwrap(), 0, 100_000);
    bed.promise(gang(1, "gpu=6", 60, (0, 60)));
    bed.promise(gang(1, "gpu=3", 60, (60, 120)));
    let wish = bid(gang(1, "gpu=1", 60, (0, 200)));
    let lines = menu(&bed.state, &wish, bed.at).unwrap();
    assert!(lines.is_sorted_by(|a, b| a.by < b.by && a.price > b.price), "{lines:?}");
    assert_eq!(lines.first().unwrap().start, min(0));
    assert_eq!(lines.last().unwrap().start, min(120));
    for line in &lines {
        let mut by_then = wish.clone();
        by_then.one_of[0].all_of[0].window.deadline = line.by;
        let told = quote(&bed.state, &by_then, bed.at).unwrap();
        assert_eq!((told.price, told.start), (line.price, line.start));
    }
}

#[test]
fn a_refusal_offers_the_least_value_the_nearest_window_size_and_duration() {
    let mut bed = Bed::new(2);
    let poor = Bid::single(ALICE, gang(1, "gpu=8", 60, (0, 60)), credits(10));
    let declined = quote(&bed.state, &poor, bed.at).unwrap_err();
    assert_eq!(declined.refusal, Refusal::TooDear { price: credits(32), value: credits(10) });
    assert_eq!(declined.counter.value, Some(credits(32)));
    let enough = Bid { value: era_core::bid::Value::Flat(credits(32)), ..poor };
    assert!(quote(&bed.state, &enough, bed.at).is_ok());

    // One node is taken from 0 to 120, the other from 40 to 80.
    bed.promise(gang(1, "gpu=8", 120, (0, 120)));
    bed.promise(gang(1, "gpu=8", 40, (40, 80)));
    let wish = bid(gang(2, "gpu=8", 60, (0, 80)));
    let declined = quote(&bed.state, &wish, bed.at).unwrap_err();
    assert_eq!(declined.refusal, Refusal::NoRoom);
    assert_eq!(declined.counter.window.unwrap().start, min(120));
    assert_eq!(declined.counter.size, None, "not even one fits for an hour");
    assert_eq!(declined.counter.duration, None, "nor two for a minute");
    let one = bid(gang(1, "gpu=8", 60, (0, 80)));
    let declined = quote(&bed.state, &one, bed.at).unwrap_err();
    assert_eq!(declined.counter.duration.unwrap().0, Span::from_min(40));
    let four = bid(gang(4, "gpu=4", 40, (0, 80)));
    let declined = quote(&bed.state, &four, bed.at).unwrap_err();
    assert_eq!(declined.counter.size.unwrap().0, 2);
}

#[test]
fn money_that_is_refused_is_nowhere_lost() {
    let mut bed = Bed::new(1);
    let all: i64 = bed.state.ledger().balances().map(|(_, m)| m.0).sum();
    assert_eq!(all, 0);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    bed.run(job);
    bed.until(min(20));
    bed.finish(job);
    assert_eq!(bed.state.ledger().balances().map(|(_, m)| m.0).sum::<i64>(), 0);
}
