//! What was promised on hardware that is gone, or about to be: moved at the start that was told,
//! planned anew within its window, or refunded as broken.

use std::sync::Arc;

use super::Step;
use crate::bid::Request;
use crate::calendar::{BookingHolder, Calendar, PoolCalendar};
use crate::cluster::Purpose;
use crate::event::Event;
use crate::job::{Job, Outcome, Part, Plan, Stop, StopReason, Task};
use crate::output::{Effect, Notification};
use crate::search::Search;
use crate::starts::Starts;
use crate::units::{HoldId, JobId, NodeId, Time, UserId};

/// Whether a promise may be given another start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Only other nodes, at the start that was told.
    SameStart,
    /// Another start within the window, or broken: hardware or time was lost.
    Whatever {
        /// What was lost.
        why: &'static str,
    },
}

/// The end of a promise that was stopped for this and has nowhere to go on.
pub(super) fn broken_by(why: StopReason) -> Outcome {
    let what = match why {
        StopReason::Drained => "its node was drained",
        _ => "hardware was lost",
    };
    Outcome::Broken { reason: format!("{what} and no room was left in the window") }
}

impl Step<'_> {
    /// A running gang is lost: the rest of it is stopped until `fence`, and it goes on after
    /// that: a promise at once and within its window, queue work in its queue.
    pub(super) fn gang_lost(
        &mut self,
        id: JobId,
        index: usize,
        fence: Time,
        why: StopReason,
        reason: &str,
    ) {
        let Some(job) = self.job(id) else { return };
        let Some(run) = job.parts[index].run() else { return };
        // Those of a gang that was failing were told when to be gone; where their time is over,
        // they are.
        let told = run.stop().map_or(fence, |stop| stop.until.min(fence));
        // Its guard ends it with its plan.
        let fence = told.min(run.plan.to).max(self.state.now);
        self.edit_run(id, index, |run| {
            run.stopping.iter_mut().for_each(|stopping| stopping.silent = true);
            let tasks = run.tasks.iter_mut();
            tasks.filter(|task| **task == Task::Unanswered).for_each(|task| *task = Task::Lost);
            run.tell(Stop { why, until: fence });
        });
        let broken = job.promise().is_some() && !self.plan_anew(id, index, fence);
        if broken {
            self.events.push(Event::Broken { job: id, reason: reason.to_owned() });
        }
        self.stop_part_until(id, index, why, fence);
        if broken && self.part(id, index).is_some_and(Part::has_live_tasks) {
            return self.end_job(id, broken_by(why));
        }
        self.finish_if_quiet(id, index);
    }

    /// Plans what is left of a promise that was stopped, for when all of it is gone; says whether
    /// there is room for it.
    fn plan_anew(&mut self, id: JobId, index: usize, fence: Time) -> bool {
        let Some(job) = self.job(id) else { return false };
        let part = &job.parts[index];
        let request = Request::clone(&part.request);
        let remaining = Request { duration: part.remaining(), ..request };
        let gone = part.gone_by().unwrap_or(fence);
        let next = self.replan(&self.state.calendar, &job, index, &remaining, gone);
        if let Some(plan) = next.clone() {
            self.events.push(Event::Replanned { job: id, part: index as u16, plan });
            let user = job.user;
            self.effects.push(Effect::Notify {
                user,
                job: id,
                notification: Notification::Replanned,
            });
        }
        let found = next.is_some();
        self.edit_run(id, index, |run| run.go_on(next));
        found
    }

    /// The earliest room for what is left of a promise, from `from` on, within its window and
    /// between the parts that it has to keep order with.
    fn replan(
        &self,
        calendar: &Calendar,
        job: &Job,
        index: usize,
        request: &Request,
        from: Time,
    ) -> Option<Plan> {
        let user = job.user;
        // Prices, and so promises, reach no further than the horizon.
        let deadline = request.window.deadline.min(self.state.now + self.state.settings.horizon);
        let deadline = job.starts_after(index).map_or(deadline, |start| start.min(deadline));
        let latest = deadline - request.duration;
        let from = from.max(request.window.earliest).max(self.state.now);
        let from = job.finished_before(index).map_or(from, |finish| finish.max(from));
        let mut best: Option<(Time, &Arc<PoolCalendar>)> = None;
        for pool in calendar.pools() {
            let search = self.search(calendar, pool, user, request);
            if let Some(start) = search.earliest(from, latest)
                && best.is_none_or(|(b, _)| start < b)
            {
                best = Some((start, pool));
            }
        }
        let (start, pool) = best?;
        self.seats_at(calendar, pool, user, request, start)
    }

    fn search<'a>(
        &'a self,
        calendar: &'a Calendar,
        pool: &'a PoolCalendar,
        user: UserId,
        request: &'a Request,
    ) -> Search<'a> {
        static ALL: Starts = Starts::All;
        Search {
            calendar,
            pool,
            request,
            eligible: self.state.eligibility(request, user, Purpose::Promise),
            now: self.state.now,
            soft_to: self.state.soft_to(self.state.now),
            with_soft: false,
            allowed: &ALL,
        }
    }

    fn seats_at(
        &self,
        calendar: &Calendar,
        pool: &PoolCalendar,
        user: UserId,
        request: &Request,
        start: Time,
    ) -> Option<Plan> {
        let named = request.constraints.pool.as_ref();
        if named.is_some_and(|name| *name != pool.pool.name) {
            return None;
        }
        let gang = self.search(calendar, pool, user, request).gang(start);
        Some(Plan {
            pool: pool.pool.name.clone(),
            from: start,
            to: start + request.duration,
            seats: gang.place(pool, self.state.choice())?,
            gpus_per_node: pool.gpus_per_node,
        })
    }

    /// Jobs with active parts on a node.
    pub(super) fn runs_on(&self, node: NodeId) -> Vec<(JobId, usize)> {
        let mut runs = Vec::new();
        for id in &self.state.active {
            let Ok(job) = self.state.job(*id) else { continue };
            for (index, part) in job.parts.iter().enumerate() {
                if part.run().is_some_and(|run| run.seats().any(|seat| seat.node == node)) {
                    runs.push((*id, index));
                }
            }
        }
        runs
    }

    /// Promises and holds on a node that have not begun, with their plans.
    pub(super) fn promises_on(&self, node: NodeId) -> Vec<(BookingHolder, Plan)> {
        let Some(node_calendar) = self.state.calendar.node(node) else { return Vec::new() };
        let mut found: Vec<(BookingHolder, Plan)> = Vec::new();
        for booking in node_calendar.bookings() {
            let holder = match booking.holder {
                BookingHolder::Job { job, part, attempt, .. } => {
                    BookingHolder::Job { job, part, attempt, rank: 0 }
                }
                BookingHolder::Hold { hold, part, .. } => {
                    BookingHolder::Hold { hold, part, rank: 0 }
                }
                BookingHolder::Maintenance => continue,
            };
            if found.iter().any(|(seen, _)| *seen == holder) {
                continue;
            }
            if let Some((_, plan)) = self.coming(holder) {
                found.push((holder, plan));
            }
        }
        found
    }

    /// The request and plan of a holder, if it has not begun.
    fn coming(&self, holder: BookingHolder) -> Option<(Request, Plan)> {
        match holder {
            BookingHolder::Job { job, part, attempt, .. } => {
                let job = self.state.jobs.get(&job)?;
                let part = job.parts.get(usize::from(part))?;
                let (plan, _) = part.coming().filter(|_| attempt == part.attempt + 1)?;
                let duration = plan.to.since(plan.from);
                Some((Request { duration, ..Request::clone(&part.request) }, plan.clone()))
            }
            BookingHolder::Hold { hold, part, .. } => {
                let hold = self.state.holds.get(&hold)?;
                let (plan, _) = hold.parts.get(usize::from(part))?;
                Some((hold.requests()[usize::from(part)].clone(), plan.clone()))
            }
            BookingHolder::Maintenance => None,
        }
    }

    /// Seats something that has not begun elsewhere. One that is broken takes the other parts of
    /// its job, or its hold, with it: those are no longer to come.
    pub(super) fn relocate(&mut self, holder: BookingHolder, effort: Effort) {
        let Some((request, plan)) = self.coming(holder) else { return };
        match holder {
            BookingHolder::Job { job, part, .. } => {
                self.relocate_job(job, usize::from(part), &request, &plan, effort);
            }
            BookingHolder::Hold { hold, part, .. } => {
                self.relocate_hold(hold, usize::from(part), &request, &plan, effort);
            }
            BookingHolder::Maintenance => {}
        }
    }

    fn relocate_job(
        &mut self,
        id: JobId,
        index: usize,
        request: &Request,
        plan: &Plan,
        effort: Effort,
    ) {
        let Some(job) = self.job(id) else { return };
        let part = &job.parts[index];
        let attempt = part.attempt + 1;
        let of_rank = |rank| BookingHolder::Job { job: id, part: index as u16, attempt, rank };
        let calendar = self.calendar_without(plan, of_rank);
        // Not before the old attempt is certainly gone.
        let gone = part.gone_by().unwrap_or(self.state.now);
        let pool = calendar.pool(&plan.pool).filter(|_| plan.from >= gone);
        let same =
            pool.and_then(|pool| self.seats_at(&calendar, pool, job.user, request, plan.from));
        let (new, replanned, why) = match (same, effort) {
            (Some(new), _) => (Some(new), false, ""),
            (None, Effort::SameStart) => (Some(plan.clone()), false, ""),
            (None, Effort::Whatever { why }) => {
                (self.replan(&calendar, &job, index, request, gone), true, why)
            }
        };
        drop(calendar);
        if let Some(new) = new {
            self.tell_moves(&job, index, plan, &new, replanned);
            self.edit_part(id, index, |part| {
                part.coming_mut().map(|(plan, cleared)| (*plan, *cleared) = (new, false))
            });
            return;
        }
        let reason = format!("{why} and no room was left in the window");
        self.events.push(Event::Broken { job: id, reason: reason.clone() });
        if part.is_booked() {
            return self.finish(id, index, Outcome::Broken { reason });
        }
        // Its old attempt may still stop; the other parts need not run on until it has.
        self.edit_run(id, index, |run| run.go_on(None));
        self.end_job(id, Outcome::Broken { reason });
    }

    /// The calendar without the seats of a plan.
    fn calendar_without(&self, plan: &Plan, holder: impl Fn(u32) -> BookingHolder) -> Calendar {
        let mut calendar = self.state.calendar.clone();
        for (rank, seat) in (0u32..).zip(&plan.seats) {
            calendar.unbook(holder(rank), seat.node);
        }
        calendar
    }

    fn tell_moves(&mut self, job: &Job, index: usize, old: &Plan, new: &Plan, replanned: bool) {
        let part = index as u16;
        if replanned {
            let plan = new.clone();
            self.events.push(Event::Replanned { job: job.id, part, plan });
            let (user, job) = (job.user, job.id);
            self.effects.push(Effect::Notify { user, job, notification: Notification::Replanned });
            return;
        }
        for (rank, (from, to)) in old.seats.iter().zip(&new.seats).enumerate() {
            if from != to {
                let rank = rank as u32;
                let (from, to) = (*from, *to);
                self.events.push(Event::Moved { job: job.id, part, rank, from, to });
            }
        }
    }

    fn relocate_hold(
        &mut self,
        id: HoldId,
        index: usize,
        request: &Request,
        plan: &Plan,
        effort: Effort,
    ) {
        let Some(hold) = self.state.holds.get(&id) else { return };
        let user = hold.bid.user;
        let part = index as u16;
        let calendar =
            self.calendar_without(plan, |rank| BookingHolder::Hold { hold: id, part, rank });
        let pool = calendar.pool(&plan.pool);
        let new = pool.and_then(|pool| self.seats_at(&calendar, pool, user, request, plan.from));
        drop(calendar);
        match (new, effort) {
            (Some(new), _) => {
                for (rank, (from, to)) in (0u32..).zip(plan.seats.iter().zip(&new.seats)) {
                    if from != to {
                        self.events.push(Event::HoldMoved { hold: id, part, rank, to: *to });
                    }
                }
                self.state.edit_hold(id, |hold| {
                    hold.parts[index].0 = new;
                    hold.cleared.remove(&part);
                });
            }
            (None, Effort::SameStart) => {}
            (None, Effort::Whatever { .. }) => self.end_hold(id),
        }
    }
}
