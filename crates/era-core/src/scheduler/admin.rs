//! The house: accounts, credits, queues, policies, rules, and what is published.

use std::sync::Arc;

use super::Step;
use crate::accounts::{Actor, Group, User};
use crate::calendar::Market;
use crate::estimate::Estimates;
use crate::event::Event;
use crate::forecast::Forecast;
use crate::job::{Hold, Job, Part};
use crate::ledger::{Account, Posting, PostingReason};
use crate::market::MarketRules;
use crate::queue::{Policies, PolicyRule, QUEUES_MAX, Queue};
use crate::quota::{Quota, QuotaPeriod};
use crate::refusal::{QuotaScope, Refusal};
use crate::settings::Settings;
use crate::units::{Milli, Money, Name, UserId};

impl Step<'_> {
    pub(super) fn put_group(&mut self, group: Group) -> Result<(), Refusal> {
        self.state.accounts.put_group(group)?;
        self.changed("group", None);
        Ok(())
    }

    pub(super) fn put_user(&mut self, user: User) -> Result<(), Refusal> {
        let before = self.state.accounts.user(user.id).map(|u| u.level).ok();
        let level = user.level;
        self.state.accounts.put_user(user)?;
        if before.is_some_and(|old| old != level) {
            // Promises count towards the cap of the level that their owner has now.
            self.state.derive();
        }
        self.changed("user", None);
        Ok(())
    }

    pub(super) fn set_quota(
        &mut self,
        by: Actor,
        scope: QuotaScope,
        quota: Quota,
    ) -> Result<(), Refusal> {
        match (scope, by) {
            (QuotaScope::User(user), by) => self.state.accounts.set_user_quota(by, user, quota)?,
            (QuotaScope::Group(group), Actor::Administrator) => {
                self.state.accounts.set_group_quota(group, quota)?;
            }
            (QuotaScope::Group(group), Actor::User(user)) => {
                return Err(Refusal::NotGroupAdmin { user, group });
            }
        }
        self.changed("quota", None);
        Ok(())
    }

    pub(super) fn grant(&mut self, user: UserId, amount: Money) -> Result<(), Refusal> {
        self.transfer(user, Account::Mint, Account::Wallet(user), amount, PostingReason::Grant)
    }

    pub(super) fn withdraw(&mut self, user: UserId, amount: Money) -> Result<(), Refusal> {
        self.transfer(user, Account::Wallet(user), Account::Mint, amount, PostingReason::Withdraw)
    }

    fn transfer(
        &mut self,
        user: UserId,
        from: Account,
        to: Account,
        amount: Money,
        reason: PostingReason,
    ) -> Result<(), Refusal> {
        self.state.accounts.user(user)?;
        let posting = Posting { from, to, amount, reason };
        let posting = self.state.ledger.post(self.state.now, None, posting)?;
        self.events.push(Event::Posted { job: None, posting });
        Ok(())
    }

    pub(super) fn put_queue(&mut self, queue: Queue) -> Result<(), Refusal> {
        self.state.policies.current(&queue.policy)?;
        if queue.share > Milli::ONE {
            return Err(Refusal::BadSetting {
                field: "share".into(),
                problem: "give at most 1000 thousandths".into(),
            });
        }
        let name = queue.name.clone();
        let queues = Arc::make_mut(&mut self.state.queues);
        match queues.iter().position(|q| q.name == name) {
            Some(at) => queues[at] = queue,
            None if queues.len() >= QUEUES_MAX => {
                return Err(Refusal::Limit { what: "queues".into(), limit: QUEUES_MAX });
            }
            None => queues.push(queue),
        }
        queues.sort_by(|a, b| (a.level, &a.name).cmp(&(b.level, &b.name)));
        self.state.derive_lines();
        self.changed("queue", Some(name));
        Ok(())
    }

    pub(super) fn remove_queue(&mut self, name: &Name) -> Result<(), Refusal> {
        self.state.queue(name)?;
        let used = |job: &crate::job::Job| {
            job.ended.is_none() && job.queue().is_some_and(|q| q.queue == *name)
        };
        if self.state.jobs().any(|job| used(job)) {
            let hint = "wait for its jobs, or move them to another queue";
            return Err(Refusal::InUse {
                what: "queue".into(),
                name: name.clone(),
                hint: hint.into(),
            });
        }
        Arc::make_mut(&mut self.state.queues).retain(|q| q.name != *name);
        self.changed("queue", Some(name.clone()));
        Ok(())
    }

    pub(super) fn publish_policy(&mut self, name: Name, rule: PolicyRule) -> Result<(), Refusal> {
        let mut policies = Policies::clone(&self.state.policies);
        policies.publish(name.clone(), rule)?;
        self.state.policies = Arc::new(policies);
        self.state.derive_lines();
        self.changed("policy", Some(name));
        Ok(())
    }

    pub(super) fn roll_back_policy(&mut self, name: &Name, version: u32) -> Result<(), Refusal> {
        let mut policies = Policies::clone(&self.state.policies);
        policies.roll_back(name, version)?;
        self.state.policies = Arc::new(policies);
        self.state.derive_lines();
        self.changed("policy", Some(name.clone()));
        Ok(())
    }

    pub(super) fn set_settings(&mut self, settings: Settings) -> Result<(), Refusal> {
        settings.check()?;
        let period = QuotaPeriod::new(settings.period)?;
        self.state.usage.set_period(period);
        self.clear_anew();
        self.state.settings = Arc::new(settings);
        // Slots, horizon and grace reach into the calendar and the timers.
        self.state.derive();
        self.changed("settings", None);
        Ok(())
    }

    /// Another grace period may let work in ahead of promises for which all had been told to give
    /// way: it is told again, in time.
    fn clear_anew(&mut self) {
        let cleared =
            |job: &&Arc<Job>| job.parts.iter().any(|part| matches!(part.coming(), Some((_, true))));
        let jobs = self.state.jobs.values().filter(cleared).map(|job| job.id);
        for id in jobs.collect::<Vec<_>>() {
            self.edit_job(id, |job| {
                let coming = job.parts.iter_mut().filter_map(Part::coming_mut);
                coming.for_each(|(_, cleared)| *cleared = false);
            });
        }
        let cleared = |hold: &&Arc<Hold>| !hold.cleared.is_empty();
        let holds = self.state.holds.values().filter(cleared).map(|hold| hold.id);
        for id in holds.collect::<Vec<_>>() {
            self.state.edit_hold(id, |hold| hold.cleared.clear());
        }
    }

    pub(super) fn set_market(&mut self, rules: MarketRules) -> Result<(), Refusal> {
        rules.check()?;
        let forecast = self.state.calendar.market().forecast.clone();
        self.state.calendar.reprice(Arc::new(Market::new(rules, forecast)));
        self.changed("market", None);
        Ok(())
    }

    pub(super) fn publish_forecast(&mut self, forecast: Arc<Forecast>) -> Result<(), Refusal> {
        forecast.check()?;
        for pool in forecast.pools.keys() {
            self.state.cluster.pool(pool)?;
        }
        let rules = self.state.calendar.market().rules.clone();
        self.state.calendar.reprice(Arc::new(Market::new(rules, forecast)));
        self.changed("forecast", None);
        Ok(())
    }

    pub(super) fn publish_estimates(&mut self, estimates: Arc<Estimates>) -> Result<(), Refusal> {
        estimates.check()?;
        self.state.estimates = estimates;
        let open = |job: &&Arc<Job>| job.ended.is_none() && job.queue().is_some();
        let jobs: Vec<Arc<Job>> = self.state.jobs.values().filter(open).cloned().collect();
        for job in jobs {
            let prediction = self.prediction(&job);
            if prediction != job.outlook.prediction {
                self.edit_job(job.id, |job| job.outlook.prediction = prediction);
            }
        }
        self.changed("estimates", None);
        Ok(())
    }
}
