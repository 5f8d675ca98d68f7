//! Handing jobs in: bids, holds, queues, and keys that make a repetition harmless.

use era_core::accounts::Actor;
use era_core::bid::{Alternative, Bid, Shape, Value};
use era_core::input::Terms;
use era_core::job::Overrun;
use era_core::units::{HoldId, JobId, Span};
use era_core::{Command, Event, Refusal, Reply, quote};

use crate::bed::{ALICE, BOB, Bed, bid, by, gang, min, name, new_job, steps};
use crate::verbs::{credits, for_queue, queue_terms, with_bid};

fn submit(key: &str, minutes: i64) -> Command {
    let job = with_bid(bid(gang(1, "gpu=1", minutes, (0, 600))), None, Overrun::Stop, false);
    Command::Submit { key: Some(name(key)), job }
}

#[test]
fn a_repeated_key_gets_the_same_answer_and_no_second_job() {
    let mut bed = Bed::new(1);
    let first = bed.send(submit("once", 30));
    let paid = bed.wallet(ALICE);
    bed.at = min(5);
    assert_eq!(bed.send(submit("once", 30)), first);
    assert_eq!(bed.wallet(ALICE), paid);
    assert_eq!(bed.state.jobs().count(), 1);
}

#[test]
fn a_key_is_refused_for_another_request_and_is_its_users_own() {
    let mut bed = Bed::new(1);
    bed.send(submit("once", 30));
    assert_eq!(bed.refused(submit("once", 31)), Refusal::KeyReused);
    let his = Bid { user: BOB, ..bid(gang(1, "gpu=1", 31, (0, 600))) };
    let job = with_bid(his, None, Overrun::Stop, false);
    let reply = bed.send(Command::Submit { key: Some(name("once")), job });
    assert!(matches!(reply, Reply::Accepted { job: JobId(2), .. }), "{reply:?}");
}

#[test]
fn a_key_is_forgotten_after_a_day() {
    let mut bed = Bed::new(1);
    bed.send(submit("once", 30));
    bed.until(min(24 * 60));
    let fresh = bid(gang(1, "gpu=2", 30, (24 * 60, 48 * 60)));
    let job = with_bid(fresh, None, Overrun::Stop, false);
    let reply = bed.send(Command::Submit { key: Some(name("once")), job });
    assert!(matches!(reply, Reply::Accepted { job: JobId(2), .. }), "{reply:?}");
}

#[test]
fn a_refused_submission_leaves_its_key_unused() {
    let mut bed = Bed::new(1);
    let mut poor = bid(gang(1, "gpu=1", 30, (0, 600)));
    poor.value = Value::Flat(credits(0));
    let job = with_bid(poor, None, Overrun::Stop, false);
    let refusal = bed.refused(Command::Submit { key: Some(name("once")), job });
    assert!(matches!(refusal, Refusal::TooDear { .. }), "{refusal:?}");
    assert!(matches!(bed.send(submit("once", 30)), Reply::Accepted { .. }));
}

#[test]
fn a_key_of_a_hold_is_as_good_as_one_of_a_submission() {
    let mut bed = Bed::new(1);
    let hold = |minutes| Command::Hold {
        key: Some(name("held")),
        bid: bid(gang(1, "gpu=1", minutes, (0, 600))),
    };
    let first = bed.send(hold(30));
    assert_eq!(bed.send(hold(30)), first);
    assert_eq!(bed.state.holds().count(), 1);
    assert_eq!(bed.refused(hold(29)), Refusal::KeyReused);
}

#[test]
fn the_quoted_price_is_the_most_that_a_submission_may_cost() {
    let mut bed = Bed::new(1);
    let wish = bid(gang(1, "gpu=1", 60, (0, 600)));
    let told = quote(&bed.state, &wish, bed.at).unwrap();
    let most = told.price.minus(credits(1)).unwrap();
    let job = with_bid(wish.clone(), Some(most), Overrun::Stop, false);
    let reply = bed.send(Command::Submit { key: None, job });
    let Reply::Refused { refusal, counter } = reply else { panic!("{reply:?}") };
    assert_eq!(refusal, Refusal::PriceRose { price: told.price, most });
    assert_eq!(counter.value, Some(told.price));
    bed.accept(with_bid(wish, Some(told.price), Overrun::Stop, false));
}

#[test]
fn one_may_only_bid_for_oneself() {
    let mut bed = Bed::new(1);
    let terms = Terms::bid(Bid { user: BOB, ..bid(gang(1, "gpu=1", 60, (0, 600))) });
    let refusal = bed.reject(new_job(ALICE, terms));
    assert_eq!(refusal, Refusal::OthersBid { user: ALICE, bidder: BOB });
}

#[test]
fn a_wallet_that_cannot_pay_is_refused_before_anything_is_promised() {
    let mut bed = Bed::new(1);
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    bed.done(Command::Grant { user: ALICE, amount: credits(3) });
    // One GPU at half the base rate of 8 an hour costs 4.
    let refusal =
        bed.reject(with_bid(bid(gang(1, "gpu=1", 60, (0, 600))), None, Overrun::Stop, false));
    assert_eq!(refusal, Refusal::Funds { balance: credits(3), needed: credits(4) });
    bed.promise(gang(1, "gpu=1", 45, (0, 600)));
    assert_eq!(bed.wallet(ALICE), credits(0));
}

#[test]
fn the_best_alternative_is_taken_and_the_value_that_falls_is_weighed() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (0, 60)));
    // Both cost the same; only the second fits before its value falls.
    let large = gang(1, "gpu=8", 30, (0, 600));
    let wish = Bid {
        user: ALICE,
        one_of: vec![
            Alternative { all_of: vec![large] },
            Alternative { all_of: vec![gang(1, "gpu=4,cpu=1", 30, (60, 600))] },
        ],
        value: steps(&[(90, 100), (600, 10)]),
    };
    let told = quote(&bed.state, &wish, bed.at).unwrap();
    assert_eq!((told.alternative, told.start), (1, min(60)));
    // 100 − 8.25 beats 100 − 16; later it would only be worth 10.
    assert_eq!(told.price, era_core::units::Money(8_250_000));
}

#[test]
fn requests_of_a_bid_are_promised_together_and_in_their_order() {
    let mut bed = Bed::new(1);
    let mut train = gang(1, "gpu=8", 60, (0, 200));
    train.after = vec![0];
    let wish = Bid {
        one_of: vec![Alternative { all_of: vec![gang(1, "cpu=8", 30, (0, 200)), train.clone()] }],
        ..bid(train.clone())
    };
    let Reply::Accepted { job, quote: Some(quote), .. } = bed.submit(wish.clone()) else {
        panic!()
    };
    assert_eq!(quote.parts[0].start, min(0));
    assert_eq!((quote.parts[1].start, quote.finish), (min(30), min(90)));
    let first = bed.run(job);
    bed.until(min(20));
    bed.exit(&first, 0);
    bed.until(min(30));
    let second = bed.run(job);
    assert_eq!((first[0].part, second[0].part), (0, 1));
    // The second part has no room twice in that window: nothing of a second bid is kept.
    bed.promise(gang(1, "gpu=8", 110, (90, 200)));
    let before = bed.state.clone();
    assert!(matches!(bed.submit(wish), Reply::Refused { refusal: Refusal::NoRoom, .. }));
    assert!(bed.state.same_but_clock(&before));
}

#[test]
fn a_job_for_a_queue_waits_there_and_pays_nothing_yet() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.enqueue_in(ALICE, "default", gang(1, "gpu=1", 30, (0, 1)));
    assert_eq!(bed.is(job), "waiting");
    assert_eq!(bed.wallet(ALICE), before);
    let queued = Event::Queued { job, user: ALICE, queue: name("default"), count: 1 };
    assert_eq!(bed.events, [queued]);
}

#[test]
fn a_full_queue_an_unknown_queue_and_an_order_without_requests_are_refused() {
    let mut bed = Bed::new(1);
    bed.queue("small", "fifo", |q| q.waiting_max = 1);
    bed.enqueue_in(ALICE, "small", gang(1, "gpu=1", 30, (0, 1)));
    let ask = gang(1, "gpu=1", 30, (0, 1));
    let refusal = bed.reject(for_queue(ALICE, ask.clone(), queue_terms("small")));
    assert_eq!(refusal, Refusal::Limit { what: "waiting jobs".into(), limit: 1 });
    let refusal = bed.reject(for_queue(ALICE, ask.clone(), queue_terms("huge")));
    assert_eq!(refusal.to_string(), "no queue is called `huge`: known are default, small");
    let mut ordered = ask;
    ordered.after = vec![0];
    let refusal = bed.reject(for_queue(ALICE, ordered, queue_terms("default")));
    assert_eq!(refusal, Refusal::BadOrder { request: 0 });
}

#[test]
fn a_hold_sets_capacity_and_price_aside_until_it_is_accepted() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let (hold, price) = bed.hold(bid(gang(1, "gpu=8", 60, (10, 70))));
    assert_eq!(bed.wallet(ALICE), before, "nothing is paid yet");
    let his = Bid { user: BOB, ..bid(gang(1, "gpu=1", 60, (10, 70))) };
    assert!(matches!(bed.submit(his), Reply::Refused { refusal: Refusal::NoRoom, .. }));
    // Prices rise meanwhile; the hold stands.
    let floor = era_core::units::Milli(50_000);
    let rules = era_core::market::MarketRules { floor, ..Default::default() };
    bed.done(Command::SetMarket { rules });
    bed.at = bed.at + Span::from_s(59);
    let Reply::Accepted { job, quote, .. } = bed.accept_hold(ALICE, hold) else { panic!() };
    assert_eq!(quote.unwrap().price, price);
    assert_eq!(bed.wallet(ALICE), before.minus(price).unwrap());
    assert_eq!(bed.start_of(job), min(10));
    assert_eq!(bed.state.holds().count(), 0);
}

#[test]
fn a_hold_expires_after_a_minute_and_its_capacity_is_free_again() {
    let mut bed = Bed::new(1);
    let (hold, _) = bed.hold(bid(gang(1, "gpu=8", 60, (10, 70))));
    bed.until(bed.at + Span::from_s(60));
    assert!(bed.saw(|e| *e == Event::HoldEnded { hold }));
    let reply = bed.accept_hold(ALICE, hold);
    assert!(matches!(reply, Reply::Refused { refusal: Refusal::UnknownHold { .. }, .. }));
    bed.promise(gang(1, "gpu=8", 60, (10, 70)));
}

#[test]
fn a_hold_is_dropped_by_its_owner_or_an_administrator_and_by_nobody_else() {
    let mut bed = Bed::new(1);
    let wish = bid(gang(1, "gpu=1", 60, (10, 70)));
    let (first, _) = bed.hold(wish.clone());
    let (second, _) = bed.hold(wish);
    let refusal = bed.refused(Command::DropHold { hold: first, by: by(BOB) });
    assert_eq!(refusal, Refusal::UnknownHold { hold: first });
    let reply = bed.accept_hold(BOB, first);
    assert!(matches!(reply, Reply::Refused { refusal: Refusal::UnknownHold { .. }, .. }));
    bed.done(Command::DropHold { hold: first, by: by(ALICE) });
    bed.done(Command::DropHold { hold: second, by: Actor::Administrator });
    let gone = Command::DropHold { hold: first, by: by(ALICE) };
    assert_eq!(bed.refused(gone), Refusal::UnknownHold { hold: first });
    assert_eq!(bed.state.holds().count(), 0);
}

#[test]
fn an_account_has_only_so_many_holds_at_a_time() {
    let mut bed = Bed::new(1);
    let wish = bid(gang(1, "gpu=1", 60, (10, 700)));
    for _ in 0..4 {
        bed.hold(wish.clone());
    }
    let refusal = bed.refused(Command::Hold { key: None, bid: wish.clone() });
    assert_eq!(refusal, Refusal::TooManyHolds { most: 4 });
    bed.hold(Bid { user: BOB, ..wish.clone() });
    bed.done(Command::DropHold { hold: HoldId(1), by: by(ALICE) });
    bed.hold(wish);
}

#[test]
fn a_total_of_gpus_and_an_elastic_gang_are_bids_like_others() {
    let mut bed = Bed::new(2);
    let mut total = gang(1, "gpu=1,cpu=4", 60, (0, 100));
    total.shape = Shape::Gpus { total: 12 };
    let job = bed.promise(total);
    assert_eq!(bed.gpus_of(job).iter().map(|(_, g)| g.len()).collect::<Vec<_>>(), [8, 4]);
    let mut elastic = gang(1, "gpu=2", 60, (0, 100));
    elastic.shape = Shape::Replicas { min: 2, max: 9 };
    let job = bed.promise(elastic);
    assert_eq!(bed.nodes_of(job).len(), 2, "only the least is promised");
}
