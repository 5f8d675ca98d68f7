//! Discovery, device isolation and sampling on a machine with NVIDIA GPUs, with a real PyTorch job.
//!
//! `cargo run -p era-cloud --example gpu`, or `scripts/check-gpu`, which builds it first. It prints
//! what is found, runs a job on one GPU and one on none, samples what they use, and ends with an
//! error where a job saw other GPUs than it was given. `ERA_GPU_PYTHON` names the Python.

#![allow(clippy::print_stdout)] // what it prints is what it is for

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use era_cloud::clock::MachineClock;
use era_cloud::discover::{Machine, this_machine};
use era_cloud::log::{LogDirective, LogReader, LogWriter, Only, Stream};
use era_cloud::usage::{Idle, IdleRule, Sampler, Watched};
use era_core::job::TaskId;
use era_core::units::{JobId, Span, Time};

type Failed = Box<dyn std::error::Error>;

/// Multiplies matrices for eight seconds, then holds its memory and does nothing for four.
const JOB: &str = "
import os, sys, time
try:
    import torch
except ImportError:
    sys.exit(77)
print('visible', repr(os.environ['CUDA_VISIBLE_DEVICES']), flush=True)
print('era: metric devices=%d' % torch.cuda.device_count(), flush=True)
if torch.cuda.device_count():
    print('device', torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).uuid, flush=True)
    a = torch.randn(8192, 8192, device='cuda')
    begun, step = time.time(), 0
    while time.time() - begun < 8:
        a = torch.tanh(a @ a / 8192)
        torch.cuda.synchronize()
        step += 1
        if step % 50 == 0:
            print('era: metric mean=%.6f step=%d' % (a.abs().mean().item(), step), flush=True)
    time.sleep(4)
print('era: checkpoint done=8', flush=True)
";

fn main() -> Result<ExitCode, Failed> {
    let machine = this_machine();
    println!("node: {}", serde_json::to_string_pretty(&machine.node)?);
    for gpu in &machine.gpus {
        println!("gpu {}: {} {} at {}", gpu.index, gpu.product, gpu.uuid, gpu.bus);
    }
    if machine.gpus.is_empty() {
        println!("no NVIDIA driver, or no GPU: nothing more to check");
        return Ok(ExitCode::SUCCESS);
    }
    let Some(devices) = run_job(&machine, &[0])? else {
        println!("PyTorch cannot be imported: isolation and sampling were not checked");
        return Ok(ExitCode::SUCCESS);
    };
    let without = run_job(&machine, &[])?.unwrap_or(f64::NAN);
    println!("a job with one GPU saw {devices}, a job with none saw {without}");
    let right = devices == 1.0 && without == 0.0;
    println!("{}", if right { "isolation holds" } else { "ISOLATION IS BROKEN" });
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the job with these GPUs; says how many it saw, or nothing where there is no PyTorch.
fn run_job(machine: &Machine, gpus: &[u8]) -> Result<Option<f64>, Failed> {
    let visible = machine.cuda_visible_devices(gpus);
    println!("\n== a job with CUDA_VISIBLE_DEVICES={visible:?}");
    let python = std::env::var("ERA_GPU_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut child = Command::new(python)
        .args(["-c", JOB])
        .env("CUDA_VISIBLE_DEVICES", &visible)
        .stdout(Stdio::piped())
        .spawn()?;
    let task = TaskId { job: JobId(1), part: 0, attempt: 1, rank: gpus.len() as u32 };
    let watched = Watched {
        task,
        processes: vec![child.id()],
        groups: Vec::new(),
        memory_limit: None,
        gpus: gpus.to_vec(),
    };
    let printed = pipe(child.stdout.take().ok_or("no output")?);
    let folder =
        std::env::temp_dir().join(format!("era-gpu-{}-{}", std::process::id(), gpus.len()));
    let mut log = LogWriter::open(&folder, task, 1 << 20);
    let mut devices = None;
    let mut hear = |told: Vec<LogDirective>| {
        for told in told {
            println!("told: {told:?}");
            if let LogDirective::Samples(samples) = told {
                devices = samples.iter().find(|s| s.name == "devices").map(|s| s.value).or(devices);
            }
        }
    };
    let clock = MachineClock::system();
    let mut sampler = Sampler::new(&machine.gpus);
    let (mut idle, rule) =
        (Idle::default(), IdleRule { after: Span::from_s(2), ..IdleRule::default() });
    let status = loop {
        let until = clock.steady() + Duration::from_secs(1);
        while let Ok(bytes) = printed.recv_timeout(until.saturating_duration_since(clock.steady()))
        {
            hear(log.write(Stream::Out, &bytes, clock.now()));
        }
        // The reader has gone once the job has: the pause is kept all the same.
        std::thread::sleep(until.saturating_duration_since(clock.steady()));
        for (_, usage) in sampler.sample(std::slice::from_ref(&watched), clock.now()) {
            let (next, tell) = idle.look(&usage.gpus, clock.now(), rule);
            idle = next;
            println!("usage: {usage:?}{}", if tell { " GPUs idle for long" } else { "" });
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
    };
    log.flush(clock.now());
    let lines = LogReader::open(&folder, Only::default())?.read(1000, 1 << 20, Time::MAX)?.len();
    println!("exit: {status}; {lines} lines of log");
    std::fs::remove_dir_all(&folder).or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(e),
    })?;
    if status.code() == Some(77) { Ok(None) } else { Ok(devices) }
}

fn pipe(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if sender.send(buffer[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
