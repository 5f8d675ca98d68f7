//! `era sim compare`: one trace under several policies, side by side, on all cores.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::Context;
use era_sim::BadInput;
use era_sim::report::{
    Digest, backfill_name, count_words, digest, headline, page, percent_words, span_words,
};
use era_sim::run::{Options, Setup, run_with};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::experiment::{Experiment, Prepared};
use super::generate::{bar, peak_mb, to_file};
use super::run::merged;
use crate::clock::instant;
use crate::names::BackfillName;

/// No more runs than this at once: a page with more is not read by anybody.
const RUNS_MAX: usize = 24;

/// Run a workload under several policies, and compare them in a table and a page of charts
#[derive(clap::Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    experiment: Experiment,
    /// Policies, such as fifo,sjf,srtf,las,fair-share,priority,formula:EXPRESSION
    #[arg(long, value_name = "POLICIES")]
    policies: String,
    /// How jobs may start around what waits ahead of them, several of them for all policies
    /// [default: easy; none with --like]
    #[arg(long, value_enum, value_delimiter = ',')]
    backfill: Vec<BackfillName>,
    /// The folder for the page of charts, index.html, which needs no network
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A run that was done.
struct Done {
    policy: String,
    setup: Setup,
    digest: Digest,
    wall_s: f64,
}

impl Compare {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut prepared = self.experiment.prepare()?;
        prepared.options = Options { intervals: true, ..prepared.options };
        let plans = self.plans(&prepared)?;
        if let Some(folder) = &self.report
            && folder.exists()
            && !folder.is_dir()
        {
            return Err(BadInput::new("this is no folder").file(folder).field("--report").into());
        }
        let bar = bar(prepared.jobs() * plans.len() as u64);
        let runs = all(&prepared, &plans, &bar)?;
        bar.finish_and_clear();
        let page = match &self.report {
            Some(folder) => Some(write_page(folder, &prepared, &runs)?),
            None => None,
        };
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", json_of(&prepared, &runs, page.as_deref()))?;
        } else {
            table(&mut out, &prepared, &runs, page.as_deref())?;
        }
        Ok(())
    }

    /// What is to be run: every policy with every way to backfill.
    fn plans(&self, prepared: &Prepared) -> Result<Vec<(String, Setup)>, BadInput> {
        let backfills = match &self.backfill[..] {
            [] => vec![self.experiment.default_backfill()],
            given => given.to_vec(),
        };
        let mut plans = Vec::new();
        for policy in split_policies(&self.policies) {
            for backfill in &backfills {
                let setup = prepared.setup(policy, *backfill).map_err(|e| e.field("--policies"))?;
                plans.push((policy.to_owned(), setup));
            }
        }
        if plans.len() > RUNS_MAX {
            let problem = format!("{} runs at once: give at most {RUNS_MAX}", plans.len());
            return Err(BadInput::new(problem).field("--policies"));
        }
        Ok(plans)
    }
}

/// Names between commas; those inside the brackets of a formula are its own.
fn split_policies(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let split = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    });
    split.map(str::trim).collect()
}

/// Runs everything, on as many threads as there are cores. Each run is digested as soon as it is
/// over, so that no more than one whole run a core is in memory.
fn all(
    prepared: &Prepared,
    plans: &[(String, Setup)],
    bar: &ProgressBar,
) -> Result<Vec<Done>, BadInput> {
    let next = AtomicUsize::new(0);
    let ended = AtomicU64::new(0);
    let done: Mutex<Vec<(usize, Result<Done, BadInput>)>> = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((policy, setup)) = plans.get(index) else { return };
            let mut seen = 0;
            let mut watch = |jobs: u64| {
                ended.fetch_add(jobs - seen, Ordering::Relaxed);
                seen = jobs;
                bar.set_position(ended.load(Ordering::Relaxed));
            };
            let result = one(prepared, policy, setup, plans, &mut watch);
            // A thread that panicked took nothing half-done with it.
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            done.push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores.min(plans.len()) {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn one(
    prepared: &Prepared,
    policy: &str,
    setup: &Setup,
    plans: &[(String, Setup)],
    watch: &mut dyn FnMut(u64),
) -> Result<Done, BadInput> {
    let begin = instant();
    let ran = run_with(&prepared.trace, setup, &prepared.options, &mut |ended, _| watch(ended))?;
    let wall_s = begin.elapsed().as_secs_f64();
    prepared.refuse_empty(&ran)?;
    let several = plans.iter().any(|(_, other)| other.backfill != setup.backfill);
    let name = match several {
        true => format!("{policy} · {}", backfill_name(setup.backfill)),
        false => policy.to_owned(),
    };
    let digest = digest(name, &prepared.trace, setup, &ran, &prepared.nodes);
    Ok(Done { policy: policy.to_owned(), setup: setup.clone(), digest, wall_s })
}

fn write_page(folder: &Path, prepared: &Prepared, runs: &[Done]) -> anyhow::Result<PathBuf> {
    let mut facts = prepared.facts();
    let backfills: std::collections::BTreeSet<&str> =
        runs.iter().map(|run| backfill_name(run.setup.backfill)).collect();
    let backfills: Vec<&str> = backfills.into_iter().collect();
    facts.push(("backfill".to_owned(), backfills.join(", ")));
    let name = Path::new(&prepared.trace_name).file_name().unwrap_or_default().to_string_lossy();
    let title = match runs.len() {
        1 => format!("{name}: one run"),
        count => format!("{name}: {count} runs compared"),
    };
    let digests: Vec<Digest> = runs.iter().map(|run| run.digest.clone()).collect();
    let page = page(&title, &facts, &digests);
    let path = folder.join("index.html");
    std::fs::create_dir_all(folder)
        .and_then(|()| to_file(&path, |out| out.write_all(page.as_bytes())))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn json_of(prepared: &Prepared, runs: &[Done], page: Option<&Path>) -> Value {
    let digests: Vec<Digest> = runs.iter().map(|run| run.digest.clone()).collect();
    let headline = headline(&digests);
    let each: Vec<Value> = runs
        .iter()
        .map(|run| {
            let about = json!({
                "policy": run.policy,
                "backfill": run.setup.backfill,
                "preempt": run.setup.preempt,
                "wall_s": run.wall_s,
                "jobs_per_second": prepared.jobs() as f64 / run.wall_s.max(1e-9),
            });
            merged([about, json!(run.digest.measures)])
        })
        .collect();
    let rest = json!({
        "runs": each,
        "best": headline.as_ref().map(|headline| headline.winner),
        "headline": headline.map(|headline| format!("{}: {}", headline.title, headline.subtitle)),
        "report": page.map(|path| path.display().to_string()),
        "peak_mb": peak_mb(),
    });
    merged([prepared.about(), rest])
}

fn table(
    out: &mut dyn Write,
    prepared: &Prepared,
    runs: &[Done],
    page: Option<&Path>,
) -> io::Result<()> {
    for (name, fact) in prepared.facts() {
        writeln!(out, "{name:<14}{fact}")?;
    }
    writeln!(out)?;
    let digests: Vec<Digest> = runs.iter().map(|run| run.digest.clone()).collect();
    if let Some(headline) = headline(&digests) {
        writeln!(out, "{}.\n{}\n", headline.title, headline.subtitle)?;
    }
    let heads = [
        "run",
        "ended",
        "mean wait",
        "99 % wait",
        "mean completion",
        "99 % completion",
        "makespan",
        "utilisation",
        "fairness",
        "never fit",
        "jobs/s",
    ];
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).to_vec()];
    for run in runs {
        let m = &run.digest.measures;
        rows.push(vec![
            run.digest.name.clone(),
            count_words(m.jobs),
            span_words(m.mean_wait_s),
            span_words(m.p99_wait_s),
            span_words(m.mean_jct_s),
            span_words(m.p99_jct_s),
            span_words(m.makespan_s as f64),
            percent_words(m.utilisation),
            format!("{:.3}", m.fairness),
            count_words(m.never_fit),
            count_words((prepared.jobs() as f64 / run.wall_s.max(1e-9)) as u64),
        ]);
    }
    for line in aligned(&rows) {
        writeln!(out, "{line}")?;
    }
    if let Some(page) = page {
        writeln!(out, "\nreport        {}", page.display())?;
    }
    Ok(())
}

/// Columns of equal width, the first to the left and figures to the right.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<String>>().join("  ")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_a_formula_do_not_split_it() {
        let policies = split_policies("fifo, formula:min(wait, 3) - size,sjf");
        assert_eq!(policies, ["fifo", "formula:min(wait, 3) - size", "sjf"]);
    }
}
