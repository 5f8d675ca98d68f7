//! What a user or a group may hold at once, and may use and spend in a period.
//!
//! [`Quota`] is the limit, [`crate::usage::Usage`] the book of what is held and used, and
//! [`steps::Steps`] the step function of time that the book is made of. Quotas come first: what
//! exceeds one is refused before the scheduler sees it. Nothing here knows of jobs, nodes or
//! prices; amounts arrive as units, instants and credits.

pub mod steps;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::resources::{PerResource, Resource};
use crate::units::{Money, Span, Time};

/// Limits of one user or one group. `None` is unlimited, and so is the default.
///
/// Units are those of [`Resource`]: thousandths of a core, MiB, thousandths of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Most units at any instant.
    pub concurrent: PerResource<Option<u64>>,
    /// Most unit-hours in a period.
    pub hours: PerResource<Option<u64>>,
    /// Most credits spent in a period.
    pub credits: Option<Money>,
}

impl Quota {
    /// No limit at all.
    pub const UNLIMITED: Quota = Quota { concurrent: [None; 3], hours: [None; 3], credits: None };

    /// The limit in one dimension, in its finest unit.
    pub fn limit(&self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Concurrent(resource) => self.concurrent[resource as usize],
            Dimension::Hours(resource) => self.hours[resource as usize],
            // Below zero nothing may be spent, as with zero; `validate` keeps such out.
            Dimension::Credits => self.credits.map(|m| u64::try_from(m.0).unwrap_or(0)),
        }
    }

    /// Whether any limit stands on what is held at once.
    pub fn limits_concurrent(&self) -> bool {
        self.concurrent.iter().any(Option::is_some)
    }

    /// Refuses a limit that is none.
    pub fn validate(&self) -> Result<(), Refusal> {
        match self.credits {
            Some(given) if given < Money::ZERO || given > Money::MOST => {
                Err(Refusal::BadValue { given, most: Money::MOST })
            }
            _ => Ok(()),
        }
    }
}

/// One thing that a [`Quota`] limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Units at any instant.
    Concurrent(Resource),
    /// Unit-hours in a period.
    Hours(Resource),
    /// Micro-credits in a period.
    Credits,
}

impl Dimension {
    pub const COUNT: usize = 7;

    /// All of them; the order in which they are summed and refused.
    pub const ALL: [Dimension; Dimension::COUNT] = [
        Dimension::Concurrent(Resource::Cpu),
        Dimension::Concurrent(Resource::Memory),
        Dimension::Concurrent(Resource::Gpu),
        Dimension::Hours(Resource::Cpu),
        Dimension::Hours(Resource::Memory),
        Dimension::Hours(Resource::Gpu),
        Dimension::Credits,
    ];

    /// The unit in which to tell people of these amounts: cores, GiB, GPUs and credits where all
    /// are whole, and otherwise the finest, so that a limit of half a GPU does not read as none.
    pub fn unit_for(self, exact: &[u64]) -> Unit {
        let whole = match self {
            Dimension::Concurrent(resource) | Dimension::Hours(resource) => {
                resource.units_per_whole()
            }
            Dimension::Credits => 1_000_000,
        };
        let is_whole = exact.iter().all(|amount| amount.is_multiple_of(whole));
        Unit { name: self.name(is_whole), size: if is_whole { whole } else { 1 } }
    }

    fn name(self, whole: bool) -> &'static str {
        use Dimension::{Concurrent, Credits, Hours};
        use Resource::{Cpu, Gpu, Memory};
        match (self, whole) {
            (Concurrent(Cpu), true) => "cores",
            (Concurrent(Cpu), false) => "milli-cores",
            (Concurrent(Memory), true) => "GiB of memory",
            (Concurrent(Memory), false) => "MiB of memory",
            (Concurrent(Gpu), true) => "gpus",
            (Concurrent(Gpu), false) => "milli-gpus",
            (Hours(Cpu), true) => "core hours",
            (Hours(Cpu), false) => "milli-core hours",
            (Hours(Memory), true) => "GiB hours of memory",
            (Hours(Memory), false) => "MiB hours of memory",
            (Hours(Gpu), true) => "gpu hours",
            (Hours(Gpu), false) => "milli-gpu hours",
            (Credits, true) => "credits",
            (Credits, false) => "micro-credits",
        }
    }
}

/// A unit in which a refusal tells its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// As in "may hold 8 *gpus* at once".
    pub name: &'static str,
    /// How many of the finest units make one.
    pub size: u64,
}

impl Unit {
    /// A limit in this unit: rounded down, while [`Unit::amount`] rounds up, so that the numbers
    /// of a refusal exceed each other as the exact ones do.
    pub fn limit(self, finest: u64) -> u64 {
        finest / self.size
    }

    /// What is held, used or asked for in this unit, rounded up. Saturates: past the range of
    /// the number it exceeds every limit, which is what a refusal has to tell.
    pub fn amount(self, finest: u128) -> u64 {
        u64::try_from(finest.div_ceil(u128::from(self.size))).unwrap_or(u64::MAX)
    }
}

/// How long the periods are in which hours and credits are counted, from the epoch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Span", into = "Span")]
pub struct QuotaPeriod(Span);

impl QuotaPeriod {
    /// A period of this length, which must be more than nothing.
    pub fn new(len: Span) -> Result<QuotaPeriod, Refusal> {
        if len <= Span::ZERO {
            return Err(Refusal::BadSetting {
                field: "quota period".into(),
                problem: format!("{len} is out of range: give more than zero"),
            });
        }
        Ok(QuotaPeriod(len))
    }

    /// The period that holds an instant: its first instant, and that of the next one.
    pub fn around(self, at: Time) -> (Time, Time) {
        let from = at.0 - at.0.rem_euclid(self.0.0);
        (Time(from), Time(from.saturating_add(self.0.0)))
    }

    /// Which period holds an instant.
    pub fn index(self, at: Time) -> i64 {
        at.0.div_euclid(self.0.0)
    }
}

impl Default for QuotaPeriod {
    fn default() -> QuotaPeriod {
        QuotaPeriod(Span::from_days(30))
    }
}

impl TryFrom<Span> for QuotaPeriod {
    type Error = Refusal;
    fn try_from(len: Span) -> Result<QuotaPeriod, Refusal> {
        QuotaPeriod::new(len)
    }
}

impl From<QuotaPeriod> for Span {
    fn from(period: QuotaPeriod) -> Span {
        period.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_is_unlimited_unless_said() {
        for dimension in Dimension::ALL {
            assert_eq!(Quota::default().limit(dimension), None);
        }
        assert_eq!(serde_json::from_str::<Quota>("{}").unwrap(), Quota::UNLIMITED);
    }

    #[test]
    fn a_quota_below_zero_or_beyond_all_money_is_refused() {
        for (credits, ok) in
            [(-1, false), (0, true), (Money::MOST.0, true), (Money::MOST.0 + 1, false)]
        {
            let quota = Quota { credits: Some(Money(credits)), ..Quota::UNLIMITED };
            assert_eq!(quota.validate().is_ok(), ok, "{credits}");
        }
    }

    #[test]
    fn amounts_are_told_in_whole_units_where_they_are_whole() {
        let gpu = Dimension::Concurrent(Resource::Gpu);
        assert_eq!(gpu.unit_for(&[8000, 1000]), Unit { name: "gpus", size: 1000 });
        assert_eq!(gpu.unit_for(&[8000, 500]), Unit { name: "milli-gpus", size: 1 });
        let hours = Dimension::Hours(Resource::Memory).unit_for(&[2048]);
        assert_eq!(hours.name, "GiB hours of memory");
        assert_eq!((hours.limit(2048), hours.amount(2049)), (2, 3));
        assert_eq!(hours.amount(u128::MAX), u64::MAX);
    }

    #[test]
    fn a_period_has_a_length_and_holds_its_first_instant() {
        assert!(QuotaPeriod::new(Span(0)).is_err());
        assert!(serde_json::from_str::<QuotaPeriod>("-5").is_err());
        let day = QuotaPeriod::new(Span::from_days(1)).unwrap();
        let last = Span::from_days(1).ms() - 1;
        assert_eq!([-1, 0, last, last + 1].map(|ms| day.index(Time(ms))), [-1, 0, 0, 1]);
    }
}
