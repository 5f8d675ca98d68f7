//! `era sim`: the laboratory on the command line. One file a command.

mod bids;
mod bound;
mod generate;
mod market;
mod place;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Generate(generate::Generate),
    Place(place::Place),
    Bound(bound::Bound),
    Market(market::Market),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Generate(generate) => generate.run(),
            Sim::Place(place) => place.run(),
            Sim::Bound(bound) => bound.run(),
            Sim::Market(market) => market.run(),
        }
    }
}
