//! The most that any scheduler could have attained, had it known all bids in advance.
//!
//! Every bid may be served in part and in pieces, on any share of the site: a relaxation that no
//! real schedule can beat. Solved exactly by [`era_core::forecast::relaxation::solve`]: bids are
//! let in by falling density, each class by a maximum flow that may move what is in already. With
//! n bids, s slots and E pairs of a bid and a slot of its window, a class takes at most as many
//! rounds as its longest chain of moves, each O(E); a few rounds in practice.
//!
//! A coarser slot keeps it a bound: within a slot a bid may use at most its width for the part of
//! the slot that its window covers, which every finer schedule does too.

use std::collections::BTreeMap;

use era_core::forecast::history::{DemandHistory, PARTS_MAX, PastPool};
use era_core::forecast::relaxation;
use era_core::units::{Span, Time};

use super::driver::pool;
use super::stream::{MarketCluster, TraceBid};
use crate::BadInput;

/// An upper bound on value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    pub value: u128,
    /// What was asked for in all, in micro-credits.
    pub asked: u128,
    /// How many bids.
    pub jobs: usize,
    /// The slot that it was solved on.
    pub slot: Span,
}

impl Bound {
    /// The share of what was asked for.
    pub fn share(&self) -> f64 {
        if self.asked == 0 { 0.0 } else { self.value as f64 / self.asked as f64 }
    }
}

/// The bound of a stream, on slots of `slot` or the shortest multiple of it that the windows of
/// all bids leave affordable.
pub fn bound(stream: &[TraceBid], site: MarketCluster, slot: Span) -> Result<Bound, BadInput> {
    let asked = stream.iter().map(|a| u128::from(a.value.0.unsigned_abs())).sum();
    let slot = affordable(stream, slot);
    let history = history(stream, site, slot);
    let solution = relaxation::solve(&history).map_err(|e| BadInput::new(e.to_string()))?;
    Ok(Bound { value: solution.value, asked, jobs: stream.len(), slot })
}

/// The shortest of some slots that keeps the pairs of bid and slot below what a history may have.
fn affordable(stream: &[TraceBid], slot: Span) -> Span {
    let pairs = |slot: Span| -> i64 {
        stream.iter().map(|a| a.deadline.since(a.submitted).ms() / slot.ms() + 2).sum()
    };
    let multiples = [1, 2, 5, 10, 15, 20, 30, 60].map(|n| Span(slot.ms() * n));
    let fits = |slot: &Span| pairs(*slot) <= PARTS_MAX as i64;
    multiples.into_iter().find(fits).unwrap_or(multiples[7])
}

/// A stream as a learner wants it.
pub(super) fn history(stream: &[TraceBid], site: MarketCluster, slot: Span) -> DemandHistory {
    let name = pool();
    let from = stream.first().map_or(Time(0), |a| a.submitted);
    let to = stream.last().map_or(Time(0), |a| a.submitted + Span(1));
    let reach = stream.iter().map(|a| a.deadline.since(a.submitted)).max();
    let capacity = site.units(site.size());
    DemandHistory {
        slot,
        reach: reach.unwrap_or(slot).max(slot),
        from,
        to,
        requests: stream.iter().map(|a| a.past(site, &name)).collect(),
        pools: BTreeMap::from([(name, PastPool { rates: site.rates(), capacity })]),
    }
}
