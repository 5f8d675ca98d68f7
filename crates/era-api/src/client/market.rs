//! Prices.

use super::cluster::Period;
use super::path::{encode, query};
use super::{Client, ClientError};
use crate::market::{FareCalendar, Market, Mechanism};

impl Client {
    pub fn market(&self) -> Result<Market, ClientError> {
        self.get("/market")
    }

    /// The fares of a pool over time.
    pub fn fares(&self, pool: &str, period: &Period) -> Result<FareCalendar, ClientError> {
        self.get(&format!("/market/{}/calendar{}", encode(pool), query(period)))
    }

    /// Sets the rules of the market.
    pub fn set_mechanism(&self, mechanism: &Mechanism) -> Result<(), ClientError> {
        self.put("/market/mechanism", mechanism)
    }
}
