//! What a search tries: weights, and where bids were made, a point of the market.

use era_core::market::MechanismChoice;
use era_core::units::Milli;
use serde::Serialize;

/// One thing to try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyCandidate {
    /// One for each name of the template; the largest is 1 or -1.
    pub weights: Vec<f64>,
    /// How prices are set, if that is searched too.
    pub market: Option<MarketPoint>,
}

impl PolicyCandidate {
    /// With these weights, scaled to a largest of one: only their ratios matter to an order.
    pub fn of(weights: &[f64], market: Option<MarketPoint>) -> PolicyCandidate {
        let most = weights.iter().fold(0.0f64, |most, weight| most.max(weight.abs()));
        let scale = if most > 0.0 { 1.0 / most } else { 0.0 };
        let weights = weights.iter().map(|weight| {
            let rounded = (weight * scale * 1000.0).round() / 1000.0;
            // No negative zero.
            if rounded == 0.0 { 0.0 } else { rounded }
        });
        PolicyCandidate { weights: weights.collect(), market }
    }
}

/// A mechanism with its parameters, and the floor of prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarketPoint {
    /// Who sets prices.
    pub mechanism: MechanismChoice,
    /// No unit is cheaper than this times its base rate.
    pub floor: Milli,
}

impl MarketPoint {
    /// How many kinds of mechanism are tried. `on-demand` is left out: it refuses whoever does
    /// not start at once, which is a rule of the house rather than a parameter.
    pub(super) const KINDS: usize = 3;

    /// The point of a kind with these logarithms of floor, level and spread.
    pub(super) fn of(kind: usize, [floor, level, spread]: [f64; 3]) -> MarketPoint {
        let milli = |log: f64, most: f64| Milli((log.exp() * 1000.0).clamp(1.0, most) as u32);
        let level_milli = milli(level, 10_000.0);
        let mechanism = match kind {
            0 => MechanismChoice::BasicEcon,
            1 => MechanismChoice::FirstFit { density: level_milli },
            _ => {
                let high = milli(level + spread.abs(), 100_000.0).max(level_milli);
                MechanismChoice::Surge { low: level_milli, high }
            }
        };
        MarketPoint { mechanism, floor: milli(floor, 10_000.0) }
    }
}
