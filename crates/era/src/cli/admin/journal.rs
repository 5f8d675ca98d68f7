//! `era admin journal`: the journal as a file.

use std::path::PathBuf;

use anyhow::Context;

use crate::cli::connection::Common;
use crate::cli::look::note;

/// Write the journal as `era replay` and `era tune` read it
#[derive(Debug, clap::Args)]
pub(crate) struct Journal {
    /// The file; standard output where nothing is said
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

impl Journal {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut journal = self.common.client()?.journal()?;
        match self.file {
            Some(path) => {
                let named = || path.display().to_string();
                let mut file = std::fs::File::create(&path).with_context(named)?;
                let bytes = std::io::copy(&mut journal, &mut file).with_context(named)?;
                note(&format!("{bytes} bytes in {}", path.display()));
            }
            None => _ = std::io::copy(&mut journal, &mut std::io::stdout().lock())?,
        }
        Ok(())
    }
}
