//! Runs: from the launch of an attempt to its end, as executors report it.

use super::Step;
use super::replan::{Effort, broken_by};
use crate::calendar::BookingHolder;
use crate::event::Event;
use crate::input::Threshold;
use crate::job::{
    Booked, Extra, Job, JobEnd, Next, Outcome, Part, Phase, Plan, Stop, StopReason, Stoppage, Task,
    TaskId,
};
use crate::output::{Effect, Notification, Reply};
use crate::state::{Ending, Settlement};
use crate::units::{JobId, Name, Span, Time};

/// How long after its lease has lapsed a node may be reported as lost: executors look every second
/// and add a margin of their own, the longest where tasks are in containers.
const REPORT_DELAY_MAX: Span = Span::from_s(15);

/// The indices of the bits that are set.
pub(super) fn gpu_list(mask: u64) -> Vec<u8> {
    (0..64).filter(|i| mask >> i & 1 == 1).collect()
}

fn launch_effect(job: JobId, index: usize, part: &Part, plan: &Plan, rank: u32) -> Effect {
    let extra = part.extras().iter().find(|e| e.rank == rank);
    let seat = extra.map_or_else(|| plan.seats[rank as usize], |e| e.seat);
    Effect::Launch {
        task: TaskId { job, part: index as u16, attempt: part.attempt, rank },
        node: seat.node,
        gpus: gpu_list(seat.gpus),
        each: part.each_of(plan, rank),
        replicas: part.gang_size(),
        until: plan.to,
    }
}

/// When a task that is to be gone by `until` is told to be.
fn told(task: Task, until: Time) -> Time {
    task.lapses().unwrap_or(until)
}

/// Whether a task is still told what to do: one whose time is over has been told.
fn is_told(task: Task) -> bool {
    task.is_live() && task != Task::Unanswered
}

/// How growth was told to stop: with its gang, or before it.
pub(super) fn stop_of(part: &Part, extra: &Extra) -> Option<Stop> {
    let stop = part.stop();
    let why = match (stop, extra.task) {
        (Some(stop), _) => stop.why,
        (None, task) if task.lapses().is_some() => StopReason::Lost,
        (None, _) => StopReason::Preempted,
    };
    let until = match (stop, extra.stop_until) {
        (Some(stop), Some(until)) => stop.until.min(until),
        (stop, until) => until.or(stop.map(|s| s.until))?,
    };
    Some(Stop { why, until: told(extra.task, until) })
}

/// The effects of an active part that are not confirmed.
pub(super) fn outstanding(job: &Job, index: usize, part: &Part, effects: &mut Vec<Effect>) {
    let Some(run) = part.run() else { return };
    let plan = &run.plan;
    let task = |rank| TaskId { job: job.id, part: index as u16, attempt: part.attempt, rank };
    let seats = plan.seats.iter().enumerate().map(|(rank, seat)| (rank as u32, *seat));
    for ((rank, seat), state) in seats.zip(&run.tasks) {
        match run.stop() {
            Some(Stop { why, until }) if is_told(*state) => {
                let until = told(*state, until);
                effects.push(Effect::Stop { task: task(rank), node: seat.node, until, why });
            }
            None if *state == Task::Launching => {
                effects.push(launch_effect(job.id, index, part, plan, rank));
            }
            // Nobody confirms a later end, so it is told again: it says the same each time.
            None if *state == Task::Running && run.prolonged => {
                let (task, node, until) = (task(rank), seat.node, plan.to);
                effects.push(Effect::Prolong { task, node, until });
            }
            _ => {}
        }
    }
    for extra in run.extras.iter().filter(|e| is_told(e.task)) {
        match stop_of(part, extra) {
            Some(Stop { until, why }) => {
                let node = extra.seat.node;
                effects.push(Effect::Stop { task: task(extra.rank), node, until, why });
            }
            None if extra.task == Task::Launching => {
                effects.push(launch_effect(job.id, index, part, plan, extra.rank));
            }
            None => {}
        }
    }
}

impl Step<'_> {
    /// Sends out all tasks of a part that has begun.
    pub(super) fn launch(&mut self, id: JobId, index: usize) {
        let Some(job) = self.job(id) else { return };
        let part = &job.parts[index];
        let Some(plan) = part.plan().cloned() else { return };
        outstanding(&job, index, part, &mut self.effects);
        let attempt = part.attempt;
        self.events.push(Event::Launched { job: id, part: index as u16, attempt, plan });
    }

    /// A promise's time has come. Where nobody drove the core for longer than a grace period
    /// after that, its full duration no longer fits its slot: it is planned anew in its window,
    /// or refunded as broken (decision 0010).
    pub(super) fn promise_due(&mut self, id: JobId, index: u16) {
        let Some(part) = self.part(id, usize::from(index)) else { return };
        let due = part.plan().map_or(self.state.now, |plan| plan.from);
        if self.state.now.since(due) <= self.state.settings.grace {
            return self.start_promise(id, index);
        }
        let attempt = part.attempt + 1;
        let holder = BookingHolder::Job { job: id, part: index, attempt, rank: 0 };
        let why = "its start passed while the scheduler was down";
        self.relocate(holder, Effort::Whatever { why });
    }

    /// A promise begins.
    pub(super) fn start_promise(&mut self, id: JobId, index: u16) {
        let (now, index) = (self.state.now, usize::from(index));
        let Some(Phase::Booked(booked)) = self.part(id, index).map(|part| &part.phase) else {
            return;
        };
        let Booked { plan, escrow, .. } = booked.clone();
        self.edit_part(id, index, |part| part.begin(plan, escrow, now));
        self.launch(id, index);
    }

    pub(super) fn started(&mut self, task: TaskId) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        if job.parts[index].task(task.rank) != Some(Task::Launching) {
            return self.ignore(task);
        }
        let (promised, all_began) = self
            .edit_run(job.id, index, |run| {
                let tasks = run.tasks_mut().filter(|(rank, _)| *rank == task.rank);
                tasks.for_each(|(_, state)| *state = Task::Running);
                // One that is over already has run: short ranks end before the last one has begun.
                let began = |task: &Task| matches!(task, Task::Running | Task::Exited(_));
                ((task.rank as usize) < run.tasks.len(), run.tasks.iter().all(began))
            })
            .unwrap_or_default();
        if promised && all_began {
            let attempt = task.attempt;
            self.events.push(Event::Running { job: job.id, part: task.part, attempt });
            let (user, job) = (job.user, job.id);
            self.effects.push(Effect::Notify { user, job, notification: Notification::Started });
        }
        Reply::Done
    }

    pub(super) fn exited(&mut self, task: TaskId, code: i32, at: Option<Time>) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let (id, now, part) = (job.id, self.state.now, &job.parts[index]);
        let rank = task.rank as usize;
        let Some(state) = part.tasks().get(rank) else {
            return self.extra_exited(&job, index, task, Some(code), at);
        };
        if !state.is_live() {
            return self.ignore(task);
        }
        let over = self.edit_run(id, index, |run| {
            run.tasks[rank] = Task::Exited(code);
            run.note_exit(at, now);
            run.tasks.iter().all(|t| !t.is_live())
        });
        self.events.push(Event::TaskEnded { task, code: Some(code) });
        let told = part.stop().is_some();
        if !told && code != 0 {
            self.stop_part(id, index, StopReason::Failed { code });
        } else if !told && over == Some(true) {
            // The promised ranks are done; growth has nothing left to help with.
            self.stop_extras_now(id, index);
        }
        self.finish_if_quiet(id, index);
        Reply::Done
    }

    /// A task is certainly gone through no fault of its own: its gang is lost.
    pub(super) fn task_lost(&mut self, task: TaskId, reason: &Name) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let (id, part, rank) = (job.id, &job.parts[index], task.rank as usize);
        let Some(state) = part.tasks().get(rank).copied() else {
            return self.extra_exited(&job, index, task, None, None);
        };
        if !state.is_live() {
            return self.ignore(task);
        }
        // One that had begun did not fail with its gang: its gang failed with it.
        let took_its_gang = state != Task::Launching && job.is_failing(index);
        self.edit_run(id, index, |run| run.tasks[rank] = Task::Lost);
        self.events.push(Event::TaskEnded { task, code: None });
        if part.stop().is_some() && !took_its_gang {
            self.finish_if_quiet(id, index);
        } else {
            let until = self.state.now + self.state.settings.grace;
            self.gang_lost(id, index, until, StopReason::Lost, reason.as_str());
        }
        Reply::Done
    }

    fn extra_exited(
        &mut self,
        job: &Job,
        index: usize,
        task: TaskId,
        code: Option<i32>,
        at: Option<Time>,
    ) -> Reply {
        if !job.parts[index].task(task.rank).is_some_and(Task::is_live) {
            return self.ignore(task);
        }
        self.events.push(Event::TaskEnded { task, code });
        let now = self.state.now;
        let at = at.unwrap_or(now);
        if job.parts[index].run().is_some_and(|run| run.exited_at.is_some()) {
            self.edit_run(job.id, index, |run| run.note_exit(Some(at), now));
        }
        self.remove_extra(job.id, index, task.rank, at);
        self.finish_if_quiet(job.id, index);
        Reply::Done
    }

    pub(super) fn checkpointed(&mut self, task: TaskId, done: Span) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let part = &job.parts[index];
        // Work is only ever saved, and never more than there is.
        if done <= part.done || done >= part.request.duration {
            return self.ignore(task);
        }
        self.edit_part(job.id, index, |part| {
            part.done = done;
            part.preemptions.times = 0;
        });
        let (job, part) = (job.id, task.part);
        self.events.push(Event::Checkpointed { job, part, done_ms: done.0 });
        Reply::Done
    }

    pub(super) fn usage_crossed(&mut self, task: TaskId, threshold: Threshold) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let Threshold::GpusIdle = threshold;
        let opted_in = match &job.terms {
            crate::job::JobTerms::Promise(p) => p.release_when_idle,
            crate::job::JobTerms::Queue(q) => q.release_when_idle,
        };
        let released = opted_in && job.parts[index].stop().is_none();
        self.events.push(Event::IdleReported { job: job.id, released });
        let (user, id) = (job.user, job.id);
        self.effects.push(Effect::Notify { user, job: id, notification: Notification::Idle });
        if released {
            self.stop_part(id, index, StopReason::Released);
            self.finish_if_quiet(id, index);
        }
        Reply::Done
    }

    /// Tells all live tasks of a part to stop.
    pub(super) fn stop_part(&mut self, id: JobId, index: usize, why: StopReason) {
        let (now, grace) = (self.state.now, self.state.settings.grace);
        let plan = self.part(id, index).and_then(Part::plan);
        let limit = plan.map_or(Time::MAX, |plan| plan.to);
        let until = (now + grace).min(limit).max(now);
        self.stop_part_until(id, index, why, until);
    }

    pub(super) fn stop_part_until(
        &mut self,
        id: JobId,
        index: usize,
        why: StopReason,
        until: Time,
    ) {
        self.edit_run(id, index, |run| run.tell(Stop { why, until }));
        let Some(job) = self.job(id) else { return };
        let attempt = job.parts[index].attempt;
        self.events.push(Event::Stopping { job: id, part: index as u16, attempt, why, until });
        outstanding(&job, index, &job.parts[index], &mut self.effects);
    }

    /// The time of a stop is over: whatever of it did not report is gone by its guard. Of a gang
    /// that is failing, those nodes have one lease more to answer, and `REPORT_DELAY_MAX` to be
    /// reported lost.
    pub(super) fn stop_over(&mut self, id: JobId, index: u16) {
        let Some(job) = self.job(id) else { return };
        let (index, now, lease) = (usize::from(index), self.state.now, self.state.settings.lease);
        let failing = job.is_failing(index);
        if job.parts[index].stop().is_none_or(|stop| stop.until > now) {
            return;
        }
        self.edit_run(id, index, |run| {
            let mut unanswered = false;
            let gone =
                |task: Task| task.is_live() && task.lapses().is_none_or(|until| until <= now);
            for (_, task) in run.tasks_mut().filter(|(_, task)| gone(**task)) {
                let asked = failing && *task != Task::Unanswered;
                *task = if asked { Task::Unanswered } else { Task::Lost };
                unanswered |= asked;
            }
            // What is cut off is gone when its lease lapses.
            if let (Some(gone), Some(stopping)) = (run.gone_by(), &mut run.stopping) {
                stopping.silent |= unanswered;
                stopping.stop.until = match unanswered {
                    true => gone.max(now + lease + REPORT_DELAY_MAX),
                    false => gone,
                };
            }
        });
        self.remove_extras_gone(id, index);
        self.finish_if_quiet(id, index);
    }

    /// Ends an attempt when nothing of it runs any more.
    pub(super) fn finish_if_quiet(&mut self, id: JobId, index: usize) {
        let Some(part) = self.part(id, index).filter(|part| !part.has_live_tasks()) else { return };
        let why = part.stop().map(|stop| stop.why);
        self.remove_extras_gone(id, index);
        match why {
            None => self.finish(id, index, Outcome::Succeeded),
            Some(StopReason::Failed { code }) => self.finish(id, index, Outcome::Failed { code }),
            Some(StopReason::Cancelled) => self.finish(id, index, Outcome::Cancelled),
            Some(StopReason::Released) => self.finish(id, index, Outcome::Released),
            Some(StopReason::Limit) => self.finish(id, index, Outcome::LimitReached),
            Some(StopReason::Preempted) => self.requeue(id, index),
            Some(StopReason::Lost | StopReason::Drained) => self.go_on_elsewhere(id, index),
        }
    }

    /// Takes a part out of its run, or of its plan that has not begun.
    fn close_run(&mut self, id: JobId, index: usize, how: Settlement, then: Phase) {
        let Some(part) = self.part(id, index) else { return };
        let at = part.quiet_since(self.state.now);
        self.end_by(id, Ending { at, how }, |job| job.parts[index].leave(at, then));
    }

    /// A part is over. So is the job, if it was the last one or failed. A part whose time is up
    /// takes those with it that were to follow it; the others have their own time, and go on.
    pub(super) fn finish(&mut self, id: JobId, index: usize, outcome: Outcome) {
        let Some(job) = self.job(id) else { return };
        let part = &job.parts[index];
        let end = part.quiet_since(self.state.now);
        if part.is_active() && outcome == Outcome::Succeeded {
            let took = part.progress(end);
            self.note_duration(&job, part.request.duration, took);
            self.note_run(&job, took);
        }
        let how = match outcome {
            Outcome::Broken { .. } => Settlement::Broken,
            _ => Settlement::Used,
        };
        self.close_run(id, index, how, Phase::Done { at: end });
        self.events.push(Event::PartDone { job: id, part: index as u16 });
        if outcome == Outcome::LimitReached {
            self.give_back_followers(&job, index);
            self.edit_job(id, |job| job.verdict.get_or_insert(Outcome::LimitReached).clone());
        }
        let goes_on = matches!(outcome, Outcome::Succeeded | Outcome::LimitReached);
        if !goes_on || self.job(id).is_some_and(|job| job.parts.iter().all(Part::is_done)) {
            self.end_job(id, outcome);
        }
    }

    /// Gives back the parts that were to follow one that did not finish its work, and those that
    /// were to follow them. A part only ever follows earlier ones.
    fn give_back_followers(&mut self, job: &Job, unfinished: usize) {
        let at = self.state.now;
        let mut in_vain = vec![false; job.parts.len()];
        in_vain[unfinished] = true;
        for (index, part) in job.parts.iter().enumerate().skip(unfinished + 1) {
            let mut after = part.request.after.iter();
            in_vain[index] = after.any(|earlier| in_vain[usize::from(*earlier)]);
            if in_vain[index] && part.is_booked() {
                self.close_run(job.id, index, Settlement::Used, Phase::Done { at });
                self.events.push(Event::PartDone { job: job.id, part: index as u16 });
            }
        }
    }

    /// A job is over: parts that have not begun are given back, those that run are stopped, and
    /// the job has ended when the last one is quiet.
    pub(super) fn end_job(&mut self, id: JobId, outcome: Outcome) {
        let Some(job) = self.job(id) else { return };
        // The first verdict stands, but for parts that went on after one of them ran out of time.
        let outcome = match job.verdict.clone() {
            Some(Outcome::LimitReached) if outcome != Outcome::Succeeded => outcome,
            Some(verdict) => verdict,
            None => outcome,
        };
        if !job.parts.iter().all(Part::is_done) {
            self.edit_job(id, |job| job.verdict = Some(outcome.clone()));
            (0..job.parts.len()).for_each(|index| self.end_part(id, index, &outcome));
        }
        let Some(job) = self.job(id) else { return };
        if !job.parts.iter().all(Part::is_done) {
            return;
        }
        let now = self.state.now;
        let at = job.parts.iter().filter_map(Part::done_at).max().unwrap_or(now);
        let told = (at != now).then_some(at);
        self.events.push(Event::Ended { job: id, outcome: outcome.clone(), at: told });
        let broken = matches!(outcome, Outcome::Broken { .. });
        let notification = if broken { Notification::Broken } else { Notification::Ended };
        self.effects.push(Effect::Notify { user: job.user, job: id, notification });
        self.over.push(id);
        self.edit_job(id, |job| {
            job.verdict = None;
            job.ended = Some(JobEnd { at, outcome });
        });
    }

    /// Gives back a part of a job that is over, or stops it.
    fn end_part(&mut self, id: JobId, index: usize, outcome: &Outcome) {
        let Some(part) = self.part(id, index) else { return };
        let done = Phase::Done { at: self.state.now };
        let broken = matches!(outcome, Outcome::Broken { .. });
        let why = match *outcome {
            Outcome::Failed { code } => StopReason::Failed { code },
            Outcome::Released => StopReason::Released,
            _ => StopReason::Cancelled,
        };
        match &part.phase {
            Phase::Booked(_) => {
                let how = if broken { Settlement::Broken } else { Settlement::Used };
                self.close_run(id, index, how, done);
            }
            Phase::Waiting(_) => {
                self.edit_part(id, index, |part| part.phase = done);
            }
            Phase::Active(run) => match run.stopping.clone() {
                None => self.stop_part(id, index, why),
                // It was to go on elsewhere, and stops for good.
                Some(Stoppage { stop, next: Some(_), .. }) => {
                    self.edit_run(id, index, |run| run.go_on(None));
                    // Hardware took a broken one, whatever else is lost with it.
                    if !broken {
                        self.stop_part_until(id, index, why, stop.until);
                    }
                }
                Some(_) => {}
            },
            Phase::Done { .. } => {}
        }
    }

    /// Queue work goes back to its queue, with its age and its checkpoint.
    fn requeue(&mut self, id: JobId, index: usize) {
        let now = self.state.now;
        self.close_run(id, index, Settlement::Used, Phase::waiting(now));
        self.events.push(Event::Requeued { job: id, not_before: now });
        if let Some(user) = self.job(id).map(|job| job.user) {
            self.effects.push(Effect::Notify {
                user,
                job: id,
                notification: Notification::Preempted,
            });
        }
    }

    /// The old attempt of a part under which hardware was lost is gone.
    fn go_on_elsewhere(&mut self, id: JobId, index: usize) {
        let Some(job) = self.job(id) else { return };
        if job.promise().is_none() {
            return self.requeue(id, index);
        }
        let Some(run) = job.parts[index].run() else { return };
        match run.stopping.clone() {
            Some(Stoppage { next: Some(Next { plan, cleared }), .. }) => {
                let booked = Booked { plan, escrow: run.escrow, cleared };
                // Its timers do the rest, at once where it is due.
                self.close_run(id, index, Settlement::Used, Phase::Booked(booked));
            }
            stopping => {
                let why = stopping.map_or(StopReason::Lost, |stopping| stopping.stop.why);
                self.finish(id, index, broken_by(why));
            }
        }
    }

    /// Replicas beyond the promise that do not run any more are gone.
    fn remove_extras_gone(&mut self, id: JobId, index: usize) {
        let Some(part) = self.part(id, index) else { return };
        let since = part.quiet_since(self.state.now);
        let gone = part.extras().iter().filter(|e| !e.task.is_live()).map(|e| e.rank);
        for rank in gone.collect::<Vec<_>>() {
            self.remove_extra(id, index, rank, since);
        }
    }

    /// A replica beyond the promise is gone, at an instant that its executor may know better: it
    /// is settled and its seat is free.
    pub(super) fn remove_extra(&mut self, id: JobId, index: usize, rank: u32, gone: Time) {
        let Some(job) = self.job(id) else { return };
        let Some(run) = job.parts[index].run() else { return };
        let Some(extra) = run.extras.iter().find(|e| e.rank == rank) else { return };
        self.end_by(id, Ending { at: gone, how: Settlement::Used }, |job| {
            let run = job.parts[index].run_mut();
            run.into_iter().for_each(|run| run.extras.retain(|e| e.rank != rank));
        });
        // Whoever was told to go is no longer counted.
        if extra.stop_until.is_none() && !run.is_stopping() {
            self.tell_size(id, index);
        }
    }
}
