//! Runs: from the launch of an attempt to its end, as executors report it.

use super::Step;
use super::grow::size;
use super::replan::{Effort, broken_by};
use super::settle::Settlement;
use crate::calendar::Holder;
use crate::input::Threshold;
use crate::job::{Ended, Extra, Job, Outcome, Part, Phase, Plan, Stop, StopReason, Task, TaskId};
use crate::output::{Effect, Event, News, Reply};
use crate::units::{JobId, Name, Span, Time};

/// The indices of the bits that are set.
pub(super) fn gpu_list(mask: u64) -> Vec<u8> {
    (0..64).filter(|i| mask >> i & 1 == 1).collect()
}

fn launch_effect(job: JobId, index: usize, part: &Part, plan: &Plan, rank: u32) -> Effect {
    let extra = part.extras.iter().find(|e| e.rank == rank);
    let seat = extra.map_or_else(|| plan.seats[rank as usize], |e| e.seat);
    Effect::Launch {
        task: TaskId { job, part: index as u16, attempt: part.attempt, rank },
        node: seat.node,
        gpus: gpu_list(seat.gpus),
        each: part.each_of(plan, rank),
        replicas: size(part),
        until: plan.to,
    }
}

/// When a task that is to be gone by `until` is told to be.
fn told(task: Task, until: Time) -> Time {
    task.lapses().unwrap_or(until)
}

/// How growth was told to stop: with its gang, or before it.
pub(super) fn stop_of(part: &Part, extra: &Extra) -> Option<Stop> {
    let why = match (part.stop, extra.task) {
        (Some(stop), _) => stop.why,
        (None, task) if task.lapses().is_some() => StopReason::Lost,
        (None, _) => StopReason::Preempted,
    };
    let until = match (part.stop, extra.stop_until) {
        (Some(stop), Some(until)) => stop.until.min(until),
        (stop, until) => until.or(stop.map(|s| s.until))?,
    };
    Some(Stop { why, until: told(extra.task, until) })
}

/// The effects of an active part that are not confirmed.
pub(super) fn outstanding(job: &Job, index: usize, part: &Part, effects: &mut Vec<Effect>) {
    let Some(plan) = &part.plan else { return };
    let task = |rank| TaskId { job: job.id, part: index as u16, attempt: part.attempt, rank };
    let seats = plan.seats.iter().enumerate().map(|(rank, seat)| (rank as u32, *seat));
    for ((rank, seat), state) in seats.zip(&part.tasks) {
        match part.stop {
            Some(Stop { why, until }) if state.is_live() => {
                let until = told(*state, until);
                effects.push(Effect::Stop { task: task(rank), node: seat.node, until, why });
            }
            None if *state == Task::Launching => {
                effects.push(launch_effect(job.id, index, part, plan, rank));
            }
            // Nobody confirms a later end, so it is told again: it says the same each time.
            None if *state == Task::Running && part.prolonged => {
                let (task, node, until) = (task(rank), seat.node, plan.to);
                effects.push(Effect::Prolong { task, node, until });
            }
            _ => {}
        }
    }
    for extra in part.extras.iter().filter(|e| e.task.is_live()) {
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
    /// Sends out all tasks of a part that has a plan.
    pub(super) fn launch(&mut self, job: &mut Job, index: usize) {
        let now = self.state.now;
        let part = &mut job.parts[index];
        let Some(plan) = part.plan.clone() else { return };
        part.attempt += 1;
        part.phase = Phase::Active { since: now };
        part.tasks = vec![Task::Launching; plan.seats.len()];
        part.stop = None;
        part.hole = None;
        part.cleared = false;
        part.prolonged = false;
        part.grown = 0;
        part.exited_at = None;
        for rank in 0..plan.seats.len() as u32 {
            self.effects.push(launch_effect(job.id, index, part, &plan, rank));
        }
        let attempt = part.attempt;
        self.events.push(Event::Launched { job: job.id, part: index as u16, attempt, plan });
    }

    /// A promise's time has come. Where nobody drove the core for longer than a grace period
    /// after that, its full duration no longer fits its slot: it is planned anew in its window,
    /// or refunded as broken (decision 0010).
    pub(super) fn promise_due(&mut self, id: JobId, index: u16) {
        let Some(part) = self.state.jobs.get(&id).map(|job| &job.parts[usize::from(index)]) else {
            return;
        };
        let due = part.plan.as_ref().map_or(self.state.now, |plan| plan.from);
        if self.state.now.since(due) <= self.state.settings.grace {
            return self.start_promise(id, index);
        }
        let attempt = part.attempt + 1;
        let holder = Holder::Job { job: id, part: index, attempt, rank: 0 };
        let why = "its start passed while the scheduler was down";
        self.relocate(holder, Effort::Whatever { why });
    }

    /// A promise begins.
    pub(super) fn start_promise(&mut self, id: JobId, index: u16) {
        let Some(mut job) = self.job(id) else { return };
        if job.parts[usize::from(index)].phase != Phase::Booked {
            return;
        }
        self.launch(&mut job, usize::from(index));
        self.state.put_job(job);
    }

    pub(super) fn started(&mut self, task: TaskId) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let mut job = Job::clone(&job);
        let part = &mut job.parts[index];
        let state = match part.tasks.get_mut(task.rank as usize) {
            Some(state) => state,
            None => match part.extras.iter_mut().find(|e| e.rank == task.rank) {
                Some(extra) => &mut extra.task,
                None => return self.ignore(task),
            },
        };
        if *state != Task::Launching {
            return self.ignore(task);
        }
        *state = Task::Running;
        // One that is over already has run: short ranks end before the last one has begun.
        let all_began = part.tasks.iter().all(|t| matches!(t, Task::Running | Task::Exited(_)));
        if all_began && (task.rank as usize) < part.tasks.len() {
            let attempt = part.attempt;
            self.events.push(Event::Running { job: job.id, part: task.part, attempt });
            let (user, job) = (job.user, job.id);
            self.effects.push(Effect::Notify { user, job, news: News::Started });
        }
        self.state.put_job(job);
        Reply::Done
    }

    pub(super) fn exited(&mut self, task: TaskId, code: i32, at: Option<Time>) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let mut job = Job::clone(&job);
        let part = &mut job.parts[index];
        let Some(state) = part.tasks.get_mut(task.rank as usize) else {
            return self.extra_exited(job, index, task, Some(code), at);
        };
        if !state.is_live() {
            return self.ignore(task);
        }
        *state = Task::Exited(code);
        part.note_exit(at, self.state.now);
        self.events.push(Event::TaskEnded { task, code: Some(code) });
        if part.stop.is_none() && code != 0 {
            self.stop_part(&mut job, index, StopReason::Failed { code });
        } else if part.stop.is_none() && part.tasks.iter().all(|t| !t.is_live()) {
            // The promised ranks are done; growth has nothing left to help with.
            self.stop_extras_now(&mut job, index);
        }
        self.state.reseat_run(&job, index);
        self.finish_if_quiet(job, index);
        Reply::Done
    }

    /// A task is certainly gone through no fault of its own: its gang is lost.
    pub(super) fn task_lost(&mut self, task: TaskId, reason: &Name) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let mut job = Job::clone(&job);
        let part = &mut job.parts[index];
        let Some(state) = part.tasks.get_mut(task.rank as usize) else {
            return self.extra_exited(job, index, task, None, None);
        };
        if !state.is_live() {
            return self.ignore(task);
        }
        *state = Task::Lost;
        self.events.push(Event::TaskEnded { task, code: None });
        match part.stop {
            Some(_) => {
                self.state.reseat_run(&job, index);
                self.finish_if_quiet(job, index);
            }
            None => {
                let until = self.state.now + self.state.settings.grace;
                self.state.put_job(job);
                self.gang_lost(task.job, index, until, StopReason::Lost, reason.as_str());
            }
        }
        Reply::Done
    }

    fn extra_exited(
        &mut self,
        mut job: Job,
        index: usize,
        task: TaskId,
        code: Option<i32>,
        at: Option<Time>,
    ) -> Reply {
        let live = job.parts[index].extras.iter().any(|e| e.rank == task.rank && e.task.is_live());
        if !live {
            return self.ignore(task);
        }
        self.events.push(Event::TaskEnded { task, code });
        let at = at.unwrap_or(self.state.now);
        if job.parts[index].exited_at.is_some() {
            job.parts[index].note_exit(Some(at), self.state.now);
        }
        self.remove_extra_at(&mut job, index, task.rank, at);
        self.finish_if_quiet(job, index);
        Reply::Done
    }

    pub(super) fn checkpointed(&mut self, task: TaskId, done: Span) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let mut job = Job::clone(&job);
        let part = &mut job.parts[index];
        // Work is only ever saved, and never more than there is.
        if done <= part.done || done >= part.request.duration {
            return self.ignore(task);
        }
        part.done = done;
        let (id, part) = (job.id, task.part);
        self.events.push(Event::Checkpointed { job: id, part, done_ms: done.0 });
        self.state.put_job(job);
        Reply::Done
    }

    pub(super) fn usage_crossed(&mut self, task: TaskId, threshold: Threshold) -> Reply {
        let Some((job, index)) = self.reported(task) else { return self.ignore(task) };
        let Threshold::GpusIdle = threshold;
        let opted_in = match &job.deal {
            crate::job::Deal::Promise(p) => p.release_when_idle,
            crate::job::Deal::Queue(q) => q.release_when_idle,
        };
        let released = opted_in && job.parts[index].stop.is_none();
        self.events.push(Event::IdleReported { job: job.id, released });
        let (user, id) = (job.user, job.id);
        self.effects.push(Effect::Notify { user, job: id, news: News::Idle });
        if released {
            let mut job = Job::clone(&job);
            self.stop_part(&mut job, index, StopReason::Released);
            self.finish_if_quiet(job, index);
        }
        Reply::Done
    }

    /// Tells all live tasks of a part to stop.
    pub(super) fn stop_part(&mut self, job: &mut Job, index: usize, why: StopReason) {
        let grace = self.state.settings.grace;
        let limit = job.parts[index].plan.as_ref().map_or(Time::MAX, |p| p.to);
        let until = (self.state.now + grace).min(limit).max(self.state.now);
        self.stop_part_until(job, index, why, until);
    }

    pub(super) fn stop_part_until(
        &mut self,
        job: &mut Job,
        index: usize,
        why: StopReason,
        until: Time,
    ) {
        let part = &mut job.parts[index];
        part.stop = Some(Stop { why, until });
        let attempt = part.attempt;
        self.events.push(Event::Stopping { job: job.id, part: index as u16, attempt, why, until });
        self.state.reseat_run(job, index);
        let mut effects = Vec::new();
        outstanding(job, index, &job.parts[index], &mut effects);
        self.effects.append(&mut effects);
    }

    /// The time of a stop is over: whatever of it did not report is gone by its guard.
    pub(super) fn stop_over(&mut self, id: JobId, index: u16) {
        let Some(mut job) = self.job(id) else { return };
        let index = usize::from(index);
        let part = &mut job.parts[index];
        if !part.is_active() || part.stop.is_none_or(|s| s.until > self.state.now) {
            return;
        }
        let now = self.state.now;
        let tasks = part.tasks.iter_mut().chain(part.extras.iter_mut().map(|e| &mut e.task));
        for task in tasks.filter(|t| t.is_live() && t.lapses().is_none_or(|until| until <= now)) {
            *task = Task::Lost;
        }
        // What is cut off is gone when its lease lapses.
        if let (Some(until), Some(stop)) = (part.gone_by(), &mut part.stop) {
            stop.until = until;
        }
        self.state.reseat_run(&job, index);
        let gone = job.parts[index].extras.iter().filter(|e| e.task == Task::Lost);
        for rank in gone.map(|e| e.rank).collect::<Vec<_>>() {
            self.remove_extra(&mut job, index, rank);
        }
        self.finish_if_quiet(job, index);
    }

    /// Ends an attempt when nothing of it runs any more.
    pub(super) fn finish_if_quiet(&mut self, mut job: Job, index: usize) {
        let part = &job.parts[index];
        if part.has_live_tasks() {
            self.state.put_job(job);
            return;
        }
        let ranks: Vec<u32> = part.extras.iter().map(|e| e.rank).collect();
        for rank in ranks {
            self.remove_extra(&mut job, index, rank);
        }
        let why = job.parts[index].stop.map(|s| s.why);
        match why {
            None => self.finish(job, index, Outcome::Succeeded),
            Some(StopReason::Failed { code }) => self.finish(job, index, Outcome::Failed { code }),
            Some(StopReason::Cancelled) => self.finish(job, index, Outcome::Cancelled),
            Some(StopReason::Released) => self.finish(job, index, Outcome::Released),
            Some(StopReason::Limit) => self.finish(job, index, Outcome::LimitReached),
            Some(StopReason::Preempted) => self.requeue(job, index),
            Some(StopReason::Lost | StopReason::Drained) => self.go_on_elsewhere(job, index),
        }
    }

    /// Takes a part's run off the calendar and settles it. The part is left without a plan.
    fn close_run(&mut self, job: &mut Job, index: usize, how: Settlement) {
        let end = job.parts[index].quiet_since(self.state.now);
        let Some(plan) = job.parts[index].plan.clone() else { return };
        let attempt = job.parts[index].attempt_of_plan();
        let since = match job.parts[index].phase {
            Phase::Active { since } => since,
            _ => end,
        };
        self.state.unseat_plan(job.id, index, &plan, attempt);
        let request = job.parts[index].request.clone();
        if job.parts[index].next.is_none() {
            self.state.release_plan(job.user, job.group, &request, &plan);
        }
        if job.promise().is_some() {
            if job.parts[index].next.is_none() {
                self.state.count_promise(job.user, &request, &plan, true);
                self.settle_promise(job, index, how, end);
            }
        } else {
            self.settle_queue(job, &plan, since, end);
        }
        let part = &mut job.parts[index];
        part.attained = part.attained(end);
        part.plan = None;
        part.tasks.clear();
        part.exited_at = None;
        part.stop = None;
    }

    /// A part is over. So is the job, if it was the last one or failed. A part whose time is up
    /// takes those with it that were to follow it; the others have their own time, and go on.
    pub(super) fn finish(&mut self, mut job: Job, index: usize, outcome: Outcome) {
        let end = job.parts[index].quiet_since(self.state.now);
        if let (Phase::Active { .. }, Outcome::Succeeded) = (job.parts[index].phase, &outcome) {
            let (stated, took) =
                (job.parts[index].request.duration, job.parts[index].progress(end));
            self.note_duration(&job, stated, took);
            self.note_run(&job, took);
        }
        let how = match outcome {
            Outcome::Broken { .. } => Settlement::Broken,
            _ => Settlement::Used,
        };
        self.close_run(&mut job, index, how);
        job.parts[index].phase = Phase::Done { at: end };
        self.events.push(Event::PartDone { job: job.id, part: index as u16 });
        if outcome == Outcome::LimitReached {
            self.give_back_followers(&mut job, index);
            job.verdict.get_or_insert(Outcome::LimitReached);
        }
        let goes_on = matches!(outcome, Outcome::Succeeded | Outcome::LimitReached);
        if goes_on && !job.parts.iter().all(Part::is_done) {
            self.state.put_job(job);
            return;
        }
        self.end_job(job, outcome);
    }

    /// Gives back the parts that were to follow one that did not finish its work, and those that
    /// were to follow them. A part only ever follows earlier ones.
    fn give_back_followers(&mut self, job: &mut Job, unfinished: usize) {
        let mut in_vain = vec![false; job.parts.len()];
        in_vain[unfinished] = true;
        for index in unfinished + 1..job.parts.len() {
            let after = &job.parts[index].request.after;
            in_vain[index] = after.iter().any(|earlier| in_vain[usize::from(*earlier)]);
            if in_vain[index] && job.parts[index].phase == Phase::Booked {
                self.close_run(job, index, Settlement::Used);
                job.parts[index].phase = Phase::Done { at: self.state.now };
                self.events.push(Event::PartDone { job: job.id, part: index as u16 });
            }
        }
    }

    /// A job is over: parts that have not begun are given back, those that run are stopped, and
    /// the job has ended when the last one is quiet.
    pub(super) fn end_job(&mut self, mut job: Job, outcome: Outcome) {
        let now = self.state.now;
        // The first verdict stands, but for parts that went on after one of them ran out of time.
        let outcome = match job.verdict.take() {
            Some(Outcome::LimitReached) if outcome != Outcome::Succeeded => outcome,
            Some(verdict) => verdict,
            None => outcome,
        };
        job.verdict = Some(outcome.clone());
        let broken = matches!(outcome, Outcome::Broken { .. });
        let why = match outcome {
            Outcome::Failed { code } => StopReason::Failed { code },
            Outcome::Released => StopReason::Released,
            _ => StopReason::Cancelled,
        };
        for index in 0..job.parts.len() {
            match job.parts[index].phase {
                Phase::Booked => {
                    let how = if broken { Settlement::Broken } else { Settlement::Used };
                    self.close_run(&mut job, index, how);
                    job.parts[index].phase = Phase::Done { at: now };
                }
                Phase::Waiting { .. } => job.parts[index].phase = Phase::Done { at: now },
                Phase::Active { .. } => match job.parts[index].stop {
                    None => self.stop_part(&mut job, index, why),
                    // It was to go on elsewhere, and stops for good.
                    Some(stop) if job.parts[index].next.is_some() => {
                        self.drop_next(&mut job, index);
                        // Hardware took a broken one, whatever else is lost with it.
                        if !broken {
                            self.stop_part_until(&mut job, index, why, stop.until);
                        }
                    }
                    Some(_) => {}
                },
                Phase::Done { .. } => {}
            }
        }
        if !job.parts.iter().all(Part::is_done) {
            self.state.put_job(job);
            return;
        }
        let at = job.parts.iter().filter_map(Part::done_at).max().unwrap_or(now);
        let told = (at != now).then_some(at);
        self.events.push(Event::Ended { job: job.id, outcome: outcome.clone(), at: told });
        let news = if broken { News::Broken } else { News::Ended };
        self.effects.push(Effect::Notify { user: job.user, job: job.id, news });
        job.verdict = None;
        job.ended = Some(Ended { at, outcome });
        self.over.push(job.id);
        self.state.put_job(job);
    }

    /// Queue work goes back to its queue, with its age and its checkpoint.
    fn requeue(&mut self, mut job: Job, index: usize) {
        let now = self.state.now;
        self.close_run(&mut job, index, Settlement::Used);
        job.parts[index].phase = Phase::Waiting { not_before: now };
        self.events.push(Event::Requeued { job: job.id, not_before: now });
        let (user, id) = (job.user, job.id);
        self.effects.push(Effect::Notify { user, job: id, news: News::Preempted });
        self.state.put_job(job);
    }

    /// The old attempt of a part under which hardware was lost is gone.
    fn go_on_elsewhere(&mut self, mut job: Job, index: usize) {
        if job.promise().is_none() {
            return self.requeue(job, index);
        }
        if job.parts[index].next.is_none() {
            let why = job.parts[index].stop.map_or(StopReason::Lost, |stop| stop.why);
            return self.finish(job, index, broken_by(why));
        }
        self.close_run(&mut job, index, Settlement::Used);
        let part = &mut job.parts[index];
        part.plan = part.next.take();
        part.phase = Phase::Booked;
        // Its timers do the rest, at once where it is due.
        self.state.put_job(job);
    }

    /// A replica beyond the promise is gone: it is settled and its seat is free.
    pub(super) fn remove_extra(&mut self, job: &mut Job, index: usize, rank: u32) {
        self.remove_extra_at(job, index, rank, self.state.now);
    }

    /// One that was gone at an instant, as its executor knows it.
    fn remove_extra_at(&mut self, job: &mut Job, index: usize, rank: u32, gone: Time) {
        let part = &mut job.parts[index];
        let Some(at) = part.extras.iter().position(|e| e.rank == rank) else { return };
        let extra: Extra = part.extras.remove(at);
        let attempt = part.attempt;
        let holder = Holder::Job { job: job.id, part: index as u16, attempt, rank };
        self.state.calendar.unbook(holder, extra.seat.node);
        self.state.freed = true;
        let units = job.parts[index].request.each.units(1);
        self.state.usage.release(job.user, job.group, extra.since, extra.to, units);
        if let Some(plan) = job.parts[index].plan.clone() {
            let end = gone.clamp(extra.since, plan.to.max(self.state.now).max(extra.since));
            self.settle_extra(job, index, &plan, &extra, end);
        }
        // Whoever was told to go is no longer counted.
        if extra.stop_until.is_none() && job.parts[index].stop.is_none() {
            self.tell_size(job, index);
        }
    }
}
