//! On a plain engine: a task is a container.

use std::sync::Arc;

use era_cloud::{Ending, Executor, ExecutorReport, Order, Staged, TaskSecrets};
use era_core::units::{Span, Time};

use crate::bed::{Bed, Daemon, data, now};

const FENCE: Span = Span(30_000);

fn exited(report: &ExecutorReport) -> (i32, Ending) {
    match report {
        ExecutorReport::Exited { code, ending, .. } => (*code, *ending),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_sees_its_code_inputs_and_outputs_and_what_it_prints_is_kept() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let kept = data.path().join("kept");
    std::fs::write(&kept, "42\n").expect("write");
    let mut launch = bed.launch(
        1,
        "cat code.txt inputs/data/n; echo $HF_TOKEN $NOTE $ERA_RANK $(id -u) >&2; \
         echo 'era: metric loss=0.5 step=3'; echo model > $ERA_OUTPUTS/model; \
         echo x > inputs/data/n || echo read-only; touch $TMPDIR/t; \
         printf '%050000d\\nafter a long line\\n' 0",
    );
    let spec = Arc::make_mut(&mut launch.spec);
    let staged = |to: &str| Staged { from: kept.clone(), to: to.into(), executable: false };
    spec.code = vec![staged("code.txt")];
    spec.inputs = vec![staged("inputs/data/n")];
    spec.env.insert("HF_TOKEN".into(), "it's secret".into());
    spec.secrets = TaskSecrets::new([("NOTE".into(), "so's this".into())].into());
    let task = launch.task;
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.executor.carry_out(Order::Launch(launch.clone()));
    let sample = bed
        .find(|report| match report {
            ExecutorReport::Samples { samples, .. } => {
                samples.iter().find(|s| s.name == "loss").map(|s| (s.value, s.step))
            }
            _ => None,
        })
        .await;
    assert_eq!(sample, (0.5, 3));
    assert_eq!(
        exited(&bed.find(|r| matches!(r, ExecutorReport::Exited { .. }).then(|| r.clone())).await),
        (0, Ending::Itself)
    );
    assert_eq!(bed.executor.known(), [task], "until it is acknowledged");
    // The same order again is told the same end, and starts nothing.
    bed.executor.carry_out(Order::Launch(launch));
    assert_eq!(exited(&bed.over(task).await), (0, Ending::Itself));
    let log = bed.log(1);
    for line in ["42\n42\n", "it's secret so's this 0 1000", "read-only"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert_eq!(log.matches("it's secret").count(), 1, "it ran once: {log}");
    // An engine tells a long line in pieces, and none is lost.
    assert!(log.lines().any(|line| line.bytes().filter(|byte| *byte == b'0').count() == 50_000));
    assert!(log.contains("0\nafter a long line\n"));
    let model = data.path().join("jobs/1/outputs/model");
    assert_eq!(std::fs::read_to_string(model).expect("kept"), "model\n");
    assert_eq!(std::fs::read_to_string(&kept).expect("kept"), "42\n", "inputs stay as they are");
    let inspected = daemon.docker(&["ps", "-aq"]).expect("listed");
    let removed = async {
        while !daemon.docker(&["ps", "-aq"]).expect("listed").is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let removed = tokio::time::timeout(crate::bed::PATIENCE, removed).await;
    assert!(removed.is_ok(), "the container goes with its acknowledgement: {inspected}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_ends_by_its_own_doing_by_a_stop_by_its_limit_and_for_want_of_memory() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let own = bed.launch(1, "exit 3");
    bed.executor.carry_out(Order::Launch(own.clone()));
    assert_eq!(exited(&bed.over(own.task).await), (3, Ending::Itself));

    let polite = bed.launch(2, "trap 'echo bye; exit 7' TERM; while :; do sleep 0.1; done");
    bed.executor.carry_out(Order::Launch(polite.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    bed.executor.carry_out(Order::Stop { task: polite.task, until: now() + Span::from_s(20) });
    assert_eq!(exited(&bed.over(polite.task).await), (7, Ending::Stopped));
    assert!(bed.log(2).contains("bye"));

    let deaf = bed.launch(3, "trap '' TERM; while :; do sleep 0.1; done");
    bed.executor.carry_out(Order::Launch(deaf.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    bed.executor.carry_out(Order::Stop { task: deaf.task, until: now() + Span::from_s(1) });
    assert_eq!(exited(&bed.over(deaf.task).await), (137, Ending::Stopped));

    let mut long = bed.launch(4, "while :; do sleep 0.1; done");
    long.until = now() + Span::from_s(3);
    bed.executor.carry_out(Order::Launch(long.clone()));
    assert_eq!(exited(&bed.over(long.task).await).1, Ending::Limit);

    let hungry = bed.launch(5, "tail /dev/zero");
    bed.executor.carry_out(Order::Launch(hungry.clone()));
    assert_eq!(exited(&bed.over(hungry.task).await).1, Ending::OutOfMemory);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_start_says_why_in_its_log() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let mut absent = bed.launch(1, "true");
    Arc::make_mut(&mut absent.spec).image = Some("No/Such:image".into());
    bed.executor.carry_out(Order::Launch(absent.clone()));
    assert_eq!(exited(&bed.over(absent.task).await), (126, Ending::NotStarted));
    let log = bed.log(1);
    assert!(log.contains("invalid reference format"), "{log}");

    let mut program = bed.launch(2, "true");
    Arc::make_mut(&mut program.spec).command = vec!["no-such-program".into()];
    bed.executor.carry_out(Order::Launch(program.clone()));
    assert_eq!(exited(&bed.over(program.task).await), (127, Ending::NotStarted));
    assert!(bed.log(2).contains("no such program"), "{}", bed.log(2));

    let unknown = bed.launch(3, "true").task;
    bed.executor.carry_out(Order::Stop { task: unknown, until: Time::MAX });
    assert!(matches!(bed.over(unknown).await, ExecutorReport::Lost { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_found_again_after_a_restart_and_strays_of_older_attempts_go() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let mut launch =
        bed.launch(1, "echo one; while ! test -e $ERA_OUTPUTS/go; do sleep 0.1; done; echo two");
    let go = data.path().join("jobs/1/outputs/go");
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    while !bed.log(1).contains("one") {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    drop(bed);
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    assert_eq!(bed.executor.known(), [launch.task]);
    bed.joined(1).await;
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    std::fs::write(&go, "").expect("write");
    assert_eq!(exited(&bed.over(launch.task).await), (0, Ending::Itself));
    assert_eq!(bed.log(1), "one\ntwo\n", "no line twice");

    // An attempt that nobody stopped is ended before the next one starts.
    std::fs::remove_file(&go).expect("removed");
    launch.task.attempt = 2;
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    let old = launch.task;
    launch.task.attempt = 3;
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|r| {
        matches!(r, ExecutorReport::Started { task, .. } if task.attempt == 3).then_some(())
    })
    .await;
    let running = daemon.docker(&["ps", "-q", "--filter", "label=era.attempt=2"]).expect("listed");
    assert_eq!(running, "", "{old:?} is gone");
    std::fs::write(&go, "").expect("write");
    assert_eq!(exited(&bed.over(launch.task).await), (0, Ending::Itself));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_prolonged_goes_on_past_its_old_end_after_a_restart() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let mut launch = bed.launch(1, "while ! test -e $ERA_OUTPUTS/go; do sleep 0.1; done");
    launch.until = now() + Span::from_s(12);
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    bed.executor.carry_out(Order::Prolong { task: launch.task, until: now() + Span::from_s(600) });
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    drop(bed);
    let left = u64::try_from((launch.until + Span::from_s(1)).since(now()).ms()).unwrap_or(0);
    tokio::time::sleep(std::time::Duration::from_millis(left)).await;
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    std::fs::write(data.path().join("jobs/1/outputs/go"), "").expect("write");
    assert_eq!(exited(&bed.over(launch.task).await), (0, Ending::Itself));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_that_start_together_share_one_network() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let meet = "while ! nslookup rank-0 >/dev/null || ! nslookup rank-5 >/dev/null; do \
                sleep 0.2; done; touch $ERA_OUTPUTS/$ERA_RANK; \
                while ! test -e $ERA_OUTPUTS/go; do sleep 0.2; done";
    for rank in 0..6 {
        let mut launch = bed.launch(1, meet);
        (launch.task.rank, launch.replicas) = (rank, 6);
        bed.executor.carry_out(Order::Launch(launch));
    }
    let met = || (0..6).all(|rank| data.path().join(format!("jobs/1/outputs/{rank}")).exists());
    let all = async {
        while !met() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let all = tokio::time::timeout(crate::bed::PATIENCE, all).await;
    assert!(all.is_ok(), "they do not meet: {}", bed.log(1));
    let networks = daemon.docker(&["network", "ls", "--format", "{{.Name}}"]).expect("listed");
    assert_eq!(networks.matches("-j1-p0-a1").count(), 1, "{networks}");
    std::fs::write(data.path().join("jobs/1/outputs/go"), "").expect("write");
    for _ in 0..6 {
        let over =
            bed.find(|r| matches!(r, ExecutorReport::Exited { .. }).then(|| r.clone())).await;
        assert_eq!(exited(&over), (0, Ending::Itself));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_grows_finds_its_new_ranks_and_is_found_by_them() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let meet = "while ! nslookup rank-0 >/dev/null || ! nslookup rank-1 >/dev/null; do \
                sleep 0.2; done; echo $ERA_RANK met at $MASTER_ADDR; \
                touch $ERA_OUTPUTS/$ERA_RANK; \
                while ! test -e $ERA_OUTPUTS/0 || ! test -e $ERA_OUTPUTS/1; do sleep 0.2; done";
    let mut first = bed.launch(1, meet);
    Arc::make_mut(&mut first.spec).alone = false;
    bed.executor.carry_out(Order::Launch(first.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    let mut grown = first.clone();
    (grown.task.rank, grown.replicas) = (1, 2);
    bed.executor.carry_out(Order::Launch(grown.clone()));
    for _ in 0..2 {
        let over =
            bed.find(|r| matches!(r, ExecutorReport::Exited { .. }).then(|| r.clone())).await;
        assert_eq!(exited(&over), (0, Ending::Itself), "{}", bed.log(1));
    }
    let log = bed.log(1);
    for line in ["0 met at rank-0", "1 met at rank-0"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    // One that stays alone needs none.
    let alone = bed.launch(2, "true");
    bed.executor.carry_out(Order::Launch(alone.clone()));
    bed.over(alone.task).await;
    let networks = daemon.docker(&["network", "ls", "--format", "{{.Name}}"]).expect("listed");
    assert!(networks.contains("-j1-p0-a1") && !networks.contains("-j2-"), "{networks}");
    for task in [first.task, grown.task] {
        bed.executor.acknowledge(task);
    }
    let removed = async {
        let list = || daemon.docker(&["network", "ls", "--format", "{{.Name}}"]).expect("listed");
        while list().contains("-j1-") {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let removed = tokio::time::timeout(crate::bed::PATIENCE, removed).await;
    assert!(removed.is_ok(), "the network goes with its last rank");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_container_uses_is_told() {
    let Some(daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let launch = bed.launch(1, "while ! test -e $ERA_OUTPUTS/go; do :; done");
    bed.executor.carry_out(Order::Launch(launch.clone()));
    let value = |report: &ExecutorReport, name: &str| match report {
        ExecutorReport::Samples { task, samples } if *task == launch.task => {
            samples.iter().find(|sample| sample.name == name).map(|sample| sample.value)
        }
        _ => None,
    };
    // It asked for half a core and 64 MiB, beside which its guard has a little.
    let memory = bed.find(|report| value(report, "usage/memory")).await;
    assert!((1.0..=72.0 * 1048576.0).contains(&memory), "{memory} bytes");
    let cores = bed.find(|report| value(report, "usage/cpu")).await;
    assert!(cores > 0.0 && cores < 1.0, "{cores} cores");
    std::fs::write(data.path().join("jobs/1/outputs/go"), "").expect("write");
    assert_eq!(exited(&bed.over(launch.task).await), (0, Ending::Itself));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_engine_dies_under_it_is_lost_and_the_next_one_runs_once_it_is_back() {
    let Some(mut daemon) = Daemon::alone() else { return };
    let data = data();
    let mut bed = Bed::start(&daemon.address(), data.path(), FENCE).await;
    bed.joined(1).await;
    let launch = bed.launch(1, "echo began; while :; do sleep 0.1; done");
    bed.executor.carry_out(Order::Launch(launch.clone()));
    bed.find(|report| matches!(report, ExecutorReport::Started { .. }).then_some(())).await;
    daemon.crash();
    // What is ordered meanwhile is not given up.
    let next = bed.launch(2, "echo after");
    bed.executor.carry_out(Order::Launch(next.clone()));
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    daemon.revive().expect("it comes back");
    let lost = bed.over(launch.task).await;
    assert!(matches!(lost, ExecutorReport::Lost { .. }), "{lost:?}: {}", bed.log(1));
    let log = bed.log(1);
    let place = daemon.address();
    let place = place.split('?').next().expect("an address");
    assert!(log.contains("began") && log.contains(&format!("{place} went away")), "{log}");
    assert_eq!(exited(&bed.over(next.task).await), (0, Ending::Itself), "{}", bed.log(2));
    let log = bed.log(2);
    let (waited, said) = log.split_once('\n').expect("lines");
    assert!(waited.contains("the task waits to be started") && waited.contains(place), "{log}");
    assert_eq!(said, "after\n");
}
