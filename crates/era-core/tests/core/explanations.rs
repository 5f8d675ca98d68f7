//! Why a job waits, where it stands, and when it is likely to start.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::bid::{Request, Shape};
use era_core::cluster::Rates;
use era_core::estimate::{Estimates, Ratio};
use era_core::explain::{Estimate, Explanation};
use era_core::input::NewNode;
use era_core::quota::Quota;
use era_core::reason::WaitReason;
use era_core::resources::Resource;
use era_core::units::{JobId, Milli, Money, Span};
use era_core::{Command, Refusal, Reply, dearest_run, explain, explain_queue, likely_starts};

use crate::bed::{ALICE, BOB, Bed, gang, min, name, node, pool};
use crate::verbs::{credits, gpu_quota};

fn wait(bed: &mut Bed, each: &str, minutes: i64) -> JobId {
    bed.enqueue(ALICE, gang(1, each, minutes, (0, 1)), false)
}

#[test]
fn a_job_is_promised_then_runs_then_has_ended() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (10, 100)));
    let promised = Explanation::Promised { start: min(10), finish: min(70) };
    assert_eq!(explain(&bed.state, job), Ok(promised));
    bed.until(min(10));
    let running = |begun| Explanation::Running { since: min(10), until: min(70), begun };
    assert_eq!(explain(&bed.state, job), Ok(running(false)));
    bed.run(job);
    assert_eq!(explain(&bed.state, job), Ok(running(true)));
    bed.until(min(20));
    bed.finish(job);
    assert_eq!(explain(&bed.state, job), Ok(Explanation::Ended { at: min(20) }));
    let missing = explain(&bed.state, JobId(99));
    assert_eq!(missing, Err(Refusal::UnknownJob { job: JobId(99) }));
}

#[test]
fn it_may_not_start_yet() {
    let mut bed = Bed::new(1);
    let job = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (30, 31)), false);
    assert_eq!(bed.reason(job), WaitReason::NotBefore { until: min(30) });
    bed.until(min(30));
    assert_eq!(bed.reason(job), WaitReason::NextPass);
}

#[test]
fn its_queue_runs_as_many_jobs_or_holds_as_many_gpus_as_it_may() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| q.running_max = 1);
    bed.queue("gpus", "fifo", |q| q.gpus_max = Some(3000));
    wait(&mut bed, "gpu=1", 60);
    bed.enqueue_in(ALICE, "gpus", gang(1, "gpu=2", 60, (0, 1)));
    bed.pass();
    let job = wait(&mut bed, "gpu=1", 60);
    assert_eq!(bed.reason(job), WaitReason::QueueFull { running: 1 });
    let job = bed.enqueue_in(ALICE, "gpus", gang(1, "gpu=2", 60, (0, 1)));
    let reason = bed.reason(job);
    assert_eq!(reason, WaitReason::QueueGpus { held: 2000, most: 3000 });
    assert_eq!(reason.to_string(), "its queue holds 2 of the 3 GPUs that it may");
}

#[test]
fn its_queue_has_used_its_share_and_may_not_borrow() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| (q.share, q.borrows) = (Milli(500), false));
    let job = wait(&mut bed, "gpu=5", 60);
    assert_eq!(bed.reason(job), WaitReason::ShareUsed { share: Milli(500) });
    bed.queue("default", "fifo", |q| q.share = Milli(500));
    assert_eq!(bed.reason(job), WaitReason::NextPass, "what others leave is enough");
    bed.pass();
    assert_eq!(bed.is(job), "running");
}

#[test]
fn its_owners_quota_or_wallet_does_not_cover_it() {
    let mut bed = Bed::new(1);
    bed.alice_may(gpu_quota(4));
    wait(&mut bed, "gpu=3", 60);
    bed.pass();
    let job = wait(&mut bed, "gpu=2", 60);
    let reason = bed.reason(job);
    let WaitReason::Quota { refusal: Refusal::QuotaConcurrent { held: 3, asked: 2, .. } } = reason
    else {
        panic!("{reason}");
    };
    bed.alice_may(Quota::UNLIMITED);
    bed.done(Command::Withdraw { user: ALICE, amount: bed.wallet(ALICE) });
    assert_eq!(bed.reason(job), WaitReason::Funds { balance: Money(0), needed: credits(8) });
}

#[test]
fn too_little_is_free_or_not_together() {
    let mut bed = Bed::new(2);
    wait(&mut bed, "gpu=5,cpu=60", 60);
    wait(&mut bed, "gpu=5,cpu=60", 60);
    bed.pass();
    let job = wait(&mut bed, "gpu=7", 60);
    let reason = bed.reason(job);
    assert_eq!(reason, WaitReason::Short { resource: Resource::Gpu, free: 6000, needed: 7000 });
    assert_eq!(reason.to_string(), "gpu is short: 6 free, it needs 7");
    let job = wait(&mut bed, "gpu=1,cpu=9", 60);
    let short = WaitReason::Short { resource: Resource::Cpu, free: 8000, needed: 9000 };
    assert_eq!(bed.reason(job), short);
    let job = wait(&mut bed, "gpu=4", 60);
    assert_eq!(bed.reason(job), WaitReason::Fragmented, "three and three are free");
}

/// What is larger than the cluster waits for nodes to join, and not for what others hold.
#[test]
fn what_is_larger_than_the_cluster_is_said_to_be_whatever_is_free() {
    let mut bed = Bed::new(2);
    wait(&mut bed, "gpu=5,cpu=60", 60);
    bed.pass();
    let job = bed.enqueue(ALICE, gang(10, "gpu=8", 60, (0, 1)), false);
    let reason = bed.reason(job);
    assert!(matches!(reason, WaitReason::NeverFits { .. }), "{reason}");
    assert_eq!(
        reason.to_string(),
        "80 GPUs were asked for, and pool main has 16: ask for fewer; it waits until larger nodes join"
    );
    let nodes = (2..10).map(crate::bed::node).collect();
    bed.send(Command::Join { nodes });
    assert!(!matches!(bed.reason(job), WaitReason::NeverFits { .. }));
}

#[test]
fn it_would_delay_a_promise_or_a_job_ahead() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let alone = wait(&mut bed, "gpu=8", 61);
    assert_eq!(bed.reason(alone), WaitReason::Behind { ahead: 0 });
    let second = wait(&mut bed, "gpu=4", 70);
    assert_eq!(bed.reason(second), WaitReason::Behind { ahead: 1 });
    let fits = wait(&mut bed, "gpu=4", 60);
    assert_eq!(bed.reason(fits), WaitReason::NextPass, "the third goes around both");
    bed.pass();
    assert_eq!(bed.running(), [fits]);
}

#[test]
fn the_first_of_a_lower_queue_starts_around_what_waits_above() {
    let mut bed = Bed::new(1);
    bed.queue("later", "fifo", |q| q.level = 5);
    wait(&mut bed, "gpu=4", 60);
    bed.pass();
    wait(&mut bed, "gpu=8", 60);
    let low = bed.enqueue_in(ALICE, "later", gang(1, "gpu=4", 60, (0, 1)));
    assert_eq!(bed.reason(low), WaitReason::NextPass);
    bed.pass();
    assert_eq!(bed.is(low), "running");
}

#[test]
fn preemptible_work_that_may_run_ahead_of_a_promise_starts_at_the_next_pass() {
    let mut bed = Bed::new(1);
    bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let job = bed.enqueue(ALICE, gang(1, "gpu=8", 600, (0, 1)), true);
    assert_eq!(bed.reason(job), WaitReason::NextPass);
    bed.pass();
    assert_eq!(bed.is(job), "running");
}

/// The likely start of a waiting job.
fn start(bed: &Bed, job: JobId) -> Estimate {
    match explain(&bed.state, job).unwrap() {
        Explanation::Waiting { start: Some(start), .. } => start,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_estimated_start_has_a_spread_that_comes_from_past_durations() {
    let mut bed = Bed::new(1);
    let ratio = Ratio { low: Milli(100), middle: Milli(500), high: Milli(900) };
    let estimates = Estimates { users: BTreeMap::from([(BOB, ratio)]), ..Default::default() };
    bed.done(Command::PublishEstimates { estimates: Arc::new(estimates) });
    let first = bed.enqueue(BOB, gang(1, "gpu=8", 100, (0, 1)), false);
    bed.pass();
    bed.run(first);
    bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), false);
    let job = wait(&mut bed, "gpu=8", 30);
    // Ahead are 100 minutes that run and 60 that wait: 10 + 6, 50 + 30, or all of them.
    let told = start(&bed, job);
    assert_eq!(told, Estimate { earliest: min(16), likely: min(80), latest: min(160) });
    bed.until(min(60));
    // What runs longer than expected may end at any moment.
    let told = start(&bed, job);
    assert_eq!(told.latest, min(160));
    assert_eq!(told.likely.since(min(90)), Span(1));
    let Explanation::Waiting { position, .. } = explain(&bed.state, job).unwrap() else { panic!() };
    assert_eq!(position, 2);
}

#[test]
fn whoever_is_not_known_is_taken_at_his_word() {
    let mut bed = Bed::new(1);
    wait(&mut bed, "gpu=8", 100);
    bed.pass();
    let job = wait(&mut bed, "gpu=8", 30);
    let exact = Estimate { earliest: min(100), likely: min(100), latest: min(100) };
    assert_eq!(start(&bed, job), exact);
}

#[test]
fn a_queue_that_runs_nothing_tells_no_start() {
    let mut bed = Bed::new(1);
    bed.queue("default", "fifo", |q| q.running_max = 0);
    let job = wait(&mut bed, "gpu=8", 100);
    let told = explain(&bed.state, job).unwrap();
    assert!(matches!(told, Explanation::Waiting { position: 1, start: None, .. }), "{told:?}");
}

#[test]
fn far_back_in_the_queue_an_estimate_divides_the_work_ahead() {
    let mut bed = Bed::new(1);
    bed.checks = false;
    let mut last = wait(&mut bed, "gpu=8", 60);
    for _ in 0..99 {
        last = wait(&mut bed, "gpu=8", 60);
    }
    let told = start(&bed, last);
    assert_eq!(told.likely, min(98 * 60), "64 are planned one by one, the rest is divided");
    assert_eq!(bed.order("default").len(), 100);
}

#[test]
fn a_queue_is_explained_as_its_jobs_are_one_by_one() {
    let mut bed = Bed::new(1);
    let running = wait(&mut bed, "gpu=8", 60);
    bed.pass();
    bed.run(running);
    let jobs: Vec<JobId> = (0..70).map(|n| wait(&mut bed, "gpu=2", 10 + n)).collect();
    let default = crate::bed::name("default");
    let all = explain_queue(&bed.state, &default, 0, 1000).unwrap();
    assert_eq!(all.iter().map(|(job, _)| *job).collect::<Vec<_>>(), jobs);
    for (job, told) in &all {
        assert_eq!(explain(&bed.state, *job).as_ref(), Ok(told));
    }
    assert_eq!(explain_queue(&bed.state, &default, 68, 1).unwrap(), all[68..69]);
    assert_eq!(explain_queue(&bed.state, &default, 99, 5).unwrap(), []);
    assert!(explain_queue(&bed.state, &crate::bed::name("none"), 0, 1).is_err());
}

#[test]
fn likely_starts_are_those_that_the_jobs_are_told_one_by_one() {
    let mut bed = Bed::new(1);
    let running = wait(&mut bed, "gpu=8", 60);
    bed.pass();
    bed.run(running);
    let jobs: Vec<JobId> = (0..70).map(|n| wait(&mut bed, "gpu=2", 10 + n)).collect();
    let asked: Vec<JobId> = jobs.iter().copied().step_by(9).collect();
    let told = likely_starts(&bed.state, &asked);
    assert_eq!(told.iter().map(|(job, _)| *job).collect::<Vec<_>>(), asked);
    for (job, estimate) in told {
        assert_eq!(estimate, start(&bed, job), "{job}");
    }
    assert_eq!(likely_starts(&bed.state, &[running, JobId(9_999)]), [], "neither waits");
}

#[test]
fn the_dearest_pool_that_could_run_it_bounds_what_queue_work_costs() {
    let mut bed = Bed::new(1);
    let mut dear = pool("dear");
    dear.rates = Rates { gpu: Money(4 * dear.rates.gpu.0), ..dear.rates };
    bed.done(Command::PutPool { pool: dear.clone() });
    let request = gang(1, "gpu=1", 60, (0, 100));
    let most = |bed: &Bed, request: &Request| dearest_run(&bed.state, ALICE, request);
    let cheap = most(&bed, &request).unwrap();
    assert_eq!(bed.state.settings().queue_density, Milli(500));
    assert_eq!(cheap, Money(pool("main").rates.gpu.0 / 2), "the other pool has no node");

    let nodes = vec![NewNode { pool: name("dear"), ..node(1) }];
    assert!(matches!(bed.send(Command::Join { nodes }), Reply::Joined { .. }));
    assert_eq!(most(&bed, &request), Some(Money(4 * cheap.0)));
    let mut elastic = request.clone();
    elastic.shape = Shape::Replicas { min: 1, max: 3 };
    assert_eq!(most(&bed, &elastic), Some(Money(12 * cheap.0)), "with all that it may grow to");
    let mut bound = request.clone();
    bound.constraints.pool = Some(name("main"));
    assert_eq!(most(&bed, &bound), Some(cheap));
    bound.constraints.pool = Some(name("elsewhere"));
    assert_eq!(most(&bed, &bound), None);
}
