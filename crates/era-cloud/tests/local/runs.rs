//! What a task finds, and what is left of it.

use std::sync::Arc;

use era_cloud::{Ending, Executor, ExecutorReport, Order, Staged};
use era_core::job::TaskId;

use super::bed::{Bed, now};

#[tokio::test]
async fn a_task_runs_and_its_end_is_told() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.sh(1, "echo hello; echo bye >&2; exit 7"));
    bed.started(task).await;
    assert_eq!(bed.ended(task).await, (7, Ending::Itself));
    let log = bed.log(1);
    assert!(log.contains("hello") && log.contains("bye"), "{log}");
}

#[tokio::test]
async fn an_order_given_twice_runs_once() {
    let mut bed = Bed::new().await;
    let launch = bed.sh(1, "echo once >> $ERA_OUTPUTS/runs; sleep 0.2");
    bed.launch(launch.clone());
    let task = bed.launch(launch.clone());
    bed.ended(task).await;
    bed.launch(launch.clone());
    // All that is true of it is told again.
    bed.started(task).await;
    let again = bed.next().await;
    assert!(matches!(again, ExecutorReport::Exited { task: t, .. } if t == task), "{again:?}");
    bed.server().acknowledge(task);
    bed.launch(launch);
    let refused = bed.next().await;
    assert!(
        matches!(refused, ExecutorReport::Lost { task: t, .. } if t == task),
        "nobody waits for it"
    );
    let other = bed.output(bed.sh(2, "true")).await;
    assert_eq!(other, "");
    assert_eq!(std::fs::read_to_string(bed.job(1).join("outputs/runs")).expect("runs"), "once\n");
}

#[tokio::test]
async fn nothing_of_the_servers_environment_leaks() {
    let mut bed = Bed::new().await;
    let log = bed.output(bed.sh(1, "env")).await;
    // What a shell sets by itself, and what is promised or a default.
    let known = "PWD OLDPWD SHLVL _ HOME LANG LOGNAME OMP_NUM_THREADS OMP_WAIT_POLICY PATH \
                 PYTHONUNBUFFERED SHELL TMPDIR USER CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES \
                 LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT NODE_RANK RANK WORLD_SIZE \
                 TF_CONFIG PET_MASTER_ADDR PET_MASTER_PORT PET_NNODES PET_NODE_RANK \
                 PET_NPROC_PER_NODE";
    let known: Vec<&str> = known.split_whitespace().collect();
    for name in log.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name) {
        assert!(name.starts_with("ERA_") || known.contains(&name), "{name} leaks: {log}");
    }
    for name in ["ERA_JOB_ID=1", "CUDA_VISIBLE_DEVICES=", "RANK=0", "WORLD_SIZE=1", "HOME=/"] {
        assert!(log.contains(name), "{name} in {log}");
    }
}

#[tokio::test]
async fn code_is_there_and_outputs_and_checkpoints_stay_for_the_next_attempt() {
    let mut bed = Bed::new().await;
    let kept = bed.folder.path().join("kept");
    std::fs::write(&kept, "echo from code; echo $ERA_ATTEMPT >> $ERA_CHECKPOINTS/seen\n")
        .expect("write");
    let mut launch = bed.run(1, &["./src/go"]);
    Arc::make_mut(&mut launch.spec).code =
        vec![Staged { from: kept.clone(), to: "src/go".into(), executable: true }];
    std::fs::write(&kept, format!("#!/bin/sh\n{}", std::fs::read_to_string(&kept).expect("read")))
        .expect("write");
    let log = bed.output(launch.clone()).await;
    assert!(log.contains("from code"), "{log}");
    launch.task.attempt = 2;
    bed.output(launch).await;
    let seen = std::fs::read_to_string(bed.job(1).join("checkpoints/seen"));
    assert_eq!(seen.expect("a checkpoint"), "1\n2\n");
    assert!(!bed.job(1).join("work/p0-a1-r0.tmp").exists(), "temporary folders go");
}

#[tokio::test]
async fn what_cannot_be_started_says_why_in_its_log() {
    let mut bed = Bed::new().await;
    let task = bed.launch(bed.run(1, &["no-such-program"]));
    assert_eq!(bed.ended(task).await, (127, Ending::NotStarted));
    assert!(bed.log(1).contains("could not start `no-such-program`"), "{}", bed.log(1));
    let mut launch = bed.sh(2, "true");
    Arc::make_mut(&mut launch.spec).code =
        vec![Staged { from: "/etc/hostname".into(), to: "../../x".into(), executable: false }];
    let task = bed.launch(launch);
    assert_eq!(bed.ended(task).await, (126, Ending::NotStarted));
    assert!(bed.log(2).contains("leaves the working folder"), "{}", bed.log(2));
    let mut launch = bed.sh(3, "echo without it");
    Arc::make_mut(&mut launch.spec).image = Some("torch:2.9".into());
    let task = bed.launch(launch);
    assert_eq!(bed.ended(task).await, (126, Ending::NotStarted));
    let log = bed.log(3);
    assert!(log.contains("`torch:2.9`") && log.contains("docker://"), "{log}");
    assert!(!log.contains("without it"), "{log}");
}

#[tokio::test]
async fn a_gang_runs_side_by_side_and_learns_its_new_size() {
    let mut bed = Bed::new().await;
    let script = "while [ ! -f $ERA_WORLD_FILE ]; do sleep 0.02; done; cat $ERA_WORLD_FILE";
    let mut tasks = Vec::new();
    for rank in 0..2 {
        let mut launch = bed.sh(1, script);
        (launch.task.rank, launch.replicas) = (rank, 2);
        tasks.push(bed.launch(launch));
    }
    for _ in 0..2 {
        assert!(matches!(bed.next().await, ExecutorReport::Started { .. }));
    }
    let TaskId { job, part, attempt, .. } = tasks[0];
    bed.server().carry_out(Order::Resize { job, part, attempt, replicas: 5 });
    for _ in 0..2 {
        assert!(matches!(bed.next().await, ExecutorReport::Exited { code: 0, .. }));
    }
    assert_eq!(bed.log(1).matches('5').count(), 2, "{}", bed.log(1));
}

/// However busy the machine is: here many of them start at a time.
#[tokio::test]
async fn a_start_is_noted_no_later_than_it_happened() {
    let mut bed = Bed::new().await;
    let jobs = 1..=40;
    for job in jobs.clone() {
        bed.launch(bed.run(job, &["/bin/date", "+%s.%N"]));
    }
    let mut noted = std::collections::BTreeMap::new();
    for _ in 0..2 * jobs.clone().count() {
        if let ExecutorReport::Started { task, at, .. } = bed.next().await {
            noted.insert(task.job.0, at.0);
        }
    }
    for job in jobs {
        let own: f64 = bed.log(job).trim().parse().expect("seconds");
        let own = (own * 1000.0) as i64;
        assert!(noted[&job] <= own, "job {job}: {} ms late", noted[&job] - own);
    }
}

#[tokio::test]
async fn many_short_tasks_all_end_once() {
    let mut bed = Bed::new().await;
    const TASKS: u64 = if super::PORTABLE { 50 } else { 300 };
    for job in 0..TASKS {
        bed.launch(bed.run(job, &["/bin/true"]));
    }
    let (mut started, mut ended) = (0, std::collections::BTreeSet::new());
    while ended.len() < TASKS as usize {
        match bed.next().await {
            ExecutorReport::Started { .. } => started += 1,
            ExecutorReport::Exited { task, code: 0, ending: Ending::Itself, .. } => {
                assert!(ended.insert(task), "{task} ended twice");
                bed.server().acknowledge(task);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(started, TASKS);
    assert_eq!(bed.server().known(), []);
    assert!(!bed.job(7).join("logs").exists(), "no log before the first byte");
}

#[tokio::test]
async fn a_task_that_leaves_nothing_leaves_no_folder_and_the_next_starts_as_if_in_its_own() {
    let mut bed = Bed::new().await;
    let silent = bed.launch(bed.run(1, &["true"]));
    assert_eq!(bed.ended(silent).await, (0, Ending::Itself));
    assert!(!bed.job(1).exists());
    let look = "touch x outputs/y checkpoints/z $TMPDIR/t && pwd && ls -A . outputs checkpoints";
    let before = bed.output(bed.sh(2, look)).await;
    assert!(bed.job(2).join("outputs/y").exists() && bed.job(2).join("checkpoints/z").exists());
    // Nothing of the first one's, nor of one that left something.
    let after = bed.output(bed.sh(3, look)).await;
    assert_eq!(before.replace("/2/", "/3/"), after);
    let failed = bed.launch(bed.run(4, &["false"]));
    assert_eq!(bed.ended(failed).await, (1, Ending::Itself));
    assert!(bed.job(4).exists(), "it may be tried again");
}

#[tokio::test]
async fn what_a_task_uses_is_sampled_with_all_that_it_started() {
    let mut bed = Bed::new().await;
    // The work is done by a child; the shell itself waits.
    let task = bed.launch(bed.sh(1, "sh -c 'while :; do :; done' & wait"));
    assert!(bed.sampled("usage/memory").await > 100_000.0);
    assert!(bed.sampled("usage/cpu").await > 0.02);
    bed.server().carry_out(Order::Stop { task, until: now() });
    bed.ended(task).await;
}

#[tokio::test]
async fn output_can_be_opened_by_its_name() {
    let mut bed = Bed::new().await;
    let log = bed.output(bed.sh(1, "echo one > /dev/stdout; echo two > /dev/stderr")).await;
    assert!(log.contains("one") && log.contains("two"), "{log}");
}

#[tokio::test]
async fn a_launch_of_more_bytes_than_a_socket_holds_arrives_whole() {
    const FILES: usize = 4000;
    let mut bed = Bed::new().await;
    let kept = bed.folder.path().join("kept");
    std::fs::write(&kept, "x").expect("write");
    let mut launch = bed.sh(1, "ls code | wc -l; echo $(cat code/*) | tr -d ' ' | wc -c");
    let to = |n: usize| format!("code/{n:0>120}");
    Arc::make_mut(&mut launch.spec).code =
        (0..FILES).map(|n| Staged { from: kept.clone(), to: to(n), executable: false }).collect();
    let log = bed.output(launch).await;
    assert!(log.contains(&FILES.to_string()), "{log}");
}

#[tokio::test]
async fn a_task_does_not_wait_until_another_is_tidied_up() {
    let mut bed = Bed::new().await;
    let many = "import os; [open(f'{n}', 'w').close() for n in range(3000)]; print(os.getppid())";
    let many = format!("import os; os.chdir(os.environ['TMPDIR']); {many}");
    let before = bed.output(bed.run(1, &["/usr/bin/python3", "-c", &many])).await;
    let after = bed.output(bed.sh(2, "echo $PPID")).await;
    assert_ne!(before, after, "its keeper is busy");
}
