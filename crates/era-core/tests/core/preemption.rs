//! Preemption within a queue: for whom, at whose cost, and how often.

use era_core::job::StopReason;
use era_core::quota::Quota;
use era_core::units::{JobId, Money, Span, UserId};
use era_core::{Command, Event};

use crate::bed::{ALICE, BOB, Bed, gang, min};
use crate::verbs::{credits, for_queue, gpu_quota, queue_terms};

/// A queue that preempts by the owner's own priorities, on nodes of eight GPUs.
fn preempting(nodes: usize) -> Bed {
    let mut bed = Bed::new(nodes);
    bed.queue("default", "priority", |q| q.preempts = true);
    bed
}

/// A job of eight GPUs in the queue, and a pass.
fn node_for(bed: &mut Bed, user: UserId, priority: i32, minutes: i64, preemptible: bool) -> JobId {
    let terms = era_core::job::QueueTerms { preemptible, ..queue_terms("default") };
    let mut job = for_queue(user, gang(1, "gpu=8", minutes, (0, 1)), terms);
    job.priority = priority;
    let id = bed.accept(job);
    bed.pass();
    bed.run(id);
    id
}

/// Goes through the queue every ten seconds, as a server does, until so many minutes after the
/// start; whoever is told to stop does so at once.
fn serve_until(bed: &mut Bed, end: i64) {
    while bed.at < min(end) {
        bed.pass();
        for effect in std::mem::take(&mut bed.effects) {
            match effect {
                era_core::Effect::Stop { task, .. } => {
                    bed.send(Command::Exited { task, code: 143, at: None });
                }
                era_core::Effect::Launch { task, .. } => {
                    bed.send(Command::Started { task });
                }
                _ => {}
            }
        }
        let next = bed.at + Span::from_s(10);
        bed.until(next);
    }
}

fn attempts(bed: &Bed, job: JobId) -> u32 {
    bed.state.job(job).unwrap().first_part().attempt
}

fn stops(bed: &Bed) -> usize {
    bed.events.iter().filter(|e| matches!(e, Event::Stopping { .. })).count()
}

#[test]
fn nobody_is_preempted_for_a_job_that_its_owners_quota_keeps_from_starting() {
    let mut bed = preempting(3);
    bed.alice_may(gpu_quota(12));
    let first = node_for(&mut bed, ALICE, 9, 60, false);
    let victims = [1, 1].map(|priority| node_for(&mut bed, BOB, priority, 60, true));
    let blocked = node_for(&mut bed, ALICE, 5, 30, false);
    serve_until(&mut bed, 15);
    assert_eq!(victims.map(|job| attempts(&bed, job)), [1, 1]);
    assert_eq!((bed.is(first), bed.is(blocked)), ("running", "waiting"));
    assert_eq!(stops(&bed), 0);
    // When its owner may hold more, one of them gives way, and only one.
    bed.alice_may(gpu_quota(16));
    serve_until(&mut bed, 20);
    assert_eq!(bed.is(blocked), "running");
    assert_eq!(stops(&bed), 1);
}

#[test]
fn two_jobs_that_one_wallet_cannot_pay_together_make_room_for_one() {
    let mut bed = preempting(2);
    let low = [1, 1].map(|priority| node_for(&mut bed, BOB, priority, 600, true));
    let all = bed.wallet(ALICE);
    let keep = Money(price_of_an_hour().0 * 3 / 2);
    bed.done(Command::Withdraw { user: ALICE, amount: Money(all.0 - keep.0) });
    node_for(&mut bed, ALICE, 9, 60, false);
    node_for(&mut bed, ALICE, 9, 60, false);
    serve_until(&mut bed, 5);
    assert_eq!(stops(&bed), 1);
    assert_eq!(low.map(|job| bed.is(job)).iter().filter(|is| **is == "running").count(), 1);
}

fn price_of_an_hour() -> Money {
    let mut bed = preempting(1);
    let before = bed.wallet(ALICE);
    node_for(&mut bed, ALICE, 0, 60, false);
    Money(before.0 - bed.wallet(ALICE).0)
}

#[test]
fn a_queue_at_its_limit_lets_the_higher_take_the_place_of_the_lower() {
    let mut bed = Bed::new(2);
    bed.queue("default", "priority", |q| (q.preempts, q.running_max) = (true, 1));
    let low = node_for(&mut bed, BOB, 1, 600, true);
    let high = node_for(&mut bed, ALICE, 9, 60, false);
    serve_until(&mut bed, 5);
    assert_eq!((bed.is(low), bed.is(high), stops(&bed)), ("waiting", "running", 1));
}

#[test]
fn a_lowered_limit_is_no_reason_to_preempt() {
    let mut bed = preempting(3);
    let low = [1, 1].map(|priority| node_for(&mut bed, BOB, priority, 600, true));
    let group = era_core::accounts::Group {
        id: crate::bed::OTHER_LAB,
        level: 1,
        quota: Quota { concurrent: [None, None, Some(8000)], ..Quota::UNLIMITED },
    };
    bed.done(Command::PutGroup { group });
    node_for(&mut bed, ALICE, 9, 60, false);
    node_for(&mut bed, ALICE, 9, 60, false);
    serve_until(&mut bed, 5);
    assert_eq!(stops(&bed), 1, "for the second of the two there was no room");
    assert_eq!(low.map(|job| bed.is(job)).iter().filter(|is| **is == "running").count(), 1);
}

#[test]
fn room_that_is_being_left_is_not_made_again() {
    let mut bed = preempting(3);
    let low = [1, 1, 1].map(|priority| node_for(&mut bed, BOB, priority, 600, true));
    node_for(&mut bed, ALICE, 9, 60, false);
    // They take their whole grace: passes go on meanwhile.
    bed.effects.clear();
    for _ in 0..5 {
        bed.pass();
    }
    assert_eq!(low.iter().filter(|job| bed.is(**job) == "stopping").count(), 1);
}

#[test]
fn the_lowest_gives_way_and_nobody_in_turn_for_it() {
    let mut bed = preempting(4);
    let low: Vec<JobId> =
        [4, 2, 1, 3].iter().map(|p| node_for(&mut bed, BOB, *p, 600, true)).collect();
    node_for(&mut bed, ALICE, 9, 60, false);
    serve_until(&mut bed, 5);
    let is: Vec<&str> = low.iter().map(|job| bed.is(*job)).collect();
    assert_eq!(is, ["running", "running", "waiting", "running"]);
    assert_eq!(stops(&bed), 1);
}

#[test]
fn nobody_gives_way_twice_within_the_least_run() {
    let mut bed = preempting(1);
    bed.set(|s| s.run_min = Span::from_min(5));
    let low = node_for(&mut bed, BOB, 1, 600, true);
    node_for(&mut bed, ALICE, 5, 1, false);
    serve_until(&mut bed, 2);
    assert_eq!((bed.is(low), attempts(&bed, low)), ("running", 2));
    let second = node_for(&mut bed, ALICE, 5, 60, false);
    serve_until(&mut bed, 4);
    assert_eq!((bed.is(low), bed.is(second)), ("running", "waiting"));
    serve_until(&mut bed, 6);
    assert_eq!((bed.is(low), bed.is(second)), ("waiting", "running"));
}

#[test]
fn a_promise_is_not_kept_waiting_by_who_gave_way_lately() {
    let mut bed = preempting(1);
    bed.set(|s| s.run_min = Span::from_min(5));
    let low = node_for(&mut bed, BOB, 1, 600, true);
    node_for(&mut bed, ALICE, 5, 1, false);
    serve_until(&mut bed, 2);
    assert_eq!(attempts(&bed, low), 2);
    let promise = bed.promise(gang(1, "gpu=8", 10, (2, 13)));
    assert!(bed.start_of(promise) <= min(3));
    bed.until(min(3));
    assert_eq!(bed.is(promise), "running");
}

#[test]
fn who_has_saved_nothing_gives_way_to_other_queue_work_at_most_twice() {
    let mut bed = preempting(1);
    bed.set(|s| s.run_min = Span::ZERO);
    let low = node_for(&mut bed, BOB, 1, 600, true);
    for round in 0..4 {
        node_for(&mut bed, ALICE, 5, 1, false);
        serve_until(&mut bed, 3 * (round + 1));
        let Some(_) = bed.state.job(low).unwrap().first_part().run() else {
            panic!("it waits after round {round}");
        };
    }
    assert_eq!(attempts(&bed, low), 3);
    // What it saves may be taken up again, so it gives way again.
    let task = era_core::job::TaskId { job: low, part: 0, attempt: 3, rank: 0 };
    bed.done(Command::Checkpointed { task, done: Span::from_min(5) });
    serve_until(&mut bed, 16);
    assert_eq!(attempts(&bed, low), 4);
    let why = bed.events.iter().rev().find_map(|event| match event {
        Event::Stopping { job, why, .. } if *job == low => Some(*why),
        _ => None,
    });
    assert_eq!(why, Some(StopReason::Preempted));
    assert!(bed.wallet(BOB) < credits(10_000_000));
}
