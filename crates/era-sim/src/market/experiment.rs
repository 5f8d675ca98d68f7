//! An experiment as a value, and the two whose parameters are fixed, so that results can be
//! compared.

use era_core::units::{Span, Time};

use super::bound::{Bound, bound};
use super::stream::{Assume, BidStream, MarketCluster, NeverFits, TraceBid, of_trace};
use crate::BadInput;
use crate::trace::Trace;
use crate::workload;

const MINUTE: Span = Span::from_min(1);
/// What a GPU and hour is worth in the second experiment, in credits, by the job's number.
const WORTH: [i64; 5] = [1, 2, 5, 10, 20];

/// What is contested: bids, and where they are made.
#[derive(Clone, Debug)]
pub struct MarketExperiment {
    pub site: MarketCluster,
    /// Earlier bids, to learn from; all before the first of `stream`.
    pub past: Vec<TraceBid>,
    /// When history begins.
    pub from: Time,
    /// The bids, in order of submission.
    pub stream: Vec<TraceBid>,
    /// The slot of the market.
    pub slot: Span,
    /// How far ahead the market reaches.
    pub horizon: Span,
    /// The most that could have been attained.
    pub bound: Bound,
    /// Jobs of the trace that could make no bid.
    pub never_fit: Vec<NeverFits>,
}

/// The paper's first experiment: a day on 2,000 units, with the same day of another seed before
/// it to learn from.
pub fn paper(seed: u64) -> Result<MarketExperiment, BadInput> {
    let site = MarketCluster::Units(2000);
    let day = |seed, from| of_trace(&workload::paper(seed), site, &Assume::default(), from);
    let past = day(seed.wrapping_add(1_000_003), Time(0))?.bids;
    let BidStream { bids: stream, never_fit } = day(seed, Time(0) + Span::from_days(1))?;
    let bound = bound(&stream, site, MINUTE)?;
    let horizon = Span::from_days(1);
    Ok(MarketExperiment {
        site,
        past,
        from: Time(0),
        stream,
        slot: MINUTE,
        horizon,
        bound,
        never_fit,
    })
}

/// The second: a trace on 800 GPUs in nodes of 8. What was submitted in the first `learn` of it
/// only teaches, and the rest meets an empty cluster.
pub fn chronus(mut trace: Trace, learn: Span) -> Result<MarketExperiment, BadInput> {
    let site = MarketCluster::Gpus { total: 800, per_node: 8 };
    for job in &mut trace.jobs {
        let number: usize = job.id.parse().map_err(|_| {
            let problem = format!("`{}` is no number, which a job's value goes by here", job.id);
            BadInput::new(problem).field("job_id")
        })?;
        let gpu_s = i64::from(job.gpu_milli / 1000) * job.duration_s;
        job.value = Some(gpu_s * WORTH[number % WORTH.len()] * 1_000_000 / 3600);
    }
    let jobs = of_trace(&trace, site, &Assume::default(), Time(0))?;
    contest(site, jobs, learn, MINUTE)
}

/// Bids of which those of the first `learn` only teach.
pub fn contest(
    site: MarketCluster,
    bids: BidStream,
    learn: Span,
    slot: Span,
) -> Result<MarketExperiment, BadInput> {
    let BidStream { bids: jobs, never_fit } = bids;
    let split = jobs.partition_point(|asked| asked.submitted < Time(0) + learn);
    let (past, stream) = (jobs[..split].to_vec(), jobs[split..].to_vec());
    if stream.is_empty() {
        return Err(BadInput::new("no bid is left after what is learned from").field("--learn"));
    }
    let bound = bound(&stream, site, slot)?;
    // Far enough for every window.
    let reach = stream.iter().map(|asked| asked.deadline.since(asked.submitted)).max();
    let horizon = Span(reach.unwrap_or(slot).ms() + slot.ms()).max(Span::from_days(1));
    Ok(MarketExperiment { site, past, from: Time(0), stream, slot, horizon, bound, never_fit })
}
