//! Elastic jobs: grown into free capacity, shrunk before anything else gives way.

use era_core::bid::{Request, Shape, Topology};
use era_core::input::NewNode;
use era_core::job::{Outcome, StopReason, TaskId};
use era_core::ledger::Account;
use era_core::units::{JobId, Span};
use era_core::{Command, Effect, Event};

use crate::bed::{ALICE, BOB, Bed, gang, min, name, node};
use crate::verbs::{credits, gpu_quota, n};

fn elastic(min: u32, max: u32, each: &str, minutes: i64) -> Request {
    let mut request = gang(1, each, minutes, (0, minutes));
    request.shape = Shape::Replicas { min, max };
    request
}

/// How many replicas a job has beyond its promise.
fn grown(bed: &Bed, job: JobId) -> usize {
    bed.state.job(job).unwrap().first_part().extras().len()
}

/// A job of one to four replicas of two GPUs that has grown as far as it could.
fn grown_job(bed: &mut Bed) -> JobId {
    let job = bed.promise(elastic(1, 4, "gpu=2", 120));
    bed.run(job);
    bed.pass();
    job
}

#[test]
fn a_running_elastic_job_grows_into_free_capacity_at_a_pass() {
    let mut bed = Bed::new(1);
    let job = bed.promise(elastic(1, 4, "gpu=2", 120));
    bed.pass();
    assert_eq!(grown(&bed, job), 0, "not before its gang runs");
    bed.run(job);
    bed.enqueue(BOB, gang(1, "gpu=2", 60, (0, 1)), false);
    bed.pass();
    assert_eq!(grown(&bed, job), 2, "what waits goes first");
    let resize = Effect::Resize { job, part: 0, attempt: 1, replicas: 3 };
    assert!(bed.effects.contains(&resize));
    assert!(bed.saw(|e| *e == Event::Resized { job, part: 0, replicas: 3 }));
    let ranks: Vec<u32> = bed.run(job).iter().map(|t| t.rank).collect();
    assert_eq!(ranks, [1, 2]);
    bed.pass();
    assert_eq!(grown(&bed, job), 2, "there is no room for a fourth");
}

#[test]
fn growth_is_charged_as_queue_use() {
    let mut bed = Bed::new(1);
    let job = bed.promise(elastic(1, 2, "gpu=2", 120));
    bed.run(job);
    let promised = bed.state.ledger().balance(Account::Escrow(job));
    assert_eq!(promised, credits(16), "two GPUs for two hours at half of 8");
    bed.until(min(60));
    bed.pass();
    // Half the base rate of two GPUs for the hour that is left is set aside for growth.
    let escrow = bed.state.ledger().balance(Account::Escrow(job));
    assert_eq!(escrow, promised.plus(credits(8)).unwrap());
    let before = bed.wallet(ALICE);
    let extra = bed.run(job);
    bed.until(min(90));
    bed.exit(&extra, 0);
    assert_eq!(bed.wallet(ALICE), before.plus(credits(4)).unwrap(), "half of it was used");
    assert!(bed.effects.contains(&Effect::Resize { job, part: 0, attempt: 1, replicas: 1 }));
    assert_eq!(bed.is(job), "running", "growth that ends does not end the job");
    assert_eq!(grown(&bed, job), 0);
}

#[test]
fn growth_gives_way_to_a_promise_in_time_and_the_promised_replicas_never_do() {
    let mut bed = Bed::new(1);
    let job = grown_job(&mut bed);
    assert_eq!(grown(&bed, job), 3);
    bed.run(job);
    bed.effects.clear();
    let whole = bed.promise(gang(1, "gpu=6", 30, (60, 90)));
    bed.until(min(60) - Span::from_s(30));
    let mut ranks: Vec<u32> = bed.take_stops().iter().map(|(task, _)| task.rank).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [1, 2, 3]);
    bed.until(min(60));
    assert_eq!(bed.run(whole).len(), 1);
    assert_eq!((grown(&bed, job), bed.is(job)), (0, "running"));
    bed.finish(whole);
    bed.pass();
    assert_eq!(grown(&bed, job), 3, "and grows again when there is room");
}

#[test]
fn a_promise_that_starts_at_once_waits_for_growth_to_go_with_grace() {
    let mut bed = Bed::new(1);
    let job = grown_job(&mut bed);
    bed.run(job);
    let wish = crate::bed::bid(gang(1, "gpu=2", 30, (0, 90)));
    let told = era_core::quote(&bed.state, &wish, bed.at).unwrap();
    assert!(told.start >= bed.at + Span::from_s(30), "{}", told.start);
    assert!(told.start <= min(1), "{}", told.start);
}

#[test]
fn growth_stays_within_quota_and_wallet() {
    let mut bed = Bed::new(1);
    bed.alice_may(gpu_quota(4));
    let job = grown_job(&mut bed);
    assert_eq!(grown(&bed, job), 1);
    bed.alice_may(gpu_quota(8));
    bed.run(job);
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    bed.pass();
    assert_eq!(grown(&bed, job), 1, "nobody can pay for more");
}

#[test]
fn growth_ends_with_the_job() {
    let mut bed = Bed::new(1);
    let job = grown_job(&mut bed);
    bed.run(job);
    bed.effects.clear();
    bed.until(min(60));
    bed.finish(job);
    // The promised rank is done; the others are told that nothing is left to help with.
    let ranks: Vec<TaskId> = bed.take_stops().iter().map(|(task, _)| *task).collect();
    assert_eq!(ranks.iter().map(|t| t.rank).collect::<Vec<_>>(), [1, 2, 3]);
    bed.exit(&ranks, 0);
    assert_eq!(bed.outcome(job), Some(Outcome::Succeeded));
    assert_eq!(bed.state.ledger().balance(Account::Escrow(job)).0, 0);
}

#[test]
fn a_failed_rank_takes_its_growth_with_it() {
    let mut bed = Bed::new(1);
    let job = grown_job(&mut bed);
    bed.run(job);
    bed.effects.clear();
    let task = bed.task(job, 0);
    bed.done(Command::Exited { task, code: 1, at: None });
    let stops: Vec<StopReason> = bed.take_stops().iter().map(|(_, why)| *why).collect();
    assert_eq!(stops, [StopReason::Failed { code: 1 }; 3]);
    bed.until(min(1));
    assert_eq!(bed.outcome(job), Some(Outcome::Failed { code: 1 }));
}

#[test]
fn growth_on_a_lost_node_is_gone_and_the_gang_runs_on() {
    let mut bed = Bed::new(2);
    let job = bed.promise(elastic(1, 2, "gpu=8", 120));
    bed.run(job);
    bed.pass();
    let home = bed.nodes_of(job)[0];
    assert_eq!(grown(&bed, job), 1);
    bed.run(job);
    bed.done(Command::Lost { node: n(1 - home) });
    bed.until(min(1));
    assert_eq!((grown(&bed, job), bed.is(job)), (0, "running"));
}

#[test]
fn growth_keeps_to_the_rack_and_to_the_replicas_of_a_node() {
    let mut bed = Bed::new(0);
    let racked = |index: usize| {
        let rack = Some(name(["a", "b", "b"][index]));
        NewNode { rack, ..node(index) }
    };
    bed.send(Command::Join { nodes: (0..3).map(racked).collect() });
    let mut request = elastic(1, 8, "gpu=8", 120);
    request.constraints.same = Some(Topology::Rack);
    bed.promise(gang(1, "gpu=1", 10, (0, 10)));
    let job = bed.promise(request);
    bed.run(job);
    bed.until(min(11));
    bed.pass();
    assert_eq!(grown(&bed, job), 1, "rack b has two nodes, though rack a is free");

    let mut bed = Bed::new(1);
    let mut request = elastic(1, 8, "gpu=1", 120);
    request.constraints.per_node_max = Some(3);
    let job = bed.promise(request);
    bed.run(job);
    bed.pass();
    assert_eq!(grown(&bed, job), 2);
}
