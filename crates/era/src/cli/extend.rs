//! `era extend`: more time for a running reservation.

use era_api::Credits;
use era_api::job::Extension;
use serde_json::json;

use super::connection::Common;
use super::look;
use crate::job::{JobError, SpanSpec};

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
        let by: SpanSpec = self.by.parse().map_err(|e: era_spec::span::BadSpan| {
            JobError::Flag { flag: "TIME", what: e.to_string() }
        })?;
        let client = self.common.client()?;
        client.extend(self.id, &Extension { by_s: by.seconds, most: self.most })?;
        let (id, most) = (self.id, self.most);
        let told = json!({ "extended": id, "by_s": by.seconds, "most": most });
        look::print(self.common.output, &told, |_| {
            format!("Job {id} may run {by} longer, for at most {most} credits.\n")
        })
    }
}
