//! What a state says of its tasks: which of them are out, where they are, and which are over.
//!
//! Functions of a state alone: nothing is decided here, and executors are not known.

use std::collections::BTreeSet;

use era_core::State;
use era_core::calendar::Seat;
use era_core::job::{Job, Part, Task, TaskId};
use era_core::units::{NodeId, Time};

/// The ranks of an attempt with what each does and where it sits, growth included. A rank that was
/// evicted may have no seat any more.
fn ranks(part: &Part) -> impl Iterator<Item = (u32, Task, Option<Seat>)> {
    let seats = part.plan().into_iter().flat_map(|plan| plan.seats.iter().copied().map(Some));
    let promised = part.tasks().iter().copied().zip(seats.chain(std::iter::repeat(None)));
    let promised = (0u32..).zip(promised).map(|(rank, (task, seat))| (rank, task, seat));
    promised.chain(part.extras().iter().map(|extra| (extra.rank, extra.task, Some(extra.seat))))
}

/// The tasks of the attempts at a job that are under way.
fn of_job(job: &Job) -> impl Iterator<Item = (TaskId, Task, Option<Seat>)> {
    let active = (0u16..).zip(&job.parts).filter(|(_, part)| part.is_active());
    active.flat_map(move |(index, part)| {
        let id = move |rank| TaskId { job: job.id, part: index, attempt: part.attempt, rank };
        ranks(part).map(move |(rank, task, seat)| (id(rank), task, seat))
    })
}

/// The tasks of all jobs that are not over.
fn all(state: &State) -> impl Iterator<Item = (TaskId, Task, Option<Seat>)> {
    state.jobs().filter(|job| job.ended.is_none()).flat_map(|job| of_job(job))
}

/// Tasks that may run, each with its node where it has one.
pub fn live(state: &State) -> impl Iterator<Item = (TaskId, Option<NodeId>)> {
    let live = all(state).filter(|(_, task, _)| task.is_live());
    live.map(|(id, _, seat)| (id, seat.map(|seat| seat.node)))
}

/// Tasks that are confirmed to run and are known to no executor: they are lost. Those sent out and
/// not confirmed are sent out again.
pub fn missing(state: &State, known: &BTreeSet<TaskId>) -> Vec<TaskId> {
    let running = all(state).filter(|(_, task, seat)| *task == Task::Running && seat.is_some());
    running.map(|(id, ..)| id).filter(|id| !known.contains(id)).collect()
}

/// Whether nothing of a job runs any more once these are over.
pub fn nothing_left(job: &Job, over: &BTreeSet<TaskId>) -> bool {
    of_job(job).all(|(id, task, _)| !task.is_live() || over.contains(&id))
}

/// Whether a task was sent off, and nothing was heard of it.
pub fn is_launching(state: &State, id: TaskId) -> bool {
    let Ok(job) = state.job(id.job) else { return false };
    of_job(job).any(|(other, task, _)| other == id && task == Task::Launching)
}

/// The job of a task that is to run: it was sent out, perhaps confirmed, and nothing befell it.
pub fn current(state: &State, id: TaskId) -> Option<&Job> {
    let job = state.job(id.job).ok().filter(|job| job.ended.is_none())?;
    let to_run = |task| matches!(task, Task::Launching | Task::Running);
    of_job(job).any(|(other, task, _)| other == id && to_run(task)).then_some(&**job)
}

/// The part of a job that a task is of, whatever it does now.
fn part(job: &Job, id: TaskId) -> Option<&Part> {
    job.parts.get(usize::from(id.part))
}

/// The ranks of a part with their seats, growth included, whether they run or are to run.
pub fn seats(part: &Part) -> impl Iterator<Item = (u32, Seat)> {
    let planned = part.plan().into_iter().flat_map(|plan| plan.seats.iter().copied());
    (0u32..).zip(planned).chain(part.extras().iter().map(|extra| (extra.rank, extra.seat)))
}

/// Where a task sits, or is to sit.
pub fn seat(state: &State, id: TaskId) -> Option<Seat> {
    seats(part(state.job(id.job).ok()?, id)?).find(|(rank, _)| *rank == id.rank).map(|(_, s)| s)
}

/// Where a task sits that is growth beyond a promise.
pub fn growth_seat(state: &State, id: TaskId) -> Option<Seat> {
    let part = part(state.job(id.job).ok()?, id)?;
    part.extras().iter().find(|extra| extra.rank == id.rank).map(|extra| extra.seat)
}

/// The tasks of promises that start between now and an instant, each with its start.
pub fn starting(state: &State, until: Time) -> impl Iterator<Item = (TaskId, Time, NodeId)> {
    let now = state.now();
    state.jobs().flat_map(move |job| starting_of(job, now, until))
}

/// The same of one job.
pub fn starting_of(
    job: &Job,
    now: Time,
    until: Time,
) -> impl Iterator<Item = (TaskId, Time, NodeId)> {
    let parts: &[Part] = match job.ended.is_none() && job.promise().is_some() {
        true => &job.parts,
        false => &[],
    };
    let booked = (0u16..).zip(parts).filter(|(_, part)| part.is_booked());
    let plans = booked.filter_map(|(index, part)| Some((index, part.attempt + 1, part.plan()?)));
    let soon = plans.filter(move |(.., plan)| plan.from > now && plan.from <= until);
    soon.flat_map(move |(part, attempt, plan)| {
        let id = move |rank| TaskId { job: job.id, part, attempt, rank };
        (0u32..).zip(&plan.seats).map(move |(rank, seat)| (id(rank), plan.from, seat.node))
    })
}
