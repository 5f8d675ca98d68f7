//! `era release`: gives back what is left of a reservation.

use serde_json::json;

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
        self.common.client()?.release(self.id)?;
        let id = self.id;
        look::print(self.common.output, &json!({ "released": id }), |_| {
            format!("Job {id} is released; `era job {id}` shows what comes back.\n")
        })
    }
}
