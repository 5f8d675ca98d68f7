//! Launches of which Redis says something again, or nothing any more: none runs twice, none is told
//! to be over while it runs, and each has the grace that it was promised.

use std::time::Duration;

use era_cloud::celery::body::BodyFormat;
use era_cloud::celery::message::TaskMessage;
use era_cloud::celery::worker::Worker;
use era_cloud::celery::{RUN, names, queue, result};
use era_cloud::{Ending, Executor as _, ExecutorReport, Launch, Order};
use era_core::units::Span;

use crate::{BRIEF, BUSY, Bed, PATIENCE, now};

async fn worker(bed: &mut Bed) -> Worker {
    Worker::start(bed.node("here").await, 4)
}

async fn started(bed: &mut Bed, launch: &Launch) {
    bed.find(|r| matches!(r, ExecutorReport::Started { task, .. } if *task == launch.task)).await;
}

/// The message of a launch, as it comes again from an older server: it expires.
async fn send_again(bed: &Bed, launch: &Launch) {
    let (bus, id) = (bed.bus().await, bed.id(launch));
    let mut message = TaskMessage::new(RUN, &id, vec![id.clone().into()], serde_json::Map::new());
    message.headers.expires = Some("2020-01-01T00:00:00+00:00".to_owned());
    let sent = message.wrap(&queue::of_node("here"), BodyFormat::Json, Some(0), bus.tag());
    bus.publish(&[sent.expect("a message")]).await.expect("sent");
}

async fn leave(worker: &Worker) {
    tokio::time::timeout(PATIENCE, worker.drain()).await.expect("nobody waits for ever");
    worker.node().leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_whose_message_comes_again_runs_once_and_is_over_once() {
    let Some(mut bed) = Bed::start().await else { return };
    let worker = worker(&mut bed).await;
    let runs = bed.launch("here", 1, BUSY);
    started(&mut bed, &runs).await;
    send_again(&bed, &runs).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    std::fs::write(bed.job(1).join("outputs/go"), "").expect("written");
    let over = bed.over(&runs).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 0, ending: Ending::Itself, .. }),
        "{over:?}"
    );

    // This end the server has not written down yet.
    let ended = bed.launch("here", 2, BRIEF);
    bed.find(|r| matches!(r, ExecutorReport::Exited { task, code: 0, .. } if *task == ended.task))
        .await;
    send_again(&bed, &ended).await;
    while worker.served() < 4 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    leave(&worker).await;
    assert_eq!([1, 2].map(|job| bed.runs(job)), [1, 1]);
    let kept = bed.bus().await.results(&[bed.id(&ended)]).await.expect("Redis");
    assert!(
        matches!(&kept[..], [Some(meta)] if meta.status == result::TaskState::Success),
        "{kept:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_to_stop_has_the_whole_grace_though_the_lease_is_shorter() {
    let Some(mut bed) = Bed::with_lease(3).await else { return };
    let worker = worker(&mut bed).await;
    let script = "trap 'stop=1' TERM; until test \"$stop\"; do sleep 0.1; done; sleep 7; exit 5";
    let slow = bed.launch("here", 1, script);
    started(&mut bed, &slow).await;
    let until = now() + Span::from_s(60);
    bed.executor.carry_out(Order::Stop { task: slow.task, until });
    let over = bed.over(&slow).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 5, ending: Ending::Stopped, .. }),
        "{over:?}"
    );
    leave(&worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_told_to_stop_though_redis_has_forgotten_who_claimed_it() {
    let Some(mut bed) = Bed::start().await else { return };
    let worker = worker(&mut bed).await;
    let script =
        "trap 'sleep 1; touch $ERA_OUTPUTS/stopped; exit 5' TERM; while :; do sleep 0.1; done";
    let runs = bed.launch("here", 1, script);
    started(&mut bed, &runs).await;
    let (bus, id) = (bed.bus().await, bed.id(&runs));
    let mut forget = redis::pipe();
    forget.cmd("HDEL").arg(names::CLAIMS).arg(&id).ignore();
    forget.cmd("DEL").arg(result::key(&id)).ignore();
    bus.run_all::<()>("forget", &forget).await.expect("forgotten");
    drop(bed.restart_server().await);
    bed.executor.carry_out(Order::Stop { task: runs.task, until: now() + Span::from_s(60) });
    let over = bed.over(&runs).await;
    assert!(
        matches!(over, ExecutorReport::Exited { code: 5, ending: Ending::Stopped, .. }),
        "{over:?}"
    );
    assert!(bed.job(1).join("outputs/stopped").exists(), "it is over when that is told");
    leave(&worker).await;
}
