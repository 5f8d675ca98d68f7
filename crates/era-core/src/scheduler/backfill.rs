//! Places in the calendar for jobs that wait: where each could start, the holes that are kept for
//! them, and plans on paper. Nothing here starts or stops anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::order::service_order;
use super::pass::cheapest_run;
use crate::bid::Request;
use crate::calendar::{Calendar, Holder, Layer, PoolCalendar, Seat};
use crate::cluster::Purpose;
use crate::job::{Job, Part, Phase, Plan, each_of};
use crate::ledger::Account;
use crate::market::fixed_price;
use crate::placement::Gang;
use crate::search::Search;
use crate::starts::Starts;
use crate::state::{State, layer_of};
use crate::units::{HoldId, JobId, Span, Time};

/// How far ahead a place for a waiting job is looked for.
const REACH: Span = Span::from_days(3660);

/// The pools in which a job could run at all.
pub(super) fn eligible_pools(state: &State, job: &Job) -> Vec<usize> {
    let eligible = state.eligibility(&job.parts[0].request, job.user, Purpose::Queue);
    let could = |pool: &Arc<PoolCalendar>| pool.lanes.iter().any(|l| eligible.allows(&l.node));
    let pools = state.calendar.pools().iter().enumerate();
    pools.filter(|(_, pool)| could(pool)).map(|(index, _)| index).collect()
}

/// A holder that only exists during a pass.
pub(super) fn shadow(job: JobId, rank: usize) -> Holder {
    let hold = HoldId(u64::MAX - job.0);
    Holder::Hold { hold, part: u16::MAX, rank: rank as u32 }
}

pub(super) fn book_shadow(calendar: &mut Calendar, job: JobId, request: &Request, plan: &Plan) {
    for (rank, seat) in plan.seats.iter().enumerate() {
        let each = each_of(request, plan.gpus_per_node, rank as u32);
        calendar.book(shadow(job, rank), *seat, &each, Layer::Soft, plan.from, plan.to);
    }
}

/// The earliest place for a waiting job, as if everything lasted as long as it may; `lasting`
/// overrides how long the job itself does.
pub(super) fn earliest_place(
    state: &State,
    calendar: &Calendar,
    job: &Job,
    lasting: Option<Span>,
) -> Option<Plan> {
    let part = &job.parts[0];
    let request =
        Request { duration: lasting.unwrap_or(part.remaining()), ..Request::clone(&part.request) };
    let from = match part.phase {
        Phase::Waiting { not_before } => not_before.max(state.now),
        _ => state.now,
    };
    let mut best: Option<(Time, &Arc<PoolCalendar>)> = None;
    for pool in calendar.pools() {
        let named = request.constraints.pool.as_ref();
        if named.is_some_and(|name| *name != pool.pool.name) {
            continue;
        }
        let search = queue_search(state, calendar, pool, &request, job);
        let latest = from + REACH;
        let start = match pool.first_room(&request) {
            Some(start) => {
                let start = Some(start.max(from)).filter(|start| *start <= latest);
                debug_assert_eq!(start, search.earliest(from, latest), "what is known is so");
                start
            }
            None => search.earliest(from, latest),
        };
        if let Some(start) = start
            && best.is_none_or(|(b, _)| start < b)
        {
            best = Some((start, pool));
        }
    }
    let (start, pool) = best?;
    let gang = queue_search(state, calendar, pool, &request, job).gang(start);
    Some(Plan {
        pool: pool.pool.name.clone(),
        from: start,
        to: start + request.duration,
        seats: gang.place(pool, state.choice())?,
        gpus_per_node: pool.gpus_per_node,
    })
}

pub(super) fn queue_search<'a>(
    state: &'a State,
    calendar: &'a Calendar,
    pool: &'a PoolCalendar,
    request: &'a Request,
    job: &Job,
) -> Search<'a> {
    static ALL: Starts = Starts::All;
    Search {
        calendar,
        pool,
        request,
        eligible: state.eligibility(request, job.user, Purpose::Queue),
        now: state.now,
        soft_to: Time::MIN,
        with_soft: true,
        allowed: &ALL,
    }
}

/// Whether a hole that was kept is still there for its job, and not in the past.
pub(super) fn hole_is_free(state: &State, job: &Job, hole: &Plan) -> bool {
    let request = &job.parts[0].request;
    let eligible = state.eligibility(request, job.user, Purpose::Queue);
    let mut rows: BTreeMap<crate::units::NodeId, crate::calendar::Row> = BTreeMap::new();
    hole.from >= state.now
        && hole.seats.iter().enumerate().all(|(rank, seat)| {
            let Some(lane) = state.calendar.lane(seat.node) else { return false };
            let each = each_of(request, hole.gpus_per_node, rank as u32);
            let row =
                rows.entry(seat.node).or_insert_with(|| lane.peak(hole.from, hole.to, hole.to));
            eligible.allows(&lane.node) && lane.seat_beside(row, &each, seat.gpus)
        })
}

pub(super) fn unseat(calendar: &mut Calendar, job: &Job) {
    let part = &job.parts[0];
    for (rank, seat) in part.plan.iter().flat_map(|p| &p.seats).enumerate() {
        let (job, attempt, rank) = (job.id, part.attempt, rank as u32);
        calendar.unbook(Holder::Job { job, part: 0, attempt, rank }, seat.node);
    }
}

/// The seats that a run still holds, by rank: what has exited needs none, and its node may have
/// lost it since.
fn held_seats<'a>(part: &'a Part, plan: &'a Plan) -> impl Iterator<Item = (u32, Seat)> + 'a {
    let seats = (0u32..).zip(&plan.seats).zip(&part.tasks);
    seats.filter(|(_, task)| task.is_live()).map(|((rank, seat), _)| (rank, *seat))
}

/// Seats a running job where it was, if nobody took its place.
pub(super) fn reseat(calendar: &mut Calendar, job: &Job, now: Time) -> bool {
    let part = &job.parts[0];
    let Some(plan) = &part.plan else { return false };
    let mut rows: BTreeMap<crate::units::NodeId, crate::calendar::Row> = BTreeMap::new();
    let after = now + Span(1);
    let free = held_seats(part, plan).all(|(rank, seat)| {
        let Some(lane) = calendar.lane(seat.node) else { return false };
        let row = rows.entry(seat.node).or_insert_with(|| lane.peak(now, after, after));
        lane.seat_beside(row, &part.each_of(plan, rank), seat.gpus)
    });
    if free {
        for (rank, seat) in held_seats(part, plan) {
            let each = part.each_of(plan, rank);
            let (job, attempt) = (job.id, part.attempt);
            let holder = Holder::Job { job, part: 0, attempt, rank };
            calendar.book(holder, seat, &each, Layer::Soft, plan.from, plan.to);
        }
    }
    free
}

/// Lets a run end on paper when it has lasted as long as `lasting`, if it is not to end before.
pub(super) fn shorten(calendar: &mut Calendar, job: &Job, lasting: Span, now: Time) {
    let part = &job.parts[0];
    let (Phase::Active { since }, Some(plan)) = (part.phase, &part.plan) else { return };
    let to = (since + lasting).max(now + Span(1));
    if to >= plan.to {
        return;
    }
    unseat(calendar, job);
    for (rank, seat) in held_seats(part, plan) {
        let each = part.each_of(plan, rank);
        let holder = Holder::Job { job: job.id, part: 0, attempt: part.attempt, rank };
        calendar.book(holder, seat, &each, layer_of(&job.deal), plan.from, to);
    }
}

/// A place for a waiting job at this moment, if it lasts as long as `lasting`.
pub(crate) fn place_now(
    state: &State,
    calendar: &Calendar,
    job: &Job,
    lasting: Span,
) -> Option<Plan> {
    let part = &job.parts[0];
    let now = state.now;
    if matches!(part.phase, Phase::Waiting { not_before } if not_before > now) {
        return None;
    }
    let to = now + lasting;
    let least = state.least_run();
    let preemptible = job.queue().is_some_and(|q| q.preemptible);
    let firm_to = if preemptible { to.min(now + least) } else { to };
    let gang = Gang {
        request: &part.request,
        eligible: state.eligibility(&part.request, job.user, Purpose::Queue),
        from: now,
        to: firm_to,
        soft_to: to,
    };
    calendar.pools().iter().find_map(|pool| {
        let seats = gang.place(pool, state.choice())?;
        let gpus_per_node = pool.gpus_per_node;
        Some(Plan { pool: pool.pool.name.clone(), from: now, to, seats, gpus_per_node })
    })
}

/// Takes a place for a waiting job in a scratch calendar, if there is one now and nothing but
/// room keeps the job from starting.
pub(super) fn claim(state: &State, calendar: &mut Calendar, job: &Job) -> Option<Plan> {
    let part = &job.parts[0];
    let (now, units) = (state.now, part.request.units());
    let hours = super::submit::unit_ms(&units, part.remaining().0);
    let credits = cheapest_run(state, job);
    let within = state.usage.check_period(&state.accounts, job.user, now, hours, credits);
    let plan = place_now(state, calendar, job, part.remaining())?;
    let rates = state.cluster.pool(&plan.pool).map(|pool| pool.rates).unwrap_or_default();
    let density = state.settings.queue_density;
    let cost = fixed_price(&rates, &units, part.remaining().0, density);
    let balance = state.ledger.balance(Account::Wallet(job.user));
    if within.is_err() || cost.is_none_or(|cost| cost > balance) {
        return None;
    }
    for (rank, seat) in plan.seats.iter().enumerate() {
        let each = each_of(&part.request, plan.gpus_per_node, rank as u32);
        let (job_id, attempt, rank) = (job.id, part.attempt + 1, rank as u32);
        let holder = Holder::Job { job: job_id, part: 0, attempt, rank };
        calendar.book(holder, *seat, &each, layer_of(&job.deal), plan.from, plan.to);
    }
    Some(plan)
}

/// Where the first `depth` waiting jobs would start if they, and the queue work that runs, lasted
/// as long as `lasting` says, in the order of service: a plan on paper.
pub(crate) fn estimated_starts(
    state: &State,
    depth: usize,
    lasting: impl Fn(&Job) -> Span,
) -> Vec<(JobId, Option<Time>)> {
    let mut calendar = state.calendar.clone();
    for job in state.active.iter().filter_map(|id| state.jobs.get(id)) {
        if job.queue().is_some() && job.parts[0].stop.is_none() {
            shorten(&mut calendar, job, lasting(job), state.now);
        }
    }
    let mut starts = Vec::new();
    let order = service_order(state, &state.queues);
    for (_, rank) in order.into_iter().take(depth) {
        let Ok(job) = state.job(rank.job) else { continue };
        let plan = place_now(state, &calendar, job, lasting(job))
            .or_else(|| earliest_place(state, &calendar, job, Some(lasting(job))));
        if let Some(plan) = &plan {
            book_shadow(&mut calendar, job.id, &job.parts[0].request, plan);
        }
        starts.push((rank.job, plan.map(|p| p.from)));
    }
    starts
}
