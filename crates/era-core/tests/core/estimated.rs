//! What is told of a start: only what limits and funds allow.

use era_core::explain::{Estimate, Explanation};
use era_core::reason::WaitReason;
use era_core::units::{JobId, Money};
use era_core::{Command, explain};

use crate::bed::{ALICE, BOB, Bed, gang, min};
use crate::verbs::{for_queue, gpu_quota, queue_terms};

fn told(bed: &Bed, job: JobId) -> (Option<Estimate>, WaitReason) {
    match explain(&bed.state, job) {
        Ok(Explanation::Waiting { start, reason, .. }) => (start, reason),
        told => panic!("{job} does not wait: {told:?}"),
    }
}

fn likely(bed: &Bed, job: JobId) -> Option<i64> {
    told(bed, job).0.map(|start| start.likely.since(min(0)).0 / 60_000)
}

#[test]
fn an_empty_wallet_has_no_start() {
    let mut bed = Bed::new(1);
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    let poor = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    let next = bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), false);
    let (start, reason) = told(&bed, poor);
    assert_eq!(start, None);
    assert!(matches!(reason, WaitReason::Funds { .. }), "{reason:?}");
    assert_eq!(likely(&bed, next), Some(0), "nobody waits for who cannot start");
}

#[test]
fn a_wallet_pays_for_so_many_of_those_that_wait() {
    let mut bed = Bed::new(1);
    let jobs: Vec<JobId> =
        (0..3).map(|_| bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false)).collect();
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    let WaitReason::Funds { needed, .. } = told(&bed, jobs[0]).1 else { panic!("it has no funds") };
    let amount = Money(needed.0 * 2);
    bed.done(Command::Grant { user: ALICE, amount });
    let starts: Vec<Option<i64>> = jobs.iter().map(|job| likely(&bed, *job)).collect();
    assert_eq!(starts, [Some(0), Some(60), None]);
}

#[test]
fn a_wallet_pays_for_no_more_of_those_far_down() {
    let mut bed = Bed::new(1);
    let jobs: Vec<JobId> =
        (0..100).map(|_| bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false)).collect();
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    let WaitReason::Funds { needed, .. } = told(&bed, jobs[0]).1 else { panic!("it has no funds") };
    for paid in [2, 80] {
        let amount = Money(needed.0 * paid as i64 - bed.wallet(ALICE).0);
        bed.done(Command::Grant { user: ALICE, amount });
        for (at, job) in jobs.iter().enumerate() {
            assert_eq!(likely(&bed, *job).is_some(), at < paid, "{at} of {paid}");
        }
    }
}

#[test]
fn of_an_array_only_so_many_run_at_a_time() {
    let mut bed = Bed::new(1);
    let first = bed.accept(crate::arrays::array(9, Some(3), "gpu=1"));
    let starts: Vec<Option<i64>> = (0..9).map(|n| likely(&bed, JobId(first.0 + n))).collect();
    let each = bed.state.job(first).unwrap().first_part().request.duration.0 / 60_000;
    let turn = |n: i64| Some(n / 3 * each);
    assert_eq!(starts, (0..9).map(turn).collect::<Vec<_>>());
    bed.pass();
    bed.until(min(1));
    assert_eq!(likely(&bed, JobId(first.0 + 3)), Some(each));
}

#[test]
fn those_far_down_an_array_wait_for_its_turns_as_well() {
    let mut bed = Bed::new(1);
    let first = bed.accept(crate::arrays::array(100, Some(2), "gpu=1"));
    let each = bed.state.job(first).unwrap().first_part().request.duration.0 / 60_000;
    let last = likely(&bed, JobId(first.0 + 99)).unwrap();
    assert!((48 * each..=51 * each).contains(&last), "{last} minutes for 50 turns of {each}");
}

#[test]
fn a_queue_and_a_quota_let_only_so_many_run_at_a_time() {
    let mut bed = Bed::new(2);
    bed.queue("default", "fifo", |q| q.running_max = 1);
    let jobs = [0; 3].map(|_| bed.enqueue(BOB, gang(1, "gpu=1", 60, (0, 1)), false));
    assert_eq!(jobs.map(|job| likely(&bed, job)), [Some(0), Some(60), Some(120)]);
    let mut bed = Bed::new(2);
    bed.alice_may(gpu_quota(4));
    let jobs = [0; 3].map(|_| bed.enqueue(ALICE, gang(1, "gpu=2", 60, (0, 1)), false));
    assert_eq!(jobs.map(|job| likely(&bed, job)), [Some(0), Some(0), Some(60)]);
    bed.pass();
    bed.until(min(30));
    assert_eq!(likely(&bed, jobs[2]), Some(60));
}

#[test]
fn the_first_of_a_queue_is_not_behind_anybody_of_it() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let long = bed.accept(for_queue(ALICE, gang(1, "gpu=8", 90, (0, 1)), queue_terms("default")));
    bed.pass();
    let (start, reason) = told(&bed, long);
    assert_eq!(reason, WaitReason::Behind { ahead: 0 });
    let said = reason.to_string();
    assert_eq!(said, "it would delay a promise, or a job that another queue serves first");
    assert_eq!(start.map(|start| start.likely), Some(min(120)));
}
