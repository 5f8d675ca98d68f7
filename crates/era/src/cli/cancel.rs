//! `era cancel`: gives jobs up.

use super::connection::Common;
use super::failure::ExitWith;
use super::look::{note, say};

/// Give jobs up; a promise that has not begun is refunded by the rules
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// The jobs' numbers; the first job of an array stands for that job alone
    #[arg(value_name = "JOB", required = true)]
    ids: Vec<u64>,
    #[command(flatten)]
    common: Common,
}

impl Cancel {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let lone = self.ids.len() == 1;
        let mut failed = None;
        for id in &self.ids {
            match client.cancel(*id) {
                Ok(()) => say(&format!("Job {id} is cancelled."))?,
                Err(error) if lone => return Err(error.into()),
                // The others are still to be given up.
                Err(error) => {
                    note(&format!("error: job {id}: {error}"));
                    failed = super::verdict(&error.into()).map(|verdict| verdict.code);
                }
            }
        }
        match failed {
            Some(code) => Err(ExitWith(code).into()),
            None => Ok(()),
        }
    }
}
