//! Money: what was used is earned, what was not is refunded by rule.

use super::Step;
use super::submit::unit_ms;
use crate::estimate::feature::Subject;
use crate::event::Event;
use crate::job::{Attempt, Extra, Job, Plan};
use crate::ledger::{Account, Posting, PostingReason};
use crate::market::fixed_price;
use crate::outlook::Prediction;
use crate::queue::fair::dominant_share;
use crate::refusal::Refusal;
use crate::resources::PerResource;
use crate::units::{JobId, Milli, Money, Name, Span, Time};

/// Why a part of a promise is over, as far as money goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// It ended, early or not.
    Used,
    /// It could not be kept.
    Broken,
}

impl Step<'_> {
    /// Posts what was checked before to be possible.
    pub(super) fn post(&mut self, job: Option<JobId>, posting: Posting) {
        if posting.amount <= Money::ZERO {
            return;
        }
        let posted = self.state.ledger.post(self.state.now, job, posting);
        debug_assert!(posted.is_ok(), "a posting was checked before: {posted:?}");
        if let Ok(posting) = posted {
            self.events.push(Event::Posted { job, posting });
        }
    }

    fn pay_out(&mut self, job: &Job, to: Account, amount: Money, reason: PostingReason) {
        let from = Account::Escrow(job.id);
        self.post(Some(job.id), Posting { from, to, amount, reason });
    }

    /// Settles a part of a promise at the end of its run, or without one.
    pub(super) fn settle_promise(&mut self, job: &Job, part: usize, how: Settlement, end: Time) {
        let settings = self.state.settings.clone();
        let escrow = job.parts[part].escrow();
        let Some(plan) = job.parts[part].plan() else { return };
        let whole = plan.to.since(plan.from).0.max(1);
        let unused = plan.to.since(end.clamp(plan.from, plan.to)).0;
        let (refund, reason) = match how {
            Settlement::Used => (
                escrow.part(unused, whole).part(i64::from(settings.refund_unused.0), 1000),
                PostingReason::RefundUnused,
            ),
            Settlement::Broken => (
                escrow.part(i64::from(settings.refund_broken.0), 1000),
                PostingReason::RefundBroken,
            ),
        };
        self.pay_out(job, Account::Wallet(job.user), refund, reason);
        let earned = Money(escrow.0 - refund.0);
        self.pay_out(job, Account::Revenue, earned, PostingReason::Earned);
        let units = job.parts[part].request.units();
        // Counted in the period in which it was charged.
        let charged_at = job.submitted;
        self.state.usage.unspend(job.user, job.group, charged_at, refund);
        let hours = unit_ms(&units, unused);
        self.state.usage.refund_hours(job.user, job.group, charged_at, hours);
        self.count_use(job, &plan.pool, &units, Span(whole - unused));
    }

    /// What running queue work until its limit can cost at most.
    pub(super) fn queue_price(
        &self,
        pool: &Name,
        units: &PerResource<u64>,
        span: Span,
    ) -> Result<Money, Refusal> {
        let rates = self.state.cluster.pool(pool)?.rates;
        let density = self.state.settings.queue_density;
        fixed_price(&rates, units, span.0, density).ok_or(Refusal::TooLarge)
    }

    /// Sets aside what a run without a promise can cost at most.
    pub(super) fn escrow(
        &mut self,
        job: &Job,
        amount: Money,
        units: &PerResource<u64>,
        span: Span,
    ) {
        let (from, to) = (Account::Wallet(job.user), Account::Escrow(job.id));
        self.post(Some(job.id), Posting { from, to, amount, reason: PostingReason::QueueEscrow });
        // Counted as spent until it is settled: runs side by side must not spend a quota twice.
        self.state.usage.spend(job.user, job.group, self.state.now, amount);
        // Hours, like credits, are set aside too: what runs side by side cannot exceed a quota.
        let hours = unit_ms(units, span.0);
        self.state.usage.charge_hours(job.user, job.group, self.state.now, hours);
    }

    /// Settles a run without a promise: what was used is paid, the rest comes back.
    fn settle_use(
        &mut self,
        job: &Job,
        pool: &Name,
        units: &PerResource<u64>,
        (since, until): (Time, Time),
        used: Span,
        escrow: Money,
    ) {
        let cost = self.queue_price(pool, units, used).unwrap_or(escrow).min(escrow);
        self.pay_out(job, Account::Revenue, cost, PostingReason::Earned);
        let rest = Money(escrow.0 - cost.0);
        self.pay_out(job, Account::Wallet(job.user), rest, PostingReason::Returned);
        self.state.usage.unspend(job.user, job.group, since, rest);
        let unused = unit_ms(units, until.since(since).0 - used.0);
        self.state.usage.refund_hours(job.user, job.group, since, unused);
        self.count_use(job, pool, units, used);
    }

    /// Settles the run of queue work that was over at `end`.
    pub(super) fn settle_queue(&mut self, job: &Job, end: Time) {
        let part = job.first_part();
        let Some(Attempt { plan, since, escrow, .. }) = part.run() else { return };
        let used = end.min(plan.to).since(*since);
        let units = part.request.units();
        self.settle_use(job, &plan.pool, &units, (*since, plan.to), used, *escrow);
    }

    /// Settles a replica beyond the promise that was gone at `end`.
    pub(super) fn settle_extra(
        &mut self,
        job: &Job,
        part: usize,
        plan: &Plan,
        extra: &Extra,
        end: Time,
    ) {
        let used = end.min(plan.to).since(extra.since);
        let units = job.parts[part].request.each.units(1);
        self.settle_use(job, &plan.pool, &units, (extra.since, extra.to), used, extra.escrow);
    }

    /// Counts use towards the owner's fair share.
    fn count_use(&mut self, job: &Job, pool: &Name, units: &PerResource<u64>, used: Span) {
        let capacity = self.state.calendar.pool(pool).map_or([0; 3], |pool| pool.capacity());
        let share = dominant_share(units, &capacity);
        let amount = share.saturating_mul(used.0.max(0).unsigned_abs());
        let half_life = self.state.settings.fair_half_life;
        self.state.shares.add(job.user, self.state.now, amount, half_life);
    }

    /// Remembers how long a run took, for predictions to come.
    pub(super) fn note_run(&mut self, job: &Job, took: Span) {
        if job.queue().is_some() {
            Subject::from(job).end(&mut self.state.histories, took);
        }
    }

    /// How a job will go, by what is known at this moment.
    pub(super) fn prediction(&self, job: &Job) -> Option<Prediction> {
        self.state.estimates.predict(&self.state.features_of(job))
    }

    /// Learns how long a run took compared with what was stated: a moving mean of eight.
    pub(super) fn note_duration(&mut self, job: &Job, stated: Span, took: Span) {
        let ratio = (i128::from(took.0.max(0)) * 1000 / i128::from(stated.0.max(1))).min(1_000_000);
        let ratio = u32::try_from(ratio).unwrap_or(1000);
        let before = self.state.errors.get(&job.user).copied();
        let mean = before.map_or(ratio, |old| (old.0 * 7 + ratio) / 8);
        self.state.errors.insert(job.user, Milli(mean));
    }
}
