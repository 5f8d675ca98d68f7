//! Stories that random inputs have told once, kept in words.

use era_core::accounts::User;
use era_core::cluster::{Domain, DomainKeep, NodeReservation, Pool};
use era_core::estimate::{Estimates, Ratio};
use era_core::job::{Outcome, StopReason};
use era_core::market::MarketRules;
use era_core::reason::WaitReason;
use era_core::resources::Capacity;
use era_core::settings::{Backfill, Settings};
use era_core::units::{JobId, Milli, NodeId, Span, Time};
use era_core::{Command, Effect, Event, Input, Reply, next_wakeup, outstanding};

use crate::bed::{ALICE, BOB, Bed, OTHER_LAB, bid, by, gang, min, name, new_job, node, pool};
use crate::verbs::{credits, gpu_quota, user};
use era_core::bid::{Alternative, Bid, Shape, Value};
use era_core::input::Terms;
use era_core::job::Overrun;

fn no_grace() -> Settings {
    Settings { grace: Span::ZERO, lease: Span::ZERO, run_min: Span::ZERO, ..Settings::default() }
}

#[test]
fn without_grace_a_promise_does_not_start_on_top_of_preemptible_work() {
    let mut bed = Bed::with(1, no_grace(), MarketRules::default());
    bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), true);
    bed.pass();
    // It cannot start now; it starts at the next slot, for which the work gives way.
    let job = bed.promise(gang(1, "gpu=8", 10, (0, 100)));
    assert_eq!(bed.start_of(job), min(1));
    bed.until(min(1));
}

#[test]
fn preemptible_work_does_not_start_where_a_promise_has_just_been_cleared() {
    let settings = Settings { run_min: Span::ZERO, ..Settings::default() };
    let mut bed = Bed::with(1, settings, MarketRules::default());
    bed.promise(gang(1, "gpu=8", 10, (1, 20)));
    bed.until(min(1) - Span::from_s(30));
    bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), true);
    bed.pass();
    bed.until(min(1));
}

#[test]
fn a_promise_does_not_start_beside_one_that_has_cleared_its_seats_for_itself_alone() {
    let mut bed = Bed::with(1, Settings::default(), MarketRules::default());
    bed.enqueue(ALICE, gang(1, "gpu=4", 60, (0, 1)), true);
    bed.pass();
    bed.promise(gang(1, "gpu=4", 10, (1, 20)));
    // One grace period before it starts: both fit, nobody has to go.
    bed.until(min(1) - Span::from_s(30));
    let mut at_once = gang(1, "gpu=1", 10, (0, 20));
    at_once.window.deadline = bed.at + at_once.duration;
    assert!(matches!(bed.submit(bid(at_once)), Reply::Refused { .. }));
    bed.until(min(2));
}

#[test]
fn the_parts_of_a_broken_promise_do_not_run_on_until_the_lost_node_is_certainly_silent() {
    let settings = Settings { lease: Span::from_min(5), ..Settings::default() };
    let mut bed = Bed::with(2, settings, MarketRules::default());
    let mut both = bid(gang(1, "gpu=8", 20, (0, 20)));
    both.one_of[0].all_of.push(gang(1, "gpu=8", 60, (0, 300)));
    let Reply::Accepted { job, .. } = bed.submit(both) else { panic!("refused") };
    let (_, lost) = bed.take_launch();
    let (other, _) = bed.take_launch();
    bed.until(min(10));
    bed.done(Command::Lost { node: lost });
    // There is no time left for the first: it is broken now, and the second is told so.
    assert!(bed.events.iter().any(|e| matches!(e, Event::Broken { .. })));
    let mut stopped = [bed.take_stop(), bed.take_stop()];
    stopped.sort_unstable_by_key(|(task, ..)| task.part);
    assert_eq!((stopped[1].0, stopped[1].1), (other, StopReason::Cancelled));
    assert!(stopped[1].2 <= min(11));
    bed.until(min(15));
    let outcome = bed.state.job(job).unwrap().ended.as_ref().unwrap().outcome.clone();
    assert!(matches!(outcome, Outcome::Broken { .. }), "{outcome:?}");
}

#[test]
fn nothing_due_is_left_over_after_a_step() {
    let mut bed = Bed::with(1, no_grace(), MarketRules::default());
    let job = bed.promise(gang(1, "gpu=8", 10, (0, 20)));
    bed.run(job);
    bed.done(Command::Cancel { job, by: by(ALICE) });
    assert_eq!(bed.state.job(job).unwrap().state(), "ended");
    assert!(next_wakeup(&bed.state).is_none_or(|due| due > bed.at));
}

#[test]
fn a_second_lost_node_of_a_gang_that_stops_keeps_its_own_lease() {
    let settings = Settings { lease: Span::from_min(2), ..Settings::default() };
    let mut bed = Bed::with(4, settings, MarketRules::default());
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 300)));
    let (_, first) = bed.take_launch();
    let (_, second) = bed.take_launch();
    bed.until(min(10));
    bed.done(Command::Lost { node: first });
    bed.until(min(11));
    bed.done(Command::Lost { node: second });
    bed.effects.clear();
    // The second one's lease lapses a minute after the first one's: nothing starts before.
    bed.until(min(13) - Span(1));
    assert!(!bed.effects.iter().any(|e| matches!(e, Effect::Launch { .. })));
    assert_eq!(outstanding(&bed.state).len(), 1);
    bed.until(min(13));
    assert_eq!(bed.run(job).len(), 2);
}

#[test]
fn a_fence_never_outlasts_the_plan_and_so_never_the_next_promise() {
    let settings = Settings { lease: Span::from_min(10), ..Settings::default() };
    let mut bed = Bed::with(3, settings, MarketRules::default());
    let mut both = gang(2, "gpu=8", 5, (0, 5));
    both.constraints.per_node_max = Some(1);
    bed.promise(both);
    let (_, lost) = bed.take_launch();
    bed.take_launch();
    bed.promise(gang(3, "gpu=8", 30, (5, 300)));
    bed.until(min(4));
    bed.done(Command::Lost { node: lost });
    bed.until(min(6));
}

#[test]
fn a_node_that_returns_before_the_lease_lapses_is_not_given_twice() {
    let settings = Settings { lease: Span::from_min(5), ..Settings::default() };
    let mut bed = Bed::with(1, settings, MarketRules::default());
    bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), true);
    bed.pass();
    let (_, node) = bed.take_launch();
    bed.done(Command::Lost { node });
    bed.done(Command::Resume { node });
    // What is cut off cannot be told to give way, so the promise waits for its lease.
    let job = bed.promise(gang(1, "gpu=8", 10, (0, 100)));
    assert_eq!(bed.start_of(job), min(5));
}

#[test]
fn growth_on_a_lost_node_keeps_its_seat_until_its_lease_lapses() {
    let mut bed = Bed::new(2);
    let mut request = gang(1, "gpu=8", 60, (0, 100));
    request.shape = Shape::Replicas { min: 1, max: 2 };
    let job = bed.promise(request);
    bed.run(job);
    bed.pass();
    let (_, grown_on) = bed.take_launch();
    bed.effects.clear();
    bed.done(Command::Lost { node: grown_on });
    let (_, why, until) = bed.take_stop();
    assert_eq!((why, until), (StopReason::Lost, min(0) + Span::from_s(30)));
    bed.until(min(1));
    assert_eq!(bed.state.job(job).unwrap().state(), "running");
}

#[test]
fn a_rank_of_growth_is_never_used_twice_in_an_attempt() {
    let mut bed = Bed::new(2);
    let mut request = gang(1, "gpu=8", 60, (0, 100));
    request.shape = Shape::Replicas { min: 1, max: 2 };
    let job = bed.promise(request);
    bed.run(job);
    bed.pass();
    let (first, _) = bed.take_launch();
    bed.done(Command::Exited { task: first, code: 1, at: None });
    bed.effects.clear();
    bed.pass();
    let (second, _) = bed.take_launch();
    assert_ne!(first, second);
    assert_eq!(bed.send(Command::Started { task: first }), Reply::Ignored);
}

#[test]
fn a_gang_is_told_when_growth_ends_by_itself() {
    let mut bed = Bed::new(2);
    let mut request = gang(1, "gpu=8", 60, (0, 100));
    request.shape = Shape::Replicas { min: 1, max: 2 };
    let job = bed.promise(request);
    bed.run(job);
    bed.pass();
    let (grown, _) = bed.take_launch();
    bed.effects.clear();
    bed.done(Command::Exited { task: grown, code: 1, at: None });
    let told = |e: &Effect| matches!(e, Effect::Resize { replicas: 1, .. });
    assert!(bed.effects.iter().any(told), "{:?}", bed.effects);
}

#[test]
fn a_broken_promise_of_several_parts_is_settled_once() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let all_of = vec![gang(1, "gpu=4", 10, (10, 60)), gang(1, "gpu=4", 10, (30, 60))];
    let value = Value::Flat(era_core::units::Money::credits(1000));
    let bid = Bid { user: ALICE, one_of: vec![Alternative { all_of }], value };
    let Reply::Accepted { job, .. } = bed.submit(bid) else { panic!("not accepted") };
    bed.done(Command::Lost { node: NodeId(0) });
    let ends = bed.events.iter().filter(|e| matches!(e, Event::Ended { job: j, .. } if *j == job));
    assert_eq!(ends.count(), 1);
    assert_eq!(bed.wallet(ALICE), before);
}

#[test]
fn a_part_that_is_re_planned_still_ends_before_what_comes_after_it() {
    let mut bed = Bed::new(2);
    let mut all_of = vec![gang(1, "gpu=8", 10, (0, 100)), gang(1, "gpu=8", 10, (0, 100))];
    all_of[1].after = vec![0];
    let value = Value::Flat(era_core::units::Money::credits(10_000));
    let bid = Bid { user: ALICE, one_of: vec![Alternative { all_of }], value };
    let Reply::Accepted { job, .. } = bed.submit(bid) else { panic!("not accepted") };
    let (_, node) = bed.take_launch();
    bed.until(min(5));
    bed.done(Command::Lost { node });
    // The second part was told to start at minute 10: there is no room left before it.
    bed.until(min(20));
    assert_eq!(bed.state.job(job).unwrap().state(), "ended");
}

#[test]
fn a_run_whose_end_has_passed_unseen_is_not_extended() {
    let mut bed = Bed::new(1);
    let job = bed.promise_extending(gang(1, "gpu=8", 10, (0, 20)));
    bed.at = min(30);
    bed.send(Command::Tick);
    assert_eq!(bed.state.job(job).unwrap().state(), "ended");
}

#[test]
fn held_capacity_is_there_when_it_is_accepted_at_its_start() {
    let settings = Settings { hold_for: Span::from_min(10), ..Settings::default() };
    let mut bed = Bed::with(1, settings, MarketRules::default());
    bed.enqueue(BOB, gang(1, "gpu=8", 600, (0, 1)), true);
    bed.pass();
    let reply = bed.send(Command::Hold { key: None, bid: bid(gang(1, "gpu=8", 10, (2, 60))) });
    let Reply::Held { hold, quote, .. } = reply else { panic!("{reply:?}") };
    bed.until(quote.start + Span::from_s(1));
    let terms = Terms::Hold { hold, overrun: Overrun::Stop, release_when_idle: false };
    let reply = bed.send(Command::Submit { key: None, job: new_job(ALICE, terms) });
    assert!(matches!(reply, Reply::Accepted { .. }), "{reply:?}");
}

#[test]
fn preemptible_work_does_not_run_into_maintenance() {
    let mut bed = Bed::new(1);
    let windows = vec![(min(30), min(60))];
    bed.done(Command::SetMaintenance { node: NodeId(0), windows });
    bed.enqueue(ALICE, gang(1, "gpu=1", 600, (0, 1)), true);
    bed.pass();
    bed.assert_quiet();
    bed.until(min(31));
}

#[test]
fn two_windows_of_maintenance_in_one_slot_are_one_absence() {
    let mut bed = Bed::new(1);
    let s = |n| min(10) + Span::from_s(n);
    let windows = vec![(s(0), s(10)), (s(20), s(30))];
    bed.done(Command::SetMaintenance { node: NodeId(0), windows });
    bed.promise(gang(1, "gpu=8", 5, (11, 60)));
}

#[test]
fn a_node_that_loses_devices_or_gpus_evicts_what_sat_on_them() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 60)));
    let tasks = bed.run(job);
    let mut capacity = crate::bed::node(0).capacity;
    capacity.gpus.truncate(2);
    bed.done(Command::SetCapacity { node: NodeId(0), capacity });
    assert_eq!(outstanding(&bed.state).len(), 1);
    bed.exit(&tasks, 0);
    assert_eq!(bed.state.job(job).unwrap().state(), "ended");
}

#[test]
fn a_lost_gang_that_is_given_up_is_told_why_it_stops() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 300)));
    let (_, node) = bed.take_launch();
    bed.done(Command::Lost { node });
    bed.take_stop();
    bed.done(Command::Cancel { job, by: by(ALICE) });
    assert_eq!(bed.take_stop().1, StopReason::Cancelled);
}

#[test]
fn commands_with_numbered_keys_can_be_read_back() {
    let level_caps = [(1, Milli(500))].into();
    let command = Command::PutPool { pool: Pool { level_caps, ..pool("main") } };
    let input = Input { seq: 1, at: Time(0), command };
    let text = serde_json::to_string(&input).unwrap();
    assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
}

#[test]
fn a_total_of_gpus_is_never_seated_where_nodes_have_none() {
    let mut bed = Bed::new(0);
    let mut plain = crate::bed::node(0);
    plain.capacity.gpus.clear();
    bed.send(Command::Join { nodes: vec![plain] });
    bed.done(Command::PutPool { pool: pool("fast") });
    let mut fast = crate::bed::node(1);
    fast.pool = name("fast");
    bed.send(Command::Join { nodes: vec![fast] });
    bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    bed.pass();
    bed.effects.clear();
    let mut request = gang(1, "gpu=1", 10, (0, 1));
    request.shape = Shape::Gpus { total: 1 };
    bed.enqueue(ALICE, request, false);
    bed.pass();
    bed.assert_quiet();
}

#[test]
fn a_node_that_loses_a_gpu_whose_task_has_exited_promises_no_more_than_it_has() {
    let mut bed = Bed::new(1);
    let job = bed.promise(gang(2, "gpu=4", 60, (0, 60)));
    let tasks = bed.run(job);
    bed.exit(&tasks[1..], 0);
    let mut capacity = crate::bed::node(0).capacity;
    capacity.gpus.truncate(4);
    bed.done(Command::SetCapacity { node: NodeId(0), capacity });
    assert_eq!(bed.state.job(job).unwrap().state(), "running");
}

#[test]
fn a_queued_job_starts_in_the_pool_that_its_owner_can_pay_for() {
    let mut bed = Bed::new(1);
    let free = era_core::units::Money::ZERO;
    let rates = era_core::cluster::Rates { cpu: free, memory: free, gpu: free };
    bed.done(Command::PutPool { pool: Pool { rates, ..pool("spare") } });
    let mut node = crate::bed::node(1);
    node.pool = name("spare");
    bed.send(Command::Join { nodes: vec![node] });
    let amount = bed.wallet(ALICE);
    bed.done(Command::Withdraw { user: ALICE, amount });
    let job = bed.enqueue(ALICE, gang(1, "gpu=1", 10, (0, 1)), false);
    bed.pass();
    assert_eq!(bed.run(job).len(), 1);
}

/// A bench where every waiting job keeps a place, and the shortest goes first.
fn conservative(nodes: usize) -> Bed {
    let mut bed = Bed::new(nodes);
    bed.set(|s| s.backfill = Backfill::Conservative);
    bed.queue("default", "sjf", |_| ());
    bed
}

/// The first node loses its GPUs.
fn without_gpus() -> Command {
    let capacity = Capacity { gpus: Vec::new(), ..node(0).capacity };
    Command::SetCapacity { node: NodeId(0), capacity }
}

fn hole_of(bed: &Bed, job: JobId) -> Option<Time> {
    bed.state.job(job).unwrap().first_part().hole().map(|hole| hole.from)
}

#[test]
fn a_place_on_gpus_that_are_gone_is_no_longer_kept() {
    let mut bed = conservative(1);
    let runs = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    bed.pass();
    bed.run(runs);
    let waits = bed.enqueue(BOB, gang(1, "gpu=8", 90, (0, 1)), false);
    bed.pass();
    assert_eq!(hole_of(&bed, waits), Some(min(60)));
    bed.done(without_gpus());
    bed.pass();
    assert_eq!((bed.is(waits), hole_of(&bed, waits)), ("waiting", None));
}

#[test]
fn a_place_that_its_job_may_no_longer_have_is_no_longer_kept() {
    let mut bed = conservative(1);
    let keep =
        DomainKeep { share: Milli(1000), keep: NodeReservation { gpus_min: 9000, level_min: 1 } };
    let domain = Domain { name: name("east"), keep: Some(keep) };
    bed.done(Command::PutDomain { domain });
    bed.done(Command::SetDomain { node: NodeId(0), domain: Some(name("east")) });
    let runs = bed.enqueue(ALICE, gang(1, "gpu=1", 60, (0, 1)), false);
    bed.pass();
    bed.run(runs);
    let waits = bed.enqueue(BOB, gang(1, "gpu=8", 90, (0, 1)), false);
    bed.pass();
    assert_eq!(hole_of(&bed, waits), Some(min(60)));
    bed.done(Command::PutUser { user: User { level: 0, ..user(BOB, OTHER_LAB) } });
    bed.pass();
    assert_eq!(hole_of(&bed, waits), None);
}

/// Bob waits for the node, and before he could have it something else keeps him; Alice waits
/// behind the place that is kept for him, though the node is free.
fn behind_a_place_that_is_free(keep_him: impl FnOnce(&mut Bed)) {
    let mut bed = conservative(1);
    let runs = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    bed.pass();
    bed.run(runs);
    let his = bed.enqueue(BOB, gang(1, "gpu=8", 120, (0, 1)), false);
    bed.pass();
    assert_eq!(hole_of(&bed, his), Some(min(60)));
    let hers = bed.enqueue(ALICE, gang(1, "gpu=8", 100, (0, 1)), false);
    keep_him(&mut bed);
    bed.until(min(30));
    bed.finish(runs);
    bed.pass();
    assert_eq!((bed.is(hers), bed.is(his)), ("waiting", "waiting"));
    // No time passes: what keeps them is not for time to end.
    assert_eq!(hole_of(&bed, his), None);
    bed.pass();
    assert_eq!((bed.is(hers), bed.is(his)), ("running", "waiting"));
}

#[test]
fn whoever_cannot_pay_for_room_that_is_there_keeps_no_place() {
    behind_a_place_that_is_free(|bed| {
        bed.done(Command::Withdraw { user: BOB, amount: bed.wallet(BOB) });
    });
}

#[test]
fn whoever_may_not_have_room_that_is_there_keeps_no_place() {
    behind_a_place_that_is_free(|bed| {
        bed.done(Command::PutUser { user: User { quota: gpu_quota(7), ..user(BOB, OTHER_LAB) } });
    });
}

#[test]
fn whoever_lacks_room_and_more_still_keeps_a_place() {
    let mut bed = conservative(1);
    let runs = bed.enqueue(ALICE, gang(1, "gpu=8", 60, (0, 1)), false);
    bed.pass();
    bed.run(runs);
    let his = bed.enqueue(BOB, gang(1, "gpu=8", 120, (0, 1)), false);
    bed.pass();
    bed.done(Command::PutUser { user: User { quota: gpu_quota(7), ..user(BOB, OTHER_LAB) } });
    bed.pass();
    assert_eq!(hole_of(&bed, his), Some(min(60)));
}

/// A gang of two on two nodes, of which the rank on the first node is done; then that node loses
/// its GPUs.
fn half_done_on_a_node_that_shrank(bed: &mut Bed) -> JobId {
    let job = bed.enqueue(ALICE, gang(2, "gpu=8", 300, (0, 1)), true);
    bed.pass();
    bed.run(job);
    let rank = bed.nodes_of(job).iter().position(|node| *node == 0).unwrap();
    bed.done(Command::Exited { task: bed.task(job, rank as u32), code: 0, at: None });
    bed.done(without_gpus());
    job
}

#[test]
fn a_rank_that_is_done_needs_no_seat_when_others_ask_for_its_gangs_room() {
    let mut bed = Bed::new(2);
    bed.queue("default", "priority", |q| q.preempts = true);
    let job = half_done_on_a_node_that_shrank(&mut bed);
    bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), true);
    bed.pass();
    assert_eq!(bed.is(job), "running");
    bed.assert_quiet();
}

#[test]
fn a_rank_that_is_done_needs_no_seat_on_paper() {
    let mut bed = Bed::new(2);
    let job = half_done_on_a_node_that_shrank(&mut bed);
    let ratio = Ratio { low: Milli(1), middle: Milli(10), high: Milli(20) };
    let users = std::collections::BTreeMap::from([(ALICE, ratio)]);
    let estimates = std::sync::Arc::new(Estimates { users, ..Default::default() });
    bed.done(Command::PublishEstimates { estimates });
    let waits = bed.enqueue(BOB, gang(1, "gpu=8", 60, (0, 1)), true);
    assert!(matches!(bed.reason(waits), WaitReason::Short { .. }), "{}", bed.reason(waits));
    assert_eq!(bed.is(job), "running");
}

#[test]
fn a_rank_that_is_done_needs_no_seat_for_its_gang_to_go_on_for_longer() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(2, "gpu=8", 60, (0, 60)));
    bed.run(job);
    let rank = bed.nodes_of(job).iter().position(|node| *node == 0).unwrap();
    bed.done(Command::Exited { task: bed.task(job, rank as u32), code: 0, at: None });
    bed.done(without_gpus());
    let most = credits(1_000_000);
    let reply = bed.send(Command::Extend { job, by: by(ALICE), span: Span::from_min(10), most });
    assert!(!matches!(reply, Reply::Refused { .. }), "{reply:?}");
}
