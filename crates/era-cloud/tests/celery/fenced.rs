//! A server that was paused and comes back: whatever it still says to Redis is refused there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use era_cloud::celery::bus::Bus;
use era_cloud::celery::fence::LeaseFence;
use era_cloud::celery::names;
use era_cloud::celery::worker::Worker;
use era_cloud::{Executor as _, ExecutorReport, Order};
use era_core::units::Span;

use crate::{BRIEF, Bed, Leads, PATIENCE, now};

/// All that Redis holds, but for signs of life.
async fn held(bus: &Bus) -> BTreeMap<String, Option<Vec<u8>>> {
    let keys: Vec<String> = bus.run("list keys", redis::cmd("KEYS").arg("*")).await.expect("keys");
    let mut all = BTreeMap::new();
    for key in keys {
        if !key.starts_with("era:node:") && !key.starts_with("era:worker:") {
            let value = bus.run("show a key", redis::cmd("DUMP").arg(&key)).await.expect("a value");
            all.insert(key, value);
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_paused_launches_stops_and_forgets_nothing() {
    let Some(mut bed) = Bed::start().await else { return };
    let node = bed.node("here").await;
    let waits = bed.launch("here", 1, BRIEF);
    let bus = bed.bus().await;
    while bus.run::<u64>("count", redis::cmd("HLEN").arg(names::LAUNCHES)).await.expect("Redis") < 1
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (old, mut heard) = bed.restart_server().await;
    let before = held(&bus).await;
    assert_eq!(bed.executor.known(), [waits.task], "the new one goes on from where it was");

    // Whatever it had decided when it was paused, all at once.
    let until = now() + Span::from_s(60);
    old.carry_out(Order::Stop { task: waits.task, until });
    old.carry_out(Order::Launch(bed.prepared("here", 2, BRIEF)));
    old.carry_out(Order::Prolong { task: waits.task, until });
    old.acknowledge(waits.task);
    tokio::time::timeout(PATIENCE, old.deposed()).await.expect("it hears of it");
    old.carry_out(Order::Launch(bed.prepared("here", 3, BRIEF)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(held(&bus).await, before, "Redis holds what it held");
    while let Ok(report) = heard.try_recv() {
        assert!(
            matches!(report, ExecutorReport::Node(_)),
            "what becomes of tasks is not its to tell"
        );
    }

    // What it tried to stop and to forget starts, once.
    let worker = Worker::start(node, 4);
    let over = bed.over(&waits).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}");
    assert_eq!([1, 2, 3].map(|job| bed.runs(job)), [1, 0, 0]);
    worker.node().leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leads_writes_whatever_redis_says_and_who_does_not_hears_why() {
    let Some(bed) = Bed::start().await else { return };
    let (bus, led) = (bed.bus().await, Arc::<AtomicU64>::default());
    let pen = |lead| LeaseFence::new(bus.clone(), "pen", lead);
    let set = |value: &str| redis::pipe().cmd("SET").arg("written").arg(value).clone();
    let written = async || -> String {
        bus.run("show it", redis::cmd("GET").arg("written")).await.expect("written")
    };
    let old = pen(Leads::next(&led));
    old.write("take it", &set("by the old")).await.expect("nobody else leads");
    let new = pen(Leads::next(&led));
    new.take().await.expect("it leads");
    let refused = old.write("take it", &set("late")).await.expect_err("it leads no more");
    assert!(refused.is_deposed(), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("another server leads this site") && said.contains("2 "), "{said}");
    assert_eq!(written().await, "by the old");

    // A Redis that lost its memory knows nobody; a site that was restored counts anew.
    let _: () = bus.run("forget", redis::cmd("DEL").arg("pen")).await.expect("forgotten");
    old.write("take it", &set("late")).await.expect_err("it leads no more");
    let first = Some(("written", "by the old"));
    assert!(new.write_if("take it", first, &set("by the new")).await.expect("it leads"));
    assert!(!new.write_if("take it", first, &set("twice")).await.expect("it leads"));
    let _: () = bus.run("lie", redis::cmd("SET").arg("pen").arg("900 x")).await.expect("set");
    new.write("take it", &set("after a restore")).await.expect("the database decides");
    assert_eq!(written().await, "after a restore");
    old.write("take it", &set("late")).await.expect_err("it leads no more");
    assert_eq!(written().await, "after a restore");
}
