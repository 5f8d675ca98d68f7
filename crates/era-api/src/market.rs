//! Prices.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;

/// The rules of the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Mechanism)]
pub struct MechanismView {
    /// `basic-econ`, `first-fit`, `on-demand` or `surge`.
    pub name: String,
    /// For `first-fit` and `on-demand`: the fixed price, times the base rate; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density: Option<f64>,
    /// For `surge`: times the base rate when nothing is promised; 0.5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// For `surge`: times the base rate when everything is; 5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Prices never fall below this times the base rate.
    pub floor: f64,
    /// Nor rise above this.
    pub ceiling: f64,
}

/// The price of the next unit of each resource, in a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PricePoint {
    pub from: Timestamp,
    pub to: Timestamp,
    /// Credits for a core-hour.
    pub cpu: Credits,
    /// Credits for a GiB-hour.
    pub memory: Credits,
    /// Credits for a GPU-hour.
    pub gpu: Credits,
    /// The share that is promised: cores, memory, GPUs.
    pub promised: [f64; 3],
    /// The share that is forecast beyond what is promised.
    pub forecast: [f64; 3],
}

/// The forward calendar of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FareCalendar {
    pub pool: String,
    /// Cheapest first slot of each stretch, in order.
    pub points: Vec<PricePoint>,
}

/// What a pool has cost since an instant: it holds until the next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PastPrice {
    pub at: Timestamp,
    /// Credits for a core-hour.
    pub cpu: Credits,
    /// Credits for a GiB-hour.
    pub memory: Credits,
    /// Credits for a GPU-hour.
    pub gpu: Credits,
    /// The share that was promised: cores, memory, GPUs.
    pub promised: [f64; 3],
}

/// What a pool has cost over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PriceHistory {
    pub pool: String,
    /// Oldest first. Where there were too many changes, those that show the same curve.
    pub points: Vec<PastPrice>,
}

/// Prices now, and the public record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Market)]
pub struct MarketView {
    pub mechanism: MechanismView,
    /// One for each pool.
    pub pools: Vec<PoolPrice>,
    /// Promises that were due.
    pub promises_due: u64,
    /// Of them, kept.
    pub promises_kept: u64,
}

/// A pool's prices now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PoolPrice {
    pub pool: String,
    pub now: PricePoint,
    /// The cheapest within a day.
    pub cheapest: PricePoint,
    /// The share of all that it has that work without a promise uses now: cores, memory, GPUs.
    /// Prices follow from what is promised and forecast, so this does not raise them.
    #[serde(default)]
    pub queue_work: [f64; 3],
}
