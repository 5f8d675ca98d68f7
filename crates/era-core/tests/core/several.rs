//! Bids of several requests, and of alternatives. How they are searched may be heuristic; what is
//! accepted is valid, and costs what its parts cost one after the other.

use era_core::bid::{Alternative, Bid, Value, Window};
use era_core::job::{Outcome, StopReason, TaskId};
use era_core::offer::Quote;
use era_core::oracle::{self, OracleAnswer};
use era_core::units::{JobId, Money, Span, Time};
use era_core::{Command, Event, Reply, quote};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bed::{ALICE, Bed, bid, gang, min, steps};
use crate::worlds::{Ask, Worth, ask, bed_of, lived_in, some_cases, with_bid};

/// A bid for all of these, each after those before it whose bit is set.
fn all_of(asks: &[(Ask, u8)], now: Time) -> Bid {
    let mut bid = asks[0].0.bid(now);
    let request = |(index, (ask, after)): (usize, &(Ask, u8))| {
        let mut request = ask.request(now);
        request.after = (0..index as u8).filter(|earlier| after >> earlier & 1 == 1).collect();
        request
    };
    bid.one_of = vec![Alternative { all_of: asks.iter().enumerate().map(request).collect() }];
    bid
}

fn copy_of(bed: &Bed) -> Bed {
    let mut copy = Bed::new(0);
    copy.state = bed.state.clone();
    copy.at = bed.at;
    copy
}

/// Windows, order, sum and value are as they were bid.
fn assert_valid(bid: &Bid, quoted: &Quote) {
    let requests = &bid.one_of[usize::from(quoted.alternative)].all_of;
    assert_eq!(requests.len(), quoted.parts.len());
    for (request, part) in requests.iter().zip(&quoted.parts) {
        assert_eq!(part.finish, part.start + request.duration);
        assert!(request.window.earliest <= part.start && part.finish <= request.window.deadline);
        assert!(request.constraints.pool.as_ref().is_none_or(|pool| *pool == part.pool));
        for earlier in &request.after {
            assert!(quoted.parts[usize::from(*earlier)].finish <= part.start);
        }
    }
    assert_eq!(quoted.price.0, quoted.parts.iter().map(|part| part.price.0).sum::<i64>());
    assert_eq!(quoted.start, quoted.parts.iter().map(|part| part.start).min().unwrap());
    assert_eq!(quoted.finish, quoted.parts.iter().map(|part| part.finish).max().unwrap());
    assert!(quoted.price <= bid.value.at(quoted.finish));
}

/// Each part costs what it costs alone, after those before it were set aside.
fn assert_parts_cost_what_they_cost_alone(bed: &Bed, bid: &Bid, quoted: &Quote) {
    let mut aside = copy_of(bed);
    for (request, part) in bid.one_of[0].all_of.iter().zip(&quoted.parts) {
        let mut request = request.clone();
        request.after.clear();
        request.window = Window { earliest: part.start, deadline: part.finish };
        request.constraints.pool = Some(part.pool.clone());
        let alone = Bid::single(bid.user, request, Money::credits(1_000_000));
        let (price, start, pool) = (part.price, part.start, part.pool.clone());
        let says = oracle::quote(&aside.state, &alone, aside.at);
        assert_eq!(says, OracleAnswer::Accept { price, start, pool });
        let reply = aside.send(Command::Hold { key: None, bid: alone });
        assert!(matches!(reply, Reply::Held { .. }), "{reply:?}");
    }
}

fn submit(bed: &mut Bed, bid: &Bid) -> Quote {
    let reply = bed.send(Command::Submit { key: None, job: with_bid(bid.clone()) });
    match reply {
        Reply::Accepted { quote: Some(quote), .. } => quote,
        reply => panic!("{reply:?}"),
    }
}

proptest! {
    #![proptest_config(some_cases(1))]

    #[test]
    fn all_of_several_requests_is_valid_and_costs_the_sum_of_its_parts(
        lived in lived_in(),
        bids in vec((vec((ask(), any::<u8>()), 2..4), 0i64..40_000_000), 1..6),
    ) {
        let mut bed = bed_of(&lived);
        for (asks, worth) in bids {
            let mut bid = all_of(&asks, bed.at);
            if matches!(asks[0].0.worth, Worth::Flat(_)) {
                bid.value = Value::Flat(Money(worth));
            }
            let Ok(quoted) = quote(&bed.state, &bid, bed.at) else { continue };
            assert_valid(&bid, &quoted);
            assert_parts_cost_what_they_cost_alone(&bed, &bid, &quoted);
            // `check` looks at every node after the step.
            prop_assert_eq!(submit(&mut bed, &bid), quoted);
        }
    }

    #[test]
    fn one_of_several_is_the_best_of_them_alone(
        lived in lived_in(), bids in vec(vec(ask(), 2..5), 1..6),
    ) {
        let mut bed = bed_of(&lived);
        for asks in bids {
            let mut bid = asks[0].bid(bed.at);
            bid.one_of = asks
                .iter()
                .map(|ask| Alternative { all_of: vec![ask.request(bed.at)] })
                .collect();
            let alone = |index: usize| {
                let alternative = bid.one_of[index].clone();
                let alone = Bid { one_of: vec![alternative], ..bid.clone() };
                quote(&bed.state, &alone, bed.at).ok()
            };
            let possible = (0..asks.len()).filter_map(|index| Some((index, alone(index)?)));
            let best = possible.min_by_key(|(index, quoted)| {
                let left = bid.value.at(quoted.finish).0 - quoted.price.0;
                (-left, quoted.price, quoted.start, *index)
            });
            // What names nobody knows in one alternative refuse the whole bid.
            let Ok(quoted) = quote(&bed.state, &bid, bed.at) else {
                let unknown = (0..asks.len()).any(|index| {
                    let alone = Bid { one_of: vec![bid.one_of[index].clone()], ..bid.clone() };
                    use era_core::Refusal::{NoRoom, TooDear};
                    quote(&bed.state, &alone, bed.at)
                        .is_err_and(|d| !matches!(d.refusal, NoRoom | TooDear { .. }))
                });
                prop_assert!(best.is_none() || unknown);
                continue;
            };
            assert_valid(&bid, &quoted);
            let (index, best) = best.unwrap();
            prop_assert_eq!(&quoted, &Quote { alternative: index as u8, ..best });
            prop_assert_eq!(submit(&mut bed, &bid), quoted);
        }
    }
}

#[test]
fn a_request_starts_when_those_before_it_have_finished() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 30, (10, 40)));
    let mut both = bid(gang(1, "gpu=8", 10, (0, 100)));
    let mut second = gang(1, "gpu=8", 10, (0, 100));
    second.after = vec![0];
    both.one_of[0].all_of.push(second);
    let quoted = quote(&bed.state, &both, bed.at).unwrap();
    let starts: Vec<Time> = quoted.parts.iter().map(|part| part.start).collect();
    assert_eq!(starts, [min(0), min(40)]);
}

#[test]
fn the_alternative_that_leaves_most_of_the_value_is_chosen() {
    let bed = Bed::new(1);
    let mut either = bid(gang(1, "gpu=8", 60, (0, 60)));
    either.one_of.push(Alternative { all_of: vec![gang(1, "gpu=4", 110, (0, 120))] });
    either.user = ALICE;
    // The smaller one is cheaper, but late it is worth too little.
    assert_eq!(quote(&bed.state, &either, bed.at).unwrap().alternative, 1);
    either.value = steps(&[(60, 1000), (120, 100)]);
    assert_eq!(quote(&bed.state, &either, bed.at).unwrap().alternative, 0);
}

#[test]
fn a_part_whose_time_is_up_leaves_the_others_theirs_and_gives_back_what_was_to_follow_it() {
    let mut bed = Bed::new(3);
    let mut last = gang(1, "gpu=8", 30, (60, 200));
    last.after = vec![0];
    let mut bid = bid(gang(1, "gpu=8", 60, (0, 60)));
    bid.one_of[0].all_of.push(gang(1, "gpu=8", 120, (0, 120)));
    bid.one_of[0].all_of.push(last);
    let Reply::Accepted { job, .. } = bed.submit(bid) else { panic!("refused") };
    let tasks = bed.run(job);
    assert_eq!(tasks.len(), 2);
    let before = bed.wallet(ALICE);
    bed.until(min(60));
    // The first ran into its limit: the third, which was to follow it, is given back.
    assert!(bed.wallet(ALICE) > before);
    let parts = &bed.state.job(job).unwrap().parts;
    assert!(parts[0].is_done() && parts[2].is_done());
    assert!(parts[1].is_active() && parts[1].stop().is_none());
    bed.until(min(90));
    bed.exit(&tasks[1..], 0);
    assert_eq!(bed.outcome(job), Some(era_core::job::Outcome::LimitReached));
}

#[test]
fn a_part_that_goes_on_after_another_ran_out_of_time_can_be_cancelled() {
    let mut bed = Bed::new(2);
    let mut bid = bid(gang(1, "gpu=8", 60, (0, 60)));
    bid.one_of[0].all_of.push(gang(1, "gpu=8", 120, (0, 120)));
    let Reply::Accepted { job, .. } = bed.submit(bid) else { panic!("refused") };
    let tasks = bed.run(job);
    bed.until(min(61));
    bed.done(Command::Cancel { job, by: crate::bed::by(ALICE) });
    bed.exit(&tasks[1..], 143);
    assert_eq!(bed.outcome(job), Some(era_core::job::Outcome::Cancelled));
}

/// A promise of two parts that run on one node, each half of it; there is room for one of them
/// elsewhere. Its tasks, and their node.
fn side_by_side(bed: &mut Bed, windows: [(i64, i64); 2]) -> (JobId, Vec<TaskId>) {
    let mut both = bid(gang(1, "gpu=4", 60, windows[0]));
    both.one_of[0].all_of.push(gang(1, "gpu=4", 60, windows[1]));
    let Reply::Accepted { job, .. } = bed.submit(both) else { panic!("refused") };
    let tasks = bed.run(job);
    let seat = |part: usize| bed.state.job(job).unwrap().parts[part].plan().unwrap().seats.clone();
    assert_eq!(seat(0)[0].node, seat(1)[0].node);
    (job, tasks)
}

#[test]
fn a_part_that_was_planned_anew_does_not_go_on_when_its_promise_is_broken() {
    let mut bed = Bed::new(2);
    let before = bed.wallet(ALICE);
    // The second has no time to wait for room; the first has.
    let (job, _) = side_by_side(&mut bed, [(0, 300), (0, 61)]);
    let node = bed.state.job(job).unwrap().first_part().plan().unwrap().clone().seats[0].node;
    bed.until(min(10));
    bed.done(Command::Lost { node });
    assert!(bed.saw(|e| matches!(e, Event::Replanned { part: 0, .. })));
    assert!(bed.saw(|e| matches!(e, Event::Broken { .. })));
    assert!(bed.state.job(job).unwrap().parts.iter().all(|part| part.next().is_none()));
    bed.until(min(300));
    assert!(matches!(bed.outcome(job), Some(Outcome::Broken { .. })));
    assert!(!bed.saw(|e| matches!(e, Event::Launched { attempt: 2, .. })), "it went on");
    assert_eq!(bed.wallet(ALICE), before, "all of it comes back");
}

#[test]
fn a_part_that_was_planned_anew_does_not_go_on_when_another_fails() {
    let mut bed = Bed::new(2);
    let mut both = bid(gang(1, "gpu=8", 60, (0, 300)));
    both.one_of[0].all_of.push(gang(1, "gpu=8", 60, (0, 100)));
    let Reply::Accepted { job, .. } = bed.submit(both) else { panic!("refused") };
    let tasks = bed.run(job);
    let node = bed.state.job(job).unwrap().first_part().plan().unwrap().clone().seats[0].node;
    bed.until(min(10));
    bed.done(Command::Lost { node });
    assert!(bed.state.job(job).unwrap().first_part().next().is_some());
    bed.done(Command::Exited { task: tasks[1], code: 3, at: None });
    let part = bed.state.job(job).unwrap().first_part().clone();
    let stop = part.stop().map(|stop| (stop.why, stop.until));
    let fence = min(10) + Span::from_s(30);
    assert_eq!((part.next(), stop), (None, Some((StopReason::Failed { code: 3 }, fence))));
    bed.until(min(300));
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 3 }));
    assert!(!bed.saw(|e| matches!(e, Event::Launched { attempt: 2, .. })), "it went on");
}
