//! `era admin rebuild`: tables made anew from the journal.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::Rows;
use crate::clock::instant;

/// Make the tables of a server anew from its journal
///
/// Lists, timelines, statements and reports are read from tables that follow from the journal.
/// If they are damaged, or a new version reads more out of the journal, this makes them anew. The
/// server may run; what it shows is incomplete until this is done.
#[derive(Debug, Args)]
pub(crate) struct Rebuild {
    /// The folder of the server
    #[arg(long, value_name = "DIR", default_value = "era-data", env = "ERA_DATA")]
    data: PathBuf,
    #[command(flatten)]
    database: Rows,
}

impl Rebuild {
    pub(crate) fn run(self) -> Result<()> {
        let began = instant();
        let place = self.database.place(&self.data);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entries = runtime.block_on(era_app::upkeep::rebuild(&self.data, &place))?;
        let seconds = began.elapsed().as_secs_f64();
        writeln!(
            std::io::stdout(),
            "the tables follow from {entries} entries of the journal, in {seconds:.1} s"
        )?;
        Ok(())
    }
}
