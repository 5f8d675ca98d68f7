//! When what waits is likely to start: a schedule on paper.
//!
//! What waits is given places one after the other, in the order of service, for as long as each is
//! thought to last, under the limits that hold when it starts: of its array, its queue, its
//! owner's quotas and wallet. Nothing here starts or stops anything.

use std::collections::BTreeMap;

use super::backfill::{Wanted, book_shadow, earliest_place, eligible_pools, place_now, shorten};
use super::order::service_order;
use super::pass::unpaid_hours;
use crate::calendar::Calendar;
use crate::job::{Job, Plan};
use crate::ledger::Account;
use crate::market::fixed_price;
use crate::queue::Queue;
use crate::starts::Starts;
use crate::state::State;
use crate::units::{JobId, Money, Name, Span, Time, UserId};
use crate::usage::Usage;

/// What came of a schedule on paper.
pub(crate) struct Planned {
    /// When each of the jobs that were given a place, or found none, would start.
    pub(crate) starts: Vec<(JobId, Option<Time>)>,
    /// What each owner's jobs among them are thought to cost.
    pub(crate) spent: BTreeMap<UserId, Money>,
}

impl Planned {
    /// What became of a job, if it was among them.
    pub(crate) fn of(&self, id: JobId) -> Option<Option<Time>> {
        self.starts.iter().find(|(planned, _)| *planned == id).map(|(_, start)| *start)
    }
}

/// Where the first `depth` waiting jobs would start if they, and the queue work that runs, lasted
/// as long as `lasting` says, in the order of service.
pub(crate) fn estimated_starts(
    state: &State,
    depth: usize,
    lasting: impl Fn(&Job) -> Span,
) -> Planned {
    let mut schedule = Schedule::of(state, &lasting);
    let order = service_order(state, &state.queues);
    let mut starts = Vec::new();
    for (queue, rank) in order.into_iter().take(depth) {
        let Ok(job) = state.job(rank.job) else { continue };
        starts.push((rank.job, schedule.start(&state.queues[queue], job, lasting(job))));
    }
    Planned { starts, spent: schedule.spent }
}

/// What a waiting job's owner has to have for it, if that is there: the least that running until
/// its limit may cost.
pub(crate) fn funds(state: &State, job: &Job) -> Result<Money, Money> {
    let needed = cheapest(state, job);
    let balance = state.ledger.balance(Account::Wallet(job.user));
    let spend = || {
        let (accounts, hours) = (&state.accounts, unpaid_hours(job));
        state.usage.check_period(accounts, job.user, state.now, hours, needed).is_ok()
    };
    if balance >= needed && spend() { Ok(needed) } else { Err(needed) }
}

fn cheapest(state: &State, job: &Job) -> Money {
    let (units, span) = (job.first_part().request.units(), job.first_part().remaining());
    let pools = eligible_pools(state, job).into_iter().map(|p| &state.calendar.pools()[p].pool);
    let density = state.settings.queue_density;
    let costs = pools.filter_map(|pool| fixed_price(&pool.rates, &units, span.0, density));
    costs.min().unwrap_or(Money::ZERO)
}

/// A schedule on paper.
struct Schedule<'a> {
    state: &'a State,
    calendar: Calendar,
    usage: Usage,
    /// When the jobs of each array, and of each queue, that run by then are over.
    arrays: BTreeMap<JobId, Vec<Time>>,
    queues: BTreeMap<&'a Name, Vec<Time>>,
    /// What each owner's jobs that came before are thought to cost.
    spent: BTreeMap<UserId, Money>,
}

impl<'a> Schedule<'a> {
    fn of(state: &'a State, lasting: &impl Fn(&Job) -> Span) -> Schedule<'a> {
        let mut schedule = Schedule {
            state,
            calendar: state.calendar.clone(),
            usage: state.usage.clone(),
            arrays: BTreeMap::new(),
            queues: BTreeMap::new(),
            spent: BTreeMap::new(),
        };
        for job in state.active.iter().filter_map(|id| state.jobs.get(id)) {
            schedule.run(job, lasting(job));
        }
        schedule
    }

    /// Takes in a job that runs.
    fn run(&mut self, job: &'a Job, lasting: Span) {
        let (Some(terms), Some(run)) = (job.queue(), job.first_part().run()) else { return };
        let plan = &run.plan;
        let (now, part) = (self.state.now, &job.first_part());
        let likely = (run.since + lasting).max(now + Span(1)).min(plan.to);
        let over = run.stop().map_or(likely, |stop| stop.until);
        if !run.is_stopping() {
            shorten(&mut self.calendar, job, lasting, now);
        }
        if over < plan.to && self.has_limits(job.user) {
            let units = part.request.units();
            self.usage.release(job.user, job.group, over, plan.to, units);
        }
        self.note(&terms.queue, job, over);
    }

    /// Takes in when a job is over.
    fn note(&mut self, queue: &'a Name, job: &Job, over: Time) {
        self.queues.entry(queue).or_default().push(over);
        if let Some(member) = job.array {
            self.arrays.entry(member.first).or_default().push(over);
        }
    }

    fn has_limits(&self, user: UserId) -> bool {
        let quotas = self.state.accounts.quotas(user);
        quotas.is_ok_and(|quotas| quotas.iter().any(|(_, quota)| quota.limits_concurrent()))
    }

    /// Gives a waiting job a place, and says when it starts.
    fn start(&mut self, queue: &'a Queue, job: &Job, lasting: Span) -> Option<Time> {
        let (state, part) = (self.state, &job.first_part());
        let needed = funds(state, job).ok()?;
        let spent = self.spent.get(&job.user).copied().unwrap_or_default();
        if spent.0.saturating_add(needed.0) > state.ledger.balance(Account::Wallet(job.user)).0 {
            return None;
        }
        let not_before = part.not_before().map_or(state.now, |at| at.max(state.now));
        let array = job.array.and_then(|member| state.arrays.get(&member.first));
        let of_array = array.map(|book| (&book.first, book.running_max.unwrap_or(u32::MAX)));
        let turns = [
            of_array.map(|(first, most)| free_turn(self.arrays.get(first), most)),
            Some(free_turn(self.queues.get(&queue.name), queue.running_max)),
        ];
        let mut from = not_before;
        for turn in turns.into_iter().flatten() {
            from = from.max(turn?);
        }
        let allowed = match self.has_limits(job.user) {
            false => Starts::All,
            true => {
                let range = (from, from + super::backfill::REACH);
                let units = part.request.units();
                let accounts = &state.accounts;
                self.usage.allowed_starts(accounts, job.user, range, lasting, units).ok()?
            }
        };
        let at_once = from <= state.now && allowed.contains(state.now);
        let now = at_once.then(|| place_now(state, &self.calendar, job, lasting)).flatten();
        let wanted = Wanted { from, lasting, allowed: &allowed };
        let plan = now.or_else(|| earliest_place(state, &self.calendar, job, wanted))?;
        self.take(queue, job, &plan, lasting);
        Some(plan.from)
    }

    fn take(&mut self, queue: &'a Queue, job: &Job, plan: &Plan, lasting: Span) {
        let request = &job.first_part().request;
        book_shadow(&mut self.calendar, job.id, request, plan);
        let (over, units) = (plan.from + lasting, request.units());
        if self.has_limits(job.user) {
            // Refused only beyond the range of numbers.
            let _ = self.usage.commit(job.user, job.group, plan.from, over, units);
        }
        let rates = self.state.cluster.pool(&plan.pool).map(|pool| pool.rates).unwrap_or_default();
        let density = self.state.settings.queue_density;
        if let Some(cost) = fixed_price(&rates, &units, lasting.0, density) {
            let spent = self.spent.entry(job.user).or_default();
            *spent = Money(spent.0.saturating_add(cost.0));
        }
        self.note(&queue.name, job, over);
    }
}

/// From when on fewer than `most` of those that are over at these times run; never where none may.
fn free_turn(over: Option<&Vec<Time>>, most: u32) -> Option<Time> {
    let most = most as usize;
    let Some(over) = over.filter(|over| over.len() >= most) else {
        return Some(Time::MIN);
    };
    let mut over = over.clone();
    over.sort_unstable();
    over.get(over.len() - most).copied().filter(|_| most > 0)
}
