//! `era sim place`: how much of a cluster's GPUs a placement rule manages to allocate.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use era_core::placement::Scorer;
use era_sim::place::{
    DEMANDS, Learned, PlacementExperiment, PlacementOutcome, PlacementPolicy, Summary, read_nodes,
    read_pods, run_seeds,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};

use crate::clock::instant;

/// Place pods drawn from a list on an empty cluster, and say how much of its GPUs they get
#[derive(Args)]
pub(crate) struct Place {
    /// The nodes: a table with the columns sn, cpu_milli, memory_mib, gpu, model
    #[arg(long, value_name = "FILE")]
    nodes: PathBuf,
    /// The pods to draw from: cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec
    #[arg(long, value_name = "FILE")]
    pods: PathBuf,
    /// The rule that chooses a node
    #[arg(long, default_value = "fgd", value_parser = PossibleValuesParser::new(PlacementPolicy::ALL.map(|(name, _)| name)))]
    policy: String,
    /// What fgd and least-stranded know of typical work: the whole list beforehand, or only what
    /// has arrived so far [default: list for fgd, as published; arrivals for least-stranded]
    #[arg(long)]
    typical: Option<Source>,
    /// How many seeds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// The first seed; the others follow it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=1 << 60))]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Where typical work is learned from.
#[derive(Clone, Copy, ValueEnum)]
enum Source {
    /// The whole list of pods
    List,
    /// The pods that have arrived so far
    Arrivals,
}

impl Place {
    pub(crate) fn run(self) -> Result<()> {
        let start = instant();
        let experiment = self.experiment()?;
        let seeds: Vec<u64> = (self.seed..self.seed + self.seeds).collect();
        let percents = self.seeds * u64::from(DEMANDS[DEMANDS.len() - 1]);
        let bar = ProgressBar::new(percents).with_style(ProgressStyle::with_template(
            "placing {bar:40} {percent} % · {elapsed} · {eta} left",
        )?);
        let outcomes = run_seeds(&experiment, &seeds, &|| bar.inc(1))?;
        bar.finish_and_clear();
        let report = PlaceReport::of(&outcomes);
        let text = if self.json {
            self.object(&experiment, &report, start.elapsed().as_secs_f64()).to_string()
        } else {
            self.table(&experiment, &report, start.elapsed().as_secs_f64())
        };
        #[allow(clippy::print_stdout)] // the report is what the command is for
        {
            println!("{text}");
        }
        Ok(())
    }

    fn experiment(&self) -> Result<PlacementExperiment> {
        let unknown = || era_sim::BadInput::new("no such policy").field("policy");
        let policy = PlacementPolicy::named(&self.policy).ok_or_else(unknown)?;
        let learned = match (self.typical, policy) {
            (Some(Source::List), _) => Learned::FromList,
            (Some(Source::Arrivals), _) | (None, PlacementPolicy::Core(Scorer::LeastStranded)) => {
                Learned::FromArrivals
            }
            (None, _) => Learned::FromList,
        };
        let (nodes, pods) = (read_nodes(&self.nodes)?, read_pods(&self.pods)?);
        Ok(PlacementExperiment { nodes, pods, policy, learned })
    }

    fn object(&self, experiment: &PlacementExperiment, report: &PlaceReport, wall_s: f64) -> Value {
        let mut object = Map::new();
        let mut put = |key: String, value: Value| object.insert(key, value);
        put("policy".into(), json!(self.policy));
        put("typical".into(), json!(source(experiment)));
        put("seeds".into(), json!(self.seeds));
        put("first_seed".into(), json!(self.seed));
        put("nodes".into(), json!(experiment.nodes.len()));
        put("pods".into(), json!(experiment.pods.len()));
        put("arrivals".into(), json!(rounded(report.arrivals, 1)));
        put("dropped".into(), json!(rounded(report.dropped, 1)));
        for (demand, summary) in DEMANDS.iter().zip(&report.allocated) {
            put(format!("allocated_{demand}"), json!(rounded(summary.mean, 3)));
            put(format!("spread_{demand}"), json!(rounded(summary.deviation, 3)));
            put(format!("min_{demand}"), json!(rounded(summary.min, 3)));
            put(format!("max_{demand}"), json!(rounded(summary.max, 3)));
        }
        put("decision_us".into(), json!(rounded(report.decision_us, 1)));
        put("wall_s".into(), json!(rounded(wall_s, 2)));
        Value::Object(object)
    }

    fn table(&self, experiment: &PlacementExperiment, report: &PlaceReport, wall_s: f64) -> String {
        let mut text = format!(
            "{} on {} nodes, {} pods to draw from, {} seeds from {}\n\n",
            self.policy,
            experiment.nodes.len(),
            experiment.pods.len(),
            self.seeds,
            self.seed,
        );
        text += "demand   allocated   deviation     least      most\n";
        for (demand, s) in DEMANDS.iter().zip(&report.allocated) {
            text += &format!(
                "{demand:>4} %   {:>7.2} %   {:>9.2}   {:>7.2}   {:>7.2}\n",
                s.mean, s.deviation, s.min, s.max
            );
        }
        text + &format!(
            "\n{:.0} pods arrived and {:.0} fitted nowhere, on average; {:.0} µs a decision, {wall_s:.1} s in all",
            report.arrivals, report.dropped, report.decision_us
        )
    }
}

/// What is known of typical work, where the rule asks.
fn source(experiment: &PlacementExperiment) -> Option<&'static str> {
    let PlacementPolicy::Core(Scorer::Fgd | Scorer::LeastStranded) = experiment.policy else {
        return None;
    };
    Some(match experiment.learned {
        Learned::FromList => "list",
        Learned::FromArrivals => "arrivals",
    })
}

/// Means over the seeds.
struct PlaceReport {
    allocated: [Summary; DEMANDS.len()],
    arrivals: f64,
    dropped: f64,
    decision_us: f64,
}

impl PlaceReport {
    fn of(outcomes: &[PlacementOutcome]) -> PlaceReport {
        let summary = |figure: &dyn Fn(&PlacementOutcome) -> f64| {
            Summary::of(&outcomes.iter().map(figure).collect::<Vec<f64>>())
        };
        PlaceReport {
            allocated: std::array::from_fn(|index| summary(&|o| o.allocated[index])),
            arrivals: summary(&|o| o.arrivals as f64).mean,
            dropped: summary(&|o| o.dropped as f64).mean,
            decision_us: summary(&|o| o.wall_s * 1e6 / o.arrivals.max(1) as f64).mean,
        }
    }
}

fn rounded(figure: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (figure * scale).round() / scale
}
