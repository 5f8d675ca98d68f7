//! `era wallet`: credits, and where they went.

use era_api::account::{BudgetOf, StatementFilter, StatementLineView, Wallet};
use serde::Serialize;

use super::connection::Common;
use super::look::money::{Money, credits};
use super::look::{self, Look, right};
use crate::job::past;

/// Show what you have, and what came in and went out
#[derive(Debug, clap::Args)]
#[command(name = "wallet")]
pub(crate) struct WalletCommand {
    /// Another account, where you may see it
    #[arg(value_name = "NAME")]
    user: Option<String>,
    /// At most so many lines of the statement
    #[arg(short, long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    limit: u32,
    /// Lines for one of these reasons, by comma, such as charge,refund_unused
    #[arg(long, value_name = "WHY")]
    reason: Option<String>,
    /// Lines about this job
    #[arg(short, long, value_name = "JOB")]
    job: Option<u64>,
    /// Lines at or after
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Lines before
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// A wallet with its newest lines.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    wallet: Wallet,
    statement: Vec<StatementLineView>,
}

impl WalletCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let look = self.common.look();
        let user = match self.user {
            Some(user) => user,
            None => client.me()?.name,
        };
        let wallet = client.wallet(&user)?;
        let filter = StatementFilter {
            reason: self.reason,
            job: self.job,
            since: past::flag_past("--since", self.since.as_deref(), &look.now)?,
            until: past::flag_past("--until", self.until.as_deref(), &look.now)?,
            cursor: None,
            limit: Some(self.limit),
        };
        let statement =
            if self.limit == 0 { Vec::new() } else { client.statement(&user, &filter)?.items };
        look::print(self.common.output, &Whole { wallet, statement }, |whole| {
            render(&whole.wallet, &whole.statement, &look)
        })
    }
}

fn render(wallet: &Wallet, statement: &[StatementLineView], look: &Look) -> String {
    let mut text = format!(
        "{} has {} credits, {} set aside, {} spent in this period\n",
        wallet.user,
        credits(wallet.balance),
        credits(wallet.escrow),
        credits(wallet.spent)
    );
    for budget in &wallet.budgets {
        let whose = match budget.of {
            BudgetOf::Account => "its own",
            BudgetOf::Group => "its group's",
        };
        let until = look.time(wallet.period_to);
        let (left, limit) = (credits(budget.left), credits(budget.limit));
        text += &format!("{left} of {whose} budget of {limit} left until {until}\n");
    }
    if statement.is_empty() {
        return text;
    }
    let mut table = look.table(&["WHEN", "WHAT", "JOB", "AMOUNT", "BALANCE"]);
    let amounts = Money::of(statement.iter().map(|line| line.amount));
    let balances = Money::of(statement.iter().map(|line| line.balance));
    for line in statement {
        let mut what = line.reason.replace('_', " ");
        if line.simulated {
            what += " (simulated)";
        }
        table.add_row(vec![
            look.time(line.at).into(),
            what.into(),
            right(line.job.map_or_else(String::new, |job| job.to_string())),
            right(amounts.show(line.amount)),
            right(balances.show(line.balance)),
        ]);
    }
    text += &look::finish(&table);
    text
}

#[cfg(test)]
mod tests {
    use era_api::Credits;
    use era_api::account::Budget;

    use super::*;

    #[test]
    fn a_wallet_is_told_with_its_statement() {
        let wallet = Wallet {
            user: "ann".to_owned(),
            balance: Credits(87_500_000),
            escrow: Credits(0),
            spent: Credits(12_500_000),
            period_from: "2026-11-01T00:00:00Z".parse().unwrap(),
            period_to: "2026-12-01T00:00:00Z".parse().unwrap(),
            budgets: vec![Budget {
                of: BudgetOf::Group,
                name: "vision".to_owned(),
                limit: Credits(20_000_000),
                spent: Credits(12_500_000),
                left: Credits(7_500_000),
            }],
        };
        let line = StatementLineView {
            seq: 4,
            at: "2026-11-15T08:00:00Z".parse().unwrap(),
            job: Some(7),
            reason: "refund_unused".to_owned(),
            amount: Credits(-12_500_000),
            balance: Credits(87_500_000),
            simulated: false,
        };
        let other = StatementLineView { job: Some(8), simulated: true, ..line.clone() };
        insta::assert_snapshot!(render(&wallet, &[line, other], &look::plain()));
    }
}
