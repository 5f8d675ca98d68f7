//! Machines: they join, leave, drain, break, change, are announced to be away, and are grouped.

use std::collections::BTreeMap;

use era_core::accounts::User;
use era_core::bid::Bid;
use era_core::cluster::{Domain, DomainKeep, Health, NodeReservation};
use era_core::input::{NewNode, NodeChange};
use era_core::job::{Outcome, StopReason};
use era_core::resources::{Capacity, GPUS_PER_NODE_MAX};
use era_core::units::{Milli, Money, NodeId, Span};
use era_core::{Command, Event, Refusal, Reply, quote};

use crate::bed::{ALICE, BOB, Bed, OTHER_LAB, bid, gang, min, name, node, pool};
use crate::verbs::{n, user};

fn maintenance(node: NodeId, from: i64, to: i64) -> Command {
    Command::SetMaintenance { node, windows: vec![(min(from), min(to))] }
}

#[test]
fn nodes_join_all_or_none_and_are_numbered_in_order() {
    let mut bed = Bed::new(2);
    let reply = bed.send(Command::Join { nodes: vec![node(7), node(8)] });
    assert_eq!(reply, Reply::Joined { nodes: vec![n(2), n(3)] });
    let twice = bed.refused(Command::Join { nodes: vec![node(9), node(7)] });
    assert_eq!(twice, Refusal::Exists { what: "node".into(), name: name("node7") });
    let nowhere = NewNode { pool: name("spot"), ..node(9) };
    assert!(matches!(bed.refused(Command::Join { nodes: vec![nowhere] }), Refusal::Unknown { .. }));
    let unzoned = NewNode { domain: Some(name("east")), ..node(9) };
    assert!(matches!(bed.refused(Command::Join { nodes: vec![unzoned] }), Refusal::Unknown { .. }));
    assert!(matches!(bed.refused(Command::Join { nodes: vec![] }), Refusal::TooMany { .. }));
    let mut large = node(9);
    large.capacity.gpus = vec![large.capacity.gpus[0].clone(); GPUS_PER_NODE_MAX + 1];
    let refusal = bed.refused(Command::Join { nodes: vec![large] });
    assert_eq!(refusal.to_string(), "setting capacity: a node has at most 32 GPUs");
    assert_eq!(bed.state.cluster().len(), 4);
}

#[test]
fn several_changes_of_a_node_are_made_together_or_not_at_all() {
    let mut bed = Bed::new(2);
    bed.done(Command::PutDomain { domain: Domain { name: name("east"), keep: None } });
    let east = || NodeChange::Domain { domain: Some(name("east")) };
    let past = NodeChange::Maintenance { windows: vec![(min(2), min(1))] };
    let changes = vec![east(), NodeChange::Drain { stop_at: None }, past];
    let refusal = bed.refused(Command::EditNode { node: n(0), changes });
    assert!(matches!(refusal, Refusal::BadSetting { .. }), "{refusal}");
    let away = NodeChange::Maintenance { windows: vec![(min(60), min(120))] };
    let changes = vec![east(), away, NodeChange::Cordon];
    bed.done(Command::EditNode { node: n(0), changes });
    let node = bed.state.cluster().node(n(0)).unwrap();
    assert_eq!((node.domain.clone(), node.health), (Some(name("east")), Health::Cordoned));
    assert_eq!(node.maintenance, [(min(60), min(120))]);
    // What comes after a node has left is refused, and so it has not.
    let changes = vec![NodeChange::Leave, NodeChange::Resume];
    let gone = bed.refused(Command::EditNode { node: n(0), changes });
    assert_eq!(gone, Refusal::UnknownNode { node: n(0) });
}

#[test]
fn a_node_leaves_when_its_promises_fit_elsewhere_and_not_before_its_tasks_are_gone() {
    let mut bed = Bed::new(2);
    let promised = bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let running = bed.promise(gang(1, "gpu=8", 30, (0, 30)));
    bed.run(running);
    let busy = bed.nodes_of(running)[0];
    let refusal = bed.refused(Command::Leave { node: n(busy) });
    assert_eq!(refusal, Refusal::NodeBusy { node: n(busy), jobs: vec![running] });
    bed.finish(running);
    let home = bed.nodes_of(promised)[0];
    bed.done(Command::Leave { node: n(home) });
    assert_eq!(bed.nodes_of(promised), [1 - home]);
    assert_eq!(bed.start_of(promised), min(60), "the start that was told stays");
    let gone = bed.refused(Command::Leave { node: n(home) });
    assert_eq!(gone, Refusal::UnknownNode { node: n(home) });
    let stuck = bed.refused(Command::Leave { node: n(1 - home) });
    assert_eq!(stuck, Refusal::NodeBusy { node: n(1 - home), jobs: vec![promised] });
}

#[test]
fn a_draining_node_keeps_what_runs_moves_what_can_move_and_takes_nothing_new() {
    let mut bed = Bed::new(2);
    let running = bed.promise(gang(1, "gpu=4", 60, (0, 60)));
    bed.run(running);
    let home = bed.nodes_of(running)[0];
    let coming = bed.promise(gang(1, "gpu=4", 60, (10, 70)));
    assert_eq!(bed.nodes_of(coming), [home], "packed beside it");
    bed.done(Command::Drain { node: n(home), stop_at: None });
    assert_eq!(bed.is(running), "running");
    assert_eq!((bed.nodes_of(coming), bed.start_of(coming)), (vec![1 - home], min(10)));
    let full = bed.submit(bid(gang(1, "gpu=8", 10, (0, 60))));
    let Reply::Accepted { job, .. } = full else { panic!("{full:?}") };
    assert_eq!(bed.nodes_of(job), [1 - home]);
    bed.done(Command::Resume { node: n(home) });
    assert_eq!(bed.state.cluster().node(n(home)).unwrap().health, Health::Up);
    for command in [Command::Drain { node: n(9), stop_at: None }, Command::Resume { node: n(9) }] {
        assert_eq!(bed.refused(command), Refusal::UnknownNode { node: n(9) });
    }
}

#[test]
fn a_drain_with_a_time_empties_the_node_then_and_what_was_there_goes_on_elsewhere() {
    let mut bed = Bed::new(2);
    let running = bed.promise(gang(1, "gpu=4", 60, (0, 300)));
    let task = bed.run(running)[0];
    let home = bed.nodes_of(running)[0];
    bed.done(Command::Drain { node: n(home), stop_at: Some(min(20)) });
    bed.until(min(19));
    assert_eq!(bed.is(running), "running", "it may finish until then");
    bed.until(min(20));
    let (stopped, why, until) = bed.take_stop();
    assert_eq!((stopped, why, until), (task, StopReason::Drained, min(20) + Span::from_s(30)));
    assert!(bed.saw(|e| matches!(e, Event::Replanned { .. })), "{:?}", bed.events);
    bed.until(min(21));
    assert_eq!(bed.nodes_of(running), [1 - home], "{:?}", bed.events);
    let node = bed.state.cluster().node(n(home)).unwrap();
    assert_eq!((node.health, node.stop_at), (Health::Draining, None));
    bed.done(Command::Leave { node: n(home) });
}

#[test]
fn a_drain_at_once_sends_queue_work_back_to_its_queue_and_breaks_what_fits_nowhere_else() {
    let mut bed = Bed::new(2);
    let promised = bed.promise(gang(2, "gpu=8", 60, (60, 120)));
    let queued = bed.enqueue(ALICE, gang(1, "gpu=8", 30, (0, 600)), false);
    bed.pass();
    bed.run(queued);
    let home = bed.nodes_of(queued)[0];
    let before = bed.wallet(ALICE);
    bed.done(Command::Drain { node: n(home), stop_at: Some(bed.at) });
    assert_eq!(bed.take_stop().1, StopReason::Drained);
    assert!(matches!(bed.outcome(promised), Some(Outcome::Broken { .. })));
    let broken = "its node was drained and no room was left in the window";
    assert!(bed.saw(|e| matches!(e, Event::Broken { reason, .. } if reason == broken)));
    assert!(bed.wallet(ALICE) > before, "it is refunded");
    bed.until(min(1));
    assert_eq!(bed.is(queued), "waiting", "with its age");
    bed.pass();
    assert_eq!(bed.nodes_of(queued), [1 - home]);
}

#[test]
fn a_drain_that_is_taken_back_stops_nothing() {
    let mut bed = Bed::new(2);
    let running = bed.promise(gang(1, "gpu=4", 60, (0, 300)));
    bed.run(running);
    let node = n(bed.nodes_of(running)[0]);
    for undo in [Command::Resume { node }, Command::Cordon { node }] {
        bed.done(Command::Drain { node, stop_at: Some(min(20)) });
        bed.done(undo);
        assert_eq!(bed.state.cluster().node(node).unwrap().stop_at, None);
    }
    bed.until(min(30));
    assert_eq!(bed.is(running), "running");
    let never = Command::Drain { node, stop_at: Some(era_core::units::Time::MAX) };
    assert_eq!(bed.refused(never).field(), Some("stop_at"));
}

#[test]
fn a_cordoned_node_keeps_what_runs_and_what_is_promised_and_takes_nothing_new() {
    let mut bed = Bed::new(2);
    let running = bed.promise(gang(1, "gpu=4", 60, (0, 60)));
    bed.run(running);
    let home = bed.nodes_of(running)[0];
    let coming = bed.promise(gang(1, "gpu=4", 60, (10, 70)));
    bed.done(Command::Cordon { node: n(home) });
    assert_eq!(bed.state.cluster().node(n(home)).unwrap().health, Health::Cordoned);
    assert_eq!(bed.is(running), "running");
    assert_eq!((bed.nodes_of(coming), bed.start_of(coming)), (vec![home], min(10)));
    let fresh = bed.promise(gang(1, "gpu=1", 10, (0, 60)));
    assert_eq!(bed.nodes_of(fresh), [1 - home], "nothing new comes");
    bed.done(Command::Drain { node: n(home), stop_at: None });
    assert_eq!(bed.nodes_of(coming), [1 - home], "a drain moves it");
    bed.done(Command::Resume { node: n(home) });
    assert_eq!(bed.state.cluster().node(n(home)).unwrap().health, Health::Up);
    bed.done(Command::Lost { node: n(1 - home) });
    let lost = bed.refused(Command::Cordon { node: n(1 - home) });
    assert!(matches!(lost, Refusal::BadSetting { .. }), "{lost:?}");
    assert_eq!(bed.refused(Command::Cordon { node: n(9) }), Refusal::UnknownNode { node: n(9) });
}

#[test]
fn a_lost_node_that_comes_back_takes_work_again() {
    let mut bed = Bed::new(1);
    bed.done(Command::Lost { node: n(0) });
    bed.done(Command::Lost { node: n(0) });
    assert_eq!(bed.refused(Command::Lost { node: n(1) }), Refusal::UnknownNode { node: n(1) });
    let refusal = bed.submit(bid(gang(1, "gpu=1", 10, (0, 60))));
    assert!(matches!(refusal, Reply::Refused { refusal: Refusal::NoRoom, .. }));
    bed.done(Command::Resume { node: n(0) });
    bed.promise(gang(1, "gpu=1", 10, (0, 60)));
}

#[test]
fn what_no_longer_fits_on_a_node_that_shrinks_is_lost_as_with_the_node() {
    let mut bed = Bed::new(2);
    let before = bed.wallet(ALICE);
    let jobs: Vec<_> = (0..2).map(|_| bed.promise(gang(1, "gpu=8", 60, (0, 300)))).collect();
    jobs.iter().for_each(|job| drop(bed.run(*job)));
    let home = bed.nodes_of(jobs[0])[0];
    let mut capacity = node(0).capacity;
    capacity.gpus.truncate(4);
    bed.until(min(10));
    bed.done(Command::SetCapacity { node: n(home), capacity: capacity.clone() });
    assert_eq!(bed.take_stop().1, StopReason::Lost);
    // It goes on where the other one runs, when that has finished.
    let replanned = |e: &Event| matches!(e, Event::Replanned { plan, .. } if plan.from == min(60));
    assert!(bed.saw(replanned), "{:?}", bed.events);
    assert!(bed.wallet(ALICE) < before);
    let unknown = Command::SetCapacity { node: n(9), capacity };
    assert_eq!(bed.refused(unknown), Refusal::UnknownNode { node: n(9) });
    let capacity = Capacity { cpu: u32::MAX, ..Capacity::default() };
    let absurd = bed.refused(Command::SetCapacity { node: n(home), capacity });
    assert!(matches!(absurd, Refusal::BadSetting { .. }), "{absurd}");
}

#[test]
fn a_node_that_grows_takes_more() {
    let mut bed = Bed::new(1);
    let mut capacity = node(0).capacity;
    capacity.gpus = vec![capacity.gpus[0].clone(); 16];
    bed.done(Command::SetCapacity { node: n(0), capacity });
    bed.promise(gang(1, "gpu=16", 60, (0, 100)));
}

#[test]
fn nothing_is_promised_on_a_node_while_it_is_announced_to_be_away() {
    let mut bed = Bed::new(2);
    let job = bed.promise(gang(1, "gpu=8", 60, (60, 120)));
    let home = bed.nodes_of(job)[0];
    bed.done(maintenance(n(home), 90, 180));
    assert_eq!((bed.nodes_of(job), bed.start_of(job)), (vec![1 - home], min(60)));
    let told = quote(&bed.state, &bid(gang(2, "gpu=8", 30, (0, 600))), bed.at).unwrap();
    assert_eq!(told.start, min(0), "there is room before it");
    let told = quote(&bed.state, &bid(gang(2, "gpu=8", 100, (0, 600))), bed.at).unwrap();
    assert_eq!(told.start, min(180), "a long one waits until the node is back");
    let both = bed.refused(maintenance(n(1 - home), 100, 110));
    assert_eq!(both, Refusal::NodeBusy { node: n(1 - home), jobs: vec![job] });
}

#[test]
fn windows_of_maintenance_are_in_order_apart_and_not_over() {
    let mut bed = Bed::new(1);
    bed.at = min(10);
    for windows in [
        vec![(min(30), min(20))],
        vec![(min(20), min(40)), (min(30), min(50))],
        vec![(min(0), min(10))],
        vec![(min(20), era_core::units::Time::MAX)],
        (0..65).map(|i| (min(20 + i), min(21 + i))).collect(),
    ] {
        let refusal = bed.refused(Command::SetMaintenance { node: n(0), windows });
        assert_eq!(refusal.field(), Some("maintenance"), "{refusal}");
    }
    let windows = vec![(min(20), min(30)), (min(30), min(40))];
    bed.done(Command::SetMaintenance { node: n(0), windows });
    bed.done(Command::SetMaintenance { node: n(0), windows: vec![] });
    bed.promise(gang(1, "gpu=8", 60, (10, 70)));
}

#[test]
fn a_domain_is_drawn_at_run_time_and_removed_when_it_is_empty() {
    let mut bed = Bed::new(2);
    bed.done(Command::PutDomain { domain: Domain { name: name("east"), keep: None } });
    bed.done(Command::SetDomain { node: n(1), domain: Some(name("east")) });
    let mut ask = gang(1, "gpu=1", 10, (0, 60));
    ask.constraints.domain = Some(name("east"));
    let job = bed.promise(ask.clone());
    assert_eq!(bed.nodes_of(job), [1]);
    let used = bed.refused(Command::RemoveDomain { name: name("east") });
    assert_eq!(used.to_string(), "domain `east` is still in use: move its nodes out first");
    bed.done(Command::SetDomain { node: n(1), domain: None });
    bed.done(Command::RemoveDomain { name: name("east") });
    let gone = bed.refused(Command::RemoveDomain { name: name("east") });
    assert_eq!(gone.to_string(), "no domain is called `east`: known are none");
    let unknown = Command::SetDomain { node: n(1), domain: Some(name("west")) };
    assert!(matches!(bed.refused(unknown), Refusal::Unknown { .. }));
    let nobody = Command::SetDomain { node: n(5), domain: None };
    assert_eq!(bed.refused(nobody), Refusal::UnknownNode { node: n(5) });
}

#[test]
fn a_domain_keeps_nodes_for_large_or_high_level_jobs() {
    let mut bed = Bed::new(2);
    let large_or_high = NodeReservation { gpus_min: 8000, level_min: 5 };
    let keep = Some(DomainKeep { share: Milli(500), keep: large_or_high });
    bed.done(Command::PutDomain { domain: Domain { name: name("east"), keep } });
    for node in [0, 1] {
        bed.done(Command::SetDomain { node: n(node), domain: Some(name("east")) });
    }
    // Half of two nodes is one, the first that joined.
    let small = bed.promise(gang(1, "gpu=4", 60, (0, 60)));
    assert_eq!(bed.nodes_of(small), [1]);
    let reply = bed.submit(bid(gang(2, "gpu=3", 60, (0, 60))));
    assert!(matches!(reply, Reply::Refused { .. }), "six GPUs are not large");
    let large = bed.promise(gang(2, "gpu=4", 60, (0, 60)));
    assert!(bed.nodes_of(large).contains(&0));
    bed.done(Command::PutUser { user: User { level: 5, ..user(BOB, OTHER_LAB) } });
    bed.promise(gang(1, "gpu=4", 60, (100, 160)));
    let his = Bid { user: BOB, ..bid(gang(1, "gpu=5", 60, (100, 160))) };
    let Reply::Accepted { job, .. } = bed.submit(his) else { panic!() };
    assert_eq!(bed.nodes_of(job), [0], "a high level may");
    let keep = Some(DomainKeep { share: Milli(1001), keep: large_or_high });
    let refusal = bed.refused(Command::PutDomain { domain: Domain { name: name("x"), keep } });
    assert_eq!(refusal.field(), Some("keep.share"));
}

#[test]
fn a_pool_has_its_own_rates_and_a_part_that_is_closed_to_promises() {
    let mut bed = Bed::new(2);
    let mut half = pool("main");
    half.closed_share = Milli(500);
    half.rates.gpu = Money::credits(2);
    bed.done(Command::PutPool { pool: half.clone() });
    let reply = bed.submit(bid(gang(2, "gpu=8", 60, (0, 60))));
    assert!(matches!(reply, Reply::Refused { .. }), "one of two nodes is closed");
    let told = quote(&bed.state, &bid(gang(1, "gpu=8", 60, (0, 60))), bed.at).unwrap();
    assert_eq!(told.price, Money::credits(8));
    let queued = bed.enqueue(ALICE, gang(2, "gpu=8", 60, (0, 1)), false);
    bed.pass();
    assert_eq!(bed.is(queued), "running", "queue work may use all of it");
    for (edit, field) in [
        ((|p| p.rates.cpu = Money(-1)) as fn(&mut era_core::cluster::Pool), "rates"),
        (|p| p.rates.gpu = Money::credits(10_001), "rates"),
        (|p| p.closed_share = Milli(1001), "closed_share"),
        (|p| p.level_caps = BTreeMap::from([(1, Milli(1001))]), "level_caps"),
    ] {
        let mut bad = pool("main");
        edit(&mut bad);
        assert_eq!(bed.refused(Command::PutPool { pool: bad }).field(), Some(field));
    }
}

#[test]
fn a_level_promises_itself_no_more_than_its_share_of_a_pool() {
    let mut bed = Bed::new(1);
    let mut capped = pool("main");
    capped.level_caps.insert(1, Milli(500));
    bed.done(Command::PutPool { pool: capped });
    let share = Refusal::LevelShare { level: 1, share: Milli(500), pool: name("main") };
    let reply = bed.submit(bid(gang(1, "gpu=5", 60, (0, 600))));
    assert!(matches!(reply, Reply::Refused { refusal, .. } if refusal == share));
    bed.promise(gang(1, "gpu=3", 60, (0, 60)));
    let his = Bid { user: BOB, ..bid(gang(1, "gpu=2", 60, (0, 60))) };
    let reply = bed.submit(his.clone());
    assert!(matches!(reply, Reply::Refused { refusal, .. } if refusal == share), "it is shared");
    let later = quote(&bed.state, &bid(gang(1, "gpu=4", 60, (0, 600))), bed.at).unwrap();
    assert_eq!(later.start, min(60));
    // Other levels, and queue work, are not bound by it.
    bed.done(Command::PutUser { user: User { level: 2, ..user(BOB, OTHER_LAB) } });
    assert!(matches!(bed.submit(his), Reply::Accepted { .. }));
    let queued = bed.enqueue(ALICE, gang(1, "gpu=3", 60, (0, 1)), false);
    bed.pass();
    assert_eq!(bed.is(queued), "running");
}

#[test]
fn a_broken_promise_says_why_and_a_late_report_of_it_changes_nothing() {
    let mut bed = Bed::new(1);
    let before = bed.wallet(ALICE);
    let job = bed.promise(gang(1, "gpu=8", 60, (0, 70)));
    let tasks = bed.run(job);
    bed.until(min(30));
    bed.done(Command::Lost { node: n(0) });
    let said = Event::Broken { job, reason: "its node was lost".into() };
    assert!(bed.saw(|e| *e == said));
    bed.until(min(30) + Span::from_s(30));
    assert!(matches!(bed.outcome(job), Some(Outcome::Broken { .. })));
    assert_eq!(bed.wallet(ALICE), before, "all of it comes back");
    assert_eq!(bed.send(Command::Exited { task: tasks[0], code: 0, at: None }), Reply::Ignored);
}
