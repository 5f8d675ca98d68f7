//! `era sim`: the laboratory on the command line. One file a command.

mod generate;
mod place;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Generate(generate::Generate),
    Place(place::Place),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Generate(generate) => generate.run(),
            Sim::Place(place) => place.run(),
        }
    }
}
