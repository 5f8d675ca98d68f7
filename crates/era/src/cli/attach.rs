//! `era attach`: the terminal of a running job on this one.

use era_api::terminal::TerminalEnd;

use super::connection::Common;
use super::exit::{ExitWith, NO_CODE};
use super::look::note;
use super::terminal::{self, Left};

/// Attach to the terminal of a running job
///
/// For jobs that were submitted with --pty: their owner and administrators may. What was shown
/// last comes first, then every key goes to the job, Ctrl-C too. `~.` at the beginning of a line
/// leaves the job running. Several may be attached at once: all see the same, and all may type.
/// When the task ends, so does the command, with the task's code.
#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    /// Of several replicas, this one
    #[arg(long, value_name = "N", default_value_t = 0)]
    rank: u32,
    #[command(flatten)]
    common: Common,
}

impl Attach {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        terminal::must_be_here()?;
        match terminal::attend(&self.common, self.id, self.rank)? {
            Left::Over(TerminalEnd::Exited(0)) => Ok(()),
            Left::Over(TerminalEnd::Exited(code)) => {
                Err(ExitWith(u8::try_from(code).unwrap_or(NO_CODE)).into())
            }
            Left::Over(TerminalEnd::Lost(reason)) => {
                note(&format!("Its task was lost ({reason}); `era job {}` says more.", self.id));
                Err(ExitWith(NO_CODE).into())
            }
            Left::Detached => {
                note(&goes_on(self.id));
                Ok(())
            }
        }
    }
}

/// How to come back.
pub(crate) fn goes_on(id: u64) -> String {
    format!("Job {id} goes on: `era attach {id}` comes back to it, `era cancel {id}` ends it.")
}
