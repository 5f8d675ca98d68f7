//! How fast tasks go through the supervisor: `true`, so many at a time, against a bare fork and
//! wait in the same run. Prints one JSON object.
//!
//! `cargo run --release -p era-cloud --example shim_speed -- [TASKS] [AT ONCE]`

use std::collections::VecDeque;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_cloud::local::{LocalExecutor, LocalOptions};
use era_cloud::task::SupervisorSettings;
use era_cloud::{Executor, ExecutorReport, Launch, Order, TaskLimits, TaskSpec};
use era_core::job::TaskId;
use era_core::resources::Resources;
use era_core::units::{JobId, NodeId, Time, UserId};
use tokio::sync::mpsc;
use tokio::time::Instant;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    match first.as_deref() {
        Some("--shim") => {
            let folder = arguments.next().unwrap_or_default();
            return Ok(era_cloud::shim::run(
                folder.as_ref(),
                &["--keeper".into()],
                MachineClock::system(),
            )?);
        }
        Some("--keeper") => return Ok(era_cloud::shim::keep(MachineClock::system())?),
        _ => {}
    }
    let tasks: usize = first.map_or(Ok(10_000), |n| n.parse())?;
    let at_once: usize = arguments.next().map_or(Ok(16), |n| n.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measured = runtime.block_on(measure(tasks, at_once))?;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &measured)?;
    std::io::Write::write_all(&mut out, b"\n")?;
    Ok(())
}

async fn measure(tasks: usize, at_once: usize) -> Result<serde_json::Value, Failed> {
    let folder = std::env::temp_dir().join(format!("era-shim-speed-{}", std::process::id()));
    let (tell, mut told) = mpsc::channel(4096);
    let options = LocalOptions {
        folder: folder.join("shim"),
        program: std::env::current_exe()?,
        arguments: vec!["--shim".into()],
        settings: SupervisorSettings {
            hidden: vec![folder.clone()],
            ..SupervisorSettings::default()
        },
    };
    let local = LocalExecutor::start(options, tell).await?;
    let bare_before = bare(tasks.min(2_000), at_once)?;

    let begun = Instant::now();
    let (mut next, mut done) = (0, 0);
    while done < tasks {
        while next < tasks && next - done < at_once {
            local.carry_out(Order::Launch(launch(&folder, next as u64)));
            next += 1;
        }
        match told.recv().await.ok_or("the supervisor is gone")? {
            ExecutorReport::Exited { task, code: 0, .. } => {
                local.acknowledge(task);
                done += 1;
            }
            ExecutorReport::Started { .. } | ExecutorReport::Samples { .. } => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    let through = tasks as f64 / begun.elapsed().as_secs_f64();
    let bare_after = bare(tasks.min(2_000), at_once)?;
    let (first_ms, whole_ms) = alone(&local, &mut told, &folder).await?;
    local.leave().await;
    std::fs::remove_dir_all(&folder)?;
    let bare = (bare_before + bare_after) / 2.0;
    Ok(serde_json::json!({
        "tasks": tasks,
        "at_once": at_once,
        "cores": std::thread::available_parallelism()?.get(),
        "tasks_per_second": through.round(),
        "bare_fork_and_wait_per_second": bare.round(),
        "ratio": (through / bare * 100.0).round() / 100.0,
        "idle_order_to_started_p50_ms": first_ms,
        "idle_order_to_exited_p50_ms": whole_ms,
    }))
}

/// The same program without anything around it, as many at once.
fn bare(tasks: usize, at_once: usize) -> Result<f64, Failed> {
    let begun = Instant::now();
    let mut running = VecDeque::new();
    for _ in 0..tasks {
        if running.len() >= at_once {
            wait_first(&mut running)?;
        }
        running.push_back(Command::new("/bin/true").spawn()?);
    }
    while !running.is_empty() {
        wait_first(&mut running)?;
    }
    Ok(tasks as f64 / begun.elapsed().as_secs_f64())
}

fn wait_first(running: &mut VecDeque<std::process::Child>) -> Result<(), Failed> {
    if let Some(mut child) = running.pop_front() {
        child.wait()?;
    }
    Ok(())
}

/// One task at a time on an idle supervisor: the median time to its start, and to its end.
async fn alone(
    local: &LocalExecutor,
    told: &mut mpsc::Receiver<ExecutorReport>,
    folder: &std::path::Path,
) -> Result<(f64, f64), Failed> {
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for n in 0..50 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let begun = Instant::now();
        local.carry_out(Order::Launch(launch(folder, 1_000_000 + n)));
        loop {
            match told.recv().await.ok_or("the supervisor is gone")? {
                ExecutorReport::Started { .. } => starts.push(begun.elapsed()),
                ExecutorReport::Exited { task, .. } => {
                    ends.push(begun.elapsed());
                    local.acknowledge(task);
                    break;
                }
                _ => {}
            }
        }
    }
    Ok((median_ms(&mut starts), median_ms(&mut ends)))
}

fn median_ms(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| (time.as_secs_f64() * 1e6).round() / 1e3)
}

fn launch(folder: &std::path::Path, job: u64) -> Launch {
    Launch {
        task: TaskId { job: JobId(job), part: 0, attempt: 1, rank: 0 },
        node: NodeId(0),
        node_name: "here".into(),
        gpus: Vec::new(),
        each: Resources { cpu: 1000, memory: 256, ..Resources::default() },
        replicas: 1,
        until: Time::MAX,
        master: "127.0.0.1".into(),
        peers: vec!["127.0.0.1".into()],
        spec: Arc::new(TaskSpec {
            user: UserId(1),
            user_name: "ada".into(),
            job_name: None,
            command: vec!["/bin/true".into()],
            env: Default::default(),
            secrets: Default::default(),
            code: Vec::new(),
            inputs: Vec::new(),
            image: None,
            folder: JobId(job).folder(folder),
            checkpoints_of: None,
            alone: true,
            terminal: false,
            array: None,
            limits: TaskLimits::default(),
        }),
    }
}
