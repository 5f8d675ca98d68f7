//! Benchmarks: the same seeded work each time, one JSON object each.

#[cfg(unix)]
mod engines;
mod queue;
mod quote;
#[cfg(unix)]
mod server;
mod sim;
mod world;

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;

use crate::clock::instant;

/// What can be measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Quotes and acceptances on a cluster of 1,000 nodes with 20,000 reservations
    Quote {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The seed of cluster and bids
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only the main measurement, without the curves over nodes and reservations
        #[arg(long)]
        quick: bool,
    },
    /// Ranking 100,000 waiting jobs, and a scheduling pass over 10,000
    Queue {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The seed of cluster and jobs
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// The whole platform under load: quotes, submissions, jobs, arrays, lists, a start with a past
    #[cfg(unix)]
    Server {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Without the site that has a million jobs behind it, which takes minutes to write
        #[arg(long)]
        quick: bool,
    },
    /// The engines beyond one machine, each beside what it is compared with
    #[cfg(unix)]
    Engines {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Only this one: databases, failover, celery or docker
        #[arg(long, value_name = "ENGINE")]
        only: Option<String>,
    },
    /// Whole traces: Philly's, where it stands beside the project, and a generated million of jobs
    Sim {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// The seed of the generated jobs
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only this run
        #[arg(long, value_name = "RUN")]
        only: Option<String>,
        /// How many jobs are generated
        #[arg(long, default_value_t = 1_000_000)]
        jobs: u64,
    },
}

/// Runs a benchmark and prints what it measured.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Quote { json, seed, quick } => quote::run(*json, *seed, *quick),
        Bench::Queue { json, seed } => queue::run(*json, *seed),
        #[cfg(unix)]
        Bench::Server { json, quick } => server::run(*json, *quick),
        #[cfg(unix)]
        Bench::Engines { json, only } => engines::run(*json, only.as_deref()),
        Bench::Sim { json, seed, only, jobs } => sim::bench(*json, *seed, only.as_deref(), *jobs),
    }
}

/// Prints a report: one line for programs, several for people.
fn print(report: &serde_json::Value, json: bool) {
    let text = if json { report.to_string() } else { format!("{report:#}") };
    #[allow(clippy::print_stdout)] // the report is what the command is for
    {
        println!("{text}");
    }
}

/// How many cores the machine has.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// Times of single calls, in order of size.
struct Times(Vec<Duration>);

impl Times {
    /// Calls `work` on each item and keeps how long each call took.
    fn of<T>(items: impl IntoIterator<Item = T>, mut work: impl FnMut(T)) -> Times {
        let mut times: Vec<Duration> = items
            .into_iter()
            .map(|item| {
                let start = instant();
                work(item);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        Times(times)
    }

    /// The time that this share of calls stays within, in microseconds.
    fn us(&self, share: f64) -> f64 {
        let index = ((self.0.len() as f64 * share) as usize).min(self.0.len().saturating_sub(1));
        self.0.get(index).map_or(0.0, |t| (t.as_nanos() as f64 / 100.0).round() / 10.0)
    }

    /// All calls together, in seconds.
    fn total_s(&self) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64()
    }

    /// Calls a second.
    fn per_second(&self) -> f64 {
        (self.0.len() as f64 / self.total_s()).round()
    }
}

/// Resident memory of this process in MB, where the system tells.
fn resident_mb() -> Option<f64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096.0 / 1e6)
}
