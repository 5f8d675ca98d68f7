//! `era accept`: takes a quote that was held. What was quoted is remembered between the two.

use std::path::{Path, PathBuf};

use anyhow::Context;
use era_api::job::JobSpec;
use era_api::quote::QuoteView;
use serde::{Deserialize, Serialize};

use super::config::{folder, write_private};
use super::connection::Common;
use super::exit::BadUsage;
use super::submit::{self, Along, names_a_file};
use crate::job::Draft;

/// Take a quote that `era quote --hold` set aside
///
/// The job is the one that was quoted; a command can still be given, or another one.
#[derive(Debug, clap::Args)]
pub(crate) struct Accept {
    /// The hold's number, as `era quote --hold` told it
    #[arg(value_name = "HOLD")]
    hold: u64,
    /// The folder that is uploaded and becomes the working folder
    #[arg(long, value_name = "FOLDER")]
    code: Option<PathBuf>,
    /// The command and its arguments, where the quote had none
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// What was quoted.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    job: JobSpec,
    along: Along,
    quote: QuoteView,
}

impl Accept {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let path = place(self.hold)?;
        let held = std::fs::read(&path).map_err(|_| {
            BadUsage(format!(
                "hold {} was not made here: make one with `era quote --hold`",
                self.hold
            ))
        })?;
        let mut held: Held = serde_json::from_slice(&held)
            .with_context(|| format!("what was quoted, in {}", path.display()))?;
        let given = !self.command.is_empty();
        if given {
            held.job.work.command = self.command;
        }
        if held.job.work.command.is_empty() {
            return Err(crate::job::JobError::NoCommand.into());
        }
        let client = self.common.client()?;
        let along = match self.code {
            Some(folder) => Along::folder(folder),
            None if given && names_a_file(&held.job.work.command, Path::new(".")) => {
                Along::folder(".".into())
            }
            None => held.along,
        };
        held.job.work.code = along.upload(&client)?;
        take(&mut held.job, self.hold);
        let submitted = client.submit(&held.job)?;
        // The hold is used up; a file left behind would only be refused.
        let _ = std::fs::remove_file(&path);
        let look = self.common.look();
        super::look::print(self.common.output, &submitted, |s| {
            submit::render(s, submit::standing(&client, s).as_ref(), &look)
        })
    }
}

/// Makes a job take what was set aside. What it is worth was said when the price was made, and is
/// not said again.
pub(super) fn take(job: &mut JobSpec, hold: u64) {
    (job.hold, job.value, job.most) = (Some(hold), None, None);
}

fn place(hold: u64) -> anyhow::Result<PathBuf> {
    let folder = folder().context("no home folder: set ERA_CONFIG to a folder of your own")?;
    Ok(folder.join("holds").join(format!("{hold}.json")))
}

/// Keeps what was quoted until it is taken.
pub(crate) fn remember(hold: u64, draft: &Draft, quote: &QuoteView) -> anyhow::Result<()> {
    // What would go along if it were handed in now, from here.
    let along = Along::of(draft, Path::new(".")).absolute()?;
    let held = Held { job: draft.spec.clone(), along, quote: quote.clone() };
    write_private(&place(hold)?, &serde_json::to_vec_pretty(&held)?)
}
