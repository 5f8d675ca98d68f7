//! `era shim`: the supervisor of a node. Started by the server, not by people.

use std::path::PathBuf;

use clap::Args;

/// Look after the tasks of this node (started by the server, which it outlives)
#[derive(Args)]
pub(crate) struct Shim {
    /// The supervisor's folder
    #[arg(long, required_unless_present = "keeper")]
    folder: Option<PathBuf>,
    /// Be the parent of one task at a time, told on standard input
    #[arg(long, hide = true)]
    keeper: bool,
}

impl Shim {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let clock = crate::clock::machine();
        match &self.folder {
            Some(folder) if !self.keeper => {
                let keeper = ["shim", "--keeper"].map(String::from);
                Ok(era_cloud::shim::run(folder, &keeper, clock)?)
            }
            _ => Ok(era_cloud::shim::keep(clock)?),
        }
    }
}
