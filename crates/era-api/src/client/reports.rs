//! Utilisation, the five measures and the journal.

use std::io::Read;

use jiff::Timestamp;

use super::cluster::TimeRange;
use super::path::query;
use super::{Client, ClientError};
use crate::cluster::Utilisation;
use crate::report::Report;

impl Client {
    /// Utilisation by the platform's formula, now and over a period.
    pub fn utilisation(&self, period: &TimeRange) -> Result<Utilisation, ClientError> {
        self.get(&format!("/utilisation{}", query(period)))
    }

    /// The five measures over a period.
    pub fn report(&self, period: &TimeRange) -> Result<Report, ClientError> {
        self.get(&format!("/report{}", query(period)))
    }

    /// The same, beside the same work without ERA. The server replays it, which takes a while.
    pub fn report_beside(&self, period: &TimeRange) -> Result<Report, ClientError> {
        /// The period, and that the other side is wanted too.
        #[derive(serde::Serialize)]
        struct Beside<'a> {
            #[serde(flatten)]
            period: &'a TimeRange,
            without: bool,
        }
        self.get_slow(&format!("/report{}", query(&Beside { period, without: true })))
    }

    /// The journal as `era replay` reads it.
    pub fn journal(&self) -> Result<impl Read + use<>, ClientError> {
        self.download("/journal")
    }
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// Whether it takes requests.
    pub ready: bool,
    /// What it says about that.
    pub text: String,
    /// Its clock, to the second.
    pub clock: Option<Timestamp>,
}

impl Client {
    /// Whether the server takes requests. Needs no token.
    pub fn health(&self) -> Result<ServerHealth, ClientError> {
        let answer = self.agent()?.get(format!("{}/readyz", self.url)).call();
        let mut answer = answer.map_err(|e| ClientError::of(&self.url, e))?;
        let clock = answer.headers().get("date").and_then(|date| date.to_str().ok());
        let clock = clock.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
        let text = answer.body_mut().with_config().limit(64 << 10).read_to_string();
        Ok(ServerHealth {
            ready: answer.status().is_success(),
            text: text.map_err(|e| ClientError::of(&self.url, e))?,
            clock: clock.map(|zoned| zoned.timestamp()),
        })
    }
}
