//! Places in the calendar for jobs that wait: where each could start, and the holes that are kept
//! for them. Nothing here starts or stops anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bid::Request;
use crate::calendar::{BookingHolder, Calendar, Layer, PoolCalendar, Seat};
use crate::cluster::Purpose;
use crate::job::{Attempt, Job, Plan, each_of};
use crate::placement::Gang;
use crate::search::Search;
use crate::starts::Starts;
use crate::state::{State, layer_of};
use crate::units::{HoldId, JobId, Span, Time};

/// How far ahead a place for a waiting job is looked for.
pub(super) const REACH: Span = Span::from_days(3660);

/// The pools in which a job could run at all.
pub(super) fn eligible_pools(state: &State, job: &Job) -> Vec<usize> {
    let eligible = state.eligibility(&job.first_part().request, job.user, Purpose::Queue);
    let could = |pool: &Arc<PoolCalendar>| pool.nodes.iter().any(|l| eligible.allows(&l.node));
    let pools = state.calendar.pools().iter().enumerate();
    pools.filter(|(_, pool)| could(pool)).map(|(index, _)| index).collect()
}

/// A holder that only exists during a pass.
pub(super) fn shadow(job: JobId, rank: usize) -> BookingHolder {
    let hold = HoldId(u64::MAX - job.0);
    BookingHolder::Hold { hold, part: u16::MAX, rank: rank as u32 }
}

pub(super) fn book_shadow(calendar: &mut Calendar, job: JobId, request: &Request, plan: &Plan) {
    for (rank, seat) in plan.seats.iter().enumerate() {
        let each = each_of(request, plan.gpus_per_node, rank as u32);
        calendar.book(shadow(job, rank), *seat, &each, Layer::Soft, plan.from, plan.to);
    }
}

/// What a place is looked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// From when on.
    pub(super) from: Time,
    /// For how long.
    pub(super) lasting: Span,
    /// At which instants it may start.
    pub(super) allowed: &'a Starts,
}

impl Wanted<'_> {
    /// By a job that waits, as if it lasted as long as it may.
    pub(super) fn by(state: &State, job: &Job) -> Wanted<'static> {
        let part = job.first_part();
        let from = part.not_before().map_or(state.now, |at| at.max(state.now));
        Wanted { from, lasting: part.remaining(), allowed: &Starts::All }
    }
}

/// The earliest place for a waiting job, as if everything lasted as long as it may.
pub(super) fn earliest_place(
    state: &State,
    calendar: &Calendar,
    job: &Job,
    wanted: Wanted<'_>,
) -> Option<Plan> {
    let Wanted { from, lasting, allowed } = wanted;
    let request = Request { duration: lasting, ..Request::clone(&job.first_part().request) };
    let mut best: Option<(Time, &Arc<PoolCalendar>)> = None;
    for pool in calendar.pools() {
        let named = request.constraints.pool.as_ref();
        if named.is_some_and(|name| *name != pool.pool.name) {
            continue;
        }
        let search = queue_search(state, calendar, pool, &request, job, allowed);
        let latest = from + REACH;
        let start = match pool.first_room(&request) {
            Some(start) if *allowed == Starts::All => {
                let start = Some(start.max(from)).filter(|start| *start <= latest);
                debug_assert_eq!(start, search.earliest(from, latest), "what is known is so");
                start
            }
            _ => search.earliest(from, latest),
        };
        if let Some(start) = start
            && best.is_none_or(|(b, _)| start < b)
        {
            best = Some((start, pool));
        }
    }
    let (start, pool) = best?;
    let gang = queue_search(state, calendar, pool, &request, job, allowed).gang(start);
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
    allowed: &'a Starts,
) -> Search<'a> {
    Search {
        calendar,
        pool,
        request,
        eligible: state.eligibility(request, job.user, Purpose::Queue),
        now: state.now,
        soft_to: Time::MIN,
        with_soft: true,
        allowed,
    }
}

/// Whether a hole that was kept is still there for its job, and not in the past.
pub(super) fn hole_is_free(state: &State, job: &Job, hole: &Plan) -> bool {
    let request = &job.first_part().request;
    let eligible = state.eligibility(request, job.user, Purpose::Queue);
    let mut rows: BTreeMap<crate::units::NodeId, crate::calendar::Load> = BTreeMap::new();
    hole.from >= state.now
        && hole.seats.iter().enumerate().all(|(rank, seat)| {
            let Some(node_calendar) = state.calendar.node(seat.node) else { return false };
            let each = each_of(request, hole.gpus_per_node, rank as u32);
            let row = rows
                .entry(seat.node)
                .or_insert_with(|| node_calendar.peak(hole.from, hole.to, hole.to));
            eligible.allows(&node_calendar.node) && node_calendar.seat_beside(row, &each, seat.gpus)
        })
}

pub(super) fn unseat(calendar: &mut Calendar, job: &Job) {
    let part = job.first_part();
    for (rank, seat) in part.plan().into_iter().flat_map(|p| &p.seats).enumerate() {
        let (job, attempt, rank) = (job.id, part.attempt, rank as u32);
        calendar.unbook(BookingHolder::Job { job, part: 0, attempt, rank }, seat.node);
    }
}

/// The seats that a run still holds, by rank: what has exited needs none, and its node may have
/// lost it since.
fn held_seats(run: &Attempt) -> impl Iterator<Item = (u32, Seat)> {
    let seats = (0u32..).zip(&run.plan.seats).zip(&run.tasks);
    seats.filter(|(_, task)| task.is_live()).map(|((rank, seat), _)| (rank, *seat))
}

/// Seats a running job where it was, if nobody took its place.
pub(super) fn reseat(calendar: &mut Calendar, job: &Job, now: Time) -> bool {
    let part = job.first_part();
    let Some(run) = part.run() else { return false };
    let plan = &run.plan;
    let mut rows: BTreeMap<crate::units::NodeId, crate::calendar::Load> = BTreeMap::new();
    let after = now + Span(1);
    let free = held_seats(run).all(|(rank, seat)| {
        let Some(node_calendar) = calendar.node(seat.node) else { return false };
        let row = rows.entry(seat.node).or_insert_with(|| node_calendar.peak(now, after, after));
        node_calendar.seat_beside(row, &part.each_of(plan, rank), seat.gpus)
    });
    if free {
        for (rank, seat) in held_seats(run) {
            let each = part.each_of(plan, rank);
            let (job, attempt) = (job.id, part.attempt);
            let holder = BookingHolder::Job { job, part: 0, attempt, rank };
            calendar.book(holder, seat, &each, Layer::Soft, plan.from, plan.to);
        }
    }
    free
}

/// Lets a run end on paper when it has lasted as long as `lasting`, if it is not to end before.
pub(super) fn shorten(calendar: &mut Calendar, job: &Job, lasting: Span, now: Time) {
    let part = job.first_part();
    let Some(run) = part.run() else { return };
    let plan = &run.plan;
    let to = (run.since + lasting).max(now + Span(1));
    if to >= plan.to {
        return;
    }
    unseat(calendar, job);
    for (rank, seat) in held_seats(run) {
        let each = part.each_of(plan, rank);
        let holder = BookingHolder::Job { job: job.id, part: 0, attempt: part.attempt, rank };
        calendar.book(holder, seat, &each, layer_of(&job.terms), plan.from, to);
    }
}

/// A place for a waiting job at this moment, if it lasts as long as `lasting`.
pub(crate) fn place_now(
    state: &State,
    calendar: &Calendar,
    job: &Job,
    lasting: Span,
) -> Option<Plan> {
    place_where(state, calendar, job, lasting, |_| true)
}

/// The same in the first pool where the plan will do.
pub(super) fn place_where(
    state: &State,
    calendar: &Calendar,
    job: &Job,
    lasting: Span,
    mut will_do: impl FnMut(&Plan) -> bool,
) -> Option<Plan> {
    let part = job.first_part();
    let now = state.now;
    if part.not_before().is_some_and(|at| at > now) {
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
        let plan = Plan { pool: pool.pool.name.clone(), from: now, to, seats, gpus_per_node };
        will_do(&plan).then_some(plan)
    })
}
