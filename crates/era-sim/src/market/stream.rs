//! A stream of bids, and the site that they are made to.
//!
//! A trace says what ran; a market needs what was asked for: by when, and what it is worth. Where
//! a trace does not say, [`Assume`] does. Nothing here knows how bids are decided.

use era_core::bid::{Bid, Request, Shape, Window};
use era_core::cluster::Rates;
use era_core::forecast::history::PastRequest;
use era_core::resources::{PerResource, Resources, WHOLE_GPU};
use era_core::units::{Money, Name, Span, Time, UserId};

use crate::BadInput;
use crate::trace::{Trace, TraceJob};

/// A core, in thousandths.
pub(super) const CORE: u64 = 1000;

/// What the cluster consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketCluster {
    /// Nodes of so many GPUs each.
    Gpus {
        /// GPUs in all.
        total: u32,
        /// GPUs of a node.
        per_node: u32,
    },
    /// So many units on one giant node. They are cores to the core, which has no other resource
    /// of which a node may have thousands.
    Units(u32),
}

impl MarketCluster {
    /// Refuses what the core could not hold.
    pub fn check(self) -> Result<(), BadInput> {
        let bad = |field: &str, problem: &str| Err(BadInput::new(problem).field(field));
        match self {
            MarketCluster::Gpus { total: 0, .. } => bad("--gpus", "give at least 1"),
            MarketCluster::Gpus { per_node, .. } if per_node == 0 || per_node > 32 => {
                bad("--gpus-per-node", "give 1 to 32")
            }
            MarketCluster::Gpus { total, per_node } if total % per_node != 0 => {
                bad("--gpus", "give a multiple of `--gpus-per-node`")
            }
            MarketCluster::Gpus { total, .. } if total > 1 << 20 => {
                bad("--gpus", "give at most 1048576")
            }
            MarketCluster::Units(units) if units == 0 || units > 1_000_000 => {
                bad("--units", "give 1 to 1000000")
            }
            _ => Ok(()),
        }
    }

    /// GPUs, or units.
    pub fn size(self) -> u32 {
        match self {
            MarketCluster::Gpus { total, .. } => total,
            MarketCluster::Units(units) => units,
        }
    }

    /// Base rates: one credit for a GPU and hour, or for a unit and minute.
    pub fn rates(self) -> Rates {
        let none = Money::ZERO;
        match self {
            MarketCluster::Gpus { .. } => Rates { cpu: none, memory: none, gpu: Money::credits(1) },
            MarketCluster::Units(_) => Rates { cpu: Money::credits(60), memory: none, gpu: none },
        }
    }

    /// What so many GPUs or units are to the core.
    pub fn units(self, size: u32) -> PerResource<u64> {
        match self {
            MarketCluster::Gpus { .. } => [0, 0, u64::from(size) * u64::from(WHOLE_GPU)],
            MarketCluster::Units(_) => [u64::from(size) * CORE, 0, 0],
        }
    }

    /// What a bid of density 1 for so much is worth.
    fn base_cost(self, size: u32, duration: Span) -> i128 {
        let per_hour = match self {
            MarketCluster::Gpus { .. } => i128::from(size) * 1_000_000,
            MarketCluster::Units(_) => i128::from(size) * 60_000_000,
        };
        per_hour * i128::from(duration.ms()) / 3_600_000
    }
}

/// What to assume where a trace does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Assume {
    /// Deadline, in durations after the submission.
    pub slack: f64,
    /// Value over cost at base rates: that of the nth job is the nth of these, round and round.
    pub densities: Vec<u32>,
}

impl Default for Assume {
    fn default() -> Assume {
        Assume { slack: 3.0, densities: vec![1, 2, 5, 10, 20] }
    }
}

/// One bid: so much, for so long, by then, at most for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceBid {
    /// When it is made.
    pub submitted: Time,
    /// Not to start before.
    pub earliest: Time,
    /// GPUs, or units.
    pub size: u32,
    pub duration: Span,
    pub deadline: Time,
    /// What it is worth.
    pub value: Money,
}

impl TraceBid {
    /// The window that it names.
    pub fn window(&self) -> Window {
        Window { earliest: self.earliest, deadline: self.deadline }
    }

    /// As the core wants it: up to a node's GPUs together, whole nodes above that.
    pub fn bid(&self, site: MarketCluster, user: UserId) -> Bid {
        let each = |cpu, gpus: u32| Resources { cpu, gpu: gpus * WHOLE_GPU, ..Default::default() };
        let (shape, each) = match site {
            MarketCluster::Units(_) => (Shape::gang(1), each(self.size * CORE as u32, 0)),
            MarketCluster::Gpus { per_node, .. } if self.size <= per_node => {
                (Shape::gang(1), each(0, self.size))
            }
            MarketCluster::Gpus { per_node, .. } if self.size.is_multiple_of(per_node) => {
                (Shape::gang(self.size / per_node), each(0, per_node))
            }
            MarketCluster::Gpus { .. } => (Shape::Gpus { total: self.size }, each(0, 1)),
        };
        let request = Request::new(shape, each, self.duration, self.window());
        Bid::single(user, request, self.value)
    }

    /// As a learner wants it.
    pub fn past(&self, site: MarketCluster, pool: &Name) -> PastRequest {
        PastRequest {
            pool: pool.clone(),
            units: site.units(self.size),
            duration: self.duration,
            window: self.window(),
            submitted: self.submitted,
            value: self.value,
        }
    }
}

/// A job that no scheduler could do anything about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverFits {
    /// What its trace calls it.
    pub job: Box<str>,
    pub why: String,
}

/// The bids that a trace makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BidStream {
    /// In order of submission.
    pub bids: Vec<TraceBid>,
    /// Jobs that make none.
    pub never_fit: Vec<NeverFits>,
}

impl From<Vec<TraceBid>> for BidStream {
    fn from(bids: Vec<TraceBid>) -> BidStream {
        BidStream { bids, never_fit: Vec::new() }
    }
}

/// The bids of a trace, its first second at `from`. Jobs that ask for nothing or for more than
/// there is make none, and are named.
pub fn of_trace(
    trace: &Trace,
    site: MarketCluster,
    assume: &Assume,
    from: Time,
) -> Result<BidStream, BadInput> {
    let mut stream = Vec::with_capacity(trace.jobs.len());
    let mut never_fit = Vec::new();
    for (nth, job) in trace.jobs.iter().enumerate() {
        let size = size(job, site);
        if size == 0 || size > site.size() {
            let why = match size {
                0 => "it asks for nothing that is priced here".to_owned(),
                _ => format!("it asks for {size} of {} in all", site.size()),
            };
            never_fit.push(NeverFits { job: job.id.clone(), why });
            continue;
        }
        let bad = |field: &str, problem: String| {
            Err(BadInput::new(format!("job {}: {problem}", job.id)).field(field))
        };
        let duration = Span::from_s(job.duration_s.max(1));
        let submitted = from + Span::from_s(job.submit_s.max(0));
        let deadline = match job.deadline_s {
            Some(deadline) => from + Span::from_s(deadline),
            None => submitted + Span((duration.ms() as f64 * assume.slack) as i64),
        };
        let value = match (job.value, &assume.densities[..]) {
            (Some(value), _) => i128::from(value),
            (None, []) => return bad("--densities", "its value is not known: give one".into()),
            (None, densities) => {
                let density = densities[nth % densities.len()];
                site.base_cost(size, duration) * i128::from(density)
            }
        };
        if value > i128::from(Money::MOST.0) {
            return bad("value", format!("{value} micro-credits are more than a bid may be worth"));
        }
        stream.push(TraceBid {
            submitted,
            earliest: submitted,
            size,
            duration,
            deadline,
            value: Money(value as i64),
        });
    }
    stream.sort_by_key(|asked| asked.submitted);
    Ok(BidStream { bids: stream, never_fit })
}

/// Whole GPUs, rounded up; where there are none, the trace's processors.
fn size(job: &TraceJob, site: MarketCluster) -> u32 {
    match (site, job.gpu_milli) {
        (MarketCluster::Units(_), 0) => job.cpu_milli.div_ceil(1000),
        (_, gpus) => gpus.div_ceil(1000),
    }
}
