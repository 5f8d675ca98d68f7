//! `era sim estimate`: how well durations and use are predicted from history alone, and what was
//! learned, to be published.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use era_core::Command;
use era_sim::BadInput;
use era_sim::accuracy::{Accuracy, AccuracyReport, judge};
use era_sim::journal::Reader;
use era_sim::replay::NotReplayed;
use era_sim::trace::{Trace, TraceJob, read};
use era_sim::training::{Recorded, UseByJob, learn, read_uses};
use indicatif::ProgressBar;
use serde_json::json;

use super::generate::{bar, to_file};
use crate::clock::instant;

/// Learn durations and use from history as it unfolds, and judge each prediction by what came of it
///
/// Nothing is learned from a job before it has ended. From a journal, what was learned can be
/// written as the command that publishes it; nothing is put in force.
#[derive(clap::Args)]
pub(crate) struct Estimate {
    /// A trace, in any of the formats that are read
    #[arg(long, value_name = "FILE", required_unless_present = "journal")]
    trace: Option<PathBuf>,
    /// A journal
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    journal: Option<PathBuf>,
    /// What the journal's jobs used: a table of job_id, used_gpus, used_cpus, used_mem_gb
    #[arg(long, value_name = "FILE", requires = "journal")]
    used: Option<PathBuf>,
    /// Write the command that publishes what was learned from a journal here
    #[arg(long, value_name = "FILE", requires = "journal")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Estimate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let began = instant();
        let (source, learned) = match (&self.trace, &self.journal) {
            (Some(trace), _) => (trace, of_trace(trace)?.map(Learned::of_trace)),
            (None, Some(journal)) => (journal, self.of_journal(journal)?),
            (None, None) => unreachable!("one of them is required"),
        };
        let Some(learned) = learned else {
            let problem = "too few jobs ended before others came: nothing could be learned";
            return Err(BadInput::new(problem).file(source).into());
        };
        let seconds = began.elapsed().as_secs_f64();
        let mut out = io::stdout().lock();
        if self.json {
            let from = if self.trace.is_some() { "trace" } else { "journal" };
            let mut object = json!(learned);
            object[from] = json!(source.display().to_string());
            object["wall_s"] = json!(seconds);
            writeln!(out, "{object}")?;
            return Ok(());
        }
        match &learned.report {
            Some(report) => print(&mut out, report)?,
            None => writeln!(out, "learned from {} jobs; none came after them", learned.jobs)?,
        }
        if let Some(path) = &self.out {
            writeln!(out, "written: {}", path.display())?;
        }
        writeln!(out, "learned and judged in {seconds:.1} s")?;
        Ok(())
    }

    fn of_journal(&self, path: &Path) -> anyhow::Result<Option<Learned>> {
        let uses = self.used.as_deref().map_or(Ok(UseByJob::new()), read_uses)?;
        // How many inputs it has is known when they are through.
        let bar = crate::progress::told(ProgressBar::new_spinner());
        let found = learn(Reader::open(path)?, &uses, &|inputs| bar.set_position(inputs));
        bar.finish_and_clear();
        let found = found.map_err(|error| match error {
            NotReplayed::BadInput(error) => anyhow::Error::from(error),
            differs => anyhow::Error::from(differs),
        })?;
        let Recorded { estimates: Some(estimates), report, jobs, with_use } = found else {
            return Ok(None);
        };
        if let Some(out) = &self.out {
            let command = serde_json::to_string(&Command::PublishEstimates { estimates })?;
            to_file(out, |to| writeln!(to, "{command}"))
                .with_context(|| format!("cannot write {}", out.display()))?;
        }
        Ok(Some(Learned { jobs, with_use, report }))
    }
}

/// What was learned, from how much.
#[derive(serde::Serialize)]
struct Learned {
    /// Jobs that ended.
    jobs: usize,
    /// Those of them whose use was measured.
    with_use: usize,
    /// How predictions went, if any job came after the first could be made.
    report: Option<AccuracyReport>,
}

impl Learned {
    fn of_trace((trace, report): (Trace, AccuracyReport)) -> Learned {
        let measured = |job: &&TraceJob| job.shares_used().iter().any(Option::is_some);
        let with_use = trace.jobs.iter().filter(measured).count();
        Learned { jobs: trace.jobs.len(), with_use, report: Some(report) }
    }
}

fn of_trace(path: &Path) -> Result<Option<(Trace, AccuracyReport)>, BadInput> {
    let trace = read(path, None)?;
    let bar = bar(trace.jobs.len() as u64);
    let report = judge(&trace, &|ended| {
        if ended.is_multiple_of(64) {
            bar.set_position(ended);
        }
    });
    bar.finish_and_clear();
    Ok(report?.map(|report| (trace, report)))
}

fn print(out: &mut impl Write, report: &AccuracyReport) -> io::Result<()> {
    let share = 100.0 * report.between_low_and_high;
    writeln!(out, "jobs        {}, of which {} judged", report.jobs, report.judged)?;
    writeln!(out, "            median error  mean error  within a factor of 2")?;
    let mut row = |name: &str, accuracy: &Accuracy| {
        let Accuracy { median_log2_error, mean_log2_error, within_factor_2 } = accuracy;
        let (median, mean) = (median_log2_error.exp2(), mean_log2_error.exp2());
        let within = 100.0 * within_factor_2;
        writeln!(out, "{name:<12}{:>12}  {:>10}  {within:>18.1} %", times(median), times(mean))
    };
    row("predicted", &report.predicted)?;
    row("user mean", &report.user_mean)?;
    if let Some(stated) = &report.stated {
        row("stated", stated)?;
    }
    writeln!(
        out,
        "{share:.1} % of jobs took between the low and the high prediction (80 % meant)"
    )?;
    for (resource, used) in &report.used {
        writeln!(
            out,
            "share of {resource} that is used: off by {:.3} in the mean over {} jobs; the mean of all \
             jobs before by {:.3}, what was asked for by {:.3}",
            used.predicted, used.judged, used.mean_before, used.asked
        )?;
    }
    Ok(())
}

/// A ratio as people say it.
fn times(ratio: f64) -> String {
    format!("× {ratio:.2}")
}
