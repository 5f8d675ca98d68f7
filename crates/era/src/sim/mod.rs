//! `era sim`: the laboratory on the command line. One file a command.

mod estimate;
mod generate;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Estimate(estimate::Estimate),
    Generate(generate::Generate),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Estimate(estimate) => estimate.run(),
            Sim::Generate(generate) => generate.run(),
        }
    }
}
