//! Preemption within a queue: what runs gives way to what its queue ranks higher.
//!
//! It is decided on paper. All that may give way leaves; then everybody, in the order of the
//! queue, takes a place: whoever ran the place that it had, whoever waits one for which only the
//! lowest have to leave, if any, under the quotas, limits and funds under which a pass starts it.
//! Whoever finds its place taken has to stop, so nobody stops for a job that could not start
//! anyway.
//!
//! Promises are no part of this; what is in their way goes by [`clear`](super::clear).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Step;
use super::backfill::{place_where, reseat, unseat};
use super::pass::{admission, affordable, limits, running_of, share_left, unpaid_hours};
use super::rank::rank_jobs;
use crate::calendar::{BookingHolder, Calendar};
use crate::job::{Job, Part, Plan, PreemptionCount, StopReason};
use crate::queue::Queue;
use crate::reason::WaitReason;
use crate::state::{State, layer_of};
use crate::units::{GroupId, JobId, Money, Span, Time, UserId};
use crate::waiting::{Kind, WaitingJobs};

/// How often a job gives way to other queue work without having saved any work in between. After
/// that it keeps its place, since it would never get anywhere.
const PREEMPTIONS_MAX: u32 = 2;

/// How many waiting jobs are looked at to see whether anybody needs room at all.
const LOOK_MAX: usize = 32;

impl Step<'_> {
    /// Stops preemptible jobs of a queue that stand in the way of what it ranks higher, and
    /// returns the places of those that they make room for.
    pub(super) fn preempt(&mut self, queue: &Queue) -> BTreeMap<JobId, Plan> {
        self.move_on(queue);
        if self.all_have_room(queue) {
            return BTreeMap::new();
        }
        let (yielding, leaving) = self.preemptible(queue);
        if yielding.is_empty() && leaving.is_empty() {
            return BTreeMap::new();
        }
        let waiting = self.state.waiting.get(&queue.name).map(|line| self.jobs_of(line));
        let ranks = rank_jobs(self.state, queue, yielding.iter().chain(waiting.iter().flatten()));
        let runs = ranks.iter().rev().filter_map(|rank| self.state.jobs.get(&rank.job));
        let runs: Vec<&Job> =
            runs.map(|job| &**job).filter(|job| job.first_part().is_active()).collect();
        let mut paper = Paper::of(self.state, queue).without(&leaving, &runs);
        let mut victims = Vec::new();
        let mut in_vain = BTreeSet::new();
        let mut tries = self.state.settings.pass_depth;
        for rank in ranks {
            let Ok(job) = self.state.job(rank.job) else { continue };
            if job.first_part().is_active() {
                if !paper.decide(job) {
                    victims.push(job.id);
                }
                continue;
            }
            // Whoever finds no place does not hold up the rest, but for those alike.
            let kind = Kind::of(job);
            if tries == 0 || in_vain.contains(&kind) {
                continue;
            }
            tries -= 1;
            if !paper.claim(job, rank.is_aged()) {
                in_vain.insert(kind);
            }
        }
        let claims = paper.claims;
        if claims.is_empty() {
            return claims;
        }
        self.stand_in_line(queue, &victims);
        for id in victims {
            let last = Some(self.state.now);
            self.edit_part(id, 0, |part| {
                part.preemptions = PreemptionCount { times: part.preemptions.times + 1, last }
            });
            self.stop_part(id, 0, StopReason::Preempted);
            self.finish_if_quiet(id, 0);
        }
        claims
    }

    /// The jobs of a queue that may have to give way, and those that are doing so.
    fn preemptible(&self, queue: &Queue) -> (Vec<Arc<Job>>, Vec<Arc<Job>>) {
        let (now, run_min) = (self.state.now, self.state.settings.run_min);
        let (mut yielding, mut leaving) = (Vec::new(), Vec::new());
        for job in self.state.active.iter().filter_map(|id| self.state.jobs.get(id)) {
            if !job.queue().is_some_and(|q| q.preemptible && q.queue == queue.name) {
                continue;
            }
            match job.first_part().stop().map(|stop| stop.why) {
                None if may_yield(job.first_part(), now, run_min) => yielding.push(job.clone()),
                Some(StopReason::Preempted) => leaving.push(job.clone()),
                _ => {}
            }
        }
        (yielding, leaving)
    }

    /// Whether everybody who waits in a queue has room now, and nobody has to make any. Not worth
    /// the question where many wait.
    fn all_have_room(&self, queue: &Queue) -> bool {
        let Some(line) = self.state.waiting.get(&queue.name) else { return true };
        if line.len() > LOOK_MAX {
            return false;
        }
        let mut paper = Paper::of(self.state, queue);
        self.jobs_of(line).iter().all(|job| paper.claim(job, false))
    }

    /// The jobs of a line, the longest wait first.
    fn jobs_of(&self, line: &WaitingJobs) -> Vec<Arc<Job>> {
        let jobs = line.all().into_iter();
        jobs.filter_map(|place| self.state.jobs.get(&place.job).cloned()).collect()
    }
}

/// Whether a run may have to give way to other queue work.
fn may_yield(part: &Part, now: Time, run_min: Span) -> bool {
    let lately = part.preemptions.last.is_some_and(|last| now < last + run_min);
    part.preemptions.times < PREEMPTIONS_MAX && !lately
}

/// A state on paper, in which runs of a queue leave and others begin.
struct Paper<'a> {
    /// With those runs alone that were found to stay, and with those that take a place.
    state: State,
    queue: &'a Queue,
    /// The same calendar with more of the runs in it: with all that are not decided yet, without
    /// the lowest of them, without the two lowest, the four lowest, and so on. Whoever takes a
    /// place takes one for which as few as possible have to leave, and those the lowest.
    fuller: Vec<(usize, Calendar)>,
    /// How many runs are not decided yet.
    undecided: usize,
    /// The places that were taken, and by whose jobs.
    claims: BTreeMap<JobId, Plan>,
    users: BTreeSet<UserId>,
    groups: BTreeSet<GroupId>,
}

impl<'a> Paper<'a> {
    fn of(state: &State, queue: &'a Queue) -> Paper<'a> {
        Paper {
            state: state.clone(),
            queue,
            fuller: Vec::new(),
            undecided: 0,
            claims: BTreeMap::new(),
            users: BTreeSet::new(),
            groups: BTreeSet::new(),
        }
    }

    /// Without those that are stopping, whose room is not made twice, and without these runs, the
    /// lowest first, until they are decided. What they have paid and used stays paid and used.
    fn without(mut self, leaving: &[Arc<Job>], runs: &[&Job]) -> Paper<'a> {
        for job in leaving {
            unseat(&mut self.state.calendar, job);
            self.count(job, job.first_part().plan(), false);
        }
        for (gone, job) in runs.iter().enumerate() {
            if gone == 0 || gone.is_power_of_two() {
                self.fuller.push((gone, self.state.calendar.clone()));
            }
            unseat(&mut self.state.calendar, job);
            self.count(job, job.first_part().plan(), false);
        }
        self.undecided = runs.len();
        self
    }

    /// The next run, from the highest down, takes the place that it had, unless somebody else has,
    /// or has used up what its queue or its owner may hold: then it has to go.
    fn decide(&mut self, job: &Job) -> bool {
        let now = self.state.now;
        let stays = !self.is_contended(job) && reseat(&mut self.state.calendar, job, now);
        self.undecided -= 1;
        for (gone, calendar) in &mut self.fuller {
            match (stays, self.undecided < *gone) {
                (true, true) => drop(reseat(calendar, job, now)),
                (false, false) => unseat(calendar, job),
                _ => {}
            }
        }
        if stays {
            self.count(job, job.first_part().plan(), true);
        }
        stays
    }

    /// Whether those that took a place left nothing of a limit that a run is under as well.
    fn is_contended(&self, job: &Job) -> bool {
        if self.claims.is_empty() {
            return false;
        }
        let running = running_of(&self.state, self.queue);
        let shared = self.users.contains(&job.user) || self.groups.contains(&job.group);
        match limits(&self.state, self.queue, job, &running) {
            Err(WaitReason::Quota { .. }) => shared,
            Err(_) => true,
            Ok(()) => {
                !self.queue.borrows && share_left(&self.state, self.queue, job, &running).is_err()
            }
        }
    }

    /// A waiting job takes a place, if there is one now and nothing else keeps it from starting.
    fn claim(&mut self, job: &Job, aged: bool) -> bool {
        let running = running_of(&self.state, self.queue);
        match admission(&self.state, self.queue, job, &running) {
            Err(WaitReason::ShareUsed { .. }) if self.queue.borrows || aged => {}
            Err(_) => return false,
            Ok(()) => {}
        }
        let Some((plan, cost)) = self.place(job) else { return false };
        self.seat(job, &plan);
        self.count(job, Some(&plan), true);
        self.state.pay_run(job, unpaid_hours(job), cost);
        self.users.insert(job.user);
        self.groups.insert(job.group);
        self.claims.insert(job.id, plan);
        true
    }

    /// A place that the job's owner can pay, and its price.
    fn place(&self, job: &Job) -> Option<(Plan, Money)> {
        let state = &self.state;
        let place_in = |calendar: &Calendar| {
            let mut cost = None;
            let plan = place_where(state, calendar, job, job.first_part().remaining(), |plan| {
                cost = affordable(state, job, plan);
                cost.is_some()
            })?;
            Some((plan, cost?))
        };
        // The fewer are left in, the more room there is.
        let mut best = place_in(&state.calendar)?;
        let (mut from, mut to) = (0, self.fuller.len());
        while from < to {
            let middle = from.midpoint(to);
            match place_in(&self.fuller[middle].1) {
                Some(place) => (best, to) = (place, middle),
                None => from = middle + 1,
            }
        }
        Some(best)
    }

    fn seat(&mut self, job: &Job, plan: &Plan) {
        let (part, attempt) = (job.first_part(), job.first_part().attempt + 1);
        let fuller = self.fuller.iter_mut().map(|(_, calendar)| calendar);
        for calendar in fuller.chain([&mut self.state.calendar]) {
            for (rank, seat) in plan.seats.iter().enumerate() {
                let each = part.each_of(plan, rank as u32);
                let holder =
                    BookingHolder::Job { job: job.id, part: 0, attempt, rank: rank as u32 };
                calendar.book(holder, *seat, &each, layer_of(&job.terms), plan.from, plan.to);
            }
        }
    }

    /// Counts a job among those that run, or no longer.
    fn count(&mut self, job: &Job, plan: Option<&Plan>, runs: bool) {
        if let Some(plan) = plan {
            self.state.count_run(job, plan, runs);
        }
    }
}
