//! Why a job waits, where it stands, and when it is likely to start: typed, and readable.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bid::Request;
use crate::cluster::Purpose;
use crate::job::{Job, JobTerms, Part, Task};
use crate::ledger::Account;
use crate::market::fixed_price;
use crate::queue::{PolicyRule, Queue};
use crate::reason::WaitReason;
use crate::refusal::Refusal;
use crate::resources::Resource;
use crate::scheduler::{
    Planned, admission, estimated_starts, funds, place_now, ranked, ranked_by, running_of,
};
use crate::state::State;
use crate::units::{JobId, Money, Name, Span, Time, UserId};

/// How many jobs ahead are planned on paper one by one; beyond, work is divided by capacity.
const DEPTH: usize = 64;

/// What can be said about a job at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Explanation {
    /// It has a promise, or runs on one.
    Promised {
        start: Time,
        /// The end that was promised.
        finish: Time,
    },
    /// It was sent out, or runs.
    Running {
        since: Time,
        /// Until when at most.
        until: Time,
        /// Whether anything of it has begun, as far as is known.
        begun: bool,
    },
    Waiting {
        /// 1 for the next one of its queue; 0 while it waits for other jobs.
        position: u32,
        /// When it is likely to start.
        start: Option<Estimate>,
        /// Why not now.
        reason: WaitReason,
    },
    /// It is over.
    Ended { at: Time },
}

/// A likely start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// If runs take as long as such runs usually take.
    pub likely: Time,
    /// If they are all short.
    pub earliest: Time,
    /// If they all last until their limits.
    pub latest: Time,
}

pub fn explain(state: &State, id: JobId) -> Result<Explanation, Refusal> {
    let job = state.job(id)?;
    if let Some(ended) = &job.ended {
        return Ok(Explanation::Ended { at: ended.at });
    }
    if let Some(run) = job.parts.iter().find_map(Part::run) {
        let begun = run.tasks.iter().any(|task| *task != Task::Launching);
        return Ok(Explanation::Running { since: run.since, until: run.plan.to, begun });
    }
    if let JobTerms::Promise(_) = job.terms {
        let plans = || job.parts.iter().filter_map(Part::plan);
        let start = plans().map(|p| p.from).min().unwrap_or_default();
        let finish = plans().map(|p| p.to).max().unwrap_or_default();
        return Ok(Explanation::Promised { start, finish });
    }
    if let Some(before) = job.after.first() {
        let reason = WaitReason::After { job: before.job, when: before.when };
        return Ok(Explanation::Waiting { position: 0, start: None, reason });
    }
    let Some(terms) = job.queue() else {
        return Ok(Explanation::Waiting { position: 0, start: None, reason: WaitReason::NextPass });
    };
    let plans = Plans::of(state);
    let paper = Paper::of(state, state.queue(&terms.queue)?, &plans);
    let place = paper.order.iter().position(|other| *other == id);
    paper.waiting(state, job, place.map_or(0, |n| n as u32 + 1))
}

/// What work for a queue costs at most: until its limit, with all replicas that it may grow to, in
/// the dearest pool that could run it. `None` where none could.
pub fn dearest_run(state: &State, user: UserId, request: &Request) -> Option<Money> {
    let eligible = state.eligibility(request, user, Purpose::Queue);
    let replicas = request.shape.promised().checked_add(request.shape.growth())?;
    let units = request.each.units(replicas);
    let usable = |name: &Name| state.cluster.nodes_of(name).any(|node| eligible.allows(node));
    let pools = state.cluster.pools().filter(|pool| usable(&pool.name));
    let density = state.settings.queue_density;
    pools.filter_map(|p| fixed_price(&p.rates, &units, request.duration.0, density)).max()
}

/// Explains those that wait in a queue, in the order of service, without the first `skip` and at
/// most `take` of them; those that wait for other jobs come last. What is worked out about the
/// queue as a whole is worked out once.
pub fn explain_queue(
    state: &State,
    queue: &Name,
    skip: usize,
    take: usize,
) -> Result<Vec<(JobId, Explanation)>, Refusal> {
    let queue = state.queue(queue)?;
    let plans = Plans::of(state);
    let paper = Paper::of(state, queue, &plans);
    let mut told = Vec::new();
    for (place, id) in paper.order.iter().enumerate().skip(skip).take(take) {
        let job = state.job(*id)?;
        told.push((*id, paper.waiting(state, job, place as u32 + 1)?));
    }
    let skip = skip.saturating_sub(paper.order.len());
    let of_queue = |job: &&Arc<Job>| {
        job.ended.is_none()
            && !job.after.is_empty()
            && job.queue().is_some_and(|terms| terms.queue == queue.name)
    };
    let left = take - told.len();
    for job in state.jobs().filter(of_queue).skip(skip).take(left) {
        told.push((job.id, explain(state, job.id)?));
    }
    Ok(told)
}

/// When those of these jobs that wait in a queue are likely to start, as [`explain`] says it; the
/// others are left out. What is worked out about the cluster and about each queue is worked out
/// once, so that it costs what the explanation of one job of each queue does.
pub fn likely_starts(state: &State, jobs: &[JobId]) -> Vec<(JobId, Estimate)> {
    let waits = |id: &JobId| state.job(*id).ok().filter(|job| job.is_waiting());
    let mut of_queue: BTreeMap<&Name, Vec<&Arc<Job>>> = BTreeMap::new();
    for job in jobs.iter().filter_map(waits).filter(|job| job.after.is_empty()) {
        let Some(terms) = job.queue() else { continue };
        of_queue.entry(&terms.queue).or_default().push(job);
    }
    if of_queue.is_empty() {
        return Vec::new();
    }
    let plans = Plans::of(state);
    let mut starts = Vec::new();
    for (queue, jobs) in of_queue {
        let Ok(queue) = state.queue(queue) else { continue };
        let paper = Paper::of(state, queue, &plans);
        let start = |job: &Arc<Job>| Some((job.id, paper.start(state, job)?));
        starts.extend(jobs.into_iter().filter_map(start));
    }
    starts
}

/// The waiting jobs of a queue in the order of service; under another rule than its own where one
/// is given, to see what it would change.
pub fn queue_order(
    state: &State,
    queue: &Name,
    rule: Option<&PolicyRule>,
) -> Result<Vec<JobId>, Refusal> {
    let queue = state.queue(queue)?;
    let ranks = match rule {
        None => ranked(state, queue),
        Some(rule) => {
            rule.check()?;
            ranked_by(state, queue, &Arc::new(rule.clone()))
        }
    };
    Ok(ranks.into_iter().map(|rank| rank.job).collect())
}

/// When the first of all who wait would start if all went as planned.
struct Plans {
    /// If runs take as long as such runs usually take, if they are all short, and if they all
    /// last until their limits.
    likely: Planned,
    earliest: Planned,
    latest: Planned,
}

impl Plans {
    fn of(state: &State) -> Plans {
        let estimates = &state.estimates;
        Plans {
            likely: estimated_starts(state, DEPTH, |j| estimates.expected_of(j).0),
            earliest: estimated_starts(state, DEPTH, |j| estimates.expected_of(j).1),
            latest: estimated_starts(state, DEPTH, |j| j.first_part().remaining()),
        }
    }
}

/// A queue on paper: its order, and the plans.
struct Paper<'a> {
    queue: &'a Queue,
    order: Vec<JobId>,
    plans: &'a Plans,
}

impl Paper<'_> {
    fn of<'a>(state: &State, queue: &'a Queue, plans: &'a Plans) -> Paper<'a> {
        let order = ranked(state, queue).into_iter().map(|rank| rank.job).collect();
        Paper { queue, order, plans }
    }

    fn waiting(&self, state: &State, job: &Job, position: u32) -> Result<Explanation, Refusal> {
        Ok(Explanation::Waiting {
            position,
            start: self.start(state, job),
            reason: self.reason(state, job, position),
        })
    }

    /// A queue that runs nothing has no start to tell, however much room there is; nor has a job
    /// that its owner cannot pay.
    fn start(&self, state: &State, job: &Job) -> Option<Estimate> {
        let can_start = self.queue.running_max > 0 && funds(state, job).is_ok();
        can_start.then(|| self.estimate(state, job)).flatten()
    }

    fn reason(&self, state: &State, job: &Job, position: u32) -> WaitReason {
        let running = running_of(state, self.queue);
        match admission(state, self.queue, job, &running) {
            // Beyond its share it may still have what others leave.
            Err(WaitReason::ShareUsed { .. }) if self.queue.borrows => {}
            Err(reason) => return reason,
            Ok(()) => {}
        }
        let part = job.first_part();
        let units = part.request.units();
        // Only what a pool that could run it costs.
        let eligible = state.eligibility(&part.request, job.user, Purpose::Queue);
        let prices = || {
            let pools = state.cluster.pools();
            let usable =
                pools.filter(|p| state.cluster.nodes_of(&p.name).any(|n| eligible.allows(n)));
            usable.filter_map(|pool| {
                let density = state.settings.queue_density;
                fixed_price(&pool.rates, &units, part.remaining().0, density)
            })
        };
        let balance = state.ledger.balance(Account::Wallet(job.user));
        if let Some(needed) = prices().min().filter(|needed| *needed > balance) {
            return WaitReason::Funds { balance, needed };
        }
        let cluster = &state.cluster;
        let fits = cluster.check_request(&eligible);
        if let Err(refusal) = fits.and_then(|()| cluster.check_gang(&eligible, part.request.shape))
        {
            return WaitReason::NeverFits { refusal };
        }
        let free = crate::scheduler::free_now(state);
        for resource in Resource::ALL {
            let (free, needed) = (free[resource as usize], units[resource as usize]);
            if needed > free {
                return WaitReason::Short { resource, free, needed };
            }
        }
        let start = self.plans.latest.of(job.id).flatten();
        if start.is_some_and(|start| start <= state.now) {
            // There is room, though perhaps in a pool that is dearer than wallet or quota allow.
            let needed = prices().max().unwrap_or(Money::ZERO);
            if needed > balance {
                return WaitReason::Funds { balance, needed };
            }
            let accounts = &state.accounts;
            let spend = state.usage.check_period(accounts, job.user, state.now, [0; 3], needed);
            return spend
                .err()
                .map_or(WaitReason::NextPass, |refusal| WaitReason::Quota { refusal });
        }
        // It fits for a moment, so what is in the way is still to come.
        if place_now(state, &state.calendar, job, Span(1)).is_some() {
            return WaitReason::Behind { ahead: position.saturating_sub(1) };
        }
        WaitReason::Fragmented
    }

    /// When a waiting job is likely to start: by planning those ahead of it on paper, three times.
    fn estimate(&self, state: &State, job: &Job) -> Option<Estimate> {
        let estimates = &state.estimates;
        let likely =
            self.start_of(state, job, &self.plans.likely, &|j| estimates.expected_of(j).0)?;
        let earliest =
            self.start_of(state, job, &self.plans.earliest, &|j| estimates.expected_of(j).1)?;
        let latest =
            self.start_of(state, job, &self.plans.latest, &|j| j.first_part().remaining())?;
        // Shorter runs need not mean an earlier start for everyone: order the three.
        let mut ordered = [earliest, likely, latest];
        ordered.sort_unstable();
        Some(Estimate { earliest: ordered[0], likely: ordered[1], latest: ordered[2] })
    }

    /// How long the jobs of its own array that wait ahead of it take, beyond those that were
    /// planned one by one: only so many run at a time.
    fn turns_of_its_array(&self, state: &State, job: &Job, lasting: &dyn Fn(&Job) -> Span) -> Span {
        let book = job.array.and_then(|member| state.array(member.first));
        let Some((book, most)) = book.and_then(|book| Some((book, book.running_max?))) else {
            return Span::ZERO;
        };
        let ahead = self.order.iter().skip(DEPTH).take_while(|id| **id != job.id);
        let of_it = ahead.filter(|id| book.jobs().contains(id)).count() as i64;
        Span((of_it / i64::from(most.max(1)) + 1).saturating_mul(lasting(job).0))
    }

    /// Whether a wallet pays for a job that was not planned one by one after those of its owner that
    /// were, and after those that were not and are ahead of it, as if these were like it.
    fn is_paid_after_those_ahead(&self, state: &State, job: &Job, planned: &Planned) -> bool {
        let Ok(needed) = funds(state, job) else { return false };
        let ahead = self.order.iter().take_while(|id| **id != job.id);
        let ahead = ahead.filter(|id| planned.of(**id).is_none());
        let own = ahead.filter(|id| state.job(**id).is_ok_and(|other| other.user == job.user));
        let spent = planned.spent.get(&job.user).copied().unwrap_or_default();
        let costs = i64::try_from(own.count() + 1).unwrap_or(i64::MAX).saturating_mul(needed.0);
        spent.0.saturating_add(costs) <= state.ledger.balance(Account::Wallet(job.user)).0
    }

    fn start_of(
        &self,
        state: &State,
        job: &Job,
        planned: &Planned,
        lasting: &dyn Fn(&Job) -> Span,
    ) -> Option<Time> {
        if let Some(start) = planned.of(job.id) {
            return start;
        }
        if !self.is_paid_after_those_ahead(state, job, planned) {
            return None;
        }
        // Too deep to plan one by one: the work of those ahead, divided by the cluster.
        let last = planned.starts.iter().filter_map(|(_, start)| *start).max().unwrap_or(state.now);
        let ahead = self.order.iter().skip(DEPTH).take_while(|id| **id != job.id);
        let work = |j: &Job| {
            let units = j.first_part().request.units();
            let amount = if units[2] > 0 { units[2] } else { units[0] };
            u128::from(amount) * u128::from(lasting(j).0.max(0).unsigned_abs())
        };
        let work: u128 = ahead.filter_map(|id| state.job(*id).ok()).map(|j| work(j)).sum();
        let resource =
            if job.first_part().request.units()[2] > 0 { Resource::Gpu } else { Resource::Cpu };
        let capacity: u64 = state.cluster.nodes().map(|n| n.capacity.amount(resource)).sum();
        let span = work / u128::from(capacity.max(1));
        let turns = self.turns_of_its_array(state, job, lasting);
        let span = Span(i64::try_from(span).unwrap_or(i64::MAX)).max(turns);
        Some(Time(last.0.saturating_add(span.0)))
    }
}
