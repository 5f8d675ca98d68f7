//! `era admin mechanism`: how prices are made.

use era_api::market::Mechanism;

use crate::cli::connection::Common;
use crate::cli::look;

/// Show or set how prices are made
#[derive(Debug, clap::Args)]
pub(crate) struct MechanismCommand {
    /// basic-econ, first-fit, on-demand or surge; where nothing is said, the one in force is shown
    name: Option<String>,
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
                let mechanism = Mechanism {
                    name,
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
