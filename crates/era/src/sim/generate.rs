//! `era sim generate`: a seeded workload as a table, streamed to a file or to standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use era_sim::BadInput;
use era_sim::trace::{NameTable, TraceJob, write, write_with_use};
use era_sim::workload::usage::UsageModel;
use era_sim::workload::{PhillySpec, paper, philly, philly_names};
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// Make a seeded workload: the same seed gives the same bytes on every machine
#[derive(clap::Args)]
pub(crate) struct Generate {
    /// Which workload
    #[arg(long, value_enum)]
    kind: Kind,
    /// Another seed gives another workload
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many jobs (philly) [default: 10000]
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// How many GPUs the cluster has (philly) [default: 512]
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Work offered, as a share of what the cluster can do (philly) [default: 0.9]
    #[arg(long, value_name = "SHARE", value_parser = thousandths)]
    load: Option<u32>,
    /// Let jobs ask for processors and memory too, and say what they used of everything (philly)
    #[arg(long)]
    with_use: bool,
    /// Where to write; compressed if it ends in .gz [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object about what was written
    #[arg(long, requires = "out")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The first experiment of ERA's paper: 8,700 jobs of six classes
    Paper,
    /// Like Microsoft's Philly: users, bursts, days and weeks, heavy tails
    Philly,
}

impl Generate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.kind {
            Kind::Paper => {
                self.refuse_options_of_philly()?;
                let trace = paper(self.seed);
                self.put(trace.jobs.into_iter(), &trace.users, &trace.groups)
            }
            Kind::Philly => {
                let (users, groups) = philly_names();
                let jobs = philly(PhillySpec {
                    seed: self.seed,
                    jobs: self.jobs.unwrap_or(10_000),
                    gpus: self.gpus(),
                    load_milli: self.load.unwrap_or(900),
                })?;
                let uses = self.with_use.then(|| UsageModel::new(self.seed));
                let jobs = jobs.map(|job| uses.map_or(job.clone(), |uses| uses.of(job)));
                self.put(jobs, &users, &groups)
            }
        }
    }

    fn gpus(&self) -> u32 {
        self.gpus.unwrap_or(512)
    }

    fn refuse_options_of_philly(&self) -> Result<(), BadInput> {
        let given = [
            (self.jobs.is_some(), "--jobs"),
            (self.gpus.is_some(), "--gpus"),
            (self.load.is_some(), "--load"),
            (self.with_use, "--with-use"),
        ];
        match given.iter().find(|(given, _)| *given) {
            Some((_, option)) => {
                let problem = "the paper's workload is fixed: only --seed changes it";
                Err(BadInput::new(problem).field(*option))
            }
            None => Ok(()),
        }
    }

    /// Writes the jobs where they should go, and says what was written unless that is where.
    fn put(
        &self,
        jobs: impl ExactSizeIterator<Item = TraceJob>,
        users: &NameTable,
        groups: &NameTable,
    ) -> anyhow::Result<()> {
        let mut tally = Tally::default();
        let bar = bar(jobs.len() as u64);
        let jobs = jobs.inspect(|job| {
            tally.add(job);
            if tally.jobs.is_multiple_of(4096) {
                bar.set_position(tally.jobs);
            }
        });
        let Some(path) = &self.out else {
            let mut out = BufWriter::new(io::stdout().lock());
            self.table(&mut out, jobs, users, groups)?;
            out.flush()?;
            bar.finish_and_clear();
            return Ok(());
        };
        let bytes = to_file(path, |out| self.table(out, jobs, users, groups))
            .with_context(|| format!("cannot write {}", path.display()))?;
        bar.finish_and_clear();
        self.report(&tally, path, bytes)?;
        Ok(())
    }

    fn table(
        &self,
        out: &mut (impl Write + ?Sized),
        jobs: impl Iterator<Item = TraceJob>,
        users: &NameTable,
        groups: &NameTable,
    ) -> io::Result<()> {
        match self.with_use {
            true => write_with_use(out, jobs, users, groups),
            false => write(out, jobs, users, groups),
        }
    }

    fn report(&self, tally: &Tally, path: &Path, bytes: u64) -> io::Result<()> {
        let load = (self.kind == Kind::Philly).then(|| tally.load(self.gpus()));
        let kind = match self.kind {
            Kind::Paper => "paper",
            Kind::Philly => "philly",
        };
        let mut out = io::stdout().lock();
        if self.json {
            let object = json!({
                "kind": kind,
                "seed": self.seed,
                "jobs": tally.jobs,
                "span_s": tally.span_s(),
                "gpu_hours": tally.gpu_hours(),
                "gpus": load.map(|_| self.gpus()),
                "load": load,
                "file": path.display().to_string(),
                "bytes": bytes,
                "peak_mb": peak_mb(),
            });
            return writeln!(out, "{object}");
        }
        writeln!(out, "kind       {kind}, seed {}", self.seed)?;
        writeln!(out, "jobs       {}", tally.jobs)?;
        writeln!(out, "span       {:.1} days", tally.span_s() as f64 / 86_400.0)?;
        writeln!(out, "work       {:.0} GPU-hours", tally.gpu_hours())?;
        if let Some(load) = load {
            writeln!(out, "load       {load:.4} of {} GPUs", self.gpus())?;
        }
        writeln!(out, "written    {}, {bytes} bytes", path.display())
    }
}

/// Writes a file whole or not at all: under another name first, which is given up if it fails.
pub(super) fn to_file(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = put_into(&partial, path.extension().is_some_and(|end| end == "gz"), content)
        .and_then(|bytes| std::fs::rename(&partial, path).map(|()| bytes));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn put_into(
    path: &Path,
    compressed: bool,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
    if compressed {
        // The header holds no name and no time, so that the same jobs are the same bytes.
        let mut encoder = GzEncoder::new(&mut file, Compression::default());
        content(&mut encoder)?;
        encoder.finish()?;
    } else {
        content(&mut file)?;
    }
    file.flush()?;
    Ok(file.get_ref().metadata()?.len())
}

/// What was written, added up on the way.
#[derive(Default)]
struct Tally {
    jobs: u64,
    first_s: Option<i64>,
    last_s: i64,
    gpu_milli_seconds: u128,
}

impl Tally {
    fn add(&mut self, job: &TraceJob) {
        self.jobs += 1;
        self.first_s.get_or_insert(job.submit_s);
        self.last_s = job.submit_s;
        let duration_s = u128::from(job.duration_s.unsigned_abs());
        self.gpu_milli_seconds += u128::from(job.gpu_milli) * duration_s;
    }

    fn span_s(&self) -> i64 {
        self.last_s - self.first_s.unwrap_or(0)
    }

    fn gpu_hours(&self) -> f64 {
        self.gpu_milli_seconds as f64 / 3.6e6
    }

    fn load(&self, gpus: u32) -> f64 {
        self.gpu_hours() * 3600.0 / (self.span_s().max(1) as f64 * f64::from(gpus))
    }
}

/// A bar on standard error, which shows itself only to a terminal.
pub(super) fn bar(jobs: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} jobs, {eta} left");
    let bar = crate::progress::told(ProgressBar::new(jobs));
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The most memory that this process has held, where the system tells.
pub(super) fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1.024).round() / 1000.0)
}

/// A share such as 0.9 in thousandths.
fn thousandths(text: &str) -> Result<u32, String> {
    let share: f64 = text.parse().map_err(|_| "give a number such as 0.9".to_owned())?;
    let thousandths = (share * 1000.0).round();
    if !(1.0..=100_000.0).contains(&thousandths) {
        return Err("give 0.001 to 100".to_owned());
    }
    Ok(thousandths as u32)
}
