//! `era admin copy`: a site's rows moved from one database to another.

use std::io::{IsTerminal, Write};

use anyhow::Result;
use clap::Args;
use era_app::upkeep::CopyProgress;
use era_store::Place;
use indicatif::ProgressBar;

/// Copy all rows of a site into another database, with the server stopped
///
/// Every table is read back and compared by checksum, and the journal is carried out again there
/// and must lead to the same state. Until then the target says that it is half a copy, and no
/// server uses it; copying again begins anew. The source stays as it is. Contents and what jobs
/// wrote stay in the data folder: start the server with the same folder and the new database.
#[derive(Debug, Args)]
pub(crate) struct CopyCommand {
    /// Where the rows are: sqlite:DIR, mysql://… or postgres://…
    #[arg(long, value_name = "URL", env = "ERA_COPY_FROM", hide_env_values = true)]
    from: Place,
    /// Where they go: an empty database
    #[arg(long, value_name = "URL", env = "ERA_COPY_TO", hide_env_values = true)]
    to: Place,
}

impl CopyCommand {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let mut tell = |progress: CopyProgress| {
            bar.set_message(match progress {
                CopyProgress::Copied(table, rows) => format!("{table}: {rows} rows"),
                CopyProgress::Verified(table) => format!("{table}: the same"),
                CopyProgress::Replaying => "carrying the journal out again".to_owned(),
            });
            bar.tick();
        };
        let copied = era_app::upkeep::copy(&self.from, &self.to, &mut tell);
        let copied = runtime.block_on(copied)?;
        bar.finish_and_clear();
        writeln!(
            std::io::stdout(),
            "{}: {} rows of {} tables, each checked; up to entry {} of the journal, {} of them \
             carried out again\nstart it: era up --database {0}",
            self.to,
            copied.rows,
            copied.tables,
            copied.seq,
            copied.replayed,
        )?;
        Ok(())
    }
}
