//! What holds on systems other than Linux, where a task is followed rather than adopted.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use era_cloud::{Ending, Executor, Order};
use era_core::units::{Time, UserId};

use super::bed::{Bed, count, is_root, long, now, wait_until};
use crate::skipped::skipped;

/// Starts one that clears its environment and makes a session of its own, and whose parent, who
/// did the same, is gone after a moment: only having been seen before tells whose it is.
fn slip_away(seconds: &str) -> String {
    format!("env -i setsid sh -c 'setsid sleep {seconds} & sleep 1.5' & sleep 1.7")
}

#[tokio::test]
async fn who_was_once_seen_below_a_task_ends_with_it_whatever_it_left() {
    let mut bed = Bed::new().await;
    let seconds = long();
    let task = bed.launch(bed.sh(1, &format!("{}; exit 3", slip_away(&seconds))));
    bed.started(task).await;
    wait_until(|| count(&seconds) == 1);
    assert_eq!(bed.ended(task).await, (3, Ending::Itself));
    assert_eq!(count(&seconds), 0);
}

#[tokio::test]
async fn who_was_once_seen_below_a_task_is_asked_to_end_with_it() {
    let mut bed = Bed::new().await;
    let seconds = long();
    let script = format!(
        "trap 'exit 4' TERM; {}; echo gone; while :; do sleep 0.1; done",
        slip_away(&seconds)
    );
    let task = bed.launch(bed.sh(1, &script));
    bed.started(task).await;
    wait_until(|| count(&seconds) == 1 && bed.log(1).contains("gone"));
    bed.server().carry_out(Order::Stop { task, until: Time(now().0 + 30_000) });
    assert_eq!(bed.ended(task).await, (4, Ending::Stopped));
    assert_eq!(count(&seconds), 0);
}

#[tokio::test]
async fn what_is_not_to_be_had_is_said_once() {
    let bed = Bed::new().await;
    for words in ["no control groups", "may outlive its task"] {
        let said = bed.server().notes().iter().filter(|note| note.contains(words));
        assert_eq!(said.count(), 1, "{:?}", bed.server().notes());
    }
    let apart = if is_root() { "file permissions alone" } else { "not root" };
    assert!(bed.notes_say(apart), "{:?}", bed.server().notes());
}

#[tokio::test]
async fn as_root_each_user_runs_under_a_user_id_of_its_own() {
    if !is_root() {
        return skipped("only root can keep users apart");
    }
    let mut bed = Bed::new().await;
    let mut launch = bed.sh(1, "id -u; id -G; touch $ERA_OUTPUTS/x");
    Arc::make_mut(&mut launch.spec).user = UserId(42);
    let log = bed.output(launch).await;
    assert_eq!(log, "100042\n100042\n");
    let file = std::fs::metadata(bed.job(1).join("outputs/x")).expect("an output");
    assert_eq!(file.uid(), 100_042);
}

#[tokio::test]
async fn keepers_are_started_from_the_program_that_runs_though_its_file_is_replaced() {
    let bed = Bed::new().await;
    let own = bed.folder.path().join("shim/program");
    let (name, running) = (std::fs::metadata(&own), env!("CARGO_BIN_EXE_era-cloud-test-shim"));
    // On another disk there is no second name of it.
    if let Ok(name) = name {
        let running = std::fs::metadata(running).expect("a program");
        assert_eq!((name.dev(), name.ino()), (running.dev(), running.ino()));
    }
}
