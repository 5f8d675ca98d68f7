//! `era admin mechanism`: how prices are made.

use era_api::market::MechanismView;

use crate::cli::connection::Common;
use crate::cli::look;

/// Show or set how prices are made
#[derive(Debug, clap::Args)]
pub(crate) struct MechanismCommand {
    /// basic-econ, first-fit, on-demand or surge; where nothing is said, the one in force is shown
    name: Option<String>,
    /// Of first-fit and on-demand: the price, times the base rate
    #[arg(long, requires = "name")]
    density: Option<f64>,
    /// Of surge: the price when nothing is promised, times the base rate
    #[arg(long, requires = "name")]
    low: Option<f64>,
    /// Of surge: the price when everything is
    #[arg(long, requires = "name")]
    high: Option<f64>,
    /// Prices never fall below this times the base rate
    #[arg(long, requires = "name")]
    floor: Option<f64>,
    /// Nor rise above this
    #[arg(long, requires = "name")]
    ceiling: Option<f64>,
    #[command(flatten)]
    common: Common,
}

impl MechanismCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let now = client.market()?.mechanism;
        let mechanism = match self.name {
            None => now,
            Some(name) => {
                // Of the same mechanism what is not said stays.
                let now = if now.name == name {
                    now
                } else {
                    MechanismView { density: None, low: None, high: None, ..now }
                };
                let mechanism = MechanismView {
                    name,
                    density: self.density.or(now.density),
                    low: self.low.or(now.low),
                    high: self.high.or(now.high),
                    floor: self.floor.unwrap_or(now.floor),
                    ceiling: self.ceiling.unwrap_or(now.ceiling),
                };
                client.set_mechanism(&mechanism)?;
                mechanism
            }
        };
        look::print(self.common.output, &mechanism, |m| {
            format!("{}, between {} and {} times the base rate\n", m.name, m.floor, m.ceiling)
        })
    }
}
