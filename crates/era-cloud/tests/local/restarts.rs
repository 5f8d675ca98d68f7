//! Servers and supervisors that go and come.

use std::time::Duration;

use era_cloud::{Ending, Executor, ExecutorReport};
use era_core::units::Span;
use tokio::time::Instant;

use super::bed::{Bed, PATIENCE, count, long, processes, wait_until};

#[tokio::test]
async fn a_running_task_is_adopted_by_the_next_server() {
    let mut bed = Bed::new().await;
    let script = "while [ ! -f $ERA_OUTPUTS/go ]; do sleep 0.02; done; exit 5";
    let task = bed.launch(bed.sh(1, script));
    bed.started(task).await;
    bed.stop_server().await;
    bed.start_server().await;
    assert_eq!(bed.server().known(), [task]);
    bed.started(task).await;
    std::fs::write(bed.job(1).join("outputs/go"), "").expect("write");
    assert_eq!(bed.ended(task).await, (5, Ending::Itself));
}

#[tokio::test]
async fn an_end_that_nobody_heard_is_told_until_it_is_acknowledged() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.sh(1, "sleep 0.3; exit 6"));
    bed.started(task).await;
    bed.stop_server().await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    for _ in 0..2 {
        bed.start_server().await;
        assert_eq!(bed.server().known(), [task]);
        assert_eq!(bed.ended(task).await, (6, Ending::Itself));
        bed.stop_server().await;
    }
    bed.start_server().await;
    bed.ended(task).await;
    bed.server().acknowledge(task);
    // What comes after it is answered after it.
    bed.output(bed.sh(2, "true")).await;
    bed.stop_server().await;
    bed.start_server().await;
    assert!(!bed.server().known().contains(&task));
}

#[tokio::test]
async fn of_a_task_that_began_and_ended_unheard_all_is_told() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.sh(1, "echo 'era: checkpoint done=40'; exit 6"));
    let begun = Instant::now();
    let before = loop {
        bed.stop_server().await;
        bed.start_server().await;
        let before = bed.server().ended_before();
        if before.iter().any(|report| matches!(report, ExecutorReport::Exited { .. })) {
            break before;
        }
        assert!(begun.elapsed() < PATIENCE, "it ends at once");
    };
    let told = [bed.next().await, bed.next().await, bed.next().await];
    assert_eq!(before, told, "before time goes on, and to whoever takes reports");
    let [
        ExecutorReport::Started { at: began, .. },
        saved,
        ExecutorReport::Exited { at: ended, code: 6, .. },
    ] = told
    else {
        panic!("{told:?}")
    };
    assert_eq!(saved, ExecutorReport::Checkpointed { task, done: Span(40_000) });
    assert!(began <= ended, "{began} {ended}");
}

#[tokio::test]
async fn if_the_supervisor_dies_its_tasks_die_and_are_lost_never_doubled() {
    let mut bed = Bed::new().await;
    let seconds = long();
    let script = format!("echo run >> $ERA_OUTPUTS/runs; sleep {seconds} & setsid sleep {seconds}");
    let task = bed.launch(bed.sh(1, &script));
    bed.started(task).await;
    wait_until(|| count(&seconds) >= 2);
    let done = bed.launch(bed.sh(2, "exit 9"));
    assert_eq!(bed.ended(done).await, (9, Ending::Itself));
    bed.kill(bed.supervisor());
    let mut told = Vec::new();
    while told.len() < 2 {
        // That it had started is told again with its end.
        let again = bed.next().await;
        told.extend(Some(again).filter(|again| !matches!(again, ExecutorReport::Started { .. })));
    }
    told.sort_by_key(|report| matches!(report, ExecutorReport::Lost { .. }));
    assert_eq!(count(&seconds), 0, "who is told to be lost is gone");
    assert!(
        matches!(&told[0], ExecutorReport::Exited { task: t, code: 9, .. } if *t == done),
        "an end that was not acknowledged outlives the supervisor: {told:?}"
    );
    assert!(matches!(&told[1], ExecutorReport::Lost { task: t, .. } if *t == task), "{told:?}");
    let mut again = bed.sh(1, "echo run >> $ERA_OUTPUTS/runs");
    again.task.attempt = 2;
    bed.output(again).await;
    let runs = std::fs::read_to_string(bed.job(1).join("outputs/runs")).expect("runs");
    assert_eq!(runs, "run\nrun\n");
}

#[tokio::test]
async fn what_was_ordered_while_there_was_no_supervisor_is_lost_or_runs_never_both() {
    let mut bed = Bed::new().await;
    let supervisor = bed.supervisor();
    bed.kill(supervisor);
    // Until it is noticed; the next one takes longer to come.
    tokio::time::sleep(Duration::from_millis(4)).await;
    let task = bed.launch(bed.sh(1, "echo run >> $ERA_OUTPUTS/runs"));
    let mut told = Vec::new();
    // What comes after it is answered after it.
    let last = bed.launch(bed.sh(2, "sleep 0.3"));
    while !told.iter().any(|report| {
        matches!(report, ExecutorReport::Exited { task, .. } | ExecutorReport::Lost { task, .. } if *task == last)
    }) {
        told.push(bed.next().await);
    }
    let lost = |report: &&ExecutorReport| matches!(report, ExecutorReport::Lost { task: t, .. } if *t == task);
    let ran = bed.job(1).join("outputs/runs").exists();
    assert_eq!(told.iter().filter(lost).count(), usize::from(!ran), "{told:?}");
}

#[tokio::test]
async fn what_outlives_supervisor_and_keepers_is_swept() {
    let mut bed = Bed::new().await;
    let seconds = long();
    let task = bed.launch(bed.sh(1, &format!("(setsid sleep {seconds} &); sleep {seconds}")));
    bed.started(task).await;
    wait_until(|| count(&seconds) >= 2);
    let supervisor = bed.supervisor();
    let all = processes();
    let keepers = all.iter().filter(|(pid, words)| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        parent == Some(&supervisor.to_string()) && words.iter().any(|word| word == "keeper")
    });
    // Stopped first, so that none of them notices that another is gone.
    let pids: Vec<i32> = keepers.map(|(pid, _)| *pid).chain([supervisor]).collect();
    for pid in &pids {
        let pid = rustix::process::Pid::from_raw(*pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    }
    pids.iter().for_each(|pid| bed.kill(*pid));
    let lost = bed.next().await;
    assert!(matches!(lost, ExecutorReport::Lost { task: t, .. } if t == task), "{lost:?}");
    assert_eq!(count(&seconds), 0);
}

#[tokio::test]
async fn a_keeper_that_dies_takes_its_task_along_and_nobody_else() {
    let mut bed = Bed::new().await;
    let (seconds, others) = (long(), long());
    let other = bed.launch(bed.sh(1, &format!("sleep {others}; true")));
    bed.started(other).await;
    let script = format!("echo $PPID; (setsid sleep {seconds} &); sleep {seconds}");
    let task = bed.launch(bed.sh(2, &script));
    bed.started(task).await;
    wait_until(|| count(&seconds) >= 2);
    let log = bed.log(2);
    let keeper: i32 = log.split_whitespace().last().expect("a pid").parse().expect("a pid");
    bed.kill(keeper);
    let lost = bed.next().await;
    assert!(matches!(lost, ExecutorReport::Lost { task: t, .. } if t == task), "{lost:?}");
    assert_eq!((count(&seconds), count(&others)), (0, 1));
}

#[tokio::test]
async fn an_idle_supervisor_leaves_when_asked_and_a_busy_one_does_not() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.sh(1, "sleep 0.3"));
    bed.started(task).await;
    assert!(!bed.server().leave().await, "it has a task");
    bed.ended(task).await;
    assert!(!bed.server().leave().await, "its end is not acknowledged");
    bed.server().acknowledge(task);
    let supervisor = bed.supervisor();
    let groups = std::fs::read_to_string(bed.folder.path().join("shim/cgroups")).expect("listed");
    assert!(groups.lines().all(|group| std::path::Path::new(group).exists()));
    assert!(bed.server().leave().await);
    wait_until(|| !std::path::Path::new(&format!("/proc/{supervisor}")).exists());
    let left = groups.lines().find(|group| std::path::Path::new(group).exists());
    assert_eq!(left, None, "it leaves no control group behind");
}

#[tokio::test]
async fn an_idle_supervisor_whose_folder_and_server_are_gone_leaves_by_itself() {
    let mut bed = Bed::new().await;
    let folder = bed.folder.path().join("shim");
    let groups = std::fs::read_to_string(folder.join("cgroups")).expect("listed");
    std::fs::remove_dir_all(&folder).expect("removed");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(bed.has_supervisor().is_some(), "a server listens to it");
    bed.stop_server().await;
    wait_until(|| bed.has_supervisor().is_none());
    let left = groups.lines().find(|group| std::path::Path::new(group).exists());
    assert_eq!(left, None, "it leaves no control group behind");
}

#[tokio::test]
async fn a_server_that_has_ended_starts_no_supervisor() {
    let mut bed = Bed::new().await;
    let (folder, away) = (bed.folder.path().join("shim"), bed.folder.path().join("away"));
    std::fs::rename(&folder, &away).expect("moved");
    bed.kill(bed.supervisor());
    // It tries to start one, and tries again.
    tokio::time::sleep(Duration::from_millis(300)).await;
    bed.stop_server().await;
    std::fs::rename(&away, &folder).expect("moved");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(bed.has_supervisor(), None);
}

#[tokio::test]
async fn there_is_one_supervisor_a_folder() {
    let bed = Bed::new().await;
    let folder = bed.folder.path().join("shim");
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_era-cloud-test-shim"))
        .arg(&folder)
        .output()
        .expect("run");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another supervisor runs"), "{said}");
}
