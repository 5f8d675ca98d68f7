//! `era code`: sends code as `era submit` does, and nothing else, for programs that hand jobs in by
//! themselves.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::connection::Common;
use super::look;
use super::submit::Along;
use crate::job::{Code, Draft};

/// Send code for jobs that are handed in by the API, and print its hash
///
/// The same files go along as with `era submit`: those of the folder that is named, or of the
/// working folder where the command names a file in it, without what .gitignore and .eraignore say.
#[derive(Debug, clap::Args)]
pub(crate) struct SendCode {
    /// The folder
    #[arg(long, value_name = "FOLDER", required_unless_present = "command")]
    code: Option<PathBuf>,
    /// The command that the job will run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// What was sent.
#[derive(Serialize)]
struct Sent {
    /// The hash of the code, if any goes along.
    code: Option<String>,
}

impl SendCode {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let code = self.code.map(Code::Folder);
        let mut draft = Draft { code, ..Draft::default() };
        draft.spec.work.command = self.command;
        let code = Along::of(&draft, Path::new(".")).upload(&self.common.client()?)?;
        look::print(self.common.output, &Sent { code }, |sent| match &sent.code {
            Some(hash) => format!("{hash}\n"),
            None => "The command names no file here: no code goes along.\n".to_owned(),
        })
    }
}
