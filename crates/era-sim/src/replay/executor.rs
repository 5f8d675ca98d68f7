//! An executor on a virtual clock: it does what the core tells it, and its jobs behave as they
//! are known to.
//!
//! It knows how much work each part of a job has in it and what it reports on the way. It does
//! not know why anything starts or stops.

use std::collections::BTreeMap;

use era_core::input::Threshold;
use era_core::job::TaskId;
use era_core::units::{JobId, NodeId, Span, Time};
use era_core::{Command, Effect, State};

/// From the word to stop to the end of a task, where there is so much time.
const STOP_TAKES: Span = Span::from_s(1);

/// How a part of a job behaves when it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// How long it runs, all attempts that count taken together, before it exits by itself.
    pub work: Span,
    /// With which code.
    pub code: i32,
    /// What it reports after how much work.
    pub reports: Vec<(Span, Report)>,
    /// Whether it saves its work when it is told to stop.
    pub saves_on_stop: bool,
}

/// Tells how a part of a job behaves, in a state that knows the job.
pub type ConductOf<'a> = dyn Fn(&State, JobId, u16) -> Conduct + 'a;

/// What a running job may report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// So much of its work need not be done again.
    Saved(Span),
    /// Its GPUs are idle.
    Idle,
}

#[derive(Clone, Debug)]
struct Run {
    attempt: u32,
    since: Time,
    /// Work that earlier attempts saved.
    before: Span,
    tasks: Vec<(TaskId, NodeId)>,
    conduct: Conduct,
    saved_at_stop: bool,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    Started(TaskId),
    Exits { job: JobId, part: u16, attempt: u32 },
    Reports { job: JobId, part: u16, attempt: u32, report: Report },
    Stopped(TaskId),
}

/// What runs, and what it will report.
#[derive(Clone, Debug, Default)]
pub struct Executor {
    runs: BTreeMap<(JobId, u16), Run>,
    due: BTreeMap<(Time, u64), Due>,
    order: u64,
}

impl Executor {
    /// Takes over what a state says is running.
    pub fn take_over(&mut self, state: &State, conduct: &ConductOf<'_>) {
        for job in state.jobs().filter(|job| job.ended.is_none()) {
            for (index, part) in job.parts.iter().enumerate() {
                let (era_core::job::Phase::Active { since }, Some(plan)) =
                    (part.phase, part.plan.as_ref())
                else {
                    continue;
                };
                for (rank, seat) in plan.seats.iter().enumerate() {
                    if !part.tasks.get(rank).is_some_and(|task| task.is_live()) {
                        continue;
                    }
                    let (index, rank) = (index as u16, rank as u32);
                    let task = TaskId { job: job.id, part: index, attempt: part.attempt, rank };
                    let conduct = || conduct(state, job.id, index);
                    self.launch(since, task, seat.node, part.done, &conduct);
                }
            }
        }
    }

    /// Carries out what the core asks for. `state` is as it was left when it did.
    pub fn obey(&mut self, state: &State, effects: &[Effect], conduct: &ConductOf<'_>) {
        let now = state.now();
        for effect in effects {
            match effect {
                Effect::Launch { task, node, .. } => {
                    let part = |job: &era_core::job::Job| {
                        job.parts.get(usize::from(task.part)).map(|part| part.done)
                    };
                    let done = state.job(task.job).ok().and_then(|job| part(job));
                    let conduct = || conduct(state, task.job, task.part);
                    self.launch(now, *task, *node, done.unwrap_or(Span::ZERO), &conduct);
                }
                Effect::Stop { task, until, .. } => self.stop(now, *task, *until),
                Effect::Prolong { .. } | Effect::Resize { .. } | Effect::Notify { .. } => {}
            }
        }
    }

    /// A node is gone, and what ran there with it.
    pub fn node_lost(&mut self, node: NodeId) {
        for run in self.runs.values_mut() {
            run.tasks.retain(|(_, on)| *on != node);
        }
    }

    /// When something is reported next.
    pub fn next(&self) -> Option<Time> {
        self.due.keys().next().map(|(time, _)| *time)
    }

    /// Takes out the next report that is due: what it says, for each task that says it.
    pub fn take(&mut self, now: Time) -> Option<Vec<Command>> {
        let (key, _) = self.due.first_key_value().filter(|((time, _), _)| *time <= now)?;
        let key = *key;
        let due = self.due.remove(&key)?;
        Some(self.reported(key.0, due))
    }

    fn launch(
        &mut self,
        now: Time,
        task: TaskId,
        node: NodeId,
        before: Span,
        conduct: &dyn Fn() -> Conduct,
    ) {
        let key = (task.job, task.part);
        if let Some(run) = self.runs.get_mut(&key).filter(|run| run.attempt == task.attempt) {
            run.tasks.push((task, node));
            self.at(now, Due::Started(task));
            return;
        }
        let conduct = conduct();
        let (job, part, attempt) = (task.job, task.part, task.attempt);
        self.at(now, Due::Started(task));
        for (after, report) in conduct.reports.iter().filter(|(after, _)| *after > before) {
            let due = Due::Reports { job, part, attempt, report: *report };
            self.at(now + Span(after.0 - before.0), due);
        }
        let left = Span((conduct.work.0 - before.0).max(1));
        self.at(now + left, Due::Exits { job, part, attempt });
        let tasks = vec![(task, node)];
        let run = Run { attempt, since: now, before, tasks, conduct, saved_at_stop: false };
        self.runs.insert(key, run);
    }

    fn stop(&mut self, now: Time, task: TaskId, until: Time) {
        let Some(run) = self.runs.get_mut(&(task.job, task.part)) else { return };
        if !run.tasks.iter().any(|(known, _)| *known == task) {
            return;
        }
        let saves = run.conduct.saves_on_stop && !run.saved_at_stop && task.rank == 0;
        if saves {
            run.saved_at_stop = true;
            let done = Span(run.before.0 + now.since(run.since).0);
            let (job, part, attempt) = (task.job, task.part, task.attempt);
            let report = Report::Saved(done);
            self.at(now, Due::Reports { job, part, attempt, report });
        }
        self.at(until.min(now + STOP_TAKES), Due::Stopped(task));
    }

    fn at(&mut self, time: Time, due: Due) {
        self.order += 1;
        self.due.insert((time, self.order), due);
    }

    fn reported(&mut self, now: Time, due: Due) -> Vec<Command> {
        match due {
            Due::Started(task) => {
                let runs = self.runs.get(&(task.job, task.part));
                let here =
                    runs.is_some_and(|run| run.tasks.iter().any(|(known, _)| *known == task));
                here.then_some(Command::Started { task }).into_iter().collect()
            }
            Due::Stopped(task) => {
                let Some(run) = self.runs.get_mut(&(task.job, task.part)) else {
                    return Vec::new();
                };
                let before = run.tasks.len();
                run.tasks.retain(|(known, _)| *known != task);
                let ran = run.tasks.len() < before;
                ran.then_some(Command::Exited { task, code: 143, at: None }).into_iter().collect()
            }
            Due::Exits { job, part, attempt } => {
                let current = self.runs.get(&(job, part)).is_some_and(|run| run.attempt == attempt);
                let Some(run) = current.then(|| self.runs.remove(&(job, part))).flatten() else {
                    return Vec::new();
                };
                let code = run.conduct.code;
                run.tasks
                    .into_iter()
                    .map(|(task, _)| Command::Exited { task, code, at: None })
                    .collect()
            }
            Due::Reports { job, part, attempt, report } => {
                let run = self.runs.get(&(job, part)).filter(|run| run.attempt == attempt);
                let Some((task, _)) = run.and_then(|run| run.tasks.first()).copied() else {
                    return Vec::new();
                };
                debug_assert!(now >= run.map_or(now, |run| run.since));
                vec![match report {
                    Report::Saved(done) => Command::Checkpointed { task, done },
                    Report::Idle => Command::UsageCrossed { task, threshold: Threshold::GpusIdle },
                }]
            }
        }
    }
}
