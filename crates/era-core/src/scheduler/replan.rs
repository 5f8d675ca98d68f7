//! What was promised on hardware that is gone, or about to be: moved at the start that was told,
//! planned anew within its window, or refunded as broken.

use std::sync::Arc;

use super::Step;
use crate::bid::Request;
use crate::calendar::{Holder, PoolCalendar};
use crate::cluster::Purpose;
use crate::job::{Hold, Job, Outcome, Phase, Plan, Stop, StopReason};
use crate::output::{Effect, Event, News};
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
        let Some(mut job) = self.job(id) else { return };
        let is_promise = job.promise().is_some();
        // Its guard ends it with its plan.
        let ends = job.parts[index].plan.as_ref().map_or(fence, |p| p.to);
        let fence = fence.min(ends).max(self.state.now);
        self.close_books(&job, index);
        job.parts[index].stop = Some(Stop { why, until: fence });
        self.state.reseat_run(&job, index);
        let mut broken = false;
        if is_promise {
            let request = Request::clone(&job.parts[index].request);
            let remaining = Request { duration: job.parts[index].remaining(), ..request };
            let gone = job.parts[index].gone_by().unwrap_or(fence);
            let next = self.replan(&job, index, &remaining, gone);
            if let Some(next) = &next {
                let attempt = job.parts[index].attempt + 1;
                self.state.seat_plan(&job, index, &remaining, next, attempt);
                let (plan, part) = (next.clone(), index as u16);
                self.events.push(Event::Replanned { job: id, part, plan });
                let user = job.user;
                self.effects.push(Effect::Notify { user, job: id, news: News::Replanned });
            } else {
                self.events.push(Event::Broken { job: id, reason: reason.to_owned() });
                broken = true;
            }
            job.parts[index].next = next;
            job.parts[index].cleared = false;
        }
        self.open_books(&job, index);
        self.stop_part_until(&mut job, index, why, fence);
        if broken && job.parts[index].has_live_tasks() {
            return self.end_job(job, broken_by(why));
        }
        self.finish_if_quiet(job, index);
    }

    /// Takes a part's plan out of quotas, prices and caps.
    pub(super) fn close_books(&mut self, job: &Job, index: usize) {
        self.keep_books(job, index, true);
    }

    /// Counts a part's plan (the next one where there is one) in quotas, prices and caps.
    pub(super) fn open_books(&mut self, job: &Job, index: usize) {
        self.keep_books(job, index, false);
    }

    fn keep_books(&mut self, job: &Job, index: usize, close: bool) {
        let part = &job.parts[index];
        let Some(plan) = part.next.as_ref().or(part.plan.as_ref()) else { return };
        if close {
            self.state.release_plan(job.user, job.group, &part.request, plan);
        } else {
            self.state.commit_plan(job.user, job.group, &part.request, plan);
        }
        if job.promise().is_some() {
            self.state.count_promise(job.user, &part.request, plan, close);
        }
    }

    /// Gives a part's run another end, on the seats that it has.
    pub(super) fn retime(&mut self, job: &mut Job, index: usize, to: Time) {
        self.close_books(job, index);
        let attempt = job.parts[index].attempt_of_plan();
        if let Some(plan) = &mut job.parts[index].plan {
            self.state.unseat_plan(job.id, index, plan, attempt);
            plan.to = to;
        }
        let request = job.parts[index].request.clone();
        if let Some(plan) = job.parts[index].plan.clone() {
            self.state.seat_plan(job, index, &request, &plan, attempt);
        }
        self.open_books(job, index);
    }

    /// The earliest room for what is left of a promise, from `from` on, within its window and
    /// between the parts that it has to keep order with.
    pub(super) fn replan(
        &self,
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
        for pool in self.state.calendar.pools() {
            let search = self.search(pool, user, request);
            if let Some(start) = search.earliest(from, latest)
                && best.is_none_or(|(b, _)| start < b)
            {
                best = Some((start, pool));
            }
        }
        let (start, pool) = best?;
        self.seats_at(pool, user, request, start)
    }

    fn search<'a>(
        &'a self,
        pool: &'a PoolCalendar,
        user: UserId,
        request: &'a Request,
    ) -> Search<'a> {
        static ALL: Starts = Starts::All;
        Search {
            calendar: &self.state.calendar,
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
        pool: &PoolCalendar,
        user: UserId,
        request: &Request,
        start: Time,
    ) -> Option<Plan> {
        let named = request.constraints.pool.as_ref();
        if named.is_some_and(|name| *name != pool.pool.name) {
            return None;
        }
        let gang = self.search(pool, user, request).gang(start);
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
                let seats = part.plan.iter().flat_map(|p| &p.seats);
                let mut used = seats.chain(part.extras.iter().map(|e| &e.seat));
                if part.is_active() && used.any(|s| s.node == node) {
                    runs.push((*id, index));
                }
            }
        }
        runs
    }

    /// Promises and holds on a node that have not begun, with their plans.
    pub(super) fn promises_on(&self, node: NodeId) -> Vec<(Holder, Plan)> {
        let Some(lane) = self.state.calendar.lane(node) else { return Vec::new() };
        let mut found: Vec<(Holder, Plan)> = Vec::new();
        for booking in lane.bookings() {
            let holder = match booking.holder {
                Holder::Job { job, part, attempt, .. } => {
                    Holder::Job { job, part, attempt, rank: 0 }
                }
                Holder::Hold { hold, part, .. } => Holder::Hold { hold, part, rank: 0 },
                Holder::Maintenance => continue,
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
    fn coming(&self, holder: Holder) -> Option<(Request, Plan)> {
        match holder {
            Holder::Job { job, part, attempt, .. } => {
                let job = self.state.jobs.get(&job)?;
                let part = job.parts.get(usize::from(part))?;
                let booked = part.phase == Phase::Booked && attempt == part.attempt + 1;
                let next = part.next.as_ref().filter(|_| attempt == part.attempt + 1);
                let plan = if booked { part.plan.as_ref() } else { next }?;
                let duration = plan.to.since(plan.from);
                Some((Request { duration, ..Request::clone(&part.request) }, plan.clone()))
            }
            Holder::Hold { hold, part, .. } => {
                let hold = self.state.holds.get(&hold)?;
                let (plan, _) = hold.parts.get(usize::from(part))?;
                Some((hold.requests()[usize::from(part)].clone(), plan.clone()))
            }
            Holder::Maintenance => None,
        }
    }

    /// Seats something that has not begun elsewhere. One that is broken takes the other parts of
    /// its job, or its hold, with it: those are no longer to come.
    pub(super) fn relocate(&mut self, holder: Holder, effort: Effort) {
        let Some((request, plan)) = self.coming(holder) else { return };
        match holder {
            Holder::Job { job, part, .. } => {
                self.relocate_job(job, usize::from(part), &request, &plan, effort);
            }
            Holder::Hold { hold, part, .. } => {
                self.relocate_hold(hold, usize::from(part), &request, &plan, effort);
            }
            Holder::Maintenance => {}
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
        let Some(mut job) = self.job(id) else { return };
        let attempt = job.parts[index].attempt + 1;
        self.close_books(&job, index);
        self.state.unseat_plan(id, index, plan, attempt);
        let pool = self.state.calendar.pool(&plan.pool).cloned();
        // Not before the old attempt is certainly gone.
        let gone = job.parts[index].gone_by().unwrap_or(self.state.now);
        let pool = pool.filter(|_| plan.from >= gone);
        let same = pool.and_then(|pool| self.seats_at(&pool, job.user, request, plan.from));
        let (new, replanned, why) = match (same, effort) {
            (Some(new), _) => (Some(new), false, ""),
            (None, Effort::SameStart) => (Some(plan.clone()), false, ""),
            (None, Effort::Whatever { why }) => {
                (self.replan(&job, index, request, gone), true, why)
            }
        };
        let reason = format!("{why} and no room was left in the window");
        if let Some(new) = &new {
            self.state.seat_plan(&job, index, request, new, attempt);
            self.tell_moves(&job, index, plan, new, replanned);
        }
        let part = &mut job.parts[index];
        let was_next = part.next.is_some();
        match (&new, was_next) {
            (_, true) => (part.next, part.cleared) = (new.clone(), false),
            (Some(_), false) => (part.plan, part.cleared) = (new.clone(), false),
            // The books are closed again when the part is: they must show what it had.
            (None, false) => {}
        }
        self.open_books(&job, index);
        if new.is_some() {
            self.state.put_job(job);
            return;
        }
        self.events.push(Event::Broken { job: id, reason: reason.clone() });
        if was_next {
            // Its old attempt may still stop; the other parts need not run on until it has.
            return self.end_job(job, Outcome::Broken { reason });
        }
        self.state.seat_plan(&job, index, request, plan, attempt);
        self.finish(job, index, Outcome::Broken { reason });
    }

    fn tell_moves(&mut self, job: &Job, index: usize, old: &Plan, new: &Plan, replanned: bool) {
        let part = index as u16;
        if replanned {
            let plan = new.clone();
            self.events.push(Event::Replanned { job: job.id, part, plan });
            let (user, job) = (job.user, job.id);
            self.effects.push(Effect::Notify { user, job, news: News::Replanned });
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
        let Some(hold) = self.state.holds.get(&id).cloned() else { return };
        let user = hold.bid.user;
        self.state.unseat_hold(id, index, plan);
        let pool = self.state.calendar.pool(&plan.pool).cloned();
        let new = pool.and_then(|pool| self.seats_at(&pool, user, request, plan.from));
        match (new, effort) {
            (Some(new), _) => {
                self.state.seat_hold(id, index, request, &new);
                for (rank, (from, to)) in plan.seats.iter().zip(&new.seats).enumerate() {
                    if from != to {
                        let (part, rank, to) = (index as u16, rank as u32, *to);
                        self.events.push(Event::HoldMoved { hold: id, part, rank, to });
                    }
                }
                let mut hold = Hold::clone(&hold);
                hold.parts[index].0 = new;
                hold.cleared.remove(&(index as u16));
                self.state.put_hold(hold);
            }
            (None, effort) => {
                self.state.seat_hold(id, index, request, plan);
                if effort != Effort::SameStart {
                    self.end_hold(id);
                }
            }
        }
    }
}
