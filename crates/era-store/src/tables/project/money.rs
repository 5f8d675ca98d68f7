//! Wallets' statements, and what jobs paid.

use era_core::ledger::{Account as Place, Posting, PostingReason};
use era_core::units::{JobId, UserId};

use super::Projection;
use crate::tables::hours::hour_of;
use crate::tables::rows::StatementRow;

impl Projection<'_> {
    pub(super) fn posted(&mut self, job: Option<JobId>, posting: &Posting) {
        let amount = posting.amount.0;
        if let Place::Wallet(account) = posting.from {
            self.moved(account, job, posting.reason, -amount);
        }
        if let Place::Wallet(account) = posting.to {
            self.moved(account, job, posting.reason, amount);
        }
        let Some(job) = job else { return };
        let Posting { from, to, reason, .. } = *posting;
        let hour = hour_of(self.at());
        self.change(job, |live, changes| {
            match (from, to) {
                (Place::Wallet(_), Place::Escrow(_)) => {
                    live.row.charged += amount;
                    changes.spent(&live.row, hour, |spent| spent.charged += amount);
                }
                (Place::Escrow(_), Place::Wallet(_)) => {
                    live.row.refunded += amount;
                    changes.spent(&live.row, hour, |spent| spent.refunded += amount);
                }
                _ => {}
            }
            if live.row.queue.is_some() {
                live.row.price = live.row.cost();
            } else if reason == PostingReason::Extension {
                live.row.price += amount;
            }
        });
    }

    fn moved(&mut self, account: UserId, job: Option<JobId>, reason: PostingReason, amount: i64) {
        let (seq, place, at) = (self.seq(), self.place, self.at());
        let wallet = self.account(account);
        wallet.balance = wallet.balance.saturating_add(amount);
        let balance = wallet.balance;
        let reason = word(reason).to_owned();
        // Whether it was simulated is not written with it: the job tells that.
        let simulated = false;
        let line =
            StatementRow { account, seq, place, at, job, reason, amount, balance, simulated };
        self.changes.statement.push(line);
    }
}

/// As the ledger writes it.
fn word(reason: PostingReason) -> &'static str {
    match reason {
        PostingReason::Grant => "grant",
        PostingReason::Withdraw => "withdraw",
        PostingReason::Charge => "charge",
        PostingReason::Extension => "extension",
        PostingReason::QueueEscrow => "queue_escrow",
        PostingReason::Earned => "earned",
        PostingReason::RefundUnused => "refund_unused",
        PostingReason::RefundBroken => "refund_broken",
        PostingReason::Returned => "returned",
    }
}
