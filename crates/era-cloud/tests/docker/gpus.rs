//! The GPUs that the scheduler chose, as engines are asked for them and as the NVIDIA runtime reads
//! them. There is no GPU here: what runs at the start of a container is a program of the name that
//! NVIDIA's has, which writes down what it finds.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use era_cloud::{Executor, ExecutorReport, Launch, Order};
use era_core::units::Span;

use crate::bed::{Bed, Daemon, Namespace, can, data};

/// What the engine runs before a container that has GPUs: it finds the container's description,
/// and what it says of GPUs.
const HOOK: &str = r#"#!/bin/sh
bundle=$(sed 's/.*"bundle":"\([^"]*\)".*/\1/')
grep -o 'NVIDIA_VISIBLE_DEVICES=[^"]*' "$bundle/config.json" | sort -u >> "$(dirname "$0")/read"
"#;
/// Waits so that it can be looked at.
const TASK: &str = "echo $NVIDIA_VISIBLE_DEVICES $CUDA_VISIBLE_DEVICES; \
                    while ! test -e $ERA_OUTPUTS/go; do sleep 0.1; done";

fn daemon(programs: &Path) -> Result<Daemon, String> {
    let hook = programs.join("nvidia-container-runtime-hook");
    std::fs::write(&hook, HOOK).map_err(|error| error.to_string())?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).map_err(|error| error.to_string())?;
    let gpus = ["GPU-a", "GPU-b", "GPU-c"].map(|id| format!("NVIDIA-GPU={id}"));
    let more = gpus.each_ref().map(|gpu| ["--node-generic-resource", gpu.as_str()]).concat();
    Daemon::start_with(Namespace::new()?, &more, Some(programs))
}

fn launch(bed: &Bed, job: u64, gpus: &[u8]) -> Launch {
    let mut launch = bed.launch(job, TASK);
    launch.gpus = gpus.to_vec();
    // What a job or its image says of GPUs counts for nothing.
    let spec = Arc::make_mut(&mut launch.spec);
    spec.env.insert("NVIDIA_VISIBLE_DEVICES".into(), "all".into());
    launch
}

/// Runs a task, looks at it while it runs, and gives what it printed.
async fn looked_at(bed: &mut Bed, launch: Launch, look: impl FnOnce()) -> String {
    bed.executor.carry_out(Order::Launch(launch.clone()));
    let begun = bed
        .find(|report| match report {
            ExecutorReport::Started { .. } => Some(None),
            ExecutorReport::Exited { .. } | ExecutorReport::Lost { .. } => {
                Some(Some(report.clone()))
            }
            _ => None,
        })
        .await;
    let job = launch.task.job.0;
    assert_eq!(begun, None, "{}", bed.log(job));
    look();
    std::fs::write(launch.spec.folder.join("outputs/go"), "").expect("write");
    let over = bed.over(launch.task).await;
    assert!(matches!(over, ExecutorReport::Exited { code: 0, .. }), "{over:?}: {}", bed.log(job));
    bed.log(job)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gpus_that_were_chosen_and_no_others_are_asked_for_by_their_ids() {
    let programs = data();
    let Some(daemon) = can(daemon(programs.path())) else { return };
    let docker = |words: &[&str]| daemon.docker(words).expect("an answer");

    // A plain engine: device requests.
    let folder = data();
    let mut bed = Bed::start(&daemon.address(), folder.path(), Span::from_s(30)).await;
    let node = bed
        .find(|r| if let ExecutorReport::Node(node) = r { Some(node.clone()) } else { None })
        .await;
    assert_eq!(node.capacity.gpus.len(), 3);
    bed.nodes.push(node.name);
    let requests = |job: &str| {
        let id = docker(&["ps", "-q", "--filter", &format!("label=era.job={job}")]);
        docker(&["inspect", "-f", "{{json .HostConfig.DeviceRequests}}", &id])
    };
    let two = launch(&bed, 1, &[2, 0]);
    let said = looked_at(&mut bed, two, || {
        let asked = requests("1");
        assert!(asked.contains(r#""DeviceIDs":["GPU-c","GPU-a"]"#), "{asked}");
        assert!(asked.contains(r#""Driver":"nvidia""#), "{asked}");
        assert!(asked.contains(r#""Capabilities":[["gpu"]]"#), "{asked}");
    });
    assert_eq!(said.await, "GPU-c,GPU-a GPU-c,GPU-a\n");
    let read = || std::fs::read_to_string(programs.path().join("read")).expect("read");
    assert_eq!(read(), "NVIDIA_VISIBLE_DEVICES=GPU-c,GPU-a\n", "as NVIDIA's runtime does");
    let none = launch(&bed, 2, &[]);
    let said = looked_at(&mut bed, none, || assert_eq!(requests("2"), "null"));
    assert_eq!(said.await.trim(), "void");
    drop(bed);

    // A Swarm: the environment, for nodes whose default runtime is NVIDIA's.
    docker(&["swarm", "init", "--advertise-addr", "127.0.0.1"]);
    let folder = data();
    let mut bed = Bed::start(&daemon.address(), folder.path(), Span::from_s(30)).await;
    bed.joined(1).await;
    for (job, gpus, visible) in [(3, &[1][..], "GPU-b"), (4, &[], "void")] {
        let task = launch(&bed, job, gpus);
        let said = looked_at(&mut bed, task, || {
            let name =
                docker(&["service", "ls", "-q", "--filter", &format!("label=era.job={job}")]);
            let env = "{{json .Spec.TaskTemplate.ContainerSpec.Env}}";
            let env = docker(&["service", "inspect", "-f", env, &name]);
            assert_eq!(env.matches("NVIDIA_VISIBLE_DEVICES").count(), 1, "{env}");
            assert!(env.contains(&format!("\"NVIDIA_VISIBLE_DEVICES={visible}\"")), "{env}");
        });
        assert_eq!(said.await.split_whitespace().next(), Some(visible));
    }
}
