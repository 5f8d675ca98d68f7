//! `era sim`: the laboratory on the command line. One file a command.

mod place;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Place(place::Place),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Place(place) => place.run(),
        }
    }
}
