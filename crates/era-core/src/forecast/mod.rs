//! Published forecasts: how much demand is still to come, and what it will be worth.
//!
//! A forecast is a value that enters the core as an input. The core evaluates it; it never
//! learns inside `step`. The pure learners stand beside it, for whoever publishes one: both read
//! a [`history`], [`spread`] simply and [`relaxation`] better. An empty forecast is a valid one:
//! it says that no further demand is expected.

mod flow;
pub mod history;
mod outlook;
pub mod relaxation;
pub mod spread;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::resources::{PerResource, Resource};
use crate::units::{Milli, Name, Time};

/// Most steps in one curve.
pub const CURVE_STEPS_MAX: usize = 256;
/// Most runs in one series: every minute of two months.
pub const RUNS_MAX: usize = 1 << 17;
/// Most units that a curve may expect.
pub const QUANTITY_MAX: u64 = 1 << 48;

/// Demand over density at one time: how many units are worth at least so much. Density is a
/// bid's value divided by its cost at base rates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve {
    /// Densities strictly falling, quantities strictly rising.
    steps: Vec<DemandStep>,
}

/// `quantity` units are worth at least `density`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemandStep {
    /// Value over cost at base rates.
    pub density: Milli,
    /// Units, all denser demand included.
    pub quantity: u64,
}

impl Curve {
    /// No demand at all.
    pub const EMPTY: Curve = Curve { steps: Vec::new() };

    /// A curve from `(density, units of exactly that density)`, in any order.
    pub fn from_parts(parts: impl IntoIterator<Item = (Milli, u64)>) -> Curve {
        let mut by_density: BTreeMap<Milli, u64> = BTreeMap::new();
        for (density, units) in parts {
            let sum = by_density.entry(density).or_default();
            *sum = sum.saturating_add(units);
        }
        let mut quantity: u64 = 0;
        let mut steps = Vec::with_capacity(by_density.len());
        for (density, units) in by_density.into_iter().rev().filter(|(_, units)| *units > 0) {
            quantity = quantity.saturating_add(units);
            steps.push(DemandStep { density, quantity });
        }
        Curve { steps }
    }

    /// The steps, densest first.
    pub fn steps(&self) -> &[DemandStep] {
        &self.steps
    }

    /// Units worth at least `density`.
    pub fn demand(&self, density: Milli) -> u64 {
        let count = self.steps.partition_point(|s| s.density >= density);
        count.checked_sub(1).map_or(0, |last| self.steps[last].quantity)
    }

    /// The highest density at which more than `left` units are expected; `None` if so many are
    /// expected at no density.
    pub fn price_above(&self, left: u64) -> Option<Milli> {
        let first = self.steps.partition_point(|s| s.quantity <= left);
        self.steps.get(first).map(|s| s.density)
    }

    fn check(&self) -> Result<(), Refusal> {
        let bad = |problem: &str| Refusal::BadForecast { problem: problem.into() };
        if self.steps.len() > CURVE_STEPS_MAX {
            return Err(bad("a curve has at most 256 steps"));
        }
        let ordered =
            |w: &[DemandStep]| w[0].density > w[1].density && w[0].quantity < w[1].quantity;
        if !self.steps.windows(2).all(ordered) {
            return Err(bad("a curve's densities must fall and its quantities rise"));
        }
        if self.steps.iter().any(|s| s.quantity == 0 || s.quantity > QUANTITY_MAX) {
            return Err(bad("a curve's quantities must be above 0 and at most 2^48"));
        }
        Ok(())
    }
}

/// Curves over time. Each run lasts until the next one starts, the last one for ever; before the
/// first one nothing is expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Series {
    /// The distinct curves.
    pub curves: Vec<Curve>,
    /// `(from, index of the curve)`, in order of time.
    pub runs: Vec<(Time, u32)>,
}

static NOTHING: Curve = Curve::EMPTY;
static NEVER: Series = Series { curves: Vec::new(), runs: Vec::new() };

impl Series {
    /// A series from one curve per instant, in order of time; equal neighbours share a run.
    pub fn from_curves(curves: impl IntoIterator<Item = (Time, Curve)>) -> Series {
        let mut series = Series::default();
        for (from, curve) in curves {
            let last = series.runs.last().map(|(_, index)| *index as usize);
            if last.is_some_and(|index| series.curves[index] == curve) {
                continue;
            }
            series.runs.push((from, series.curves.len() as u32));
            series.curves.push(curve);
        }
        series
    }

    /// The curve in force at an instant.
    pub fn at(&self, time: Time) -> &Curve {
        self.run_at(time).0
    }

    /// The curve in force at an instant, and until when it is.
    pub fn run_at(&self, time: Time) -> (&Curve, Time) {
        let after = self.runs.partition_point(|(from, _)| *from <= time);
        let index = after.checked_sub(1).map(|run| self.runs[run].1 as usize);
        let curve = index.and_then(|index| self.curves.get(index)).unwrap_or(&NOTHING);
        (curve, self.runs.get(after).map_or(Time::MAX, |(from, _)| *from))
    }

    fn check(&self) -> Result<(), Refusal> {
        let bad = |problem: &str| Refusal::BadForecast { problem: problem.into() };
        if self.runs.len() > RUNS_MAX || self.curves.len() > RUNS_MAX {
            return Err(bad("a series has at most 131072 runs"));
        }
        if self.runs.windows(2).any(|w| w[0].0 >= w[1].0) {
            return Err(bad("runs must come in order of time"));
        }
        if self.runs.iter().any(|(_, index)| *index as usize >= self.curves.len()) {
            return Err(bad("a run names a curve that is not there"));
        }
        self.curves.iter().try_for_each(Curve::check)
    }
}

/// Expected demand for every pool and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Forecast {
    /// By pool, then resource.
    pub pools: BTreeMap<Name, PerResource<Series>>,
}

impl Forecast {
    /// The curve of a pool's resource at an instant.
    pub fn at(&self, pool: &Name, resource: Resource, time: Time) -> &Curve {
        self.of(pool)[resource as usize].at(time)
    }

    /// The series of a pool, by resource.
    pub fn of(&self, pool: &Name) -> PerResource<&Series> {
        match self.pools.get(pool) {
            Some(series) => series.each_ref(),
            None => [&NEVER; 3],
        }
    }

    /// Refuses what is not a forecast.
    pub fn check(&self) -> Result<(), Refusal> {
        self.pools.values().flatten().try_for_each(Series::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_is_the_highest_density_that_would_fill_what_is_left() {
        let curve = Curve::from_parts([(Milli(1000), 50), (Milli(10_000), 20)]);
        assert_eq!(curve.demand(Milli(10_000)), 20);
        assert_eq!(curve.demand(Milli(1)), 70);
        assert_eq!(curve.demand(Milli(10_001)), 0);
        assert_eq!(curve.price_above(0), Some(Milli(10_000)));
        assert_eq!(curve.price_above(19), Some(Milli(10_000)));
        assert_eq!(curve.price_above(20), Some(Milli(1000)));
        assert_eq!(curve.price_above(70), None);
    }

    #[test]
    fn an_empty_forecast_expects_nothing() {
        let forecast = Forecast::default();
        assert_eq!(forecast.check(), Ok(()));
        let pool = Name::new("any").unwrap();
        assert_eq!(forecast.of(&pool)[0].at(Time(0)).demand(Milli(0)), 0);
    }

    #[test]
    fn a_series_holds_each_curve_until_the_next() {
        let one = Curve::from_parts([(Milli(1000), 1)]);
        let series = Series::from_curves([
            (Time(10), one.clone()),
            (Time(20), one.clone()),
            (Time(30), Curve::default()),
        ]);
        assert_eq!(series.runs.len(), 2);
        assert_eq!(series.at(Time(9)), &Curve::default());
        assert_eq!(series.at(Time(25)), &one);
        assert_eq!(series.at(Time(30)), &Curve::default());
    }
}
