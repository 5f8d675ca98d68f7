//! Around what waits ahead and what is promised: backfilling, shares, limits, preemption.

use era_core::job::StopReason;
use era_core::settings::Backfill;
use era_core::units::{JobId, Span};
use era_core::{Command, Event};

use crate::bed::{ALICE, BOB, Bed, by, gang, min};
use crate::verbs::gpu_quota;

fn wait(bed: &mut Bed, count: u32, each: &str, minutes: i64) -> JobId {
    bed.enqueue(ALICE, gang(count, each, minutes, (0, 1)), false)
}

/// Two nodes: five GPUs of the first are taken for an hour, five of the second for two. Then
/// wait: a whole node (from 60), both nodes (from 120), three GPUs for three hours, which fit
/// beside the second run now, and three for an hour, which fit beside the first.
fn crowded(backfill: Backfill) -> (Bed, [JobId; 4]) {
    let mut bed = Bed::new(2);
    bed.set(|s| s.backfill = backfill);
    wait(&mut bed, 1, "gpu=5", 60);
    wait(&mut bed, 1, "gpu=5", 120);
    bed.pass();
    assert_eq!(bed.running().len(), 2);
    let jobs = [
        wait(&mut bed, 1, "gpu=8", 60),
        wait(&mut bed, 2, "gpu=8", 60),
        wait(&mut bed, 1, "gpu=3", 180),
        wait(&mut bed, 1, "gpu=3", 60),
    ];
    bed.pass();
    (bed, jobs)
}

fn started(bed: &Bed, jobs: &[JobId]) -> Vec<bool> {
    jobs.iter().map(|job| bed.is(*job) == "running").collect()
}

#[test]
fn without_backfilling_nothing_passes_the_first_that_waits() {
    let (bed, jobs) = crowded(Backfill::None);
    assert_eq!(started(&bed, &jobs), [false, false, false, false]);
}

#[test]
fn easy_backfilling_delays_only_the_first_that_waits_not_at_all() {
    let (bed, jobs) = crowded(Backfill::Easy);
    // Three hours beside the second run delay the gang of both nodes, which is not the first.
    assert_eq!(started(&bed, &jobs), [false, false, true, true]);
    assert_eq!((bed.nodes_of(jobs[2]), bed.nodes_of(jobs[3])), (vec![1], vec![0]));
}

#[test]
fn conservative_backfilling_delays_none_that_waits_ahead() {
    let (bed, jobs) = crowded(Backfill::Conservative);
    assert_eq!(started(&bed, &jobs), [false, false, false, true]);
}

#[test]
fn a_conservative_place_is_kept_until_something_comes_free() {
    let (mut bed, jobs) = crowded(Backfill::Conservative);
    let hole = |bed: &Bed, job| bed.state.job(job).unwrap().first_part().hole().map(|h| h.from);
    assert_eq!(hole(&bed, jobs[0]), Some(min(60)));
    assert_eq!(hole(&bed, jobs[1]), Some(min(120)));
    bed.run(JobId(1));
    bed.run(jobs[3]);
    bed.until(min(30));
    bed.pass();
    assert_eq!(hole(&bed, jobs[0]), Some(min(60)));
    bed.finish(JobId(1));
    bed.finish(jobs[3]);
    bed.pass();
    assert_eq!(bed.is(jobs[0]), "running", "it moved up");
    assert_eq!(hole(&bed, jobs[1]), Some(min(120)));
}

#[test]
fn a_gap_between_promises_is_a_place_only_for_what_ends_in_it() {
    let mut bed = Bed::new(1);
    bed.set(|s| s.backfill = Backfill::Conservative);
    bed.promise(gang(1, "gpu=8", 60, (0, 60)));
    bed.promise(gang(1, "gpu=8", 60, (90, 150)));
    let jobs = [wait(&mut bed, 1, "gpu=8", 31), wait(&mut bed, 1, "gpu=8", 30)];
    bed.pass();
    let hole = |job| bed.state.job(job).unwrap().first_part().hole().map(|h| h.from);
    assert_eq!(jobs.map(hole), [Some(min(150)), Some(min(60))]);
}

#[test]
fn enforced_limits_decide_what_runs_ahead_of_a_promise_and_predictions_do_not() {
    let mut bed = Bed::new(1);
    let ratio = era_core::estimate::Ratio {
        low: era_core::units::Milli(1),
        middle: era_core::units::Milli(10),
        high: era_core::units::Milli(20),
    };
    let users = std::collections::BTreeMap::from([(ALICE, ratio)]);
    let estimates =
        std::sync::Arc::new(era_core::estimate::Estimates { users, ..Default::default() });
    bed.done(Command::PublishEstimates { estimates });
    let promise = bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let long = wait(&mut bed, 1, "gpu=8", 61);
    let short = wait(&mut bed, 1, "gpu=8", 60);
    bed.pass();
    assert_eq!(started(&bed, &[long, short]), [false, true]);
    bed.run(short);
    bed.until(min(60));
    assert_eq!(bed.run(promise).len(), 1, "the promise starts when it was told");
}

#[test]
fn the_first_that_waits_has_its_place_behind_a_promise_and_others_go_around_both() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    // The head fits from 120 on; four GPUs until 60 delay nobody, nor do they from 180 on.
    let head = wait(&mut bed, 1, "gpu=8", 90);
    let fits = wait(&mut bed, 1, "gpu=4", 60);
    let not = wait(&mut bed, 1, "gpu=4", 70);
    bed.pass();
    assert_eq!(started(&bed, &[head, fits, not]), [false, true, false]);
}

#[test]
fn a_queue_without_borrowing_stays_in_its_share() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| {
        q.share = era_core::units::Milli(500);
        q.borrows = false;
    });
    let jobs = [3, 1, 1].map(|gpus| wait(&mut bed, 1, &format!("gpu={gpus}"), 60));
    bed.pass();
    assert_eq!(started(&bed, &jobs), [true, true, false]);
}

#[test]
fn a_queue_that_borrows_gets_what_the_others_leave_and_not_before_them() {
    let share = |q: &mut era_core::queue::Queue| q.share = era_core::units::Milli(500);
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", share);
    bed.queue("other", "fifo", |q| {
        share(q);
        q.level = 1;
    });
    let first = wait(&mut bed, 1, "gpu=4", 60);
    let second = wait(&mut bed, 1, "gpu=4", 60);
    let his = bed.enqueue_in(BOB, "other", gang(1, "gpu=4", 60, (0, 1)));
    bed.pass();
    assert_eq!(started(&bed, &[first, second, his]), [true, false, true]);
    bed.run(his);
    bed.finish(his);
    bed.pass();
    assert_eq!(bed.is(second), "running", "nobody else wants it now");
}

#[test]
fn a_queue_runs_no_more_jobs_and_holds_no_more_gpus_than_it_may() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| q.running_max = 1);
    bed.queue("gpus", "fifo", |q| q.gpus_max = Some(3000));
    let jobs = [wait(&mut bed, 1, "gpu=1", 60), wait(&mut bed, 1, "gpu=1", 60)];
    let ask = |gpus: u32| gang(1, &format!("gpu={gpus}"), 60, (0, 1));
    let held = [2, 2, 1].map(|gpus| bed.enqueue_in(ALICE, "gpus", ask(gpus)));
    bed.pass();
    assert_eq!(started(&bed, &jobs), [true, false]);
    assert_eq!(started(&bed, &held), [true, false, true]);
}

/// A queue that preempts by the owner's own priorities.
fn preempting() -> Bed {
    let mut bed = Bed::new(1);
    bed.queue("default", "priority", |q| q.preempts = true);
    bed
}

fn raise(bed: &mut Bed, job: JobId) {
    let by = by(ALICE);
    bed.done(Command::Edit { job, by, priority: Some(1000), limit: None, queue: None });
}

#[test]
fn a_preempting_queue_makes_room_for_whom_it_ranks_higher_with_grace() {
    let mut bed = preempting();
    let low = bed.enqueue(ALICE, gang(1, "gpu=8", 600, (0, 1)), true);
    bed.pass();
    let task = bed.run(low)[0];
    bed.until(min(30));
    bed.done(Command::Checkpointed { task, done: Span::from_min(20) });
    let high = wait(&mut bed, 1, "gpu=8", 60);
    raise(&mut bed, high);
    bed.pass();
    let (stopped, why, until) = bed.take_stop();
    assert_eq!((stopped, why), (task, StopReason::Preempted));
    assert_eq!(until, min(30) + Span::from_s(30));
    bed.assert_quiet();
    bed.until(until);
    assert!(bed.saw(|e| *e == Event::Requeued { job: low, not_before: until }));
    bed.pass();
    assert_eq!(bed.run(high).len(), 1);
    // It kept its age and its checkpoint.
    let waiting = bed.state.job(low).unwrap();
    assert_eq!(waiting.submitted, min(0));
    assert_eq!(waiting.first_part().remaining(), Span::from_min(580));
}

#[test]
fn only_those_who_allowed_it_are_preempted() {
    let mut bed = preempting();
    let low = wait(&mut bed, 1, "gpu=8", 600);
    bed.pass();
    bed.run(low);
    let high = wait(&mut bed, 1, "gpu=8", 60);
    raise(&mut bed, high);
    bed.pass();
    bed.assert_quiet();
    assert_eq!(bed.is(low), "running");
}

#[test]
fn a_queue_that_does_not_preempt_lets_what_runs_run() {
    let mut bed = Bed::new(1);
    bed.queue("default", "priority", |_| ());
    let low = bed.enqueue(ALICE, gang(1, "gpu=8", 600, (0, 1)), true);
    bed.pass();
    bed.run(low);
    let high = wait(&mut bed, 1, "gpu=8", 60);
    raise(&mut bed, high);
    bed.pass();
    bed.assert_quiet();
}

#[test]
fn nobody_is_preempted_for_a_job_that_could_not_start_anyway() {
    let mut bed = preempting();
    let low = bed.enqueue(BOB, gang(1, "gpu=8", 600, (0, 1)), true);
    bed.pass();
    bed.run(low);
    let high = wait(&mut bed, 1, "gpu=8", 60);
    raise(&mut bed, high);
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    bed.pass();
    bed.assert_quiet();
    assert_eq!(bed.is(low), "running", "its owner has no credits");
    bed.done(Command::Grant { user: ALICE, amount: era_core::units::Money::credits(1000) });
    let hours = [None, None, Some(1)];
    bed.alice_may(era_core::quota::Quota { hours, ..gpu_quota(8) });
    bed.pass();
    bed.assert_quiet();
    assert_eq!(bed.is(low), "running", "its owner's quota is used up");
}

#[test]
fn growth_gives_way_to_a_promise_before_preemptible_work_does() {
    let mut bed = Bed::new(1);
    let mut elastic = gang(1, "gpu=2", 300, (0, 300));
    elastic.shape = era_core::bid::Shape::Replicas { min: 1, max: 2 };
    let grows = bed.promise(elastic);
    bed.run(grows);
    let soft = bed.enqueue(BOB, gang(1, "gpu=4", 200, (0, 1)), true);
    bed.pass();
    bed.run(soft);
    bed.pass();
    assert_eq!(bed.state.job(grows).unwrap().first_part().extras().len(), 1);
    bed.run(grows);
    bed.effects.clear();
    bed.promise(gang(1, "gpu=2", 60, (60, 120)));
    bed.until(min(60));
    let stops = bed.take_stops();
    assert_eq!(stops, [(bed.task(grows, 1), StopReason::Preempted)]);
    assert_eq!(bed.is(soft), "running");
}
