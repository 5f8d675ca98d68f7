//! What a trace is run on, and by which rules.

use era_core::placement::Scorer;
use era_core::queue::PolicyRule;
use era_core::queue::formula::Formula;
use era_core::settings::Backfill;

use crate::BadInput;
use crate::trace::TraceJob;

/// What a trace is run on, and by which rules.
#[derive(Clone, Debug)]
pub struct Setup {
    pub machines: Machines,
    /// Who goes first.
    pub policy: PolicyRule,
    /// How jobs may start around what waits ahead of them.
    pub backfill: Backfill,
    /// How long jobs are said to run: the limit that is enforced.
    pub estimates: StatedDurations,
    /// How nodes are chosen.
    pub scorer: Scorer,
    /// Whether every job may be stopped and started again, its work kept.
    pub preempt: bool,
    /// Whether jobs that waited for long go first.
    pub ageing: bool,
    /// In which order things happen at an instant.
    pub like: Like,
    /// What a machine's resources weigh in its utilisation.
    pub ratios: UtilisationWeights,
}

/// The machines of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Machines {
    /// So many GPUs without any nodes: one giant machine, on which anything fits that is free.
    Pool {
        gpus: u32,
    },
    Nodes(Vec<MachineSetup>),
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSetup {
    pub gpus: u32,
    /// Its processors, in thousandths.
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// The model of its GPUs.
    pub model: Option<String>,
}

impl Machines {
    /// As many nodes as so many GPUs need, all alike.
    pub fn nodes(gpus: u32, gpus_per_node: u32) -> Result<Machines, BadInput> {
        let problem = |field: &str, problem: String| Err(BadInput::new(problem).field(field));
        if gpus == 0 {
            return problem("--gpus", "give at least 1".into());
        }
        if gpus_per_node == 0 || gpus_per_node > 32 {
            return problem("--gpus-per-node", "give 1 to 32".into());
        }
        if !gpus.is_multiple_of(gpus_per_node) {
            let problem_text = format!("{gpus} GPUs are no whole nodes of {gpus_per_node}");
            return problem("--gpus", problem_text);
        }
        // A job of a trace that names processors or memory is not to be limited by them where
        // only GPUs are given.
        let machine = MachineSetup {
            gpus: gpus_per_node,
            cpu_milli: 1_000_000,
            memory_mib: 1 << 30,
            model: None,
        };
        Ok(Machines::Nodes(vec![machine; (gpus / gpus_per_node) as usize]))
    }

    /// How many machines there are.
    pub fn count(&self) -> usize {
        match self {
            Machines::Pool { .. } => 1,
            Machines::Nodes(nodes) => nodes.len(),
        }
    }

    pub fn gpus(&self) -> u64 {
        match self {
            Machines::Pool { gpus } => u64::from(*gpus),
            Machines::Nodes(nodes) => nodes.iter().map(|node| u64::from(node.gpus)).sum(),
        }
    }
}

/// How long jobs are said to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedDurations {
    /// As long as they do.
    Exact,
    /// The smallest of a few usual limits that covers it.
    Bucket,
    /// As the trace has it, or as long as they do where it has nothing or less.
    Stated,
    /// As `Stated` where the trace says how long every job was to run, else as `Bucket`; and how
    /// long each one takes is predicted from those that ended before it came. Limits bind,
    /// predictions rank.
    Predicted,
}

/// The limits that people usually give, in seconds: ten minutes to eight weeks.
pub const BUCKETS_S: [i64; 13] = [
    600, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 172_800, 345_600, 604_800, 1_209_600,
    2_419_200, 4_838_400,
];

impl StatedDurations {
    /// The limit of a job, never less than it runs.
    pub fn limit_s(self, job: &TraceJob) -> i64 {
        let bucket = || BUCKETS_S.into_iter().find(|b| *b >= job.duration_s);
        match self {
            StatedDurations::Exact => job.duration_s,
            StatedDurations::Bucket => bucket().unwrap_or(job.duration_s),
            StatedDurations::Stated => {
                job.stated_s.map_or(job.duration_s, |s| s.max(job.duration_s))
            }
            StatedDurations::Predicted => match job.stated_s {
                Some(stated) => stated.max(job.duration_s),
                None => bucket().unwrap_or(job.duration_s),
            },
        }
    }
}

/// In which order things happen at an instant. The names are of simulators whose order it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Like {
    /// Our own: all ends, then all submissions, then one pass.
    #[default]
    Era,
    /// Submissions first, then ends, with a pass after each of them.
    Pyss,
    /// As our own.
    Accasim,
    /// As our own; the moments at which service is looked at are computed in its own way.
    Tiresias,
    /// As our own.
    Helios,
}

/// What a machine's resources weigh in its utilisation. They sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UtilisationWeights {
    pub cpu: f64,
    pub gpu: f64,
    pub memory: f64,
}

impl Default for UtilisationWeights {
    /// GPUs alone: most traces know nothing else.
    fn default() -> UtilisationWeights {
        UtilisationWeights { cpu: 0.0, gpu: 1.0, memory: 0.0 }
    }
}

/// The policy of a name: one of the core's own, or `formula:` and an expression.
pub fn policy_named(name: &str) -> Result<PolicyRule, BadInput> {
    let known =
        "fifo, sjf, srtf, las, gittins, fair-share, priority, or `formula:` and an expression";
    let unknown = || BadInput::new(format!("no policy `{name}`: give {known}")).field("--policy");
    if let Some(text) = name.strip_prefix("formula:") {
        let formula = Formula::parse(text)
            .map_err(|error| BadInput::new(error.to_string()).field("--policy"))?;
        return Ok(PolicyRule::Priority { formula });
    }
    let name = era_core::units::Name::new(name).map_err(|_| unknown())?;
    let policies = era_core::queue::Policies::default();
    let rule = policies.current(&name).map_err(|_| unknown())?;
    Ok(PolicyRule::clone(rule))
}
