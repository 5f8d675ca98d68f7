//! What owners and administrators may do to a job: give it up, give the rest back, prolong it,
//! change it while it waits.

use super::Step;
use super::submit::{check_queue_request, unit_ms};
use crate::accounts::Actor;
use crate::bid::{DURATION_MAX, Request};
use crate::cluster::Purpose;
use crate::job::{Job, Outcome, Overrun, Phase, Plan, Stop, StopReason, TaskId};
use crate::ledger::{Account, Posting, Reason};
use crate::market::Weights;
use crate::output::{Effect, Event};
use crate::refusal::Refusal;
use crate::search::Search;
use crate::starts::Starts;
use crate::units::{JobId, Money, Name, Span, Time};

impl Step<'_> {
    /// The job, if `by` may touch it: its owner, an administrator of its group, or of the house.
    fn owned(&self, id: JobId, by: Actor) -> Result<Job, Refusal> {
        let job = self.state.job(id)?;
        let allowed = match by {
            Actor::Administrator => true,
            Actor::User(user) if user == job.user => true,
            Actor::User(user) => {
                self.state.accounts.user(user).is_ok_and(|u| u.group_admin && u.group == job.group)
            }
        };
        if allowed { Ok(Job::clone(job)) } else { Err(Refusal::NotYours { job: id }) }
    }

    pub(super) fn cancel(&mut self, id: JobId, by: Actor) -> Result<(), Refusal> {
        self.give_up(id, by, Outcome::Cancelled)
    }

    /// Gives up all that is left of an array.
    pub(super) fn cancel_array(&mut self, id: JobId, by: Actor) -> Result<(), Refusal> {
        let book = match self.state.array(id) {
            Some(book) => *book,
            None => {
                self.state.job(id)?;
                return Err(Refusal::NoArray { job: id });
            }
        };
        let of_it = self.state.jobs.range(book.jobs());
        let jobs: Vec<JobId> = of_it.clone().map(|(id, _)| *id).collect();
        // All are their owner's, so whoever may touch one may touch all.
        let any = jobs.first().copied().unwrap_or(id);
        self.owned(any, by)?;
        let left = |job: &Job| job.ended.is_none() && !job.is_ending();
        let left: Vec<JobId> = of_it.filter(|(_, job)| left(job)).map(|(id, _)| *id).collect();
        if left.is_empty() {
            let hint = "there is nothing to stop".into();
            return Err(Refusal::WrongState { job: book.first, state: "ended".into(), hint });
        }
        for job in left {
            self.give_up(job, by, Outcome::Cancelled)?;
        }
        Ok(())
    }

    pub(super) fn release(&mut self, id: JobId, by: Actor) -> Result<(), Refusal> {
        let job = self.owned(id, by)?;
        if job.ended.is_none() && !job.parts.iter().any(|p| p.is_active()) {
            let state = job.state().to_owned();
            return Err(Refusal::WrongState { job: id, state, hint: "cancel it instead".into() });
        }
        self.give_up(id, by, Outcome::Released)
    }

    fn give_up(&mut self, id: JobId, by: Actor, outcome: Outcome) -> Result<(), Refusal> {
        let mut job = self.owned(id, by)?;
        if job.ended.is_some() || job.is_ending() {
            let state = job.state().to_owned();
            return Err(Refusal::WrongState {
                job: id,
                state,
                hint: "there is nothing to stop".into(),
            });
        }
        // What was stopping in order to go on later now stops for good.
        for index in 0..job.parts.len() {
            let Some(Stop {
                why: StopReason::Preempted | StopReason::Lost | StopReason::Drained,
                until,
            }) = job.parts[index].stop
            else {
                continue;
            };
            self.drop_next(&mut job, index);
            self.stop_part_until(&mut job, index, StopReason::Cancelled, until);
        }
        self.end_job(job, outcome);
        Ok(())
    }

    /// Gives up where a lost part was to go on.
    pub(super) fn drop_next(&mut self, job: &mut Job, index: usize) {
        let Some(next) = job.parts[index].next.take() else { return };
        let request = job.parts[index].request.clone();
        let attempt = job.parts[index].attempt + 1;
        self.state.unseat_plan(job.id, index, &next, attempt);
        self.state.release_plan(job.user, job.group, &request, &next);
        self.state.count_promise(job.user, &request, &next, true);
        // Until it is gone, the old attempt is what the books show.
        if let Some(plan) = job.parts[index].plan.clone() {
            self.state.commit_plan(job.user, job.group, &request, &plan);
            self.state.count_promise(job.user, &request, &plan, false);
        }
    }

    pub(super) fn extend(
        &mut self,
        id: JobId,
        by: Actor,
        span: Span,
        most: Money,
    ) -> Result<(), Refusal> {
        let job = self.owned(id, by)?;
        if span <= Span::ZERO || span > DURATION_MAX {
            return Err(Refusal::BadDuration { given: span, most: DURATION_MAX });
        }
        let running =
            |index: &usize| job.parts[*index].is_active() && job.parts[*index].stop.is_none();
        let index = (0..job.parts.len()).rev().find(running);
        let (Some(index), true) = (index, job.promise().is_some()) else {
            let state = job.state().to_owned();
            let hint = "only a running reservation can be extended";
            return Err(Refusal::WrongState { job: id, state, hint: hint.into() });
        };
        let price = self.extension_price(&job, index, span)?;
        if price > most {
            return Err(Refusal::PriceRose { price, most });
        }
        self.extend_part(job, index, span, price);
        Ok(())
    }

    /// What `span` more on the same seats costs now, if there is room, quota and money for it.
    fn extension_price(&self, job: &Job, index: usize, span: Span) -> Result<Money, Refusal> {
        let part = &job.parts[index];
        let plan = part.plan.as_ref().ok_or(Refusal::NoRoom)?;
        let (from, to) = (plan.to, plan.to + span);
        let limit = self.state.now + self.state.settings.horizon;
        if to > limit {
            return Err(Refusal::BeyondHorizon { earliest: to, limit });
        }
        if job.starts_after(index).is_some_and(|start| to > start) {
            return Err(Refusal::NoRoom);
        }
        if !self.seats_are_free(part, plan, from, to) {
            return Err(Refusal::NoRoom);
        }
        let pool = self.state.calendar.pool(&plan.pool).ok_or(Refusal::NoRoom)?;
        let request = Request { duration: span, ..Request::clone(&part.request) };
        let search = Search {
            calendar: &self.state.calendar,
            pool,
            request: &request,
            eligible: self.state.eligibility(&request, job.user, Purpose::Promise),
            now: self.state.now,
            soft_to: Time::MIN,
            with_soft: false,
            allowed: &Starts::All,
        };
        let raw = search.price_at(from).ok_or(Refusal::NoRoom)?;
        let price = Weights::price(raw).ok_or(Refusal::TooLarge)?;
        let units = request.units();
        let (usage, accounts) = (&self.state.usage, &self.state.accounts);
        usage.room(accounts, job.user, from, to, units)?;
        usage.check_period(accounts, job.user, self.state.now, unit_ms(&units, span.0), price)?;
        let balance = self.state.ledger.balance(Account::Wallet(job.user));
        if balance < price {
            return Err(Refusal::Funds { balance, needed: price });
        }
        Ok(price)
    }

    /// Whether the very seats of a plan are free for longer.
    fn seats_are_free(&self, part: &crate::job::Part, plan: &Plan, from: Time, to: Time) -> bool {
        // What starts within the grace period has made its room already.
        let soft_to = self.state.soft_to(self.state.now);
        let mut rows: std::collections::BTreeMap<crate::units::NodeId, crate::calendar::Row> =
            Default::default();
        for (rank, seat) in plan.seats.iter().enumerate() {
            let Some(lane) = self.state.calendar.lane(seat.node) else { return false };
            let each = part.each_of(plan, rank as u32);
            // What has exited needs no seat that its node has lost since.
            let over = part.tasks.get(rank).is_some_and(|task| !task.is_live());
            if over && !lane.has(&each, seat.gpus) {
                continue;
            }
            let row = rows.entry(seat.node).or_insert_with(|| lane.peak(from, to, soft_to));
            if !lane.seat_beside(row, &each, seat.gpus) {
                return false;
            }
        }
        true
    }

    fn extend_part(&mut self, mut job: Job, index: usize, span: Span, price: Money) {
        let Some(plan) = job.parts[index].plan.clone() else { return };
        // Growth was booked until the old end; it may grow again at the next pass.
        let until = (self.state.now + self.state.settings.grace).min(plan.to);
        let ranks: Vec<u32> = job.parts[index].extras.iter().map(|e| e.rank).collect();
        if !ranks.is_empty() {
            self.stop_extras(job.id, index, &ranks, until);
            let Some(fresh) = self.job(job.id) else { return };
            job = fresh;
        }
        let (from, escrow) = (Account::Wallet(job.user), Account::Escrow(job.id));
        let posting = Posting { from, to: escrow, amount: price, reason: Reason::Extension };
        self.post(Some(job.id), posting);
        self.state.usage.spend(job.user, job.group, job.submitted, price);
        let hours = unit_ms(&job.parts[index].request.units(), span.0);
        self.state.usage.charge_hours(job.user, job.group, job.submitted, hours);
        job.parts[index].escrow = Money(job.parts[index].escrow.0 + price.0);
        job.parts[index].prolonged = true;
        let to = plan.to + span;
        self.retime(&mut job, index, to);
        let (id, part) = (job.id, index as u16);
        self.events.push(Event::Extended { job: id, part, to, price });
        let attempt = job.parts[index].attempt;
        for (rank, (seat, task)) in plan.seats.iter().zip(&job.parts[index].tasks).enumerate() {
            if task.is_live() {
                let task = TaskId { job: id, part, attempt, rank: rank as u32 };
                self.effects.push(Effect::Prolong { task, node: seat.node, until: to });
            }
        }
        self.state.put_job(job);
    }

    /// A run's time is nearly over: it is extended while there is room and money, or stopped.
    pub(super) fn overrun(&mut self, id: JobId, index: u16) {
        let Some(mut job) = self.job(id) else { return };
        let index = usize::from(index);
        let part = &job.parts[index];
        let live = part.tasks.iter().any(|t| t.is_live());
        if !part.is_active() || part.stop.is_some() || !live {
            return;
        }
        let Some(to) = part.plan.as_ref().map(|p| p.to) else { return };
        let extends = job.promise().is_some_and(|p| p.overrun == Overrun::Extend);
        // Where time has jumped past its end, its guard has ended it.
        if extends && to > self.state.now {
            let span = self.state.settings.extend_by;
            if let Ok(price) = self.extension_price(&job, index, span) {
                return self.extend_part(job, index, span, price);
            }
        }
        let until = to.max(self.state.now);
        self.stop_part_until(&mut job, index, StopReason::Limit, until);
        self.state.put_job(job);
    }

    pub(super) fn edit(
        &mut self,
        id: JobId,
        by: Actor,
        priority: Option<i32>,
        limit: Option<Span>,
        queue: Option<Name>,
    ) -> Result<(), Refusal> {
        let mut job = self.owned(id, by)?;
        let user = job.user;
        let waits = job.is_waiting();
        let state = job.state().to_owned();
        let (crate::job::Deal::Queue(terms), true) = (&mut job.deal, waits) else {
            let hint = "only a waiting job can be edited";
            return Err(Refusal::WrongState { job: id, state, hint: hint.into() });
        };
        if let Some(name) = queue {
            let into = self.state.queue(&name)?;
            let there = self.state.waiting_count(&name);
            if name != terms.queue && there >= into.waiting_max as usize {
                let limit = into.waiting_max as usize;
                return Err(Refusal::Limit { what: "waiting jobs".into(), limit });
            }
            terms.queue = name;
        }
        if let Some(limit) = limit {
            let part = &mut job.parts[0];
            let changed = Request { duration: limit, ..Request::clone(&part.request) };
            check_queue_request(self.state, user, &changed)?;
            if limit <= part.done {
                let hint = format!("{} of it are done: give a longer limit", part.done);
                return Err(Refusal::WrongState { job: id, state, hint: hint.into() });
            }
            part.request = changed.into();
            part.hole = None;
        }
        if let Some(priority) = priority {
            job.priority = priority;
        }
        if let Some(member) = &mut job.array {
            member.edited = true;
        }
        debug_assert!(matches!(job.parts[0].phase, Phase::Waiting { .. }));
        self.events.push(Event::Edited { job: id });
        self.state.put_job(job);
        Ok(())
    }
}
