//! Upkeep of what a server keeps, on its own machine and with the server stopped: make the tables
//! anew, back up, restore, move to another database. Part of `era admin`.

mod backup;
mod copy;
mod rebuild;

use std::path::Path;

use clap::Args;
use era_store::Place;

pub(crate) use backup::{Backup, Restore};
pub(crate) use copy::CopyCommand;
pub(crate) use rebuild::Rebuild;

/// Where rows are kept.
#[derive(Debug, Args)]
pub(crate) struct Rows {
    /// Where rows are kept: sqlite:DIR, mysql://USER:PASSWORD@HOST/NAME or postgres://…; left out,
    /// files in the data folder. Put a password into the variable, where `ps` does not show it
    #[arg(long, value_name = "URL", env = "ERA_DATABASE", hide_env_values = true)]
    pub(crate) database: Option<Place>,
}

impl Rows {
    /// Where that is for a server with this folder.
    pub(crate) fn place(&self, data: &Path) -> Place {
        self.database.clone().unwrap_or_else(|| Place::folder(data))
    }
}
