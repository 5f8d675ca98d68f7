//! What `era sim run` and `era sim compare` have in common: a trace, a cluster, and the rules of a
//! run. Options become a [`Prepared`] experiment, or bad input; nothing runs here.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use era_core::placement::Scorer;
use era_core::queue::PolicyRule;
use era_core::settings::Backfill;
use era_sim::BadInput;
use era_sim::faults::{Faults, span_s};
use era_sim::report::{count_words, span_words};
use era_sim::run::{
    Like, Machines, Options, Setup, UtilisationWeights, policy_named, read_cluster,
};
use era_sim::trace::{self, Trace, TraceFormat};
use serde_json::{Value, json};

use crate::names::{BackfillName, EstimatesName};

#[derive(clap::Args)]
pub(super) struct Experiment {
    /// The workload, compressed or not
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Its format: era, swf, philly, helios, alibaba or chronus [default: recognised]
    #[arg(long, value_name = "FORMAT", value_parser = TraceFormat::from_str)]
    format: Option<TraceFormat>,
    /// The cluster as a table: name,gpus,cpus,mem_gb,model or sn,cpu_milli,memory_mib,gpu,model or
    /// vc,node num (of 8 GPUs)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gpus", "gpus_per_node"])]
    cluster: Option<PathBuf>,
    /// A cluster of so many GPUs [default: as many as make the load 0.9]
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// GPUs of each node
    #[arg(long, value_name = "N", default_value_t = 8)]
    gpus_per_node: u32,
    /// How long jobs are said to run
    #[arg(long, value_enum, default_value_t = EstimatesName::Stated)]
    estimates: EstimatesName,
    /// How nodes are chosen [default: consolidate]
    #[arg(long, value_enum)]
    placement: Option<Placement>,
    /// Do things at an instant in the order of another simulator; no ageing, and its placement
    /// and backfill by default
    #[arg(long, value_enum)]
    like: Option<LikeName>,
    /// Let jobs be stopped, their work saved, for others that go first [default: for srtf and las]
    #[arg(long, conflicts_with = "no_preempt")]
    preempt: bool,
    /// Never stop a job for another
    #[arg(long)]
    no_preempt: bool,
    /// Do not let jobs go first that waited for a day
    #[arg(long)]
    no_ageing: bool,
    /// What resources weigh in a machine's utilisation; they sum to 1
    #[arg(long, value_name = "RATIOS", default_value = "cpu=0,gpu=1,memory=0")]
    ratios: String,
    /// What goes wrong: any of mtbf=7d,repair=2h,seed=1,stragglers=0.05,slowdown=2,misjudged=3,
    /// bursts=4
    #[arg(long, value_name = "FAULTS")]
    faults: Option<String>,
    /// How often jobs save their work, such as 1h [default: only when they make room]
    #[arg(long, value_name = "SPAN", requires = "faults")]
    checkpoint_every: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Placement {
    /// No nodes: one giant machine
    Pool,
    /// As few nodes as possible
    Consolidate,
    /// The node with least left
    BestFit,
    /// The node whose free GPUs become least unusable
    Fgd,
    /// The first node that fits
    FirstFit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LikeName {
    Pyss,
    Accasim,
    Tiresias,
    Helios,
}

impl From<LikeName> for Like {
    fn from(name: LikeName) -> Like {
        match name {
            LikeName::Pyss => Like::Pyss,
            LikeName::Accasim => Like::Accasim,
            LikeName::Tiresias => Like::Tiresias,
            LikeName::Helios => Like::Helios,
        }
    }
}

/// The name that a value has on the command line.
fn typed<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

/// An experiment that was read and checked.
pub(super) struct Prepared {
    pub(super) trace: Trace,
    pub(super) nodes: Vec<Box<str>>,
    pub(super) options: Options,
    pub(super) trace_name: String,
    setup: Setup,
    preempt: Option<bool>,
    estimates: String,
    placement: String,
    like: Option<String>,
    cluster: String,
    faults: Option<String>,
}

impl Experiment {
    /// Reads and checks everything.
    pub(super) fn prepare(&self) -> Result<Prepared, BadInput> {
        let options = self.options()?;
        let ratios = ratios(&self.ratios)?;
        let mut trace = trace::read(&self.trace, self.format)?;
        if let Some(faults) = &options.faults {
            trace = faults.with_bursts(trace);
        }
        let placement = self.placement.unwrap_or(match self.like {
            None | Some(LikeName::Helios) => Placement::Consolidate,
            Some(_) => Placement::Pool,
        });
        let cluster = self.cluster(&trace, ratios)?;
        let machines = match placement {
            Placement::Pool if ratios != UtilisationWeights::default() => {
                let problem = "a pool has GPUs alone: leave it at gpu=1";
                return Err(BadInput::new(problem).field("--ratios"));
            }
            Placement::Pool => {
                let gpus = u32::try_from(cluster.machines.gpus()).unwrap_or(u32::MAX);
                Machines::Pool { gpus }
            }
            _ => cluster.machines,
        };
        let scorer = match placement {
            Placement::Pool | Placement::Consolidate => Scorer::Consolidate,
            Placement::BestFit => Scorer::BestFit,
            Placement::Fgd => Scorer::Fgd,
            Placement::FirstFit => Scorer::FirstFit,
        };
        let setup = Setup {
            machines,
            policy: PolicyRule::Fifo,
            backfill: Backfill::None,
            estimates: self.estimates.into(),
            scorer,
            preempt: false,
            ageing: self.like.is_none() && !self.no_ageing,
            like: self.like.map_or(Like::Era, Like::from),
            ratios,
        };
        let preempt = (self.preempt || self.no_preempt).then_some(self.preempt);
        Ok(Prepared {
            trace,
            nodes: if placement == Placement::Pool { vec!["pool".into()] } else { cluster.names },
            options,
            trace_name: self.trace.display().to_string(),
            setup,
            preempt,
            estimates: typed(self.estimates),
            placement: typed(placement),
            like: self.like.map(typed),
            cluster: cluster.words,
            faults: self.faults.clone(),
        })
    }

    fn options(&self) -> Result<Options, BadInput> {
        let every = self.checkpoint_every.as_deref().map(span_s).transpose();
        let bad = |problem: String| BadInput::new(problem).field("--checkpoint-every");
        Ok(Options {
            faults: self.faults.as_deref().map(Faults::parse).transpose()?,
            checkpoint_every_s: every.map_err(bad)?,
            ..Options::default()
        })
    }

    fn cluster(&self, trace: &Trace, ratios: UtilisationWeights) -> Result<Cluster, BadInput> {
        let unweighed = ratios.cpu == 0.0 && ratios.memory == 0.0;
        let needs = |problem: &str| Err(BadInput::new(problem).field("--ratios"));
        if let Some(path) = &self.cluster {
            let file = read_cluster(path)?;
            if !unweighed && !file.knows_cpu_and_memory {
                return needs("the --cluster says nothing of processors and memory: gpu=1 is left");
            }
            let machines = file.machines();
            let words = format!(
                "{} nodes with {} GPUs, from {}",
                count_words(file.names.len() as u64),
                count_words(machines.gpus()),
                path.display()
            );
            return Ok(Cluster { machines, names: file.names, words });
        }
        if !unweighed {
            return needs("processors and memory are known of a --cluster alone: gpu=1 is left");
        }
        let (gpus, chosen) = match self.gpus {
            Some(gpus) => (gpus, ""),
            None => (enough_gpus(trace, self.gpus_per_node), ", which makes the load at most 0.9"),
        };
        // Nodes are of no consequence to a pool, and need not be whole there.
        let machines = match self.placement {
            Some(Placement::Pool) if gpus > 0 => Machines::Pool { gpus },
            _ => Machines::nodes(gpus, self.gpus_per_node)?,
        };
        let names: Vec<Box<str>> = (0..machines.count()).map(|n| format!("n{n}").into()).collect();
        let words = match &machines {
            Machines::Pool { .. } => {
                format!("{} GPUs without nodes{chosen}", count_words(gpus.into()))
            }
            Machines::Nodes(nodes) => {
                let count = count_words(nodes.len() as u64);
                let nodes = if nodes.len() == 1 { "node" } else { "nodes" };
                format!("{count} {nodes} of {} GPUs{chosen}", self.gpus_per_node)
            }
        };
        Ok(Cluster { machines, names, words })
    }

    /// How to backfill where nobody says: as the other simulator does, or EASY.
    pub(super) fn default_backfill(&self) -> BackfillName {
        if self.like.is_some() { BackfillName::None } else { BackfillName::Easy }
    }
}

struct Cluster {
    machines: Machines,
    names: Vec<Box<str>>,
    words: String,
}

/// The smallest cluster of whole nodes on which the trace is a load of at most 0.9 while jobs are
/// submitted, and on which its widest job fits.
fn enough_gpus(trace: &Trace, gpus_per_node: u32) -> u32 {
    const LOAD: f64 = 0.9;
    let span_s = trace.jobs.last().map_or(1, |job| job.submit_s.max(1)) as f64;
    let work: f64 =
        trace.jobs.iter().map(|job| f64::from(job.gpu_milli) / 1e3 * job.duration_s as f64).sum();
    let widest = trace.jobs.iter().map(|job| job.gpu_milli.div_ceil(1000)).max().unwrap_or(1);
    let gpus = (work / span_s / LOAD).ceil().clamp(1.0, 1e6) as u32;
    gpus.max(widest).next_multiple_of(gpus_per_node.max(1))
}

impl Prepared {
    /// The rules of a run under a policy.
    pub(super) fn setup(&self, policy: &str, backfill: BackfillName) -> Result<Setup, BadInput> {
        let policy = policy_named(policy)?;
        let by_nature = matches!(policy, PolicyRule::Srtf | PolicyRule::Las { .. });
        Ok(Setup {
            policy,
            backfill: backfill.into(),
            preempt: self.preempt.unwrap_or(by_nature),
            ..self.setup.clone()
        })
    }

    pub(super) fn jobs(&self) -> u64 {
        self.trace.jobs.len() as u64
    }

    /// What was run, for programs.
    pub(super) fn about(&self) -> Value {
        let UtilisationWeights { cpu, gpu, memory } = self.setup.ratios;
        json!({
            "trace": self.trace_name,
            "trace_jobs": self.trace.jobs.len(),
            "skipped": self.trace.skipped,
            "nodes": match &self.setup.machines {
                Machines::Pool { .. } => 0,
                Machines::Nodes(nodes) => nodes.len(),
            },
            "gpus": self.setup.machines.gpus(),
            "estimates": self.estimates,
            "placement": self.placement,
            "like": self.like,
            "ageing": self.setup.ageing,
            "ratios": { "cpu": cpu, "gpu": gpu, "memory": memory },
            "faults": self.faults,
            "checkpoint_every_s": self.options.checkpoint_every_s,
        })
    }

    /// What was run, for people.
    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![
            ("trace", format!("{}, {} jobs", self.trace_name, count_words(self.jobs()))),
            ("cluster", self.cluster.clone()),
            ("placement", self.placement.clone()),
            ("estimates", self.estimates.clone()),
            ("ageing", if self.setup.ageing { "on" } else { "off" }.to_owned()),
        ];
        if self.trace.skipped > 0 {
            let because = self.trace.skipped_because.iter();
            let because: Vec<String> = because.map(|(why, n)| format!("{n}: {why}")).collect();
            facts.push(("left out", because.join("; ")));
        }
        facts.extend(self.like.clone().map(|like| ("like", like)));
        facts.extend(self.faults.clone().map(|faults| ("faults", faults)));
        let every = self.options.checkpoint_every_s;
        facts.extend(every.map(|s| ("checkpoints", format!("every {}", span_words(s as f64)))));
        facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
    }

    /// Refuses to speak of a run in which nothing could run.
    pub(super) fn refuse_empty(&self, run: &era_sim::run::TraceRun) -> Result<(), BadInput> {
        match run.never_fit.first() {
            Some((index, why)) if run.never_fit.len() == self.trace.jobs.len() => {
                let job = &self.trace.jobs[*index];
                let problem = format!(
                    "none of the {} jobs fits on the cluster; the first, `{}`, asks for {} GPUs: {why}",
                    self.trace.jobs.len(),
                    job.id,
                    f64::from(job.gpu_milli) / 1000.0
                );
                Err(BadInput::new(problem)
                    .file(std::path::Path::new(&self.trace_name))
                    .field("gpus"))
            }
            _ => Ok(()),
        }
    }
}

/// Reads `cpu=0.2,gpu=0.7,memory=0.1`; what is not named weighs nothing.
fn ratios(text: &str) -> Result<UtilisationWeights, BadInput> {
    let bad = |problem: String| BadInput::new(problem).field("--ratios");
    let mut ratios = UtilisationWeights { cpu: 0.0, gpu: 0.0, memory: 0.0 };
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let ratio: Option<f64> = value.trim().parse().ok().filter(|r| (0.0..=1.0).contains(r));
        let Some(ratio) = ratio else {
            return Err(bad(format!("give pairs such as gpu=0.7, each 0 to 1, not `{pair}`")));
        };
        match name.trim() {
            "cpu" => ratios.cpu = ratio,
            "gpu" => ratios.gpu = ratio,
            "memory" => ratios.memory = ratio,
            other => return Err(bad(format!("no resource `{other}`: give cpu, gpu and memory"))),
        }
    }
    let sum = ratios.cpu + ratios.gpu + ratios.memory;
    if (sum - 1.0).abs() > 1e-9 {
        return Err(bad(format!("they sum to {sum}: make it 1")));
    }
    Ok(ratios)
}

#[cfg(test)]
mod tests {

    use super::*;
    use era_sim::trace::TraceJob;

    #[test]
    fn ratios_sum_to_one() {
        let parsed = ratios("cpu=0.2,gpu=0.7,memory=0.1").expect("ratios");
        assert_eq!(parsed, UtilisationWeights { cpu: 0.2, gpu: 0.7, memory: 0.1 });
        for wrong in ["gpu=0.5", "gpu=2", "gpu", "disk=1", "", "gpu=nan"] {
            assert!(ratios(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_chosen_cluster_is_whole_nodes_and_holds_the_widest_job() {
        let job = |submit_s, gpu_milli| TraceJob {
            submit_s,
            gpu_milli,
            duration_s: 100,
            ..TraceJob::default()
        };
        let trace = Trace { jobs: vec![job(0, 1000), job(1000, 20_000)], ..Trace::default() };
        assert_eq!(enough_gpus(&trace, 8), 24);
        let busy = Trace { jobs: (0..100).map(|n| job(n, 1000)).collect(), ..Trace::default() };
        // 10,000 GPU-seconds in 99 seconds at a load of 0.9.
        assert_eq!(enough_gpus(&busy, 1), 113);
    }
}
