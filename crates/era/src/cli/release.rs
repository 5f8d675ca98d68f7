//! `era release`: gives back what is left of a reservation.

use serde_json::json;

use super::cancel::back;
use super::connection::Common;
use super::look;

/// End a job, and give back what is left of its reservation
#[derive(Debug, clap::Args)]
pub(crate) struct Release {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    #[command(flatten)]
    common: Common,
}

impl Release {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let id = self.id;
        let refund = client.refund(id, false).ok();
        client.release(id)?;
        let told = json!({ "released": id, "refund": refund.map(|refund| refund.back) });
        look::print(self.common.output, &told, |_| {
            format!("Job {id} is released{}\n", refund.map_or_else(|| ".".to_owned(), back))
        })
    }
}
