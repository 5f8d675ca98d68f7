//! `era sim`: the laboratory on the command line. One file a command.

mod bids;
mod bound;
mod market;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Bound(bound::Bound),
    Market(market::Market),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Bound(bound) => bound.run(),
            Sim::Market(market) => market.run(),
        }
    }
}
