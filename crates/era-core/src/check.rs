//! Re-derives every invariant of a state from what decides it. Slow, for tests and doctors.

use crate::calendar::{Layer, Load, NodeCalendar};
use crate::estimate::history::HISTORIES_MAX;
use crate::input::AFTER_MAX;
use crate::job::{After, Job, Outcome, Part, Phase, When};
use crate::ledger::Account;
use crate::scheduler::{kept_until, next_wakeup};
use crate::state::State;
use crate::units::{Money, Span, Time};

/// What is wrong with a state, if anything is.
pub fn check(state: &State) -> Result<(), String> {
    capacity_is_never_exceeded(state)?;
    jobs_are_consistent(state)?;
    derived_parts_follow(state)?;
    arrays_are_booked(state)?;
    nobody_waits_in_vain(state)?;
    money_is_conserved(state)?;
    quotas_are_counted(state)?;
    predictions_follow(state)?;
    state.accounts.check()
}

/// Invariant 1: no node is promised or given more than it has, in any resource, GPU by GPU.
fn capacity_is_never_exceeded(state: &State) -> Result<(), String> {
    for node_calendar in state.calendar.pools().iter().flat_map(|p| &p.nodes) {
        let id = node_calendar.node.id;
        let ends: Vec<Time> = node_calendar
            .bookings()
            .iter()
            .flat_map(|b| [b.from, b.to])
            .filter(|t| *t >= state.now)
            .collect();
        for at in ends.into_iter().chain([state.now]) {
            let after = at + Span(1);
            let firm = node_calendar.peak(at, after, Time::MIN);
            if !node_calendar.within_capacity(&firm) {
                let who = booked_at(node_calendar, at);
                return Err(format!("{id} has promised more than it has at {at}: {who}"));
            }
        }
        let after = state.now + Span(1);
        let given: Load = node_calendar.peak(state.now, after, after);
        if !node_calendar.within_capacity(&given) {
            let who = booked_at(node_calendar, state.now);
            return Err(format!("{id} gives more than it has at {}: {who}", state.now));
        }
    }
    Ok(())
}

/// Whoever may be ranked has a prediction where there is a forest to ask, and none elsewhere;
/// what is remembered of past runs stays bounded.
fn predictions_follow(state: &State) -> Result<(), String> {
    let asked = state.estimates.duration.is_some();
    let open = state.jobs().filter(|job| job.ended.is_none() && job.queue().is_some());
    for job in open {
        if job.outlook.prediction.is_some() != asked {
            return Err(format!("{} has a prediction of other estimates", job.id));
        }
    }
    let kept = state.histories.len();
    if kept > HISTORIES_MAX { Err(format!("{kept} histories are remembered")) } else { Ok(()) }
}

fn booked_at(node_calendar: &NodeCalendar, at: Time) -> String {
    let there = node_calendar.bookings().iter().filter(|b| b.from <= at && at < b.to);
    there
        .map(|b| format!("{:?} {:?} {:?}", b.layer, b.holder, b.take))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Invariants 2 and 7: plans are whole and on time, attempts follow one another.
fn jobs_are_consistent(state: &State) -> Result<(), String> {
    for job in state.jobs() {
        for (index, part) in job.parts.iter().enumerate() {
            part_is_consistent(state, job, part)
                .map_err(|problem| format!("{} part {index}: {problem}", job.id))?;
        }
        for (index, part) in job.parts.iter().enumerate() {
            let after = job.finished_before(index).unwrap_or(Time::MIN);
            let before = job.starts_after(index).unwrap_or(Time::MAX);
            let plan = part.last_plan();
            let broken = part.stop().is_some() && part.next().is_none();
            if !broken && plan.is_some_and(|p| p.from < after || p.to > before) {
                return Err(format!("{} part {index} is planned out of order", job.id));
            }
        }
        // Only where a part ran out of time do the others go on.
        let decided = job.verdict.as_ref().is_some_and(|v| *v != Outcome::LimitReached);
        let to_come = |part: &Part| part.coming().is_some();
        if decided && job.parts.iter().any(to_come) {
            return Err(format!("{} is over, and part of it is still to come", job.id));
        }
        let done = job.parts.iter().all(Part::is_done);
        if job.ended.is_some() != done {
            return Err(format!("{} ended, or not, unlike its parts", job.id));
        }
    }
    Ok(())
}

fn part_is_consistent(state: &State, job: &Job, part: &Part) -> Result<(), String> {
    match &part.phase {
        Phase::Booked(booked) if booked.plan.from < state.now => {
            return Err("should have started".into());
        }
        Phase::Waiting(_) if job.promise().is_some() => return Err("waits in a queue".into()),
        _ => {}
    }
    if part.coming().is_some() && job.promise().is_none() {
        return Err("has a start to come though nobody promised one".into());
    }
    for (_, plan) in part.plans() {
        let seats = part.request.blocks(plan.gpus_per_node);
        let wanted: u32 = seats.iter().map(|b| b.count).sum();
        if plan.seats.len() != wanted as usize {
            return Err(format!("has {} seats of {wanted}", plan.seats.len()));
        }
        for (rank, seat) in plan.seats.iter().enumerate() {
            let each = part.each_of(plan, rank as u32);
            if seat.gpus.count_ones() != each.gpus_touched() {
                return Err(format!("rank {rank} sits on {} GPUs", seat.gpus.count_ones()));
            }
        }
        if let Some(promise) = job.promise() {
            let window = part.request.window;
            // One that goes on from a checkpoint is longer than its rest, not than its request.
            let prolonged = part.run().is_some_and(|run| run.prolonged);
            let extended = prolonged || plan.to.since(plan.from) > part.request.duration;
            let lost = part.stop().is_some();
            if plan.from < window.earliest || (plan.to > window.deadline && !extended && !lost) {
                return Err(format!("is planned outside its window: {:?}", promise.bid.value));
            }
        }
    }
    if part.run().is_some_and(|run| run.tasks.len() != run.plan.seats.len()) {
        return Err("has other tasks than seats".into());
    }
    if part.extras().len() as u32 > part.request.shape.growth() {
        return Err("has grown beyond its limit".into());
    }
    Ok(())
}

/// The calendar, the timers and the lists are what the rest of the state says.
fn derived_parts_follow(state: &State) -> Result<(), String> {
    let mut fresh = state.clone();
    fresh.derive();
    state.calendar.agrees(&fresh.calendar)?;
    if state.timers != fresh.timers {
        return Err(format!("timers differ: {:?} / {:?}", state.timers, fresh.timers));
    }
    if state.timers.get_min().is_some_and(|(due, _)| *due <= state.now) {
        return Err(format!("something is overdue: {:?}", state.timers.get_min()));
    }
    if next_wakeup(state).is_some_and(|due| due <= state.now) {
        return Err("an ended job is overdue to be forgotten".into());
    }
    if state.ended != fresh.ended || state.key_ages != fresh.key_ages {
        return Err("lists of what is remembered differ".into());
    }
    let most = kept_until(state.settings.remember_max as usize);
    if state.ended.len() > most || state.keys.len() > most {
        let (jobs, keys) = (state.ended.len(), state.keys.len());
        return Err(format!("{jobs} ended jobs and {keys} keys are remembered"));
    }
    let kept = |s: &State| (s.elastic.clone(), s.lines.clone(), s.running.clone());
    let held = |s: &State| (s.held.clone(), s.followers.clone(), s.arrays.clone());
    if held(state) != held(&fresh) {
        return Err("what is known of arrays, or of who waits for whom, differs".into());
    }
    if state.waiting != fresh.waiting || state.active != fresh.active || kept(state) != kept(&fresh)
    {
        return Err("lists of who waits or runs differ".into());
    }
    let levels = |s: &State| {
        let used = s.level_use.iter().map(|(k, v)| (k.clone(), v.peak(s.now, Time::MAX)));
        used.filter(|(_, peak)| *peak != [0; 3]).collect::<Vec<_>>()
    };
    if levels(state) != levels(&fresh) {
        return Err("what levels have promised themselves differs".into());
    }
    let shadows =
        state.calendar.pools().iter().flat_map(|p| &p.nodes).flat_map(|l| l.bookings()).any(|b| {
            b.layer == Layer::Soft
                && matches!(b.holder, crate::calendar::BookingHolder::Hold { .. })
        });
    if shadows { Err("a pass left a shadow behind".into()) } else { Ok(()) }
}

/// An array has a book as long as any of its jobs is remembered, and keeps within its limit.
fn arrays_are_booked(state: &State) -> Result<(), String> {
    for job in state.jobs() {
        let Some(member) = job.array else { continue };
        let Some(book) = state.arrays.get(&member.first) else {
            return Err(format!("{} is of an array without a book", job.id));
        };
        if !book.jobs().contains(&job.id) {
            return Err(format!("{} is not of the array {}", job.id, book.first));
        }
        let failed = job.ended.as_ref().is_some_and(|e| e.outcome != Outcome::Succeeded);
        if failed && book.spoiled.is_none() {
            return Err(format!("{} did not succeed, and its array does not know", job.id));
        }
    }
    for book in state.arrays.values() {
        if book.kept == 0 || book.running_max.is_some_and(|most| book.running > most) {
            return Err(format!("array {} is empty, or too much of it runs: {book:?}", book.first));
        }
    }
    Ok(())
}

/// Whoever waits for a job waits for an earlier one that may still end as it should.
fn nobody_waits_in_vain(state: &State) -> Result<(), String> {
    for job in state.jobs().filter(|job| job.is_held()) {
        if job.after.len() > AFTER_MAX || !job.is_waiting() || job.ready.is_some() {
            return Err(format!("{} waits for others and is not held back", job.id));
        }
        for After { job: before, when } in &job.after {
            let (open, spoiled) = match state.arrays.get(before) {
                Some(book) => (book.open > 0, book.spoiled.is_some()),
                None => (state.job(*before).is_ok_and(|b| b.ended.is_none()), false),
            };
            if *before >= job.id || !open || (spoiled && *when == When::Ok) {
                return Err(format!("{} waits for {before} in vain", job.id));
            }
        }
    }
    Ok(())
}

/// Invariant 6: every posting balances, and escrows hold what live jobs have paid for.
fn money_is_conserved(state: &State) -> Result<(), String> {
    state.ledger.check()?;
    for (account, balance) in state.ledger.balances() {
        let Account::Escrow(id) = account else { continue };
        let held: i64 = state.jobs.get(&id).map_or(0, |job| {
            let extras = job.parts.iter().flat_map(Part::extras).map(|e| e.escrow.0);
            job.parts.iter().map(|p| p.escrow().0).chain(extras).sum()
        });
        if balance != Money(held) {
            return Err(format!("escrow of {id} holds {balance}, its parts {}", Money(held)));
        }
    }
    let paid: i64 = state.jobs().flat_map(|j| &j.parts).map(|p| p.escrow().0).sum();
    let extras: i64 =
        state.jobs().flat_map(|j| &j.parts).flat_map(Part::extras).map(|e| e.escrow.0).sum();
    let escrows: i64 = state
        .ledger
        .balances()
        .filter(|(account, _)| matches!(account, Account::Escrow(_)))
        .map(|(_, balance)| balance.0)
        .sum();
    if paid + extras == escrows { Ok(()) } else { Err("escrows and parts differ".into()) }
}

/// What users and groups hold over time is what their live plans, growth and holds say.
fn quotas_are_counted(state: &State) -> Result<(), String> {
    state.usage.check()?;
    let mut fresh = state.usage.with_nothing_held();
    let mut commit = |user, group, from: Time, to: Time, units| {
        fresh.commit(user, group, from, to.max(from), units).map_err(|e| e.to_string())
    };
    for job in state.jobs().filter(|j| j.ended.is_none()) {
        for part in &job.parts {
            if let Some(plan) = part.last_plan() {
                commit(job.user, job.group, plan.from, plan.to, part.request.units())?;
            }
            for extra in part.extras() {
                let units = part.request.each.units(1);
                commit(job.user, job.group, extra.since, extra.to, units)?;
            }
        }
    }
    for hold in state.holds() {
        for ((plan, _), request) in hold.parts.iter().zip(hold.requests()) {
            commit(hold.bid.user, hold.group, plan.from, plan.to, request.units())?;
        }
    }
    if fresh == state.usage {
        return Ok(());
    }
    Err(format!("it is counted as held {:?}, and should be {fresh:?}", state.usage))
}
