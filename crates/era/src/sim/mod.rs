//! `era sim`: the laboratory on the command line. One file a command.

mod bids;
mod bound;
mod compare;
mod estimate;
mod experiment;
mod generate;
mod market;
mod place;
mod run;

/// What the laboratory can do.
#[derive(clap::Subcommand)]
pub(crate) enum Sim {
    Compare(compare::Compare),
    Estimate(estimate::Estimate),
    Generate(generate::Generate),
    Place(place::Place),
    Bound(bound::Bound),
    Market(market::Market),
    Run(run::Run),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Sim::Compare(compare) => compare.run(),
            Sim::Estimate(estimate) => estimate.run(),
            Sim::Generate(generate) => generate.run(),
            Sim::Place(place) => place.run(),
            Sim::Bound(bound) => bound.run(),
            Sim::Market(market) => market.run(),
            Sim::Run(run) => run.run(),
        }
    }
}
