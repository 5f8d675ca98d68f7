//! What owners and administrators may do to a job: give it up, give the rest back, prolong it,
//! change it while it waits.

use std::sync::Arc;

use super::Step;
use super::submit::check_queue_request;
use crate::accounts::Actor;
use crate::bid::{DURATION_MAX, Request};
use crate::cluster::Purpose;
use crate::event::Event;
use crate::job::{Attempt, Job, JobTerms, Outcome, Overrun, Plan, Stop, StopReason, TaskId};
use crate::ledger::Account;
use crate::market::Weights;
use crate::output::Effect;
use crate::refusal::Refusal;
use crate::search::Search;
use crate::starts::Starts;
use crate::units::{JobId, Money, Name, Span, Time};
use crate::usage::unit_ms;

impl Step<'_> {
    /// The job, if `by` may touch it: its owner, an administrator of its group, or of the house.
    fn owned(&self, id: JobId, by: Actor) -> Result<Arc<Job>, Refusal> {
        let job = self.state.job(id)?;
        let allowed = match by {
            Actor::Administrator => true,
            Actor::User(user) if user == job.user => true,
            Actor::User(user) => {
                self.state.accounts.user(user).is_ok_and(|u| u.group_admin && u.group == job.group)
            }
        };
        if allowed { Ok(job.clone()) } else { Err(Refusal::NotYours { job: id }) }
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
        let job = self.owned(id, by)?;
        if job.ended.is_some() || job.is_ending() {
            let state = job.state().to_owned();
            return Err(Refusal::WrongState {
                job: id,
                state,
                hint: "there is nothing to stop".into(),
            });
        }
        // What was stopping in order to go on later now stops for good.
        for (index, part) in job.parts.iter().enumerate() {
            let Some(Stop {
                why: StopReason::Preempted | StopReason::Lost | StopReason::Drained,
                until,
            }) = part.stop()
            else {
                continue;
            };
            self.edit_run(id, index, |run| run.go_on(None));
            self.stop_part_until(id, index, StopReason::Cancelled, until);
        }
        self.end_job(id, outcome);
        Ok(())
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
        let running = |index: &usize| job.parts[*index].run().is_some_and(|run| !run.is_stopping());
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
        self.extend_part(id, index, span, price);
        Ok(())
    }

    /// What `span` more on the same seats costs now, if there is room, quota and money for it.
    fn extension_price(&self, job: &Job, index: usize, span: Span) -> Result<Money, Refusal> {
        let part = &job.parts[index];
        let plan = part.plan().ok_or(Refusal::NoRoom)?;
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
        let mut rows: std::collections::BTreeMap<crate::units::NodeId, crate::calendar::Load> =
            Default::default();
        for (rank, seat) in plan.seats.iter().enumerate() {
            let Some(node_calendar) = self.state.calendar.node(seat.node) else { return false };
            let each = part.each_of(plan, rank as u32);
            // What has exited needs no seat that its node has lost since.
            let over = part.tasks().get(rank).is_some_and(|task| !task.is_live());
            if over && !node_calendar.has(&each, seat.gpus) {
                continue;
            }
            let row =
                rows.entry(seat.node).or_insert_with(|| node_calendar.peak(from, to, soft_to));
            if !node_calendar.seat_beside(row, &each, seat.gpus) {
                return false;
            }
        }
        true
    }

    fn extend_part(&mut self, id: JobId, index: usize, span: Span, price: Money) {
        let Some(job) = self.job(id) else { return };
        let part = &job.parts[index];
        let Some(Attempt { plan, tasks, .. }) = part.run() else { return };
        // Growth was booked until the old end; it may grow again at the next pass.
        self.stop_extras_now(id, index);
        let to = plan.to + span;
        self.edit_run(id, index, |run| {
            run.escrow = Money(run.escrow.0 + price.0);
            run.prolonged = true;
            run.plan.to = to;
        });
        self.events.push(Event::Extended { job: id, part: index as u16, to, price });
        let (attempt, of_part) = (part.attempt, index as u16);
        for (rank, (seat, task)) in (0u32..).zip(plan.seats.iter().zip(tasks)) {
            if task.is_live() {
                let task = TaskId { job: id, part: of_part, attempt, rank };
                self.effects.push(Effect::Prolong { task, node: seat.node, until: to });
            }
        }
    }

    /// A run's time is nearly over: it is extended while there is room and money, or stopped.
    pub(super) fn overrun(&mut self, id: JobId, index: u16) {
        let Some(job) = self.job(id) else { return };
        let index = usize::from(index);
        let Some(run) = job.parts[index].run().filter(|run| !run.is_stopping()) else { return };
        if !run.tasks.iter().any(|t| t.is_live()) {
            return;
        }
        let to = run.plan.to;
        let extends = job.promise().is_some_and(|p| p.overrun == Overrun::Extend);
        // Where time has jumped past its end, its guard has ended it.
        if extends && to > self.state.now {
            let span = self.state.settings.extend_by;
            if let Ok(price) = self.extension_price(&job, index, span) {
                return self.extend_part(id, index, span, price);
            }
        }
        let until = to.max(self.state.now);
        self.stop_part_until(id, index, StopReason::Limit, until);
    }

    pub(super) fn edit(
        &mut self,
        id: JobId,
        by: Actor,
        priority: Option<i32>,
        limit: Option<Span>,
        queue: Option<Name>,
    ) -> Result<(), Refusal> {
        let job = self.owned(id, by)?;
        let (JobTerms::Queue(terms), true) = (&job.terms, job.is_waiting()) else {
            let hint = "only a waiting job can be edited";
            let state = job.state().to_owned();
            return Err(Refusal::WrongState { job: id, state, hint: hint.into() });
        };
        if let Some(name) = &queue {
            let into = self.state.queue(name)?;
            let there = self.state.waiting_count(name);
            if *name != terms.queue && there >= into.waiting_max as usize {
                let limit = into.waiting_max as usize;
                return Err(Refusal::Limit { what: "waiting jobs".into(), limit });
            }
        }
        let request = limit.map(|limit| self.limited(&job, limit)).transpose()?;
        self.events.push(Event::Edited { job: id });
        self.edit_job(id, |job| {
            if let (JobTerms::Queue(terms), Some(name)) = (&mut job.terms, queue) {
                terms.queue = name;
            }
            if let Some(request) = request {
                let part = job.first_part_mut();
                part.request = request.into();
                part.keep_hole(None);
            }
            job.priority = priority.unwrap_or(job.priority);
            if let Some(member) = &mut job.array {
                member.edited = true;
            }
        });
        Ok(())
    }

    /// What a waiting job asks for, with another limit.
    fn limited(&self, job: &Job, limit: Span) -> Result<Request, Refusal> {
        let part = job.first_part();
        let changed = Request { duration: limit, ..Request::clone(&part.request) };
        check_queue_request(self.state, job.user, &changed)?;
        if limit <= part.done {
            let hint = format!("{} of it are done: give a longer limit", part.done);
            let state = job.state().to_owned();
            return Err(Refusal::WrongState { job: job.id, state, hint: hint.into() });
        }
        Ok(changed)
    }
}
