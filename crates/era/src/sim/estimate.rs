//! `era sim estimate`: how well durations are predicted from history alone.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use era_sim::BadInput;
use era_sim::estimate::accuracy::{Accuracy, Report, judge};
use era_sim::trace::read;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// Learn durations from a trace as it unfolds, and judge each prediction by what came of it
#[derive(clap::Args)]
pub(crate) struct Estimate {
    /// The trace, in any of the formats that are read
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Estimate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let trace = read(&self.trace, None)?;
        let bar = ProgressBar::new(trace.jobs.len() as u64);
        let style =
            ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} jobs, {eta} left");
        let bar = style.map_or(bar.clone(), |style| bar.with_style(style));
        let began = Instant::now();
        let report = judge(&trace, &|ended| {
            if ended.is_multiple_of(64) {
                bar.set_position(ended);
            }
        })?;
        bar.finish_and_clear();
        let Some(report) = report else {
            let problem = "too few jobs ended before others came: nothing could be learned";
            return Err(BadInput::new(problem).file(&self.trace).into());
        };
        self.print(&report, began.elapsed().as_secs_f64())?;
        Ok(())
    }

    fn print(&self, report: &Report, seconds: f64) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let trace = self.trace.display().to_string();
            let object = json!({ "trace": trace, "wall_s": seconds, "report": report });
            return writeln!(out, "{object}");
        }
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
        writeln!(out, "learned and judged in {seconds:.1} s")
    }
}

/// A ratio as people say it.
fn times(ratio: f64) -> String {
    format!("× {ratio:.2}")
}
