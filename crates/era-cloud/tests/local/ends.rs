//! Stops, limits and deadlines.

use std::sync::Arc;

use era_cloud::{Ending, Executor, Order};
use era_core::units::Time;

use super::bed::{Bed, count, long, now, wait_until};
use crate::skipped::skipped;

fn in_ms(ms: i64) -> Time {
    Time(now().0 + ms)
}

#[tokio::test]
async fn a_stop_asks_first() {
    let mut bed = Bed::new().await;
    let script = "trap 'echo saved > $ERA_CHECKPOINTS/x; exit 3' TERM; echo up; \
                  while :; do sleep 0.05; done";
    let task = bed.launch(bed.sh(1, script));
    bed.started(task).await;
    wait_until(|| bed.log(1).contains("up"));
    bed.server().carry_out(Order::Stop { task, until: in_ms(30_000) });
    assert_eq!(bed.ended(task).await, (3, Ending::Stopped));
    assert!(bed.job(1).join("checkpoints/x").exists());
}

#[tokio::test]
async fn who_ignores_sigterm_is_killed_when_the_grace_is_over() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.sh(1, "trap '' TERM; echo up; while :; do sleep 0.05; done"));
    bed.started(task).await;
    wait_until(|| bed.log(1).contains("up"));
    let begun = tokio::time::Instant::now();
    bed.server().carry_out(Order::Stop { task, until: in_ms(300) });
    assert_eq!(bed.ended(task).await, (137, Ending::Stopped));
    assert!(begun.elapsed().as_millis() >= 290, "it had its grace");
}

#[tokio::test]
async fn a_task_ends_at_its_limit_even_without_a_server() {
    let mut bed = Bed::new().await;
    let seconds = long();
    let mut launch = bed.run(1, &["sleep", &seconds]);
    launch.until = in_ms(500);
    let task = bed.launch(launch);
    bed.started(task).await;
    bed.stop_server().await;
    assert_eq!(count(&seconds), 1);
    wait_until(|| count(&seconds) == 0);
    bed.start_server().await;
    assert_eq!(bed.server().known(), [task]);
    assert_eq!(bed.ended(task).await, (137, Ending::Limit));
    assert!(bed.log(1).contains("its time was over"), "{}", bed.log(1));
}

#[tokio::test]
async fn a_task_that_was_prolonged_runs_on() {
    let mut bed = Bed::new().await;
    let mut launch = bed.sh(1, "sleep 0.9; echo done");
    launch.until = in_ms(500);
    let task = bed.launch(launch);
    bed.started(task).await;
    bed.server().carry_out(Order::Prolong { task, until: in_ms(60_000) });
    assert_eq!(bed.ended(task).await, (0, Ending::Itself));
}

const TAKE_600_MB: &str = "python3 -c 'x = bytearray(600 << 20); import time; time.sleep(20)'";

#[tokio::test]
async fn out_of_memory_is_told_apart_from_failure() {
    let mut bed = Bed::with(|settings| settings.path = path_with_python()).await;
    let task = bed.launch(bed.sh(1, &format!("exec {TAKE_600_MB}")));
    assert_eq!(bed.ended(task).await, (137, Ending::OutOfMemory), "{}", bed.log(1));
    // The same slot, and an ordinary failure.
    let task = bed.launch(bed.sh(2, "kill -9 $$"));
    assert_eq!(bed.ended(task).await, (137, Ending::Itself));
}

#[tokio::test]
async fn a_task_that_coped_with_being_out_of_memory_does_not_speak_for_the_next() {
    let mut bed = Bed::with(|settings| settings.path = path_with_python()).await;
    if bed.notes_say("memory is sampled") {
        return skipped("memory is not limited by control groups here");
    }
    let log = bed.output(bed.sh(1, &format!("{TAKE_600_MB} || echo coped; echo $PPID"))).await;
    assert!(log.contains("coped"), "{log}");
    let task = bed.launch(bed.sh(2, "echo $PPID; exit 1"));
    assert_eq!(bed.ended(task).await, (1, Ending::Itself));
    assert!(log.contains(bed.log(2).trim()), "the same keeper: {log}");
}

#[tokio::test]
async fn without_control_groups_memory_is_sampled_and_enforced() {
    let change = |settings: &mut era_cloud::task::SupervisorSettings| {
        settings.cgroups = false;
        settings.path = path_with_python();
    };
    let mut bed = Bed::with(change).await;
    assert!(bed.server().notes().iter().any(|note| note.contains("sampled")));
    // In a child of a child, which counts.
    let task = bed.launch(bed.sh(1, &format!("({TAKE_600_MB}; true); true")));
    assert_eq!(bed.ended(task).await, (137, Ending::OutOfMemory), "{}", bed.log(1));
}

/// Python as every user may run it.
fn path_with_python() -> String {
    "/usr/local/bin:/usr/bin:/bin".into()
}

#[tokio::test]
async fn who_fills_the_disk_is_ended() {
    let mut bed = Bed::new().await;
    let mut launch =
        bed.sh(1, "while :; do head -c 4M /dev/zero >> $ERA_OUTPUTS/big; sleep 0.05; done");
    Arc::make_mut(&mut launch.spec).limits.disk_bytes = 16 << 20;
    let task = bed.launch(launch);
    assert_eq!(bed.ended(task).await, (137, Ending::OutOfDisk));
    assert!(bed.log(1).contains("more disk"), "{}", bed.log(1));
}
