//! Attempts and their tasks: when they were sent out, ran and were over, and what they had.

use era_core::calendar::Seat;
use era_core::job::{Plan, StopReason, TaskId, each_of};
use era_core::units::{JobId, Time};
use era_core::{Command, Event};

use super::Projection;
use super::changes::{Changes, times};
use super::jobs::state_of;
use super::memory::{LiveJob, LivePart};
use crate::note::Observation;
use crate::tables::hours::hours;
use crate::tables::rows::TaskRow;

impl Projection<'_> {
    pub(super) fn launched(&mut self, id: JobId, part: u16, attempt: u32, plan: &Plan) {
        self.close_attempt(id, part);
        let at = self.at();
        let nodes: Vec<_> =
            plan.seats.iter().map(|seat| self.memory.nodes.get(&seat.node)).collect();
        let simulated = nodes.iter().any(|node| node.is_some_and(|node| node.simulated));
        let model = nodes.first().copied().flatten().and_then(|node| node.model.clone());
        self.change(id, |live, changes| {
            let Some(of) = live.parts.get_mut(usize::from(part)) else { return };
            let told = of.told;
            begin(of, id, part, attempt, plan, at);
            for task in &of.open {
                changes.tasks.insert(key(task), task.clone());
            }
            live.launched = Some(at);
            live.prepared_ms = 0;
            live.row.simulated |= simulated;
            live.row.attempts = live.row.attempts.max(attempt);
            live.model = live.model.take().or(model);
            if let (Some(told), 1) = (told, attempt) {
                due(live, changes, told == plan.from, told);
            }
            live.row.state = state_of(live);
        });
    }

    /// An executor's word that a task runs, unless it was ignored.
    pub(super) fn started(&mut self) {
        let Command::Started { task } = &self.entry.input.command else { return };
        let ignored = |e: &Event| matches!(e, Event::Ignored { .. } | Event::Refused { .. });
        if self.entry.events.iter().any(ignored) {
            return;
        }
        let (task, at) = (*task, self.at());
        let seen = self.entry.note.task.clone();
        self.change(task.job, |live, changes| {
            let Some(part) = live.parts.get_mut(usize::from(task.part)) else { return };
            let index = part.open.iter().position(|open| open.rank == task.rank);
            let index = index.unwrap_or_else(|| {
                let seat = seen.as_ref().and_then(|seen| seen.seat);
                part.open.push(grown(part, task, at, seat));
                part.open.len() - 1
            });
            let row = &mut part.open[index];
            row.started = Some(moment(seen.as_ref(), row.launched, at));
            row.prepared_ms = seen.and_then(|seen| seen.prepared_ms);
            live.prepared_ms = live.prepared_ms.max(row.prepared_ms.unwrap_or(0));
            changes.tasks.insert(key(row), row.clone());
        });
    }

    pub(super) fn running(&mut self, id: JobId, part: u16, attempt: u32) {
        let at = self.at();
        self.change(id, |live, changes| {
            let Some(of) = live.parts.get_mut(usize::from(part)) else { return };
            of.running = true;
            let began = of.open.iter().filter_map(|task| task.started).max().unwrap_or(at);
            live.row.started = Some(began);
            live.row.state = state_of(live);
            if !live.ran {
                live.ran = true;
                first_start(live, changes, at, began, attempt);
            }
        });
    }

    pub(super) fn task_ended(&mut self, task: TaskId, code: Option<i32>) {
        let (about, known) = match &self.entry.input.command {
            Command::Exited { task, at, .. } => (Some(*task), *at),
            Command::TaskLost { task, .. } => (Some(*task), None),
            _ => (None, None),
        };
        let seen = self.entry.note.task.clone().filter(|_| about == Some(task));
        // What ended while nobody was here is heard of before time goes on.
        let at = self.at().max(known.filter(|_| about == Some(task)).unwrap_or(Time(0)));
        self.change(task.job, |live, changes| {
            let Some(part) = live.parts.get_mut(usize::from(task.part)) else { return };
            let Some(index) = part.open.iter().position(|open| open.rank == task.rank) else {
                return;
            };
            let mut row = part.open.remove(index);
            row.ended = Some(moment(seen.as_ref(), row.launched, at));
            row.exit_code = code;
            let told = seen.and_then(|seen| seen.cause);
            // What it is called; why, in words, is the job's to tell.
            row.cause =
                told.as_deref().map(|told| told.split(": ").next().unwrap_or(told).to_owned());
            if code.is_none() && row.cause.is_none() {
                row.cause = Some("lost".to_owned());
            }
            if part.stop.is_none() && code != Some(0) {
                live.bad_code = live.bad_code.or(code);
                live.cause = live.cause.take().or(told).or_else(|| row.cause.clone());
            }
            over(live, changes, row);
        });
    }

    /// Ends what is left of a part's newest attempt: its guard has ended what did not report.
    pub(super) fn close_attempt(&mut self, id: JobId, part: u16) {
        let at = self.at();
        self.change(id, |live, changes| {
            let Some(of) = live.parts.get_mut(usize::from(part)) else { return };
            if !of.active {
                return;
            }
            of.active = false;
            let why = of.stop.map(|(why, _)| why);
            let gone = of.stop.map_or(at, |(_, until)| until.min(at));
            let not_started =
                live.cause.as_deref().is_some_and(|cause| cause.starts_with("not_started"));
            if !of.running && (why == Some(StopReason::Lost) || not_started) {
                changes.tally(at, "system_faults", 1);
            }
            for mut row in std::mem::take(&mut of.open) {
                row.ended = Some(gone.max(row.launched));
                row.cause = Some(cause(why).to_owned());
                over(live, changes, row);
            }
        });
    }
}

fn key(row: &TaskRow) -> (JobId, u16, u32, u32) {
    (row.job, row.part, row.attempt, row.rank)
}

/// Sends out the tasks of an attempt.
fn begin(of: &mut LivePart, job: JobId, part: u16, attempt: u32, plan: &Plan, at: Time) {
    of.attempt = attempt;
    of.active = true;
    of.running = false;
    of.stop = None;
    let tasks = plan.seats.iter().enumerate().map(|(rank, seat)| {
        let rank = u32::try_from(rank).unwrap_or(u32::MAX);
        TaskRow {
            job,
            part,
            attempt,
            rank,
            node: Some(seat.node),
            gpus: seat.gpus,
            units: each_of(&of.request, plan.gpus_per_node, rank).units(1),
            launched: at,
            started: None,
            ended: None,
            exit_code: None,
            cause: None,
            prepared_ms: None,
        }
    });
    of.open = tasks.collect();
}

/// Growth beyond a promise, which the report of its start tells of.
fn grown(of: &LivePart, task: TaskId, at: Time, seat: Option<Seat>) -> TaskRow {
    TaskRow {
        job: task.job,
        part: task.part,
        attempt: task.attempt,
        rank: task.rank,
        node: seat.map(|seat| seat.node),
        gpus: seat.map_or(0, |seat| seat.gpus),
        units: of.request.each.units(1),
        launched: at,
        started: None,
        ended: None,
        exit_code: None,
        cause: None,
        prepared_ms: None,
    }
}

/// When an executor saw it, if it says; its clock is trusted only as far as order goes.
fn moment(seen: Option<&Observation>, launched: Time, at: Time) -> Time {
    let seen = seen.map(|seen| Time(seen.at_ms)).filter(|seen| *seen != Time(0));
    seen.unwrap_or(at).clamp(launched.min(at), at)
}

fn cause(why: Option<StopReason>) -> &'static str {
    match why {
        Some(StopReason::Lost) => "lost",
        Some(StopReason::Drained) => "drained",
        Some(StopReason::Limit) => "limit",
        _ => "stopped",
    }
}

/// A task is over: what it had is added up.
fn over(live: &mut LiveJob, changes: &mut Changes, row: TaskRow) {
    let ended = row.ended.unwrap_or(row.launched);
    if let Some(node) = row.node {
        changes.used(node, row.units, row.launched, ended);
    }
    for (hour, ms) in hours(row.launched, ended) {
        changes.spent(&live.row, hour, |spent| {
            for (sum, amount) in spent.unit_ms.iter_mut().zip(row.units) {
                *sum = sum.saturating_add(times(amount, ms));
            }
        });
    }
    let [_, _, gpu] = row.units;
    live.gpu_ms = live.gpu_ms.saturating_add(times(gpu, ended.since(row.launched).0));
    changes.tasks.insert(key(&row), row);
}

/// A promise was due: it was kept if it was sent out for the start that was told.
fn due(live: &mut LiveJob, changes: &mut Changes, kept: bool, told: Time) {
    let when = live.row.promised_start.unwrap_or(told);
    match live.kept {
        None => {
            live.kept = Some(kept);
            changes.tally(when, "promises_due", 1);
            changes.tally(when, "promises_kept", i64::from(kept));
        }
        Some(true) if !kept => {
            live.kept = Some(false);
            changes.tally(when, "promises_kept", -1);
        }
        Some(_) => {}
    }
}

/// The stages from submission to the first instruction, of a job's first run.
fn first_start(live: &LiveJob, changes: &mut Changes, at: Time, began: Time, attempt: u32) {
    changes.tally(at, "starts", 1);
    changes.tally(at, "starts_first", i64::from(attempt == 1));
    changes.tally(at, "starts_second", i64::from(attempt <= 2));
    let submitted = live.row.submitted;
    let launched = live.launched.unwrap_or(submitted);
    let accept = live.accept_ms.unwrap_or(0);
    changes.tally(at, "stage/n", 1);
    changes.tally(at, "stage/queue_ms", launched.since(submitted).0);
    changes.tally(at, "stage/prepare_ms", live.prepared_ms);
    changes.tally(at, "stage/start_ms", (began.since(launched).0 - live.prepared_ms).max(0));
    changes.tally(at, "stage/total_ms", accept + began.since(submitted).0);
    if live.accept_ms.is_some() {
        changes.tally(at, "stage/accept_n", 1);
        changes.tally(at, "stage/accept_ms", accept);
    }
    if let Some(quote) = live.quote_us {
        changes.tally(at, "stage/quote_n", 1);
        changes.tally(at, "stage/quote_us", i64::try_from(quote).unwrap_or(i64::MAX));
    }
}
