//! `era sim`: the laboratory on the command line. One file a command.

mod compare;
mod experiment;
mod generate;
mod run;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Compare(compare::Compare),
    Generate(generate::Generate),
    Run(run::Run),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Compare(compare) => compare.run(),
            Sim::Generate(generate) => generate.run(),
            Sim::Run(run) => run.run(),
        }
    }
}
