//! The search: draw candidates, keep the best, draw nearer to them (the cross-entropy method).
//!
//! Candidates are drawn one after the other from one seed and run on all cores; their results
//! are looked at in the order in which they were drawn. So the same seed finds the same, on any
//! number of cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::candidate::{MarketPoint, PolicyCandidate};
use crate::BadInput;
use crate::seeded::Seeded;

/// How a search goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSpec {
    /// The same seed finds the same.
    pub seed: u64,
    /// How many candidates are run.
    pub budget: usize,
    /// How many threads run them.
    pub threads: usize,
}

/// Candidates in one round.
const ROUND: usize = 16;
/// Those of a round, and the best so far, that the next round is drawn around.
const ELITES: usize = 4;
/// How much of the old distribution is kept from round to round.
const INERTIA: f64 = 0.3;
/// No weight is ever held for certain.
const DEVIATION_MIN: f64 = 0.05;

/// A search under way.
pub struct PolicySearch {
    seeded: Seeded,
    means: Vec<f64>,
    deviations: Vec<f64>,
    weights: usize,
    /// The chance of each kind of market, if the market is searched.
    kinds: Option<[f64; MarketPoint::KINDS]>,
    /// The best so far: objective, candidate, and what it was drawn from.
    best: Vec<(f64, PolicyCandidate, Drawn)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    point: Vec<f64>,
    kind: usize,
}

impl PolicySearch {
    /// A search over so many weights, and the market if prices decide anything.
    pub fn new(seed: u64, weights: usize, market: bool) -> PolicySearch {
        // Floor, level and spread of prices, as logarithms: around half the base rate, the base
        // rate, and a tenfold spread.
        let prices: &[(f64, f64)] =
            if market { &[(-0.7, 0.7), (0.0, 0.7), (2.3, 0.7)] } else { &[] };
        let mut means = vec![0.0; weights];
        let mut deviations = vec![1.0; weights];
        means.extend(prices.iter().map(|(mean, _)| mean));
        deviations.extend(prices.iter().map(|(_, deviation)| deviation));
        let kinds = market.then_some([1.0 / MarketPoint::KINDS as f64; MarketPoint::KINDS]);
        PolicySearch {
            seeded: Seeded::new(seed),
            means,
            deviations,
            weights,
            kinds,
            best: Vec::new(),
        }
    }

    /// Tries candidates until the budget is used, and gives the best with its objective.
    pub fn run(
        mut self,
        spec: SearchSpec,
        score: &(dyn Fn(&PolicyCandidate) -> Result<f64, BadInput> + Sync),
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(PolicyCandidate, f64), BadInput> {
        let mut tried = 0;
        while tried < spec.budget.max(1) {
            let count = if tried == 0 { self.weights.max(ROUND) } else { ROUND };
            let count = count.min(spec.budget.max(1) - tried);
            let drawn: Vec<Drawn> = (0..count).map(|n| self.draw(tried + n)).collect();
            let candidates: Vec<PolicyCandidate> =
                drawn.iter().map(|d| self.candidate(d)).collect();
            let scores = in_parallel(&candidates, spec.threads, score, &|done| {
                progress((tried + done) as u64);
            })?;
            tried += count;
            let results = scores.into_iter().zip(candidates).zip(drawn);
            let round: Vec<(f64, PolicyCandidate, Drawn)> =
                results.map(|((score, candidate), drawn)| (score, candidate, drawn)).collect();
            self.learn(round);
        }
        let best = self.best.into_iter().next();
        best.map(|(score, candidate, _)| (candidate, score))
            .ok_or_else(|| BadInput::new("nothing was tried").field("--budget"))
    }

    /// First each weight alone, since the usual orders are of that kind; then at random.
    fn draw(&mut self, number: usize) -> Drawn {
        let mut point: Vec<f64> = self
            .means
            .iter()
            .zip(&self.deviations)
            .map(|(mean, deviation)| mean + deviation * normal(&mut self.seeded))
            .collect();
        let at = self.seeded.unit();
        let mut sum = 0.0;
        let chances = self.kinds.unwrap_or([1.0 / MarketPoint::KINDS as f64; MarketPoint::KINDS]);
        let kind = chances.iter().position(|chance| {
            sum += chance;
            at < sum
        });
        if number < self.weights {
            for (index, weight) in point[..self.weights].iter_mut().enumerate() {
                *weight = if index == number { 1.0 } else { 0.0 };
            }
        }
        Drawn { point, kind: kind.unwrap_or(MarketPoint::KINDS - 1) }
    }

    fn candidate(&self, drawn: &Drawn) -> PolicyCandidate {
        let (weights, prices) = drawn.point.split_at(self.weights);
        let prices = <[f64; 3]>::try_from(prices).ok().filter(|_| self.kinds.is_some());
        PolicyCandidate::of(weights, prices.map(|prices| MarketPoint::of(drawn.kind, prices)))
    }

    fn learn(&mut self, round: Vec<(f64, PolicyCandidate, Drawn)>) {
        self.best.extend(round);
        // Stable: among equals the one that was drawn first.
        self.best.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut kept: Vec<(f64, PolicyCandidate, Drawn)> = Vec::with_capacity(ELITES);
        for entry in self.best.drain(..) {
            if kept.len() < ELITES && !kept.iter().any(|other| other.1 == entry.1) {
                kept.push(entry);
            }
        }
        self.best = kept;
        let count = self.best.len().max(1) as f64;
        for index in 0..self.means.len() {
            let of = |(_, _, drawn): &(f64, PolicyCandidate, Drawn)| drawn.point[index];
            let mean = self.best.iter().map(of).sum::<f64>() / count;
            let variance =
                self.best.iter().map(|entry| (of(entry) - mean).powi(2)).sum::<f64>() / count;
            let blend = |old: f64, new: f64| INERTIA * old + (1.0 - INERTIA) * new;
            self.means[index] = blend(self.means[index], mean);
            self.deviations[index] =
                blend(self.deviations[index], variance.sqrt()).max(DEVIATION_MIN);
        }
        if let Some(kinds) = &mut self.kinds {
            for (kind, chance) in kinds.iter_mut().enumerate() {
                let share = self.best.iter().filter(|(_, _, drawn)| drawn.kind == kind).count();
                // A tenth is left to chance, so that no kind dies out early.
                let target = 0.9 * share as f64 / count + 0.1 / MarketPoint::KINDS as f64;
                *chance = INERTIA * *chance + (1.0 - INERTIA) * target;
            }
        }
    }
}

/// A normal number (after Box and Muller).
fn normal(seeded: &mut Seeded) -> f64 {
    let radius = (-2.0 * (1.0 - seeded.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * seeded.unit()).cos()
}

/// Scores all candidates on several threads; the answers are in their order.
pub(super) fn in_parallel<T: Sync>(
    of: &[T],
    threads: usize,
    score: &(dyn Fn(&T) -> Result<f64, BadInput> + Sync),
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<f64>, BadInput> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let scores: Mutex<Vec<Option<Result<f64, BadInput>>>> = Mutex::new(vec![None; of.len()]);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = of.get(index) else { return };
            let result = score(one);
            // A thread that panicked has left a slot empty, which is seen below.
            let mut scores = scores.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            scores[index] = Some(result);
            drop(scores);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, of.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let scores = scores.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    scores.into_iter().map(|score| score.unwrap_or(Ok(f64::MAX))).collect()
}
