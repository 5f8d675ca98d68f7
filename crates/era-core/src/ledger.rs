//! Double-entry accounts in integer micro-credits.
//!
//! A posting moves an amount from one account to another, so the sum of all balances is zero at
//! every moment: credits come out of the mint, wait in a wallet or in the escrow of a job, and
//! end as revenue. The ledger does not know what a job costs, who may post, or whether a user
//! exists; it only sees to it that nothing is created, lost or spent twice.

use std::fmt;

use imbl::{OrdMap, Vector};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::units::{JobId, Money, Time, UserId};

/// Most lines that a statement keeps; older ones are in the journal and its tables.
pub const STATEMENT_LINES_MAX: usize = 1000;

/// Where credits can be. Written as `mint`, `revenue`, `wallet:3`, `escrow:17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Account {
    /// Where credits come from; its balance is minus what was ever granted and not withdrawn.
    Mint,
    /// What the cluster has earned. It may go below zero: a refund for a broken promise is owed
    /// even if nothing has been earned yet.
    Revenue,
    /// What a user can spend.
    Wallet(UserId),
    /// What was paid for a job and is not yet earned or given back.
    Escrow(JobId),
}

impl Account {
    /// Whether the account holds what somebody else is owed, and so may never go below zero.
    fn is_covered(self) -> bool {
        matches!(self, Account::Wallet(_) | Account::Escrow(_))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::Mint => f.write_str("mint"),
            Account::Revenue => f.write_str("revenue"),
            Account::Wallet(user) => write!(f, "wallet:{}", user.0),
            Account::Escrow(job) => write!(f, "escrow:{}", job.0),
        }
    }
}

/// Why a text is no [`Account`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an account: write mint, revenue, wallet:3 or escrow:17")]
pub struct BadAccount(String);

impl std::str::FromStr for Account {
    type Err = BadAccount;
    fn from_str(text: &str) -> Result<Account, BadAccount> {
        let account = match text.split_once(':') {
            None if text == "mint" => Some(Account::Mint),
            None if text == "revenue" => Some(Account::Revenue),
            Some(("wallet", id)) => id.parse().ok().map(|id| Account::Wallet(UserId(id))),
            Some(("escrow", id)) => id.parse().ok().map(|id| Account::Escrow(JobId(id))),
            _ => None,
        };
        // An account has one spelling: `wallet:03` and `wallet:+3` are none.
        account
            .filter(|account| account.to_string() == text)
            .ok_or_else(|| BadAccount(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for Account {
    type Error = BadAccount;
    fn try_from(text: String) -> Result<Account, BadAccount> {
        text.parse()
    }
}

impl From<Account> for String {
    fn from(account: Account) -> String {
        account.to_string()
    }
}

/// Why credits move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostingReason {
    /// An administrator gives credits to a user.
    Grant,
    /// An administrator takes credits back.
    Withdraw,
    /// A reservation is paid.
    Charge,
    /// More time for a job that would overrun is paid.
    Extension,
    /// The most that a queued job can use before its limit is set aside.
    QueueEscrow,
    /// What was used becomes revenue.
    Earned,
    /// Time that was paid and not used, by the rule for early ends.
    RefundUnused,
    /// A promise was broken.
    RefundBroken,
    /// What was set aside for queue work or growth and not used.
    Returned,
}

/// One movement of credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    pub from: Account,
    pub to: Account,
    /// More than zero, and at most [`Money::MOST`].
    pub amount: Money,
    pub reason: PostingReason,
}

/// A posting as the owner of a wallet sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    /// When it was posted.
    pub at: Time,
    /// The job that it is about.
    pub job: Option<JobId>,
    pub posting: Posting,
    /// What the wallet held then.
    pub balance_after: Money,
}

/// All accounts, and the newest lines of each user's statement. A clone shares structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    balances: OrdMap<Account, Money>,
    // A persistent vector rather than a shared list: a posting that follows a snapshot copies
    // one chunk, not a thousand lines.
    statements: OrdMap<UserId, Vector<StatementLine>>,
}

impl Ledger {
    /// What an account holds.
    pub fn balance(&self, account: Account) -> Money {
        self.balances.get(&account).copied().unwrap_or_default()
    }

    /// Every account that was ever posted to, in order; escrows only while they hold something.
    pub fn balances(&self) -> impl Iterator<Item = (Account, Money)> {
        self.balances.iter().map(|(account, balance)| (*account, *balance))
    }

    /// The newest lines of a user's statement, the oldest of them first.
    pub fn statement(&self, user: UserId) -> impl DoubleEndedIterator<Item = &StatementLine> {
        self.statements.get(&user).into_iter().flatten()
    }

    /// Moves credits, or refuses and changes nothing.
    pub fn post(
        &mut self,
        at: Time,
        job: Option<JobId>,
        posting: Posting,
    ) -> Result<Posting, Refusal> {
        let Posting { from, to, amount, .. } = posting;
        if amount <= Money::ZERO || amount > Money::MOST {
            return Err(Refusal::BadAmount { given: amount, most: Money::MOST });
        }
        let giver = debited(from, self.balance(from), amount)?;
        let before = if from == to { giver } else { self.balance(to) };
        let getter = credited(before, amount)?;
        self.set(from, giver);
        self.set(to, getter);
        self.note(from, at, job, posting);
        if from != to {
            self.note(to, at, job, posting);
        }
        Ok(posting)
    }

    /// Re-derives what must always hold: the balances add up to zero, nobody is owed what is not
    /// there, and each statement ends with its wallet's balance.
    pub fn check(&self) -> Result<(), String> {
        let sum: i128 = self.balances.values().map(|balance| i128::from(balance.0)).sum();
        if sum != 0 {
            return Err(format!("the balances add up to {sum} micro-credits, not to zero"));
        }
        for (account, balance) in self.balances() {
            if account.is_covered() && balance < Money::ZERO {
                return Err(format!("{account} holds {balance}"));
            }
            if matches!(account, Account::Escrow(_)) && balance == Money::ZERO {
                return Err(format!("{account} is empty and still kept"));
            }
        }
        for (user, lines) in &self.statements {
            let balance = self.balance(Account::Wallet(*user));
            let told = lines.last().map(|line| line.balance_after);
            if told != Some(balance) || lines.len() > STATEMENT_LINES_MAX {
                return Err(format!(
                    "{} lines of {user} end at {told:?}, the wallet holds {balance}",
                    lines.len()
                ));
            }
        }
        Ok(())
    }

    fn set(&mut self, account: Account, balance: Money) {
        // Jobs come and go for ever; an escrow that is settled must not stay behind.
        if balance == Money::ZERO && matches!(account, Account::Escrow(_)) {
            self.balances.remove(&account);
        } else {
            self.balances.insert(account, balance);
        }
    }

    fn note(&mut self, account: Account, at: Time, job: Option<JobId>, posting: Posting) {
        let Account::Wallet(user) = account else { return };
        let balance_after = self.balance(account);
        let lines = self.statements.entry(user).or_default();
        lines.push_back(StatementLine { at, job, posting, balance_after });
        if lines.len() > STATEMENT_LINES_MAX {
            lines.pop_front();
        }
    }
}

fn debited(account: Account, balance: Money, amount: Money) -> Result<Money, Refusal> {
    // Out of range only for the mint and revenue, thousands of largest amounts below zero.
    let room = Money(balance.0.saturating_sub(i64::MIN));
    let left = balance.minus(amount).ok_or(Refusal::BadAmount { given: amount, most: room })?;
    if account.is_covered() && left < Money::ZERO {
        return Err(Refusal::Funds { balance, needed: amount });
    }
    Ok(left)
}

fn credited(balance: Money, amount: Money) -> Result<Money, Refusal> {
    let room = Money(i64::MAX.saturating_sub(balance.0));
    balance.plus(amount).ok_or(Refusal::BadAmount { given: amount, most: room })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALICE: Account = Account::Wallet(UserId(1));
    const JOB: Account = Account::Escrow(JobId(17));

    fn posting(from: Account, to: Account, micro: i64) -> Posting {
        Posting { from, to, amount: Money(micro), reason: PostingReason::Grant }
    }

    fn post(ledger: &mut Ledger, from: Account, to: Account, micro: i64) -> Result<(), Refusal> {
        ledger.post(Time(0), None, posting(from, to, micro)).map(|_| ())
    }

    #[test]
    fn a_job_is_paid_earned_and_the_rest_refunded() {
        let mut ledger = Ledger::default();
        post(&mut ledger, Account::Mint, ALICE, 100).unwrap();
        post(&mut ledger, ALICE, JOB, 60).unwrap();
        post(&mut ledger, JOB, Account::Revenue, 44).unwrap();
        post(&mut ledger, JOB, ALICE, 16).unwrap();
        let balances: Vec<_> = ledger.balances().map(|(a, m)| (a.to_string(), m.0)).collect();
        assert_eq!(
            balances,
            [("mint".into(), -100), ("revenue".into(), 44), ("wallet:1".into(), 56)],
            "and the settled escrow is gone"
        );
        ledger.check().unwrap();
    }

    #[test]
    fn nobody_spends_what_is_not_there() {
        let mut ledger = Ledger::default();
        post(&mut ledger, Account::Mint, ALICE, 10).unwrap();
        let refusal = post(&mut ledger, ALICE, JOB, 11).unwrap_err();
        assert_eq!(refusal, Refusal::Funds { balance: Money(10), needed: Money(11) });
        assert!(matches!(post(&mut ledger, JOB, ALICE, 1), Err(Refusal::Funds { .. })));
        assert!(post(&mut ledger, ALICE, JOB, 10).is_ok());
    }

    #[test]
    fn an_amount_out_of_range_is_refused() {
        let mut ledger = Ledger::default();
        for micro in [0, -1, i64::MIN, Money::MOST.0 + 1, i64::MAX] {
            let refusal = post(&mut ledger, Account::Mint, ALICE, micro).unwrap_err();
            assert_eq!(refusal, Refusal::BadAmount { given: Money(micro), most: Money::MOST });
        }
        assert_eq!(ledger, Ledger::default());
    }

    #[test]
    fn a_balance_at_the_edge_of_its_range_is_refused_and_not_wrapped() {
        let mut ledger = Ledger::default();
        let most = Money::MOST.0;
        for _ in 0..i64::MAX / most {
            post(&mut ledger, Account::Mint, ALICE, most).unwrap();
        }
        let before = ledger.clone();
        let refusal = post(&mut ledger, Account::Mint, Account::Revenue, most).unwrap_err();
        // One more than above zero: the range reaches one further below.
        let room = Money(i64::MAX % most + 1);
        assert_eq!(refusal, Refusal::BadAmount { given: Money::MOST, most: room });
        let refusal = post(&mut ledger, Account::Revenue, ALICE, most).unwrap_err();
        let room = Money(i64::MAX % most);
        assert_eq!(refusal, Refusal::BadAmount { given: Money::MOST, most: room });
        assert_eq!(ledger, before);
        ledger.check().unwrap();
    }

    #[test]
    fn a_posting_to_oneself_moves_nothing_and_needs_the_funds() {
        let mut ledger = Ledger::default();
        assert!(post(&mut ledger, ALICE, ALICE, 1).is_err());
        post(&mut ledger, Account::Mint, ALICE, 5).unwrap();
        post(&mut ledger, ALICE, ALICE, 5).unwrap();
        assert_eq!(ledger.balance(ALICE), Money(5));
        assert_eq!(ledger.statement(UserId(1)).count(), 2);
        ledger.check().unwrap();
    }

    #[test]
    fn a_statement_shows_what_touched_the_wallet_and_what_was_left() {
        let mut ledger = Ledger::default();
        post(&mut ledger, Account::Mint, ALICE, 100).unwrap();
        ledger.post(Time(7), Some(JobId(17)), posting(ALICE, JOB, 60)).unwrap();
        post(&mut ledger, JOB, Account::Revenue, 60).unwrap();
        let lines: Vec<_> =
            ledger.statement(UserId(1)).map(|l| (l.at.0, l.job, l.balance_after.0)).collect();
        assert_eq!(lines, [(0, None, 100), (7, Some(JobId(17)), 40)]);
        assert_eq!(ledger.statement(UserId(2)).count(), 0);
    }

    #[test]
    fn a_statement_keeps_only_its_newest_lines() {
        let mut ledger = Ledger::default();
        for _ in 0..STATEMENT_LINES_MAX + 5 {
            post(&mut ledger, Account::Mint, ALICE, 1).unwrap();
        }
        assert_eq!(ledger.statement(UserId(1)).count(), STATEMENT_LINES_MAX);
        assert_eq!(ledger.statement(UserId(1)).next().unwrap().balance_after, Money(6));
        ledger.check().unwrap();
    }

    #[test]
    fn accounts_have_one_spelling() {
        for text in ["mint", "revenue", "wallet:3", "escrow:17"] {
            assert_eq!(text.parse::<Account>().unwrap().to_string(), text);
        }
        for bad in ["", "Mint", "mint:1", "wallet", "wallet:", "wallet:03", "wallet:+3", "escrow:x"]
        {
            assert!(bad.parse::<Account>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn accounts_are_keys_and_reasons_are_words_where_they_are_written() {
        let mut ledger = Ledger::default();
        post(&mut ledger, Account::Mint, ALICE, 7).unwrap();
        let json = serde_json::to_value(&ledger).unwrap();
        assert_eq!(json["balances"].to_string(), r#"{"mint":-7,"wallet:1":7}"#);
        assert_eq!(
            json["statements"]["1"][0]["posting"],
            serde_json::json!({"from": "mint", "to": "wallet:1", "amount": 7, "reason": "grant"})
        );
    }

    fn any_account() -> impl Strategy<Value = Account> {
        prop_oneof![
            2 => Just(Account::Mint),
            1 => Just(Account::Revenue),
            3 => (0..4u32).prop_map(|id| Account::Wallet(UserId(id))),
            3 => (0..4u64).prop_map(|id| Account::Escrow(JobId(id))),
        ]
    }

    proptest! {
        #[test]
        fn money_is_conserved_and_refused_postings_change_nothing(
            postings in prop::collection::vec((any_account(), any_account(), -2..50i64), 0..80)
        ) {
            let mut ledger = Ledger::default();
            for (from, to, micro) in postings {
                let before = ledger.clone();
                match post(&mut ledger, from, to, micro) {
                    Err(_) => prop_assert_eq!(&ledger, &before),
                    Ok(()) if from == to => {
                        prop_assert_eq!(ledger.balance(to), before.balance(to));
                    }
                    Ok(()) => {
                        prop_assert_eq!(ledger.balance(from).0, before.balance(from).0 - micro);
                        prop_assert_eq!(ledger.balance(to).0, before.balance(to).0 + micro);
                    }
                }
                prop_assert_eq!(ledger.check(), Ok(()));
            }
            let json = serde_json::to_string(&ledger).unwrap();
            prop_assert_eq!(serde_json::from_str::<Ledger>(&json).unwrap(), ledger);
        }
    }
}
