//! `era sim run`: one trace, one policy, one run.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use era_sim::BadInput;
use era_sim::measure::{Parties, RunFigures, measure};
use era_sim::report::{count_words, percent_words, span_words, write_starts};
use era_sim::run::{Setup, TraceRun, run_with};
use serde_json::{Value, json};

use super::experiment::{Experiment, Prepared};
use super::generate::{bar, peak_mb, to_file};
use crate::clock::instant;
use crate::names::BackfillName;

/// How many jobs that never fit are named.
const NAMED_IN_JSON: usize = 20;
const NAMED_IN_TABLE: usize = 3;

/// Run a workload through the production core, and measure it
#[derive(clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    experiment: Experiment,
    /// Who goes first: fifo, sjf, srtf, las, fair-share, priority, or formula:EXPRESSION
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// How jobs may start around what waits ahead of them [default: easy; none with --like]
    #[arg(long, value_enum)]
    backfill: Option<BackfillName>,
    /// Where to write when each job started and ended; compressed if it ends in .gz
    #[arg(long, value_name = "FILE")]
    starts: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let prepared = self.experiment.prepare()?;
        let backfill = self.backfill.unwrap_or(self.experiment.default_backfill());
        let setup = prepared.setup(&self.policy, backfill)?;
        if let Some(path) = &self.starts {
            check_folder(path)?;
        }
        let bar = bar(prepared.jobs());
        let begin = instant();
        let ran = run_with(&prepared.trace, &setup, &prepared.options, &mut |ended, _| {
            bar.set_position(ended);
        })?;
        let wall_s = begin.elapsed().as_secs_f64();
        bar.finish_and_clear();
        prepared.refuse_empty(&ran)?;
        if let Some(path) = &self.starts {
            to_file(path, |out| write_starts(out, &prepared.trace, &ran, &prepared.nodes))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let measures = measure(&prepared.trace, &setup, &ran);
        let about = About { policy: &self.policy, prepared: &prepared, setup: &setup, wall_s };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", about.json(&measures, &ran, self.starts.as_deref()))?;
        } else {
            about.table(&mut out, &measures, &ran, self.starts.as_deref())?;
        }
        Ok(())
    }
}

/// A long run should not end with a folder that is not there.
pub(super) fn check_folder(path: &Path) -> Result<(), BadInput> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(BadInput::new(format!("there is no folder {}", folder.display())).file(path))
        }
        _ => Ok(()),
    }
}

struct About<'a> {
    policy: &'a str,
    prepared: &'a Prepared,
    setup: &'a Setup,
    wall_s: f64,
}

impl About<'_> {
    fn jobs_per_second(&self) -> f64 {
        self.prepared.jobs() as f64 / self.wall_s.max(1e-9)
    }

    fn json(&self, measures: &RunFigures, ran: &TraceRun, starts: Option<&Path>) -> Value {
        let never =
            ran.never_fit.iter().take(NAMED_IN_JSON).map(
                |(index, why)| json!({ "job": self.prepared.trace.jobs[*index].id, "why": why }),
            );
        let never: Vec<Value> = never.collect();
        let rest = json!({
            "policy": self.policy,
            "backfill": self.setup.backfill,
            "preempt": self.setup.preempt,
            "fairness_over": Parties::of(&self.prepared.trace),
            "never_fit_jobs": never,
            "lost_work_s": ran.lost_work_s,
            "node_failures": ran.absences.len(),
            "inputs": ran.inputs,
            "wall_s": self.wall_s,
            "jobs_per_second": self.jobs_per_second(),
            "peak_mb": peak_mb(),
            "starts": starts.map(|path| path.display().to_string()),
        });
        merged([json!(measures), self.prepared.about(), rest])
    }

    fn table(
        &self,
        out: &mut dyn Write,
        measures: &RunFigures,
        ran: &TraceRun,
        starts: Option<&Path>,
    ) -> io::Result<()> {
        let mut row = |name: &str, value: String| writeln!(out, "{name:<14}{value}");
        for (name, fact) in self.prepared.facts() {
            row(&name, fact)?;
        }
        let preempts = if self.setup.preempt { ", preempting" } else { "" };
        let backfill = era_sim::report::backfill_name(self.setup.backfill);
        row("policy", format!("{}, backfill {backfill}{preempts}", self.policy))?;
        writeln!(out)?;
        let mut row = |name: &str, value: String| writeln!(out, "{name:<14}{value}");
        row("jobs ended", count_words(measures.jobs))?;
        if let Some(line) = self.never_fit(ran) {
            row("never fit", line)?;
        }
        for (name, count) in [
            ("unfinished", measures.unfinished),
            ("over limit", measures.over_limit),
            ("preemptions", measures.preemptions),
            ("losses", measures.losses),
        ] {
            if count > 0 {
                row(name, count_words(count))?;
            }
        }
        if !ran.absences.is_empty() {
            let (failures, lost) = (ran.absences.len(), span_words(ran.lost_work_s as f64));
            row("node failures", format!("{failures}, and {lost} of work with them"))?;
        }
        row("wait", three(measures.mean_wait_s, Some(measures.p50_wait_s), measures.p99_wait_s))?;
        row("completion", three(measures.mean_jct_s, None, measures.p99_jct_s))?;
        row("makespan", span_words(measures.makespan_s as f64))?;
        row("utilisation", percent_words(measures.utilisation))?;
        let over = match Parties::of(&self.prepared.trace) {
            Parties::Groups => "groups",
            Parties::Users => "users",
        };
        row("fairness", format!("{:.3} (Jain, over {over})", measures.fairness))?;
        if let Some(value) = measures.value {
            row("value", format!("{} credits, delivered in time", count_words(value as u64)))?;
        }
        let speed = count_words(self.jobs_per_second() as u64);
        row("took", format!("{:.2} s, {speed} jobs a second", self.wall_s))?;
        if let Some(path) = starts {
            row("starts", path.display().to_string())?;
        }
        Ok(())
    }

    /// How many jobs fit nowhere, and a few of them.
    fn never_fit(&self, ran: &TraceRun) -> Option<String> {
        let some = ran.never_fit.iter().take(NAMED_IN_TABLE);
        let some: Vec<String> = some
            .map(|(index, why)| format!("{} ({why})", self.prepared.trace.jobs[*index].id))
            .collect();
        let more = if ran.never_fit.len() > NAMED_IN_TABLE { ", …" } else { "" };
        let count = count_words(ran.never_fit.len() as u64);
        (!some.is_empty()).then(|| format!("{count}: {}{more}", some.join(", ")))
    }
}

fn three(mean: f64, median: Option<f64>, p99: f64) -> String {
    let median = median.map_or(String::new(), |median| format!("median {}, ", span_words(median)));
    format!("mean {}, {median}99 % within {}", span_words(mean), span_words(p99))
}

/// Objects as one; a later one has the last word.
pub(super) fn merged(objects: impl IntoIterator<Item = Value>) -> Value {
    let mut all = serde_json::Map::new();
    for object in objects {
        if let Value::Object(object) = object {
            all.extend(object);
        }
    }
    Value::Object(all)
}
