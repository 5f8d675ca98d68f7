//! What a promise means, told as small stories.

use crate::bed::{ALICE, Bed, bid, by, gang, min, name};
use era_core::job::{Outcome, StopReason};
use era_core::units::{Money, NodeId, Span};
use era_core::{Command, Event, Refusal, Reply, quote};

#[test]
fn a_bid_becomes_a_promise_that_starts_when_it_was_told_and_is_paid() {
    let mut bed = Bed::new(2);
    let request = gang(2, "gpu=8,cpu=8,memory=64Gi", 60, (10, 200));
    let told = quote(&bed.state, &bid(request.clone()), bed.at).unwrap();
    let before = bed.wallet(ALICE);
    let job = bed.promise(request);
    assert_eq!(told.start, min(10));
    assert_eq!(bed.start_of(job), told.start);
    assert_eq!(bed.wallet(ALICE), before.minus(told.price).unwrap());
    bed.assert_quiet();

    bed.until(told.start);
    let tasks = bed.run(job);
    assert_eq!(tasks.len(), 2);
    bed.until(min(40));
    bed.exit(&tasks, 0);
    // Half of the hour was not used: 80 % of half the price comes back.
    let refund = told.price.part(400, 1000);
    assert_eq!(bed.wallet(ALICE), before.minus(told.price).unwrap().plus(refund).unwrap());
    assert!(bed.events.contains(&Event::Ended { job, outcome: Outcome::Succeeded, at: None }));
}

#[test]
fn a_full_calendar_refuses_with_the_nearest_window() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (0, 60)));
    let refused = bed.submit(bid(gang(1, "gpu=4", 30, (0, 60))));
    let Reply::Refused { refusal, counter } = refused else { panic!("{refused:?}") };
    assert_eq!(refusal, Refusal::NoRoom);
    assert_eq!(counter.window.unwrap().start, min(60));
}

#[test]
fn a_lost_node_re_plans_its_gang_after_the_lease() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 300)));
    let (task, node) = bed.take_launch();
    bed.done(Command::Started { task });
    bed.until(min(10));
    bed.done(Command::Lost { node });
    let (stopped, why, until) = bed.take_stop();
    assert_eq!((stopped, why), (task, StopReason::Lost));
    bed.assert_quiet();
    assert_eq!(until, min(10) + Span::from_s(30));
    // A late report of the old attempt changes nothing once it is replaced.
    bed.until(until);
    let (again, elsewhere) = bed.take_launch();
    assert_eq!((again.job, again.attempt), (job, 2));
    assert_ne!(elsewhere, node);
    assert_eq!(bed.send(Command::Exited { task, code: 0, at: None }), Reply::Ignored);
    bed.assert_quiet();
}

#[test]
fn a_broken_promise_is_refunded_whole() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.promise(gang(1, "gpu=8", 60, (30, 100)));
    assert!(bed.wallet(ALICE) < before);
    bed.done(Command::Lost { node: NodeId(0) });
    assert_eq!(bed.wallet(ALICE), before);
    let broken = |e: &Event| matches!(e, Event::Ended { job: j, outcome: Outcome::Broken { .. }, .. } if *j == job);
    assert!(bed.events.iter().any(broken));
}

#[test]
fn queue_work_fills_holes_and_keeps_out_of_the_way_of_promises() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let long = bed.enqueue(ALICE, gang(1, "gpu=4", 90, (0, 1)), false);
    let short = bed.enqueue(ALICE, gang(1, "gpu=4", 60, (0, 1)), false);
    bed.pass();
    assert_eq!(bed.state.job(long).unwrap().state(), "waiting");
    assert_eq!(bed.state.job(short).unwrap().state(), "running");
    let tasks = bed.run(short);
    assert_eq!(tasks.len(), 1);
}

#[test]
fn preemptible_work_runs_ahead_of_a_promise_and_gives_way_in_time() {
    let mut bed = Bed::new(1);
    let promise = bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let job = bed.enqueue(ALICE, gang(1, "gpu=4", 600, (0, 1)), true);
    bed.pass();
    let tasks = bed.run(job);
    bed.until(min(60) - Span::from_s(30));
    let (task, why, until) = bed.take_stop();
    assert_eq!((task, why, until), (tasks[0], StopReason::Preempted, min(60)));
    bed.until(min(60));
    assert_eq!(bed.run(promise).len(), 1);
    assert_eq!(bed.state.job(job).unwrap().state(), "waiting");
}

#[test]
fn cancelling_before_the_start_refunds_by_the_rule() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let price = before.minus(bed.wallet(ALICE)).unwrap();
    bed.done(Command::Cancel { job, by: by(ALICE) });
    let kept = before.minus(bed.wallet(ALICE)).unwrap();
    assert_eq!(kept, Money(price.0 - price.part(800, 1000).0));
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let mut bed = Bed::new(1);
    let mut request = gang(1, "gpu=1", 10, (0, 100));
    request.constraints.pool = Some(name("nowhere"));
    let Reply::Refused { refusal, .. } = bed.submit(bid(request)) else { panic!() };
    assert_eq!(refusal.to_string(), "no pool is called `nowhere`: known are main");
}

#[test]
fn a_start_that_passed_while_nobody_drove_the_core_is_planned_anew_in_its_window() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (10, 200)));
    bed.at = min(40);
    bed.send(Command::Tick);
    assert!(bed.saw(|e| matches!(e, Event::Replanned { job: j, .. } if *j == job)));
    assert_eq!(bed.start_of(job), min(40));
    let plan = bed.state.job(job).unwrap().first_part().plan().unwrap().clone();
    assert_eq!(plan.to, min(100), "it has its full hour");
    assert_eq!(bed.run(job).len(), 1);
}

#[test]
fn a_start_that_passed_and_fits_no_more_is_broken_and_refunded_whole() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.promise(gang(1, "gpu=8", 60, (10, 80)));
    bed.at = min(40);
    bed.send(Command::Tick);
    let reason = "its start passed while the scheduler was down and no room was left in the window";
    assert_eq!(bed.outcome(job), Some(Outcome::Broken { reason: reason.into() }));
    assert_eq!(bed.wallet(ALICE), before);
}

#[test]
fn a_tick_that_comes_a_moment_late_starts_a_promise_all_the_same() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (10, 70)));
    bed.at = min(10) + Span::from_s(30);
    bed.send(Command::Tick);
    assert_eq!(bed.start_of(job), min(10));
    assert_eq!(bed.run(job).len(), 1);
}

#[test]
fn work_that_a_shorter_grace_let_in_after_all_gives_way_to_the_promise() {
    let mut bed = Bed::new(1);
    let promised = bed.promise(gang(1, "gpu=8", 60, (10, 70)));
    // One grace period before its start, whatever is in its way has been told to go.
    bed.until(min(10) - Span::from_s(20));
    let settings = era_core::settings::Settings {
        grace: Span::from_s(1),
        run_min: Span::ZERO,
        ..bed.state.settings().clone()
    };
    bed.done(Command::SetSettings { settings });
    let late = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), true);
    bed.pass();
    bed.run(late);
    bed.until(min(10));
    assert_eq!(bed.run(promised).len(), 1);
    assert!(!bed.state.job(late).unwrap().first_part().is_active(), "it has made room");
}
