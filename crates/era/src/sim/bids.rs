//! Options that say which bids are made, and where: the same for every command about the market.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use era_core::units::{Span, Time};
use era_sim::BadInput;
use era_sim::market::MarketExperiment;
use era_sim::market::experiment;
use era_sim::market::stream::{Assume, MarketCluster, NeverFits, TraceBid, of_trace};
use era_sim::trace::{self, Trace};
use serde_json::{Value, json};

/// An experiment whose parameters are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Experiment {
    /// The first experiment of ERA's paper: 8,700 jobs of six classes on 2,000 units
    Paper,
    /// The trace of Chronus on 800 GPUs, after seven days of learning, and with a cold start
    Chronus,
}

#[derive(clap::Args)]
pub(super) struct Bids {
    /// The workload
    #[arg(long, value_name = "FILE", required_unless_present = "experiment")]
    trace: Option<PathBuf>,
    /// A fixed experiment; `chronus` needs the trace as well
    #[arg(long, value_enum, conflicts_with_all = ["gpus", "units", "learn"])]
    pub(super) experiment: Option<Experiment>,
    /// How many seeds the paper's experiment is run with
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// The first of these seeds
    #[arg(long, value_name = "N", default_value_t = 1)]
    first_seed: u64,
    /// GPUs of the cluster
    #[arg(long, value_name = "N", default_value_t = 800)]
    gpus: u32,
    /// GPUs of a node
    #[arg(long, value_name = "N", default_value_t = 8)]
    gpus_per_node: u32,
    /// One giant node of so many units instead
    #[arg(long, value_name = "N", conflicts_with_all = ["gpus", "gpus_per_node"])]
    units: Option<u32>,
    /// What to learn from before the first bid: the first part of the trace (7d), or a file
    #[arg(long, value_name = "SPAN|FILE")]
    learn: Option<String>,
    /// The deadline where the trace has none: so many durations after the submission
    #[arg(long, value_name = "N", default_value_t = 3.0)]
    slack: f64,
    /// Values over cost at base rates where the trace has none, from job to job
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,5,10,20")]
    densities: Vec<u32>,
    /// Length of a price slot
    #[arg(long, value_name = "SPAN", default_value = "1m", value_parser = span)]
    slot: Span,
}

/// A contest, and what to call it. Contests of the same name are repetitions.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) contest: MarketExperiment,
}

impl Bids {
    /// Reads and makes whatever is contested.
    pub(super) fn contests(&self) -> anyhow::Result<Vec<Named>> {
        let named = |name, contest| Named { name, contest };
        Ok(match self.experiment {
            Some(Experiment::Paper) => (0..self.seeds)
                .map(|nth| {
                    let seed = self.first_seed.wrapping_add(nth);
                    Ok(named("paper", experiment::paper(seed)?))
                })
                .collect::<Result<_, BadInput>>()?,
            Some(Experiment::Chronus) => {
                let trace = read(self.trace()?)?;
                let (rest, all) = (Span::from_days(7), Span::ZERO);
                let rest = experiment::chronus(trace.clone(), rest)?;
                vec![named("rest", rest), named("all", experiment::chronus(trace, all)?)]
            }
            None => vec![named("trace", self.contest()?)],
        })
    }

    fn contest(&self) -> anyhow::Result<MarketExperiment> {
        let gpus = MarketCluster::Gpus { total: self.gpus, per_node: self.gpus_per_node };
        let site = self.units.map_or(gpus, MarketCluster::Units);
        site.check()?;
        if !(1.0..=1000.0).contains(&self.slack) {
            return Err(BadInput::new("give 1 to 1000").field("--slack").into());
        }
        let assume = Assume { slack: self.slack, densities: self.densities.clone() };
        let bids = |trace: &Trace, from| of_trace(trace, site, &assume, from);
        let trace = read(self.trace()?)?;
        let jobs = match self.learn.as_deref().map(|learn| (span(learn), learn)) {
            None => (bids(&trace, Time(0))?, Span::ZERO),
            Some((Ok(first), _)) => (bids(&trace, Time(0))?, first),
            Some((Err(_), file)) => {
                let mut all = bids(&read(Path::new(file))?, Time(0))?;
                let past = after(&all.bids);
                let rest = bids(&trace, Time(0) + past)?;
                all.bids.extend(rest.bids);
                all.never_fit.extend(rest.never_fit);
                (all, past)
            }
        };
        Ok(experiment::contest(site, jobs.0, jobs.1, self.slot)?)
    }

    fn trace(&self) -> Result<&Path, BadInput> {
        let missing = || BadInput::new("give the file of the trace").field("--trace");
        self.trace.as_deref().ok_or_else(missing)
    }
}

/// The jobs that could make no bid, for programs.
pub(super) fn never_fit(jobs: &[NeverFits]) -> Value {
    jobs.iter().map(|job| json!({ "job": job.job, "why": job.why })).collect()
}

/// And for people: how many, and the first few of them.
pub(super) fn never_fit_words(jobs: &Value) -> String {
    let Some(jobs) = jobs.as_array().filter(|jobs| !jobs.is_empty()) else { return String::new() };
    let few: Vec<String> = jobs
        .iter()
        .take(5)
        .map(|job| format!("{} ({})", word(&job["job"]), word(&job["why"])))
        .collect();
    let more = if jobs.len() > few.len() { ", …" } else { "" };
    format!("{} jobs can never fit and make no bid: {}{more}\n", jobs.len(), few.join(", "))
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The whole days that bids take.
fn after(bids: &[TraceBid]) -> Span {
    let last = bids.last().map_or(Time(0), |asked| asked.submitted);
    (last + Span(1)).ceil_to(Span::from_days(1)).since(Time(0))
}

fn read(path: &Path) -> Result<Trace, BadInput> {
    trace::read(path, None)
}

/// A span of time as people write it: `45s`, `10m`, `1h`, `7d`.
pub(super) fn span(text: &str) -> Result<Span, BadInput> {
    let bad = || BadInput::new(format!("`{text}` is no span: write 45s, 10m, 1h or 7d"));
    let unit = text.chars().last().ok_or_else(bad)?;
    let ms = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(bad()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| bad())?;
    let ms = number.checked_mul(ms).filter(|ms| (1..=Span::from_days(3660).ms()).contains(ms));
    ms.map(Span).ok_or_else(bad)
}
