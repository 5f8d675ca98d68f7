//! What owners and administrators do to a job: cancel, release, extend, edit.

use era_core::accounts::{Actor, User};
use era_core::bid::{Alternative, Bid};
use era_core::job::{Outcome, Overrun, StopReason};
use era_core::ledger::Account;
use era_core::units::{JobId, Money, Span};
use era_core::{Command, Effect, Event, Refusal, Reply};

use crate::bed::{ALICE, BOB, Bed, LAB, bid, by, gang, min, name};
use crate::verbs::{credits, gpu_quota, user, with_bid};

const HOUR: Span = Span::from_h(1);

fn extend(job: JobId, span: Span, most: Money) -> Command {
    Command::Extend { job, by: by(ALICE), span, most }
}

fn edit(job: JobId) -> Command {
    Command::Edit { job, by: by(ALICE), priority: None, limit: None, queue: None }
}

#[test]
fn a_running_job_that_is_cancelled_stops_with_grace_and_is_settled_when_it_is_gone() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    let price = bed.state.ledger().balance(Account::Escrow(job));
    let before = bed.wallet(ALICE);
    let tasks = bed.run(job);
    bed.until(min(30));
    bed.done(Command::Cancel { job, by: by(ALICE) });
    let (task, why, until) = bed.take_stop();
    assert_eq!((task, why, until), (tasks[0], StopReason::Cancelled, min(30) + Span::from_s(30)));
    assert_eq!(bed.is(job), "stopping");
    assert_eq!(bed.wallet(ALICE), before);
    bed.exit(&tasks, 143);
    assert_eq!(bed.outcome(job), Some(Outcome::Cancelled));
    assert_eq!(bed.wallet(ALICE), before.plus(price.part(400, 1000)).unwrap());
}

#[test]
fn a_waiting_job_that_is_cancelled_is_over_at_once() {
    let mut bed = Bed::new(1);
    let job = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    bed.done(Command::Cancel { job, by: by(ALICE) });
    assert_eq!(bed.outcome(job), Some(Outcome::Cancelled));
    let again = Command::Cancel { job, by: by(ALICE) };
    let sentence = "job 1 is ended: there is nothing to stop";
    assert_eq!(bed.refused(again).to_string(), sentence);
}

#[test]
fn a_job_belongs_to_its_owner_the_group_administrator_and_the_house() {
    let mut bed = Bed::new(1);
    let ask = || gang(1, "gpu=1", 60, (0, 1));
    let jobs: Vec<JobId> = (0..3).map(|_| bed.enqueue(ALICE, ask(), false)).collect();
    let cancel = |job, by| Command::Cancel { job, by };
    let stranger = bed.refused(cancel(jobs[0], by(BOB)));
    assert_eq!(stranger, Refusal::NotYours { job: jobs[0] });
    bed.done(Command::PutUser { user: User { group_admin: true, ..user(BOB, LAB) } });
    bed.done(cancel(jobs[0], by(BOB)));
    bed.done(cancel(jobs[1], by(ALICE)));
    bed.done(cancel(jobs[2], Actor::Administrator));
    let missing = bed.refused(cancel(JobId(99), by(ALICE)));
    assert_eq!(missing, Refusal::UnknownJob { job: JobId(99) });
}

#[test]
fn a_release_gives_the_rest_of_a_running_reservation_back() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    let tasks = bed.run(job);
    bed.until(min(15));
    bed.done(Command::Release { job, by: by(ALICE) });
    assert_eq!(bed.take_stop().1, StopReason::Released);
    bed.exit(&tasks, 0);
    assert_eq!(bed.outcome(job), Some(Outcome::Released));
    bed.promise(gang(1, "gpu=8", 45, (15, 60)));
}

#[test]
fn what_does_not_run_is_not_released_but_cancelled() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (10, 100)));
    let refusal = bed.refused(Command::Release { job, by: by(ALICE) });
    assert_eq!(refusal.to_string(), "job 1 is promised: cancel it instead");
}

#[test]
fn an_extension_is_paid_at_the_market_price_and_tells_the_executor() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    let tasks = bed.run(job);
    bed.until(min(10));
    let before = bed.wallet(ALICE);
    bed.done(extend(job, HOUR, credits(32)));
    // Eight GPUs for an hour at half of 8 credits.
    assert_eq!(bed.wallet(ALICE), before.minus(credits(32)).unwrap());
    assert!(bed.saw(|e| *e == Event::Extended { job, part: 0, to: min(120), price: credits(32) }));
    let prolong = Effect::Prolong { task: tasks[0], node: crate::verbs::n(0), until: min(120) };
    assert_eq!(bed.effects.pop_front(), Some(prolong));
    bed.assert_quiet();
}

#[test]
fn an_extension_needs_room_its_price_quota_money_and_the_horizon() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 100)));
    bed.run(job);
    let dear = bed.refused(extend(job, HOUR, credits(31)));
    assert_eq!(dear, Refusal::PriceRose { price: credits(32), most: credits(31) });
    for span in [Span(0), Span(-1), Span::from_days(367)] {
        let refusal = bed.refused(extend(job, span, credits(100)));
        assert!(matches!(refusal, Refusal::BadDuration { .. }), "{span}");
    }
    let far = bed.refused(extend(job, Span::from_days(31), Money::MOST));
    assert!(matches!(far, Refusal::BeyondHorizon { .. }), "{far}");
    bed.alice_may(gpu_quota(7));
    let quota = bed.refused(extend(job, HOUR, credits(32)));
    assert!(matches!(quota, Refusal::QuotaConcurrent { asked: 8, limit: 7, .. }), "{quota}");
    bed.alice_may(gpu_quota(8));
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    let poor = bed.refused(extend(job, HOUR, credits(32)));
    assert_eq!(poor, Refusal::Funds { balance: Money(0), needed: credits(32) });
    bed.done(Command::Grant { user: ALICE, amount: credits(1000) });
    bed.promise(gang(1, "gpu=1", 10, (90, 100)));
    assert_eq!(bed.refused(extend(job, HOUR, credits(1000))), Refusal::NoRoom);
    bed.done(extend(job, Span::from_min(30), credits(16)));
}

#[test]
fn only_a_running_reservation_is_extended() {
    let mut bed = Bed::new(1);
    let queued = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    let promised = bed.promise(gang(1, "gpu=1", 60, (10, 100)));
    bed.pass();
    for job in [queued, promised] {
        let refusal = bed.refused(extend(job, HOUR, credits(100)));
        let hint = "only a running reservation can be extended";
        assert!(refusal.to_string().ends_with(hint), "{refusal}");
    }
}

/// A part that must have finished before the next one starts: ten minutes, then an hour.
fn two_in_order(bed: &mut Bed, overrun: Overrun) -> JobId {
    let mut second = gang(1, "gpu=8", 60, (0, 200));
    second.after = vec![0];
    let all_of = vec![gang(1, "cpu=8", 10, (0, 200)), second.clone()];
    let wish = Bid { one_of: vec![Alternative { all_of }], ..bid(second) };
    bed.accept(with_bid(wish, None, overrun, false))
}

#[test]
fn a_part_is_not_extended_into_the_one_that_comes_after_it() {
    let mut bed = Bed::new(1);
    let job = two_in_order(&mut bed, Overrun::Extend);
    bed.run(job);
    assert_eq!(bed.refused(extend(job, Span::from_min(10), credits(100))), Refusal::NoRoom);
    // Nor by itself, when it overruns: it is stopped so that the next one starts in time.
    bed.until(min(10) - Span::from_s(30));
    assert_eq!(bed.take_stop().1, StopReason::Limit);
}

#[test]
fn a_part_that_lost_its_node_is_not_re_planned_behind_the_one_that_comes_after_it() {
    let mut bed = Bed::new(2);
    let job = two_in_order(&mut bed, Overrun::Stop);
    let (task, node) = bed.take_launch();
    bed.done(Command::Started { task });
    bed.until(min(5));
    // Ten minutes again from now on would end behind the start of the second part.
    bed.done(Command::Lost { node });
    bed.until(min(20));
    let broken = |e: &Event| matches!(e, Event::Ended { outcome: Outcome::Broken { .. }, .. });
    assert!(bed.saw(broken), "{:?}", bed.events);
    assert!(bed.state.job(job).unwrap().ended.is_some());
}

#[test]
fn a_waiting_job_changes_its_priority_its_limit_and_its_queue() {
    let mut bed = Bed::new(1);
    bed.queue("night", "fifo", |q| q.waiting_max = 1);
    let job = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    bed.done(Command::Edit {
        job,
        by: by(ALICE),
        priority: Some(7),
        limit: Some(Span::from_min(90)),
        queue: Some(name("night")),
    });
    let edited = bed.state.job(job).unwrap();
    assert_eq!(edited.priority, 7);
    assert_eq!(edited.first_part().request.duration, Span::from_min(90));
    assert_eq!(bed.state.waiting(&name("night")).collect::<Vec<_>>(), [job]);
    assert_eq!(bed.state.waiting(&name("default")).count(), 0);
    // The queue is full now, though not for who is in it.
    let other = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    let into = |job| Command::Edit {
        job,
        by: by(ALICE),
        priority: None,
        limit: None,
        queue: Some(name("night")),
    };
    let refusal = bed.refused(into(other));
    assert_eq!(refusal, Refusal::Limit { what: "waiting jobs".into(), limit: 1 });
    bed.done(into(job));
}

#[test]
fn an_edit_that_cannot_be_is_refused() {
    let mut bed = Bed::new(1);
    let job = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), true);
    let Command::Edit { by: owner, .. } = edit(job) else { panic!() };
    let limit = |limit| Command::Edit { job, by: owner, priority: None, limit, queue: None };
    assert!(matches!(bed.refused(limit(Some(Span(0)))), Refusal::BadDuration { .. }));
    let nowhere =
        Command::Edit { job, by: owner, priority: None, limit: None, queue: Some(name("nowhere")) };
    assert!(matches!(bed.refused(nowhere), Refusal::Unknown { .. }));
    bed.pass();
    let tasks = bed.run(job);
    let running = bed.refused(edit(job));
    assert_eq!(running.to_string(), "job 1 is running: only a waiting job can be edited");
    // What is saved is not asked for again: a limit below it makes no sense.
    bed.until(min(30));
    bed.done(Command::Checkpointed { task: tasks[0], done: Span::from_min(25) });
    bed.done(Command::Lost { node: crate::verbs::n(0) });
    bed.until(min(31));
    assert_eq!(bed.is(job), "waiting");
    let short = bed.refused(limit(Some(Span::from_min(25))));
    assert_eq!(short.to_string(), "job 1 is waiting: 25m of it are done: give a longer limit");
    bed.done(limit(Some(Span::from_min(26))));
    let promised = bed.submit(bid(gang(1, "gpu=1", 10, (40, 100))));
    assert!(matches!(promised, Reply::Refused { .. }), "the only node is lost");
}
