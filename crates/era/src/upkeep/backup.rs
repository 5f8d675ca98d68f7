//! `era admin backup` and `era admin restore`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use indicatif::HumanBytes;

use crate::own_folder;

/// Copy all that a server keeps into an empty folder, to one point in time
///
/// The server may run. Contents that never change are linked where the disk allows, so a backup
/// on the same disk takes little room: copy it elsewhere to be safe from the disk.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The folder of the server
    #[arg(long, value_name = "DIR", default_value = "era-data", env = "ERA_DATA")]
    data: PathBuf,
    /// Where the backup goes: a folder that is empty or is not there
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

impl Backup {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let made = runtime.block_on(era_app::upkeep::backup(&self.data, &self.to))?;
        // It is as private as what it was made from.
        own_folder::mark(&self.to)?;
        writeln!(
            std::io::stdout(),
            "{}: {} files, {}, up to entry {} of the journal\nbring it back: era admin restore {0} --data NEW_DIR",
            self.to.display(),
            made.files,
            HumanBytes(made.bytes),
            made.seq,
        )?;
        Ok(())
    }
}

/// Make the folder of a server from a backup
///
/// Every file is checked against its hash, and the tables are made anew, before the folder gets
/// its name.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "DIR")]
    backup: PathBuf,
    /// The folder that becomes the server's: empty, or not there
    #[arg(long, value_name = "DIR", default_value = "era-data", env = "ERA_DATA")]
    data: PathBuf,
}

impl Restore {
    pub(crate) fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let told = runtime.block_on(era_app::upkeep::restore(&self.backup, &self.data))?;
        own_folder::mark(&self.data)?;
        writeln!(
            std::io::stdout(),
            "{}: {} files, {}, up to entry {} of the journal\nstart it: era up --data {0}",
            self.data.display(),
            told.files,
            HumanBytes(told.bytes),
            told.seq,
        )?;
        Ok(())
    }
}
