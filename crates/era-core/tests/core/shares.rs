//! What runs counts before it is settled: towards quotas of hours, and towards fair shares.

use crate::bed::{ALICE, BOB, Bed, gang, min, name};
use era_core::Command;
use era_core::accounts::Actor;
use era_core::queue::Queue;
use era_core::quota::Quota;
use era_core::refusal::QuotaScope;

#[test]
fn queue_work_that_runs_side_by_side_stays_within_the_hours_of_a_period() {
    let mut bed = Bed::new(1);
    // Three GPU-hours; each job may last two.
    let quota = Quota { hours: [None, None, Some(3_000)], ..Quota::default() };
    let scope = QuotaScope::User(ALICE);
    bed.done(Command::SetQuota { by: Actor::Administrator, scope, quota, reason: None });
    let first = bed.enqueue(ALICE, gang(1, "gpu=1", 120, (0, 1)), false);
    let second = bed.enqueue(ALICE, gang(1, "gpu=1", 120, (0, 1)), false);
    bed.pass();
    assert_eq!(bed.state.job(first).unwrap().state(), "running");
    assert_eq!(bed.state.job(second).unwrap().state(), "waiting");
    // What the first did not use comes back when it ends, and the second has its turn.
    let tasks = bed.run(first);
    bed.until(min(30));
    bed.exit(&tasks, 0);
    bed.pass();
    assert_eq!(bed.state.job(second).unwrap().state(), "running");
}

#[test]
fn fair_share_counts_what_still_runs() {
    let mut bed = Bed::new(1);
    let queue = Queue::new(name("default"), name("fair-share"));
    bed.done(Command::PutQueue { queue });
    let running = bed.enqueue(ALICE, gang(1, "gpu=4", 600, (0, 1)), false);
    bed.pass();
    bed.run(running);
    bed.until(min(60));
    let hers = bed.enqueue(ALICE, gang(1, "gpu=4", 60, (0, 1)), false);
    let his = bed.enqueue(BOB, gang(1, "gpu=4", 60, (0, 1)), false);
    bed.pass();
    assert_eq!(bed.state.job(his).unwrap().state(), "running");
    assert_eq!(bed.state.job(hers).unwrap().state(), "waiting");
}
