//! Gangs over several nodes of which a rank fails: because the work is wrong, or because a node
//! with another rank is gone and nobody knows it yet.

use era_core::bid::{Request, Shape};
use era_core::job::{Outcome, StopReason, TaskId};
use era_core::ledger::PostingReason;
use era_core::market::MarketRules;
use era_core::settings::Settings;
use era_core::units::{JobId, Money, NodeId, Span};
use era_core::{Command, Event, Reply};

use crate::bed::{ALICE, Bed, gang, min};
use crate::verbs::n;

/// Two ranks, each with a node of its own.
fn pair(minutes: i64, window: (i64, i64)) -> Request {
    let mut request = gang(2, "gpu=8", minutes, window);
    request.constraints.per_node_max = Some(1);
    request
}

fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

/// A job that runs on its nodes since the start, and its tasks.
fn running(bed: &mut Bed, job: JobId) -> Vec<TaskId> {
    let tasks = bed.run(job);
    assert_eq!((bed.is(job), tasks.len()), ("running", 2));
    tasks
}

fn node_of(bed: &Bed, job: JobId, rank: usize) -> NodeId {
    n(bed.nodes_of(job)[rank])
}

fn earned(bed: &Bed) -> Money {
    let earned = bed.events.iter().filter_map(|event| match event {
        Event::Posted { posting, .. } if posting.reason == PostingReason::Earned => {
            Some(posting.amount.0)
        }
        _ => None,
    });
    Money(earned.sum())
}

#[test]
fn a_rank_that_fails_because_a_node_is_gone_does_not_fail_a_promise() {
    let mut bed = Bed::new(3);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks = running(&mut bed, job);
    bed.until(min(20));
    bed.done(Command::Checkpointed { task: tasks[0], done: Span::from_min(15) });
    bed.exit(&tasks[..1], 1);
    assert_eq!(bed.is(job), "stopping");
    bed.until(min(20) + s(33));
    let lost = node_of(&bed, job, 1);
    bed.done(Command::Lost { node: lost });
    bed.until(min(22));
    let again = running(&mut bed, job);
    assert_eq!(again[0].attempt, 2);
    assert!(!bed.nodes_of(job).contains(&lost.0));
    let plan = bed.state.job(job).unwrap().first_part().plan().unwrap().clone();
    assert_eq!(plan.to.since(plan.from), Span::from_min(45), "it goes on from its checkpoint");
    bed.exit(&again, 0);
    assert_eq!(bed.outcome(job), Some(Outcome::Succeeded));
}

#[test]
fn the_node_may_be_found_lost_before_the_rank_that_missed_it_has_stopped() {
    let mut bed = Bed::new(3);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks = running(&mut bed, job);
    bed.until(min(20));
    bed.exit(&tasks[..1], 1);
    bed.until(min(20) + s(5));
    bed.done(Command::Lost { node: node_of(&bed, job, 1) });
    bed.until(min(22));
    assert_eq!(running(&mut bed, job)[0].attempt, 2);
}

/// An executor adds a margin to the lease before it reports a node as lost, and the stop may have
/// no grace, or the plan may end before the node is.
#[test]
fn a_node_may_be_reported_lost_some_time_after_its_lease_whatever_the_grace() {
    for (grace, at) in [(0, min(20)), (30, min(60) - s(31))] {
        let settings = Settings { grace: s(grace), ..Settings::default() };
        let mut bed = Bed::with(3, settings, MarketRules::default());
        let job = bed.promise(pair(60, (0, 300)));
        let tasks = running(&mut bed, job);
        bed.until(at);
        bed.exit(&tasks[..1], 1);
        bed.until(at + s(42));
        assert_eq!(bed.is(job), "stopping", "{grace}");
        bed.done(Command::Lost { node: node_of(&bed, job, 1) });
        bed.until(at + min(3).since(min(0)));
        assert_eq!(running(&mut bed, job)[0].attempt, 2, "{grace}");
    }
}

#[test]
fn queue_work_of_which_a_node_is_gone_waits_again_and_pays_for_what_ran() {
    let mut bed = Bed::new(3);
    let job = bed.enqueue(ALICE, pair(60, (0, 1)), false);
    bed.pass();
    let tasks = running(&mut bed, job);
    let before = bed.wallet(ALICE);
    bed.until(min(20));
    bed.done(Command::Checkpointed { task: tasks[1], done: Span::from_min(15) });
    bed.exit(&tasks[..1], 1);
    bed.until(min(20) + s(40));
    bed.done(Command::Lost { node: node_of(&bed, job, 1) });
    bed.until(min(22));
    assert_eq!(bed.is(job), "waiting");
    // Twenty of sixty minutes ran; what came after was nobody's doing.
    let escrow = Money(earned(&bed).0 + bed.wallet(ALICE).0 - before.0);
    assert!((earned(&bed).0 - escrow.part(20, 60).0).abs() <= 1, "a price is rounded up");
    bed.pass();
    let again = running(&mut bed, job);
    assert_eq!(again[0].attempt, 2);
    assert_eq!(bed.state.job(job).unwrap().first_part().remaining(), Span::from_min(45));
}

#[test]
fn a_gang_whose_nodes_all_answer_has_failed_at_once() {
    let mut bed = Bed::new(2);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks = running(&mut bed, job);
    bed.until(min(20));
    bed.exit(&tasks[..1], 7);
    bed.until(min(20) + s(2));
    bed.exit(&tasks[1..], 143);
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 7 }));
    let ended = bed.state.job(job).unwrap().ended.clone().unwrap().at;
    assert_eq!(ended, min(20) + s(2), "the other one used what it had until then");
}

#[test]
fn a_gang_has_failed_when_a_silent_node_is_not_found_lost_within_its_lease() {
    let mut bed = Bed::new(2);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks = running(&mut bed, job);
    bed.until(min(20));
    bed.exit(&tasks[..1], 7);
    // The grace of the stop, the lease of its node, and the time that a report of it may take.
    bed.until(min(21) + s(15) - Span(1));
    assert_eq!(bed.is(job), "stopping");
    bed.until(min(21) + s(15));
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 7 }));
    let ended = bed.state.job(job).unwrap().ended.clone().unwrap().at;
    assert_eq!(ended, min(20), "the wait is not billed");
    let late = Command::Exited { task: tasks[1], code: 0, at: None };
    assert_eq!(bed.send(late), Reply::Ignored);
}

#[test]
fn a_late_answer_ends_the_wait() {
    let mut bed = Bed::new(2);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks = running(&mut bed, job);
    bed.until(min(20));
    bed.exit(&tasks[..1], 7);
    bed.until(min(20) + s(45));
    let at = Some(min(20) + s(30));
    bed.done(Command::Exited { task: tasks[1], code: 137, at });
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 7 }));
    let ended = bed.state.job(job).unwrap().ended.clone().unwrap().at;
    assert_eq!(Some(ended), at);
}

#[test]
fn on_one_node_a_rank_that_fails_has_failed_its_gang() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=4", 60, (0, 300)));
    let tasks = running(&mut bed, job);
    assert_eq!(bed.nodes_of(job)[0], bed.nodes_of(job)[1]);
    bed.until(min(20));
    bed.exit(&tasks[..1], 7);
    bed.until(min(20) + s(30));
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 7 }));
}

#[test]
fn a_rank_that_was_never_begun_and_is_lost_is_no_reason_to_begin_anew() {
    let mut bed = Bed::new(2);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks: Vec<TaskId> = (0..2).map(|_| bed.take_launch().0).collect();
    bed.done(Command::Started { task: tasks[0] });
    bed.exit(&tasks[..1], 7);
    let reason = crate::bed::name("superseded");
    bed.done(Command::TaskLost { task: tasks[1], reason });
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 7 }));
}

#[test]
fn a_failing_gang_that_is_given_up_is_not_begun_anew() {
    let mut bed = Bed::new(3);
    let job = bed.promise(pair(60, (0, 300)));
    let tasks = running(&mut bed, job);
    bed.until(min(20));
    bed.exit(&tasks[..1], 1);
    bed.done(Command::Cancel { job, by: crate::bed::by(ALICE) });
    bed.done(Command::Lost { node: node_of(&bed, job, 1) });
    bed.until(min(25));
    assert_eq!(bed.outcome(job), Some(Outcome::Cancelled));
}

#[test]
fn a_gang_that_failed_with_its_growth_goes_on_without_it() {
    let mut bed = Bed::new(3);
    let mut request = gang(1, "gpu=8", 60, (0, 300));
    request.shape = Shape::Replicas { min: 1, max: 2 };
    request.constraints.per_node_max = Some(1);
    let job = bed.promise(request);
    let tasks = bed.run(job);
    bed.pass();
    let (grown, grown_on) = bed.take_launch();
    bed.done(Command::Started { task: grown });
    bed.effects.clear();
    bed.until(min(20));
    bed.exit(&tasks, 1);
    bed.until(min(20) + s(33));
    bed.done(Command::Lost { node: grown_on });
    bed.until(min(22));
    assert_eq!(bed.run(job)[0].attempt, 2);
}

#[test]
fn without_room_in_its_window_it_is_a_promise_broken_and_not_a_job_that_failed() {
    let mut bed = Bed::new(2);
    let job = bed.promise(pair(60, (0, 60)));
    let tasks = running(&mut bed, job);
    let paid = bed.wallet(ALICE);
    bed.until(min(20));
    bed.exit(&tasks[..1], 1);
    bed.until(min(20) + s(33));
    bed.done(Command::Lost { node: node_of(&bed, job, 1) });
    bed.until(min(22));
    assert!(matches!(bed.outcome(job), Some(Outcome::Broken { .. })), "{:?}", bed.outcome(job));
    assert!(bed.wallet(ALICE) > paid);
    let stops = |event: &Event| matches!(event, Event::Stopping { why: StopReason::Lost, .. });
    assert!(bed.saw(stops));
}
