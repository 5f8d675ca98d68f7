//! Who goes first: every policy's order, ageing, and the order between queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_core::Command;
use era_core::accounts::{Group, User};
use era_core::bid::Attributes;
use era_core::estimate::{Estimates, Ratio};
use era_core::input::NewJob;
use era_core::queue::PolicyRule;
use era_core::queue::formula::Formula;
use era_core::units::{JobId, Milli, Span};

use crate::bed::{ALICE, BOB, Bed, OTHER_LAB, gang, min, name};
use crate::verbs::{for_queue, queue_terms, user};

/// A bench whose only node is taken by a promise for the first hour, so that all wait.
fn full() -> Bed {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8,cpu=64,memory=512Gi", 60, (0, 60)));
    bed.run(job);
    bed
}

fn policy(bed: &mut Bed, policy: &str) {
    bed.queue("default", policy, |_| ());
}

fn formula(bed: &mut Bed, text: &str) {
    let rule = PolicyRule::Priority { formula: Formula::parse(text).unwrap() };
    bed.done(Command::PublishPolicy { name: name("ours"), rule });
    policy(bed, "ours");
}

fn wait(bed: &mut Bed, each: &str, minutes: i64) -> JobId {
    bed.enqueue(ALICE, gang(1, each, minutes, (0, 1)), true)
}

#[test]
fn fifo_serves_the_oldest() {
    let mut bed = full();
    let jobs = [wait(&mut bed, "gpu=1", 60), wait(&mut bed, "gpu=1", 10)];
    assert_eq!(bed.order("default"), jobs);
}

#[test]
fn sjf_serves_the_shortest_and_the_oldest_among_equals() {
    let mut bed = full();
    policy(&mut bed, "sjf");
    let jobs: Vec<JobId> = [60, 10, 10].map(|m| wait(&mut bed, "gpu=1", m)).to_vec();
    assert_eq!(bed.order("default"), [jobs[1], jobs[2], jobs[0]]);
}

#[test]
fn srtf_serves_whom_least_is_left_to_run() {
    let mut bed = Bed::new(1);
    policy(&mut bed, "srtf");
    let long = wait(&mut bed, "gpu=8", 60);
    bed.pass();
    let task = bed.run(long)[0];
    bed.until(min(50));
    bed.done(Command::Checkpointed { task, done: Span::from_min(45) });
    let short = wait(&mut bed, "gpu=8", 20);
    bed.done(Command::TaskLost { task, reason: name("gone") });
    bed.until(min(51));
    assert_eq!(bed.order("default"), [long, short], "15 of 60 minutes are left");
}

#[test]
fn las_serves_the_class_that_received_least_gpu_time() {
    let mut bed = Bed::new(1);
    bed.queue("default", "las", |q| q.preempts = true);
    // Classes end at 3250 and 7200 GPU-seconds: 8 GPUs leave the first after 407 s.
    let old = wait(&mut bed, "gpu=8", 600);
    bed.pass();
    bed.run(old);
    let young = wait(&mut bed, "gpu=8", 600);
    bed.until(min(6));
    bed.pass();
    bed.assert_quiet();
    assert_eq!(bed.is(old), "running", "in one class what runs goes before what waits");
    bed.until(min(7));
    bed.pass();
    assert_eq!(bed.is(old), "stopping", "GPUs times time decide, not time alone");
    bed.finish(old);
    bed.pass();
    assert_eq!((bed.is(young), bed.is(old)), ("running", "waiting"));
}

#[test]
fn las_counts_gpus_times_time() {
    let mut bed = Bed::new(1);
    bed.queue("default", "las", |q| q.preempts = true);
    let narrow = wait(&mut bed, "gpu=1,cpu=64", 600);
    bed.pass();
    bed.run(narrow);
    wait(&mut bed, "gpu=8", 600);
    bed.until(min(50));
    bed.pass();
    assert_eq!(bed.is(narrow), "running", "one GPU for 50 minutes is below 3250 GPU-seconds");
}

#[test]
fn fair_share_serves_whom_used_least_of_late() {
    let mut bed = Bed::new(1);
    policy(&mut bed, "fair-share");
    bed.set(|s| s.fair_half_life = Span::from_h(1));
    let used = wait(&mut bed, "gpu=8", 60);
    bed.pass();
    bed.run(used);
    bed.until(min(30));
    bed.finish(used);
    let blocker = bed.promise(gang(1, "gpu=8", 600, (30, 640)));
    bed.run(blocker);
    let hers = wait(&mut bed, "gpu=1", 10);
    let his = bed.enqueue(BOB, gang(1, "gpu=1", 10, (0, 1)), true);
    assert_eq!(bed.order("default"), [his, hers]);
}

#[test]
fn a_formula_knows_levels_priorities_and_waiting() {
    let mut bed = full();
    let old = wait(&mut bed, "gpu=1", 10);
    bed.at = min(10);
    let young = wait(&mut bed, "gpu=1", 10);
    formula(&mut bed, "0 - wait");
    assert_eq!(bed.order("default"), [young, old]);
    formula(&mut bed, "priority");
    let raise = Command::Edit {
        job: young,
        by: crate::bed::by(ALICE),
        priority: Some(1),
        limit: None,
        queue: None,
    };
    bed.done(raise);
    assert_eq!(bed.order("default"), [young, old]);
    let his = bed.enqueue(BOB, gang(1, "gpu=1", 10, (0, 1)), true);
    bed.done(Command::PutUser { user: User { level: 7, ..user(BOB, OTHER_LAB) } });
    formula(&mut bed, "user_level");
    assert_eq!(bed.order("default"), [his, old, young]);
    let group = Group::new(OTHER_LAB);
    bed.done(Command::PutGroup { group });
    formula(&mut bed, "group_level");
    assert_eq!(bed.order("default"), [old, young, his]);
}

#[test]
fn a_formula_knows_sizes() {
    let mut bed = full();
    let jobs = [
        wait(&mut bed, "gpu=1,cpu=8,memory=1Gi", 10),
        wait(&mut bed, "gpu=4,cpu=1,memory=2Gi", 10),
        bed.enqueue(ALICE, gang(3, "gpu=1,cpu=2,memory=1Gi", 10, (0, 1)), true),
    ];
    let [a, b, c] = jobs;
    for (text, order) in [
        ("gpus", [b, c, a]),
        ("cpus", [a, c, b]),
        ("memory", [c, b, a]),
        ("replicas", [c, a, b]),
        ("if(gpus >= 3 and replicas < 2, 1, 0)", [b, a, c]),
    ] {
        formula(&mut bed, text);
        assert_eq!(bed.order("default"), order, "{text}");
    }
}

#[test]
fn a_formula_knows_stated_and_predicted_durations_and_the_owners_past_error() {
    let mut bed = Bed::new(1);
    // Bob stated an hour and took six minutes: his error is a tenth.
    let past = bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), true);
    bed.pass();
    bed.run(past);
    bed.until(min(6));
    bed.finish(past);
    let blocker = bed.promise(gang(1, "gpu=8", 600, (6, 640)));
    bed.run(blocker);
    let hers = wait(&mut bed, "gpu=1", 30);
    let his = bed.enqueue(BOB, gang(1, "gpu=1", 60, (0, 1)), true);
    let ratio = Ratio { low: Milli(100), middle: Milli(200), high: Milli(300) };
    let estimates = Estimates { users: BTreeMap::from([(BOB, ratio)]), ..Default::default() };
    bed.done(Command::PublishEstimates { estimates: Arc::new(estimates) });
    for (text, order) in [
        ("0 - stated", [hers, his]),
        ("0 - predicted", [his, hers]),
        ("0 - remaining", [his, hers]),
        ("error", [hers, his]),
        ("0 - stated * error", [his, hers]),
        ("debt", [his, hers]),
        ("0 - attained - attempts", [hers, his]),
    ] {
        formula(&mut bed, text);
        assert_eq!(bed.order("default"), order, "{text}");
    }
}

#[test]
fn a_formula_knows_attributes() {
    let mut bed = full();
    let mut hand_in = |attributes: Attributes| {
        let job = for_queue(ALICE, gang(1, "gpu=1", 10, (0, 1)), queue_terms("default"));
        bed.accept(NewJob { attributes, ..job })
    };
    let plain = hand_in(Attributes::default());
    let rich = hand_in(Attributes {
        field: Some(name("vision")),
        framework: Some(name("pytorch")),
        network: Some(name("resnet50")),
        parameters_k: Some(25_600),
        data_mib: Some(2048),
    });
    for text in [
        "field == \"vision\"",
        "framework == \"pytorch\"",
        "network == \"resnet50\"",
        "parameters > 25.5 and parameters < 25.7",
        "data == 2",
        "if(field != \"language\", parameters, 0)",
    ] {
        formula(&mut bed, text);
        assert_eq!(bed.order("default"), [rich, plain], "{text}");
    }
}

#[test]
fn a_formula_knows_what_is_free_now() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(1, "gpu=8,cpu=64,memory=512Gi", 60, (0, 60)));
    bed.run(job);
    let small = wait(&mut bed, "gpu=1", 10);
    let large = wait(&mut bed, "gpu=4", 10);
    for (text, order) in [
        ("if(free_gpus == 8, gpus, 0 - gpus)", [large, small]),
        ("if(free_gpus > 8, gpus, 0 - gpus)", [small, large]),
        ("if(free_cpus == 64, gpus, 0 - gpus)", [large, small]),
        ("if(free_memory == 512, gpus, 0 - gpus)", [large, small]),
    ] {
        formula(&mut bed, text);
        assert_eq!(bed.order("default"), order, "{text}");
    }
}

#[test]
fn whoever_waited_beyond_patience_goes_first_unless_the_queue_does_not_age() {
    let mut bed = full();
    bed.set(|s| s.patience = Span::from_min(30));
    policy(&mut bed, "sjf");
    let long = wait(&mut bed, "gpu=8", 600);
    bed.until(min(29));
    let short = wait(&mut bed, "gpu=8", 10);
    assert_eq!(bed.order("default"), [short, long]);
    bed.until(min(30));
    assert_eq!(bed.order("default"), [long, short]);
    bed.queue("default", "sjf", |q| q.ages = false);
    assert_eq!(bed.order("default"), [short, long]);
}

#[test]
fn lower_levels_are_served_first_and_age_goes_ahead_of_levels() {
    let mut bed = full();
    bed.set(|s| s.patience = Span::from_min(59));
    bed.queue("later", "fifo", |q| q.level = 9);
    let low = bed.enqueue_in(ALICE, "later", gang(1, "gpu=8", 60, (0, 1)));
    bed.until(min(30));
    let high = wait(&mut bed, "gpu=8", 60);
    let mut fresh = bed.state.clone();
    bed.until(min(60));
    bed.pass();
    assert_eq!((bed.is(low), bed.is(high)), ("running", "waiting"), "it had waited an hour");
    std::mem::swap(&mut bed.state, &mut fresh);
    bed.set(|s| s.patience = Span::from_h(5));
    bed.until(min(60));
    bed.pass();
    assert_eq!((bed.is(low), bed.is(high)), ("waiting", "running"));
}
