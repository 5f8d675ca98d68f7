//! What jobs pay for: credits in escrow, and the hours and the spending that count with them in a
//! period.
//!
//! What a job has paid for and not settled follows from the job. Like every other book, this one is
//! written by [`State::edit`] alone, from the difference that an edit makes: what is new is paid,
//! what is longer is paid for, what is gone is settled. So credits, their place in a period and the
//! owner's fair share move together or not at all. What this does not know is why a run ends: an
//! edit says when and how ([`Ending`]).

use super::State;
use super::differences::differences;
use crate::job::Job;
use crate::ledger::{Account, Posting, PostingReason};
use crate::market::fixed_price;
use crate::queue::fair::dominant_share;
use crate::refusal::Refusal;
use crate::resources::PerResource;
use crate::units::{Money, Name, Span, Time};
use crate::usage::unit_ms;

/// Why a part of a promise is over, as far as money goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// It ended, early or not.
    Used,
    /// It could not be kept.
    Broken,
}

/// When and how that ends which an edit takes out of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) at: Time,
    pub(crate) how: Settlement,
}

/// What a job has paid for and not settled: a part of it, or a replica of growth.
#[derive(Clone, Copy, PartialEq)]
struct Charge<'a> {
    /// The part, and the rank of growth.
    of: (usize, Option<u32>),
    /// The attempt that it is for.
    attempt: u32,
    is_promise: bool,
    /// The instant in whose period it counts.
    counted: Time,
    pool: &'a Name,
    units: PerResource<u64>,
    /// What time is paid.
    from: Time,
    to: Time,
    /// When its run ends at the latest. Growth is not paid for longer where its gang is prolonged.
    until: Time,
    escrow: Money,
}

/// By part, growth by rank behind it.
fn charges(job: &Job) -> impl Iterator<Item = Charge<'_>> {
    let is_promise = job.promise().is_some();
    job.parts.iter().enumerate().flat_map(move |(index, part)| {
        let own = part.plan().map(move |plan| {
            let since = part.run().map_or(plan.from, |run| run.since);
            // A promise is paid when it is made, other work when it begins.
            let (counted, from) =
                if is_promise { (job.submitted, plan.from) } else { (since, since) };
            Charge {
                of: (index, None),
                attempt: part.attempt_of_plan(),
                is_promise,
                counted,
                pool: &plan.pool,
                units: part.request.units(),
                from,
                to: plan.to,
                until: plan.to,
                escrow: part.escrow(),
            }
        });
        let growth = part.run().into_iter().flat_map(move |run| {
            run.extras.iter().map(move |extra| Charge {
                of: (index, Some(extra.rank)),
                attempt: part.attempt,
                is_promise: false,
                counted: extra.since,
                pool: &run.plan.pool,
                units: part.request.each.units(1),
                from: extra.since,
                to: extra.to,
                until: run.plan.to,
                escrow: extra.escrow,
            })
        });
        own.into_iter().chain(growth)
    })
}

impl Charge<'_> {
    fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

impl State {
    /// What running queue work until its limit can cost at most.
    pub(crate) fn queue_price(
        &self,
        pool: &Name,
        units: &PerResource<u64>,
        span: Span,
    ) -> Result<Money, Refusal> {
        let rates = self.cluster.pool(pool)?.rates;
        let density = self.settings.queue_density;
        fixed_price(&rates, units, span.0, density).ok_or(Refusal::TooLarge)
    }

    /// Pays for what an edit brought, and settles what it took out.
    pub(super) fn pay(
        &mut self,
        before: Option<&Job>,
        after: Option<&Job>,
        ending: Ending,
    ) -> Vec<Posting> {
        let Some(job) = after.or(before) else { return Vec::new() };
        let (was, is) = (before.into_iter().flat_map(charges), after.into_iter().flat_map(charges));
        let (gone, new) = differences(was, is, |a, b| a.of.cmp(&b.of));
        let find = |list: &[Charge], of| list.iter().position(|charge| charge.of == of);
        let mut postings = Vec::new();
        for was in &gone {
            match find(&new, was.of).map(|at| &new[at]) {
                None => self.settle(job, was, ending, &mut postings),
                Some(is) if is.attempt == was.attempt => {
                    let hours = unit_ms(&is.units, is.length().0 - was.length().0);
                    let price = Money(is.escrow.0 - was.escrow.0);
                    let reason = PostingReason::Extension;
                    postings.extend(self.set_aside_use(job, is.counted, hours, price, reason));
                }
                // What goes on elsewhere takes with it what was paid.
                Some(_) => {}
            }
        }
        for is in new.iter().filter(|is| find(&gone, is.of).is_none()) {
            let hours = unit_ms(&is.units, is.length().0);
            let reason = match is.is_promise {
                true => PostingReason::Charge,
                false => PostingReason::QueueEscrow,
            };
            postings.extend(self.set_aside_use(job, is.counted, hours, is.escrow, reason));
        }
        postings
    }

    /// Takes what a use can cost at most into escrow, and counts it in a period. It counts as spent
    /// and used until it is settled: runs side by side must not use a quota twice.
    pub(super) fn set_aside_use(
        &mut self,
        job: &Job,
        counted: Time,
        hours: PerResource<u128>,
        credits: Money,
        reason: PostingReason,
    ) -> Option<Posting> {
        self.usage.charge(job.user, job.group, counted, hours, credits);
        self.move_credits(job, Account::Wallet(job.user), Account::Escrow(job.id), credits, reason)
    }

    /// What was used is earned, what was not is refunded by rule: of a promise a share of what is
    /// left of its time, of other work all that it did not use.
    fn settle(&mut self, job: &Job, charge: &Charge, ending: Ending, postings: &mut Vec<Posting>) {
        let Charge { counted, pool, units, from, to, escrow, .. } = *charge;
        let (wallet, held) = (Account::Wallet(job.user), Account::Escrow(job.id));
        let end = ending.at.clamp(from, charge.until);
        let (used, unused) = (end.since(from), to.since(end));
        let refund = if charge.is_promise {
            let (refund, reason) = match ending.how {
                Settlement::Used => {
                    let whole = escrow.part(unused.0, charge.length().0.max(1));
                    let share = self.settings.refund_unused;
                    (whole.part(i64::from(share.0), 1000), PostingReason::RefundUnused)
                }
                Settlement::Broken => {
                    let share = self.settings.refund_broken;
                    (escrow.part(i64::from(share.0), 1000), PostingReason::RefundBroken)
                }
            };
            let earned = Money(escrow.0 - refund.0);
            postings.extend(self.move_credits(job, held, wallet, refund, reason));
            postings.extend(self.earn(job, earned));
            refund
        } else {
            let cost = self.queue_price(pool, &units, used).unwrap_or(escrow).min(escrow);
            let rest = Money(escrow.0 - cost.0);
            postings.extend(self.earn(job, cost));
            postings.extend(self.move_credits(job, held, wallet, rest, PostingReason::Returned));
            rest
        };
        // Taken back in the period in which it was charged.
        self.usage.refund(job.user, job.group, counted, unit_ms(&units, unused.0), refund);
        let capacity = self.calendar.pool(pool).map_or([0; 3], |pool| pool.capacity());
        let share = dominant_share(&units, &capacity);
        let amount = share.saturating_mul(used.0.max(0).unsigned_abs());
        self.shares.add(job.user, self.now, amount, self.settings.fair_half_life);
    }

    fn earn(&mut self, job: &Job, amount: Money) -> Option<Posting> {
        let escrow = Account::Escrow(job.id);
        self.move_credits(job, escrow, Account::Revenue, amount, PostingReason::Earned)
    }

    /// Posts what was checked before to be possible. What costs nothing is no posting.
    fn move_credits(
        &mut self,
        job: &Job,
        from: Account,
        to: Account,
        amount: Money,
        reason: PostingReason,
    ) -> Option<Posting> {
        if amount <= Money::ZERO {
            return None;
        }
        let posting = Posting { from, to, amount, reason };
        let posted = self.ledger.post(self.now, Some(job.id), posting);
        debug_assert!(posted.is_ok(), "a posting was checked before: {posted:?}");
        posted.ok()
    }
}
