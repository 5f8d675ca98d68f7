//! `era extend`: more time for a running reservation.

use era_api::Credits;
use era_api::job::Extend;

use super::connection::Common;
use super::look::say;
use crate::job::{JobError, Span};

/// Buy more time for a running reservation
#[derive(Debug, clap::Args)]
#[command(name = "extend")]
pub(crate) struct ExtendCommand {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    /// By how much, such as 30m
    #[arg(value_name = "TIME")]
    by: String,
    /// At most for this price, in credits
    #[arg(long, value_name = "CREDITS")]
    most: Credits,
    #[command(flatten)]
    common: Common,
}

impl ExtendCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let by: Span = self.by.parse().map_err(|e: crate::job::span::BadSpan| JobError::Flag {
            flag: "TIME",
            what: e.to_string(),
        })?;
        let client = self.common.client()?;
        client.extend(self.id, &Extend { by_s: by.seconds, most: self.most })?;
        say(&format!("Job {} may run {by} longer, for at most {} credits.", self.id, self.most))
    }
}
