//! Utilisation, the five measures and the journal.

use std::io::Read;

use super::cluster::Period;
use super::path::query;
use super::{Client, ClientError};
use crate::cluster::Utilisation;
use crate::report::Report;

impl Client {
    /// Utilisation by the platform's formula, now and over a period.
    pub fn utilisation(&self, period: &Period) -> Result<Utilisation, ClientError> {
        self.get(&format!("/utilisation{}", query(period)))
    }

    /// The five measures over a period.
    pub fn report(&self, period: &Period) -> Result<Report, ClientError> {
        self.get(&format!("/report{}", query(period)))
    }

    /// The journal as `era replay` reads it.
    pub fn journal(&self) -> Result<impl Read + use<>, ClientError> {
        self.download("/journal")
    }
}
