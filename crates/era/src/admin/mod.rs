//! `era admin`: what administrators do.

mod backup;
mod rebuild;

use clap::Subcommand;

/// What is administered.
#[derive(Subcommand)]
pub(crate) enum Admin {
    Rebuild(rebuild::Rebuild),
    Backup(backup::Backup),
    Restore(backup::Restore),
}

impl Admin {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Admin::Rebuild(rebuild) => rebuild.run(),
            Admin::Backup(backup) => backup.run(),
            Admin::Restore(restore) => restore.run(),
        }
    }
}
