//! How fast logs are written and read and tasks are sampled; one JSON object on standard output.
//!
//! `cargo run --release -p era-cloud --example watch_speed`

#![allow(clippy::print_stdout)] // what it prints is what it is for

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use era_cloud::clock::MachineClock;
use era_cloud::log::{LogReader, LogWriter, Only, Stream};
use era_cloud::usage::{Sampler, Watched};
use era_core::job::TaskId;
use era_core::units::{JobId, Time};

fn since(begun: Instant) -> Duration {
    MachineClock::system().steady() - begun
}

const BYTES: usize = 1 << 30;
const TASKS: u64 = 200;

fn task(rank: u32) -> TaskId {
    TaskId { job: JobId(1), part: 0, attempt: 1, rank }
}

/// Megabytes a second through the writer, for lines of a length.
fn write_mb_s(line_bytes: usize, ends: bool) -> f64 {
    let folder =
        std::env::temp_dir().join(format!("era-speed-{}-{line_bytes}", std::process::id()));
    let mut line = vec![b'x'; line_bytes];
    if ends {
        line[line_bytes - 1] = b'\n';
    }
    // As much as a pipe gives at a time.
    let piece = line.repeat((64 << 10) / line_bytes);
    let mut log = LogWriter::open(&folder, task(0), 256 << 20);
    let begun = MachineClock::system().steady();
    let mut written = 0;
    while written < BYTES {
        log.write(Stream::Out, &piece, Time(written as i64));
        written += piece.len();
    }
    drop(log);
    let rate = written as f64 / 1e6 / since(begun).as_secs_f64();
    // It is in the temporary folder all the same if this fails.
    let _ = std::fs::remove_dir_all(&folder);
    rate
}

/// Megabytes a second through a reader of lines of 100 bytes.
fn read_mb_s() -> Result<f64, era_cloud::log::LogError> {
    let folder = std::env::temp_dir().join(format!("era-speed-{}-read", std::process::id()));
    let piece = [&[b'x'; 99][..], b"\n"].concat().repeat(655);
    let mut log = LogWriter::open(&folder, task(0), 256 << 20);
    for n in 0..3000 {
        log.write(Stream::Out, &piece, Time(n));
    }
    let mut reader = LogReader::open(&folder, Only::default())?;
    let begun = MachineClock::system().steady();
    let mut bytes = 0;
    loop {
        let entries = reader.read(1000, 1 << 20, Time::MAX)?;
        if entries.is_empty() {
            break;
        }
        bytes += entries.iter().map(|entry| entry.text.len()).sum::<usize>();
    }
    let rate = bytes as f64 / 1e6 / since(begun).as_secs_f64();
    let _ = std::fs::remove_dir_all(&folder);
    Ok(rate)
}

/// Milliseconds for one look at many tasks, the least of ten.
fn sample_ms() -> std::io::Result<f64> {
    let sleep = |_| Command::new("sleep").arg("60").spawn();
    let children = (0..TASKS).map(sleep).collect::<std::io::Result<Vec<Child>>>()?;
    let watched: Vec<Watched> = (0..)
        .zip(&children)
        .map(|(rank, child)| Watched {
            task: task(rank),
            processes: vec![child.id()],
            groups: Vec::new(),
            memory_limit: None,
            gpus: Vec::new(),
        })
        .collect();
    let mut sampler = Sampler::new(&[]);
    let look = |n: i64| {
        let begun = MachineClock::system().steady();
        assert_eq!(sampler.sample(&watched, Time(n)).len(), watched.len());
        since(begun).as_secs_f64() * 1e3
    };
    let least = (0..10).map(look).fold(f64::INFINITY, f64::min);
    for mut child in children {
        child.kill()?;
        child.wait()?;
    }
    Ok(least)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cores = std::thread::available_parallelism()?.get();
    let measured = serde_json::json!({
        "cores": cores,
        "log_write_mb_s_lines_of_20": write_mb_s(20, true),
        "log_write_mb_s_lines_of_100": write_mb_s(100, true),
        "log_write_mb_s_without_newline": write_mb_s(4096, false),
        "log_read_mb_s": read_mb_s()?,
        "sample_200_tasks_ms": sample_ms()?,
    });
    println!("{measured}");
    Ok(())
}
