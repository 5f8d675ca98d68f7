//! `era admin credit`: gives and takes credits.

use era_api::Credits;
use era_api::account::Grant;

use crate::cli::connection::Common;
use crate::cli::look;

/// Give an account credits, or take them with an amount below zero
#[derive(Debug, clap::Args)]
pub(crate) struct Credit {
    /// The account
    name: String,
    /// How many
    #[arg(allow_hyphen_values = true)]
    amount: Credits,
    #[command(flatten)]
    common: Common,
}

impl Credit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let wallet = self.common.client()?.grant(&self.name, &Grant { amount: self.amount })?;
        look::print(self.common.output, &wallet, |wallet| {
            format!("{} has {} credits\n", wallet.user, wallet.balance)
        })
    }
}
