//! Prices. A mechanism turns expected demand and what is already promised into the price of the
//! next unit; the sum over units and time is the price of a request.
//!
//! Nothing here knows what a bid is worth. The types make sure of that: a mechanism sees a slot
//! of a pool and how much of it is taken, never a bid. The core compares price and value
//! afterwards, which is what makes bidding one's true value the best one can do.

mod mechanism;
mod surge;

use serde::{Deserialize, Serialize};

pub use mechanism::{Marginal, Mechanism, SlotView, StartRule};
pub use surge::Surge;

use crate::cluster::Rates;
use crate::refusal::Refusal;
use crate::resources::{PerResource, Resource};
use crate::units::{Milli, Money, Name};

/// Highest accepted base rate: 10,000 credits an hour.
pub const RATE_MAX: Money = Money::credits(10_000);
/// Highest accepted price density: 1,000 times the base rate.
pub const DENSITY_MAX: Milli = Milli(1_000_000);

/// Which mechanism sets prices, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MechanismChoice {
    /// The paper's: the price of a unit is what the demand that it displaces would have paid.
    BasicEcon,
    /// A fixed price, so the earliest start wins.
    FirstFit {
        /// Times the base rate.
        density: Milli,
    },
    /// Now or never, at a fixed price.
    OnDemand {
        /// Times the base rate.
        density: Milli,
    },
    /// Exponential in utilisation: for a cold start without history.
    Surge {
        /// Times the base rate when nothing is promised.
        low: Milli,
        /// Times the base rate when everything is.
        high: Milli,
    },
}

impl MechanismChoice {
    /// The names of all mechanisms.
    pub const NAMES: [&'static str; 4] = ["basic-econ", "first-fit", "on-demand", "surge"];

    /// A mechanism by its name, with its default parameters.
    pub fn named(name: &Name) -> Result<MechanismChoice, Refusal> {
        Ok(match name.as_str() {
            "basic-econ" => MechanismChoice::BasicEcon,
            "first-fit" => MechanismChoice::FirstFit { density: Milli::ONE },
            "on-demand" => MechanismChoice::OnDemand { density: Milli::ONE },
            "surge" => MechanismChoice::Surge { low: Milli(500), high: Milli(5000) },
            _ => {
                return Err(Refusal::Unknown {
                    kind: "mechanism".into(),
                    name: name.clone(),
                    known: Self::NAMES.iter().filter_map(|n| Name::new(n).ok()).collect(),
                });
            }
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            MechanismChoice::BasicEcon => Self::NAMES[0],
            MechanismChoice::FirstFit { .. } => Self::NAMES[1],
            MechanismChoice::OnDemand { .. } => Self::NAMES[2],
            MechanismChoice::Surge { .. } => Self::NAMES[3],
        }
    }
}

/// The market's rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarketRules {
    /// Who sets prices.
    pub mechanism: MechanismChoice,
    /// No unit is cheaper than this times its base rate. By default what queue work pays, so
    /// that a promise never costs less than none.
    pub floor: Milli,
    /// No unit is dearer than this times its base rate.
    pub ceiling: Milli,
}

impl Default for MarketRules {
    fn default() -> MarketRules {
        MarketRules {
            mechanism: MechanismChoice::BasicEcon,
            floor: Milli(500),
            ceiling: Milli(100_000),
        }
    }
}

impl MarketRules {
    /// Refuses what is out of range.
    pub fn check(&self) -> Result<(), Refusal> {
        let bad = |field: &str, problem: String| {
            Err(Refusal::BadSetting { field: format!("market.{field}"), problem })
        };
        if self.ceiling > DENSITY_MAX {
            return bad("ceiling", format!("at most {DENSITY_MAX} times the base rate"));
        }
        if self.floor > self.ceiling {
            return bad("floor", "must not be above the ceiling".into());
        }
        match &self.mechanism {
            MechanismChoice::Surge { low, high } if low.0 == 0 || low > high => {
                bad("surge", "give 0 < low <= high".into())
            }
            MechanismChoice::Surge { high: d, .. }
            | MechanismChoice::FirstFit { density: d }
            | MechanismChoice::OnDemand { density: d }
                if *d > DENSITY_MAX =>
            {
                bad("density", format!("at most {DENSITY_MAX} times the base rate"))
            }
            _ => Ok(()),
        }
    }

    /// The mechanism itself.
    pub fn build(&self) -> Box<dyn Mechanism> {
        match self.mechanism {
            MechanismChoice::BasicEcon => Box::new(mechanism::BasicEcon),
            MechanismChoice::FirstFit { density } => {
                Box::new(mechanism::Fixed { density, starts: StartRule::Any })
            }
            MechanismChoice::OnDemand { density } => {
                Box::new(mechanism::Fixed { density, starts: StartRule::NowOnly })
            }
            MechanismChoice::Surge { low, high } => Box::new(Surge::new(low, high)),
        }
    }

    /// A density within floor and ceiling.
    pub fn clip(&self, density: Milli) -> Milli {
        density.clamp(self.floor, self.ceiling)
    }
}

/// What one unit of each resource weighs in a price: the base rate, on a common denominator.
///
/// A raw price is Σ units × density × milliseconds × weight; [`Weights::price`] divides it once,
/// rounding up. With every limit at its largest this stays within 128 bits: units 2^30, density
/// 2^20, weight 2^41, milliseconds 2^35, three resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights(pub PerResource<u64>);

/// Units of the common denominator in a whole: the least common multiple of 1000 and 1024.
const COMMON: u64 = 128_000;
/// Raw price of one micro-credit.
const RAW_PER_MICRO: u128 = COMMON as u128 * 1000 * 3_600_000;

impl Weights {
    /// The weights of a pool's rates.
    pub fn of(rates: &Rates) -> Weights {
        Weights(Resource::ALL.map(|r| {
            rates.of(r).0.clamp(0, RATE_MAX.0).unsigned_abs() * (COMMON / r.units_per_whole())
        }))
    }

    /// What a raw price is in money, rounded up; `None` if it is beyond the range of money.
    pub fn price(raw: u128) -> Option<Money> {
        Money::from_wide(raw.div_ceil(RAW_PER_MICRO))
    }

    /// The largest raw price that rounds up to no more than this.
    pub fn raw_of(money: Money) -> u128 {
        u128::from(money.0.max(0).unsigned_abs()) * RAW_PER_MICRO
    }

    /// The raw cost of `units` for a millisecond at density 1.
    pub fn base(&self, units: &PerResource<u64>) -> u128 {
        let sum: u128 =
            self.0.iter().zip(units).map(|(w, u)| u128::from(*w) * u128::from(*u)).sum();
        sum * 1000
    }
}

/// The price of `units` for `ms` milliseconds at a fixed density: what queue work pays.
pub fn fixed_price(
    rates: &Rates,
    units: &PerResource<u64>,
    ms: i64,
    density: Milli,
) -> Option<Money> {
    let raw = Weights::of(rates).base(units) / 1000;
    let ms = u128::from(ms.max(0).unsigned_abs());
    Weights::price(raw.checked_mul(u128::from(density.0))?.checked_mul(ms)?)
}
