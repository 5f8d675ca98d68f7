//! What runs looked like, for people: figures in words, a table of starts, and a page of charts.
//!
//! A run is digested into a bounded number of points ([`Digest`]) as soon as it is over, so that
//! many runs of many jobs fit in memory and in a page. The page ([`page()`]) is one file that
//! needs no network and no library. How a run came about is not known here.

mod gantt;
mod headline;
mod page;
mod series;
mod starts;
#[cfg(test)]
mod tests;
mod words;

use serde::Serialize;

pub use gantt::Gantt;
pub use headline::{Headline, headline};
pub use page::page;
pub use starts::write_starts;
pub use words::{backfill_name, count_words, percent_words, span_words};

use crate::measure::{Parties, RunFigures, fared, measure};
use crate::run::{Setup, TraceRun};
use crate::trace::Trace;

/// Charts over time have so many points.
pub const POINTS: usize = 240;
/// How many groups or users are told apart; the others are too small to matter.
const PARTIES_MAX: usize = 12;

/// A run, small enough to draw.
#[derive(Clone, Debug, Serialize)]
pub struct Digest {
    /// What tells it from the others.
    pub name: String,
    pub measures: RunFigures,
    /// How long one point of the charts over time is, in seconds.
    pub step_s: f64,
    /// The part of the cluster that was in use, by the platform's formula.
    pub utilisation: Vec<f64>,
    /// How many jobs waited.
    pub waiting: Vec<f64>,
    /// What was delivered in time so far, in credits, where the trace has values.
    pub value: Option<Vec<f64>>,
    /// What queue work would have paid so far, in credits, where the trace has values.
    pub revenue: Option<Vec<f64>>,
    /// Waits in seconds, and the share of jobs that waited at most so long.
    pub waits: Vec<(f64, f64)>,
    /// How groups or users fared, the largest first.
    pub parties: Vec<DigestParty>,
    /// Whether these are groups or users.
    pub parties_are: Parties,
    /// Who was where and when.
    pub gantt: Gantt,
}

/// A group or a user in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DigestParty {
    /// What the trace calls it.
    pub name: String,
    /// Its jobs that ended.
    pub jobs: u64,
    /// The mean of duration / completion time.
    pub service: f64,
}

/// Digests a run whose intervals were kept. `nodes` are the names of the machines.
pub fn digest(
    name: String,
    trace: &Trace,
    setup: &Setup,
    run: &TraceRun,
    nodes: &[Box<str>],
) -> Digest {
    let measures = measure(trace, setup, run);
    let axis = series::Axis::new(measures.makespan_s, POINTS);
    let values = series::values(trace, run, axis);
    let (value, revenue) = values.unzip();
    Digest {
        name,
        step_s: axis.step_s,
        utilisation: series::utilisation(setup, run, axis),
        waiting: series::waiting(trace, run, axis),
        value,
        revenue,
        waits: series::waits(trace, run),
        parties: parties(trace, run),
        parties_are: Parties::of(trace),
        gantt: gantt::gantt(trace, setup, run, nodes, measures.makespan_s),
        measures,
    }
}

/// What the trace calls a group or a user.
fn party_name(trace: &Trace, party: Option<u32>) -> String {
    let names = match Parties::of(trace) {
        Parties::Groups => &trace.groups,
        Parties::Users => &trace.users,
    };
    let named = party.and_then(|party| names.name(party));
    named.map_or_else(|| "without a name".to_owned(), str::to_owned)
}

fn parties(trace: &Trace, run: &TraceRun) -> Vec<DigestParty> {
    let mut fared = fared(trace, run);
    fared.sort_by_key(|fared| (std::cmp::Reverse(fared.jobs), fared.party));
    fared.truncate(PARTIES_MAX);
    let party = |fared: &crate::measure::GroupFigures| DigestParty {
        name: party_name(trace, fared.party),
        jobs: fared.jobs,
        service: round(fared.service, 4),
    };
    fared.iter().map(party).collect()
}

/// A number with so many digits after the point: a page has no use for more.
fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
