//! `era retry`: submits an ended job again.

use super::connection::Common;
use super::{look, submit};

/// Submit an ended job again, as a new job
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// The ended job's number
    #[arg(value_name = "JOB")]
    id: u64,
    #[command(flatten)]
    common: Common,
}

impl Retry {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let submitted = self.common.client()?.retry(self.id)?;
        let look = self.common.look();
        look::print(self.common.output, &submitted, |s| submit::render(s, &look))
    }
}
