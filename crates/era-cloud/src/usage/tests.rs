//! What a task uses is what the system says, of real processes.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use era_core::units::JobId;
use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use super::*;

/// A process that is ended with its test, and all that it started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        // They may have ended by themselves.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Starts a shell whose script prints a byte once it is ready, and waits for that.
fn start(script: &str) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap();
    let mut ready = [0];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    Running(child)
}

fn watch(number: u64, process: &Running) -> Watched {
    Watched {
        task: TaskId { job: JobId(number), part: 0, attempt: 1, rank: 0 },
        processes: vec![process.0.id()],
        groups: Vec::new(),
        memory_limit: None,
        gpus: Vec::new(),
    }
}

#[test]
fn cores_and_memory_are_those_of_the_whole_tree() {
    // The work is done by a child; the shell itself waits.
    let busy = start("sh -c 'echo; while :; do :; done' & wait");
    let quiet = start("sleep 60 & echo; wait");
    let tasks = [watch(1, &busy), watch(2, &quiet)];
    let mut sampler = Sampler::new(&[]);
    let before = Instant::now();
    let first = sampler.sample(&tasks, Time(0));
    assert_eq!(first.len(), 2);
    assert!(first.iter().all(|(_, usage)| usage.cpu_cores.is_none() && usage.processes >= 2));
    assert!(first.iter().all(|(_, usage)| usage.memory_bytes > 100_000));
    // How long it takes to get some of a core depends on who else wants it, so it is waited for.
    let begun = Instant::now();
    let (second, counted) = loop {
        std::thread::sleep(Duration::from_millis(50));
        let elapsed = begun.elapsed();
        let mut again = Sampler { before: sampler.before.clone(), ..Sampler::new(&[]) };
        let usages = again.sample(&tasks, Time(elapsed.as_millis() as i64));
        if usages[0].1.cpu_cores.unwrap() > 0.02 || elapsed > Duration::from_secs(20) {
            break (usages, elapsed);
        }
    };
    let cores = |n: usize| second[n].1.cpu_cores.unwrap();
    // One process has one core at most, for longer than was counted where it took long to look.
    let most = 1.5 * before.elapsed().as_secs_f64() / counted.as_secs_f64();
    assert!(cores(0) > 0.02 && cores(0) < most, "{} of {most}", cores(0));
    assert!(cores(1) < cores(0));
    assert_eq!(second[0].1.received_bytes, Some(0), "it has no connection");
}

#[test]
fn a_task_that_has_ended_is_left_out() {
    let mut ended = start("echo");
    ended.0.wait().unwrap();
    assert!(Sampler::new(&[]).sample(&[watch(1, &ended)], Time(0)).is_empty());
}

#[test]
fn rates_are_averages_and_totals_never_fall() {
    let seen = |cpu_us, memory, read| UsageReading {
        cpu_us: Some(cpu_us),
        memory_bytes: Some(memory),
        disk_read_bytes: Some(read),
        ..UsageReading::default()
    };
    let none = UsageReading::default();
    let (first, before) = weigh(none, seen(1_000_000, 500, 10), None, Time(1000));
    assert_eq!((first.cpu_cores, first.disk_read_bytes), (None, Some(10)));
    let (second, before) = weigh(none, seen(4_000_000, 300, 7), Some(before), Time(3000));
    assert_eq!(second.cpu_cores, Some(1.5));
    assert_eq!((second.memory_bytes, second.memory_peak_bytes), (300, 500));
    assert_eq!(second.disk_read_bytes, Some(10));
    let (third, _) = weigh(none, seen(1, 1, 1), Some(before), Time(4000));
    assert_eq!(third.cpu_cores, Some(0.0));
    // A clock that stood still gives no rate rather than an infinite one.
    assert_eq!(weigh(none, seen(9_000_000, 1, 1), Some(before), Time(3000)).0.cpu_cores, None);
}

#[test]
fn a_group_is_believed_before_the_processes() {
    let group = UsageReading { cpu_us: Some(7), memory_bytes: Some(70), ..UsageReading::default() };
    let process =
        UsageReading { cpu_us: Some(1), memory_bytes: Some(1), disk_read_bytes: Some(3), ..group };
    let (usage, before) = weigh(group, process, None, Time(0));
    assert_eq!((before.cpu_us, usage.memory_bytes, usage.disk_read_bytes), (7, 70, Some(3)));
}

#[test]
fn only_what_is_known_is_recorded() {
    let usage = TaskUsage {
        cpu_cores: Some(1.5),
        memory_bytes: 10,
        memory_peak_bytes: 20,
        gpus: vec![GpuUse { gpu: 3, busy: Some(0.5), memory_bytes: None }],
        ..TaskUsage::default()
    };
    let samples = usage.samples(4, Time(9));
    let values: Vec<(&str, f64)> = samples.iter().map(|s| (s.name.as_str(), s.value)).collect();
    assert_eq!(
        values,
        [
            ("usage/cpu", 1.5),
            ("usage/memory", 10.0),
            ("usage/memory_peak", 20.0),
            ("usage/gpu3", 0.5)
        ]
    );
    assert!(samples.iter().all(|s| s.step == 4 && s.at == Time(9)));
}

#[test]
fn shared_memory_counts_once_where_the_sum_is_over_the_limit() {
    // Two processes of a shell share its pages.
    let shells = start("(sleep 60; :) & (sleep 60; :) & echo; wait");
    let plain = Sampler::new(&[]).sample(&[watch(1, &shells)], Time(0));
    let limited = Watched { memory_limit: Some(1), ..watch(1, &shells) };
    let exact = Sampler::new(&[]).sample(&[limited], Time(0));
    assert!(plain[0].1.processes >= 3);
    assert!(exact[0].1.memory_bytes < plain[0].1.memory_bytes);
    assert!(exact[0].1.memory_bytes > 0);
}
