//! Prices.

use super::cluster::TimeRange;
use super::path::{encode, query};
use super::{Client, ClientError};
use crate::market::{FareCalendar, MarketView, MechanismView};

impl Client {
    pub fn market(&self) -> Result<MarketView, ClientError> {
        self.get("/market")
    }

    /// The fares of a pool over time.
    pub fn fares(&self, pool: &str, period: &TimeRange) -> Result<FareCalendar, ClientError> {
        self.get(&format!("/market/{}/calendar{}", encode(pool), query(period)))
    }

    /// Sets the rules of the market.
    pub fn set_mechanism(&self, mechanism: &MechanismView) -> Result<(), ClientError> {
        self.put("/market/mechanism", mechanism)
    }
}
