//! The books of what jobs and holds take: the bookings on the calendar, the units that are promised
//! in its prices and under the caps of levels, what users and groups hold under their quotas, and
//! with them the timers and the lists of who waits and who runs. What jobs pay is in
//! [`charges`](super::charges).
//!
//! What a job takes follows from the job alone. [`State::edit`] is the only way to change one: it
//! compares what the job takes now with what it took before, and writes the difference into every
//! book. So no book can be forgotten, and a change cannot be lost, since whoever makes it holds
//! nothing but the job. Holds are kept in the same way.

use std::sync::Arc;

use super::State;
use super::charges::{Ending, Settlement};
use super::differences::differences;
use crate::bid::Request;
use crate::calendar::{BookingHolder, Layer, Seat};
use crate::job::{Hold, Job, JobTerms, Part, Plan, Task, each_of};
use crate::ledger::{Posting, PostingReason};
use crate::resources::PerResource;
use crate::timer::{Timer, timers_of, timers_of_hold};
use crate::units::{GroupId, HoldId, JobId, Money, Name, Time, UserId};

/// A booking on the calendar that a job or a hold gives rise to.
#[derive(Clone, Copy, PartialEq)]
struct BookedTime<'a> {
    holder: BookingHolder,
    seat: Seat,
    layer: Layer,
    from: Time,
    to: Time,
    request: &'a Request,
    gpus_per_node: u32,
}

/// Units that are promised in a pool, or held under quotas, for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch<'a> {
    pool: &'a Name,
    from: Time,
    to: Time,
    units: PerResource<u64>,
}

/// What stands in the books.
trait BookEntry {
    fn owner(&self) -> (UserId, GroupId);
    /// The bookings, by holder.
    fn bookings(&self) -> impl Iterator<Item = BookedTime<'_>>;
    /// What counts in prices and under the cap of the owner's level.
    fn promised(&self) -> impl Iterator<Item = Stretch<'_>>;
    /// What counts under the quotas of the owner and his group.
    fn held(&self) -> impl Iterator<Item = Stretch<'_>>;
}

impl BookEntry for Job {
    fn owner(&self) -> (UserId, GroupId) {
        (self.user, self.group)
    }

    /// Of each part: those of its run, of its growth, and of where it goes on.
    fn bookings(&self) -> impl Iterator<Item = BookedTime<'_>> {
        self.parts.iter().enumerate().flat_map(move |(index, part)| {
            let holder = move |attempt: u32, rank: u32| {
                let (job, part) = (self.id, index as u16);
                BookingHolder::Job { job, part, attempt, rank }
            };
            let run = part.plan().into_iter().flat_map(move |plan| {
                let seats = (0u32..).zip(&plan.seats);
                seats.filter_map(move |(rank, seat)| {
                    let (to, layer) = kept_until(part, plan, rank, layer_of(&self.terms))?;
                    let holder = holder(part.attempt_of_plan(), rank);
                    Some(BookedTime::of(&part.request, plan, holder, *seat, layer, to))
                })
            });
            let growth = part.run().into_iter().flat_map(move |run| {
                run.extras.iter().filter_map(move |extra| {
                    let (to, layer) = match extra.task {
                        Task::CutOff(until) => (until, Layer::Firm),
                        Task::Evicted(_) | Task::Unanswered => return None,
                        _ => (extra.stop_until.unwrap_or(extra.to), Layer::Soft),
                    };
                    let holder = holder(part.attempt, extra.rank);
                    let taken =
                        BookedTime::of(&part.request, &run.plan, holder, extra.seat, layer, to);
                    Some(BookedTime { from: extra.since, ..taken })
                })
            });
            let next = part.next().into_iter().flat_map(move |plan| {
                (0u32..).zip(&plan.seats).map(move |(rank, seat)| {
                    let holder = holder(part.attempt + 1, rank);
                    BookedTime::of(
                        &part.request,
                        plan,
                        holder,
                        *seat,
                        layer_of(&self.terms),
                        plan.to,
                    )
                })
            });
            run.chain(growth).chain(next).filter(|taken| taken.from < taken.to)
        })
    }

    /// Where a promise runs, or where it goes on.
    fn promised(&self) -> impl Iterator<Item = Stretch<'_>> {
        let promised = self.parts.iter().filter(|_| self.promise().is_some());
        promised.filter_map(|part| Some(Stretch::of(&part.request, part.last_plan()?)))
    }

    /// The same of any job, with its growth.
    fn held(&self) -> impl Iterator<Item = Stretch<'_>> {
        self.parts.iter().flat_map(|part| {
            let planned = part.last_plan().map(|plan| Stretch::of(&part.request, plan));
            let growth = part.run().into_iter().flat_map(move |run| {
                let (pool, units) = (&run.plan.pool, part.request.each.units(1));
                let held = move |from, to| Stretch { pool, from, to, units };
                run.extras.iter().map(move |extra| held(extra.since, extra.to))
            });
            planned.into_iter().chain(growth)
        })
    }
}

impl BookEntry for Hold {
    fn owner(&self) -> (UserId, GroupId) {
        (self.bid.user, self.group)
    }

    fn bookings(&self) -> impl Iterator<Item = BookedTime<'_>> {
        let plans = (0u16..).zip(&self.parts).zip(self.requests());
        plans.flat_map(|((part, (plan, _)), request)| seats_set_aside(self.id, part, request, plan))
    }

    fn promised(&self) -> impl Iterator<Item = Stretch<'_>> {
        self.held()
    }

    fn held(&self) -> impl Iterator<Item = Stretch<'_>> {
        let plans = self.parts.iter().zip(self.requests());
        plans.map(|((plan, _), request)| Stretch::of(request, plan))
    }
}

/// Until when a rank's seat is booked, and in which layer: to the end of its plan, or to the end
/// of the grace of a stop. A task that ended has none. One whose node is lost is booked firmly.
fn kept_until(part: &Part, plan: &Plan, rank: u32, layer: Layer) -> Option<(Time, Layer)> {
    let Some(run) = part.run() else { return Some((plan.to, layer)) };
    match run.tasks.get(rank as usize) {
        Some(Task::Exited(_) | Task::Lost | Task::Evicted(_) | Task::Unanswered) => None,
        Some(Task::CutOff(until)) => Some((*until, Layer::Firm)),
        _ => Some((run.stop().map_or(plan.to, |stop| stop.until.min(plan.to)), layer)),
    }
}

impl<'a> BookedTime<'a> {
    fn of(
        request: &'a Request,
        plan: &'a Plan,
        holder: BookingHolder,
        seat: Seat,
        layer: Layer,
        to: Time,
    ) -> BookedTime<'a> {
        let gpus_per_node = plan.gpus_per_node;
        BookedTime { holder, seat, layer, from: plan.from, to, request, gpus_per_node }
    }

    fn rank(&self) -> u32 {
        match self.holder {
            BookingHolder::Job { rank, .. } | BookingHolder::Hold { rank, .. } => rank,
            BookingHolder::Maintenance => 0,
        }
    }
}

impl<'a> Stretch<'a> {
    fn of(request: &Request, plan: &'a Plan) -> Stretch<'a> {
        Stretch { pool: &plan.pool, from: plan.from, to: plan.to, units: request.units() }
    }
}

/// The bookings of a plan that is set aside for a request.
fn seats_set_aside<'a>(
    hold: HoldId,
    part: u16,
    request: &'a Request,
    plan: &'a Plan,
) -> impl Iterator<Item = BookedTime<'a>> {
    (0u32..).zip(&plan.seats).map(move |(rank, seat)| {
        let holder = BookingHolder::Hold { hold, part, rank };
        BookedTime::of(request, plan, holder, *seat, Layer::Firm, plan.to)
    })
}

/// How firmly a deal's seats are booked.
pub(crate) fn layer_of(terms: &JobTerms) -> Layer {
    match terms {
        JobTerms::Queue(terms) if terms.preemptible => Layer::Soft,
        _ => Layer::Firm,
    }
}

/// Whether room may have come free: something is gone, was told to stop, or has another time.
fn came_free(before: &Job, after: &Job) -> bool {
    before.parts.iter().zip(&after.parts).any(|(before, after)| {
        let stopped = after.stop().is_some() && after.stop() != before.stop();
        let over = |(before, after): (&Task, &Task)| before.is_live() && !after.is_live();
        let kept = |(attempt, plan): (u32, &Plan)| {
            let same = |(a, p): (u32, &Plan)| (a, p.from, p.to) == (attempt, plan.from, plan.to);
            after.plans().any(same)
        };
        stopped
            || before.tasks().iter().zip(after.tasks()).any(over)
            || after.extras().len() < before.extras().len()
            || !before.plans().all(kept)
    })
}

impl State {
    /// Changes a job, and with it every book in which it stands. What it no longer has is over by
    /// this ending, and is settled. Returns the credits that moved beside what the change returns.
    pub(crate) fn edit<T>(
        &mut self,
        id: JobId,
        ending: Ending,
        change: impl FnOnce(&mut Job) -> T,
    ) -> Option<(T, Vec<Posting>)> {
        let job = self.jobs.get_mut(&id)?;
        let before = job.clone();
        let result = change(Arc::make_mut(job));
        let after = job.clone();
        debug_assert_eq!(after.id, id, "a job keeps its number");
        Some((result, self.rebook(Some(&before), Some(&after), ending)))
    }

    /// Takes in a new job, which pays for what it has been promised.
    pub(crate) fn add_job(&mut self, job: Job) -> Vec<Posting> {
        let job = Arc::new(job);
        let before = self.jobs.insert(job.id, job.clone());
        debug_assert!(before.is_none(), "{} is there already", job.id);
        self.rebook(None, Some(&job), Ending { at: self.now, how: Settlement::Used })
    }

    /// Forgets a job that has ended, and so has nothing left to settle.
    pub(crate) fn remove_job(&mut self, id: JobId) {
        let before = self.jobs.remove(&id);
        debug_assert!(before.as_ref().is_none_or(|job| job.ended.is_some()), "{id} goes on");
        self.rebook(before.as_ref(), None, Ending { at: self.now, how: Settlement::Used });
    }

    /// Changes a hold, and with it every book in which it stands.
    pub(crate) fn edit_hold(&mut self, id: HoldId, change: impl FnOnce(&mut Hold)) {
        let Some(before) = self.holds.get(&id).cloned() else { return };
        let mut after = Hold::clone(&before);
        change(&mut after);
        let after = Arc::new(after);
        self.holds.insert(id, after.clone());
        self.rebook_hold(Some(&before), Some(&after));
    }

    /// Takes in a new hold.
    pub(crate) fn add_hold(&mut self, hold: Hold) {
        let hold = Arc::new(hold);
        self.holds.insert(hold.id, hold.clone());
        self.rebook_hold(None, Some(&hold));
    }

    pub(crate) fn remove_hold(&mut self, id: HoldId) -> Option<Arc<Hold>> {
        let hold = self.holds.remove(&id)?;
        self.rebook_hold(Some(&hold), None);
        Some(hold)
    }

    /// Writes all that jobs and holds take into empty books, but for what is held under quotas:
    /// that is stored.
    pub(crate) fn book_all(&mut self) {
        for hold in self.holds.clone().values() {
            self.book(None, Some(&**hold));
            self.timers.extend(timers_of_hold(hold, self.settings.grace));
        }
        for job in self.jobs.clone().values() {
            self.book(None, Some(&**job));
            self.list_job(None, Some(job));
        }
    }

    /// Writes into every book what a job takes, instead of what it took.
    fn rebook(
        &mut self,
        before: Option<&Arc<Job>>,
        after: Option<&Arc<Job>>,
        ending: Ending,
    ) -> Vec<Posting> {
        let mut postings = Vec::new();
        let (was, is) = (before.map(|job| &**job), after.map(|job| &**job));
        // All that it takes is its parts'.
        if was.map(|job| &job.parts) != is.map(|job| &job.parts) {
            self.freed |= was.zip(is).is_some_and(|(was, is)| came_free(was, is));
            self.book(was, is);
            self.count_held(was, is);
            postings = self.pay(was, is, ending);
        }
        self.list_job(before, after);
        postings
    }

    fn rebook_hold(&mut self, before: Option<&Hold>, after: Option<&Hold>) {
        self.freed |= after.is_none();
        self.book(before, after);
        self.count_held(before, after);
        let grace = self.settings.grace;
        let timers = |hold: Option<&Hold>| hold.map_or(vec![], |hold| timers_of_hold(hold, grace));
        self.set_timers(&timers(before), &timers(after));
    }

    /// The calendar, its prices, and the caps of levels.
    fn book<E: BookEntry>(&mut self, before: Option<&E>, after: Option<&E>) {
        let Some((user, _)) = before.or(after).map(E::owner) else { return };
        self.book_seats(
            before.into_iter().flat_map(E::bookings),
            after.into_iter().flat_map(E::bookings),
        );
        let promised = after.into_iter().flat_map(E::promised);
        self.count_promised(user, before.into_iter().flat_map(E::promised), promised);
    }

    fn count_held<E: BookEntry>(&mut self, before: Option<&E>, after: Option<&E>) {
        let Some(owner) = before.or(after).map(E::owner) else { return };
        let held = after.into_iter().flat_map(E::held);
        self.hold_units(owner, before.into_iter().flat_map(E::held), held);
    }

    fn book_seats<'a>(
        &mut self,
        before: impl Iterator<Item = BookedTime<'a>>,
        after: impl Iterator<Item = BookedTime<'a>>,
    ) {
        let (gone, new) = differences(before, after, |a, b| a.holder.cmp(&b.holder));
        for taken in gone {
            self.calendar.unbook(taken.holder, taken.seat.node);
        }
        for taken in new {
            let BookedTime { holder, seat, layer, from, to, .. } = taken;
            let each = each_of(taken.request, taken.gpus_per_node, taken.rank());
            self.calendar.book(holder, seat, &each, layer, from, to);
        }
    }

    /// Counts promised units in the prices of their pools and under the cap of their owner's level.
    fn count_promised<'a>(
        &mut self,
        user: UserId,
        before: impl Iterator<Item = Stretch<'a>>,
        after: impl Iterator<Item = Stretch<'a>>,
    ) {
        let (gone, new) = stretched(before, after);
        for (stretch, give_back) in
            gone.into_iter().map(|s| (s, true)).chain(new.into_iter().map(|s| (s, false)))
        {
            let Stretch { pool, from, to, units } = stretch;
            self.calendar.promise(pool, from, to, &units, give_back);
            let level = self.accounts.user(user).map_or(0, |u| u.level);
            let capped = self.cluster.pool(pool).is_ok_and(|p| p.level_caps.contains_key(&level));
            if !capped {
                continue;
            }
            let steps = self.level_use.entry((pool.clone(), level)).or_default();
            let steps = Arc::make_mut(steps);
            let counted = match give_back {
                true => steps.remove(from, to, units),
                false => steps.add(from, to, units),
            };
            debug_assert!(counted, "a level's promises are counted once");
        }
    }

    /// Counts units that a user and his group hold.
    fn hold_units<'a>(
        &mut self,
        (user, group): (UserId, GroupId),
        before: impl Iterator<Item = Stretch<'a>>,
        after: impl Iterator<Item = Stretch<'a>>,
    ) {
        let (gone, new) = stretched(before, after);
        for Stretch { from, to, units, .. } in gone {
            self.usage.release(user, group, from, to, units);
        }
        for Stretch { from, to, units, .. } in new {
            // Refused only beyond the range of numbers, which the limits of a bid keep far away.
            let counted = self.usage.commit(user, group, from, to, units);
            debug_assert!(counted.is_ok());
        }
    }

    fn set_timers(&mut self, before: &[(Time, Timer)], after: &[(Time, Timer)]) {
        for timer in before.iter().filter(|timer| !after.contains(timer)) {
            self.timers.remove(timer);
        }
        // What goes off now may be set anew for the same instant.
        let now = self.now;
        let new = after.iter().filter(|timer| timer.0 <= now || !before.contains(timer));
        self.timers.extend(new.copied());
    }

    /// Keeps timers true, and the lists of who waits, who runs and who has ended.
    fn list_job(&mut self, before: Option<&Arc<Job>>, after: Option<&Arc<Job>>) {
        let grace = self.settings.grace;
        let timers = |job: Option<&Arc<Job>>| job.map_or(vec![], |job| timers_of(job, grace));
        self.set_timers(&timers(before), &timers(after));
        self.count_member(before, after);
        if let Some(job) = before {
            self.leave_line(job);
        }
        if let Some(job) = after {
            self.join_line(job);
        }
        let ended = |job: &Arc<Job>| job.ended.as_ref().map(|ended| (ended.at, job.id));
        let (was, is) = (before.and_then(ended), after.and_then(ended));
        if was != is {
            was.map(|was| self.ended.remove(&was));
            self.ended.extend(is);
        }
        let runs = |job: &&Arc<Job>| job.parts.iter().any(Part::is_active);
        self.list_run(before.filter(runs), after.filter(runs));
    }

    /// Keeps the lists of who runs true.
    fn list_run(&mut self, before: Option<&Arc<Job>>, after: Option<&Arc<Job>>) {
        let line = |state: &State, job: &Arc<Job>| Some((state.line_due(job)?, job.id));
        let was = before.and_then(|job| line(self, job));
        let is = after.and_then(|job| line(self, job));
        if was != is {
            was.map(|was| self.lines.remove(&was));
            self.lines.extend(is);
        }
        match (before, after) {
            (Some(job), None) => {
                self.active.remove(&job.id);
                self.elastic.remove(&job.id);
                self.count_running(job, true);
            }
            (None, Some(job)) => {
                self.active.insert(job.id);
                if job.parts.iter().any(|part| part.request.shape.growth() > 0) {
                    self.elastic.insert(job.id);
                }
                self.count_running(job, false);
            }
            // What runs keeps its queue and its requests.
            _ => {}
        }
    }

    /// Counts what a running job holds towards its queue, or no longer.
    pub(crate) fn count_running(&mut self, job: &Job, ended: bool) {
        let Some(terms) = job.queue() else { return };
        let running = self.running.entry(terms.queue.clone()).or_default();
        let units = job.first_part().request.units();
        if ended {
            running.jobs -= 1;
            running.units = [0, 1, 2].map(|r| running.units[r] - units[r]);
        } else {
            running.jobs += 1;
            running.units = [0, 1, 2].map(|r| running.units[r] + units[r]);
        }
        if running.jobs == 0 {
            self.running.remove(&terms.queue);
        }
    }
}

/// What is only tried, on a copy of a state that is thrown away.
impl State {
    /// Sets aside what a request of a bid would get, beside what was set aside for earlier ones.
    pub(crate) fn set_aside(
        &mut self,
        (user, group): (UserId, GroupId),
        part: u16,
        request: &Request,
        plan: &Plan,
    ) {
        // A number that no hold has.
        let seats = seats_set_aside(HoldId(u64::MAX), part, request, plan);
        self.book_seats(std::iter::empty(), seats);
        let taken = || std::iter::once(Stretch::of(request, plan));
        self.count_promised(user, std::iter::empty(), taken());
        self.hold_units((user, group), std::iter::empty(), taken());
    }

    /// Pays for a run of queue work that begins now.
    pub(crate) fn pay_run(&mut self, job: &Job, hours: PerResource<u128>, cost: Money) {
        self.set_aside_use(job, self.now, hours, cost, PostingReason::QueueEscrow);
    }

    /// Counts a run of queue work by a plan under all limits, or no longer. Its seats are left to
    /// the caller.
    pub(crate) fn count_run(&mut self, job: &Job, plan: &Plan, runs: bool) {
        let taken = || std::iter::once(Stretch::of(&job.first_part().request, plan));
        let (before, after) = (taken().filter(|_| !runs), taken().filter(|_| runs));
        self.hold_units(job.owner(), before, after);
        self.count_running(job, !runs);
        if let Some(book) = job.array.and_then(|member| self.arrays.get_mut(&member.first)) {
            book.running = if runs { book.running + 1 } else { book.running.saturating_sub(1) };
        }
    }
}

/// Stretches that are gone, and new ones. There are a few at most, but for growth.
fn stretched<'a>(
    before: impl Iterator<Item = Stretch<'a>>,
    after: impl Iterator<Item = Stretch<'a>>,
) -> (Vec<Stretch<'a>>, Vec<Stretch<'a>>) {
    let (mut gone, mut new) = (Vec::new(), after.collect::<Vec<_>>());
    for stretch in before {
        match new.iter().position(|is| *is == stretch) {
            Some(at) => drop(new.remove(at)),
            None => gone.push(stretch),
        }
    }
    (gone, new)
}
