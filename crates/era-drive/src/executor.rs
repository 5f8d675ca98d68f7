//! An executor on a virtual clock: it does what the core tells it, and its jobs behave as they
//! are known to.
//!
//! It knows how much work each part of a job has in it and what it reports on the way. It does
//! not know why anything starts.

use std::collections::BTreeMap;

use era_core::input::Threshold;
use era_core::job::{StopReason, TaskId};
use era_core::units::{JobId, NodeId, Span, Time};
use era_core::{Command, Effect, State};

/// How fast machines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From a launch to the report that the task runs.
    pub launch: Span,
    /// Whether that is reported.
    pub reports_start: bool,
    /// From the signal to stop to the end of a task, where there is so much time.
    pub stop: Span,
}

impl Pace {
    /// Machines that do at once what they are told.
    pub const AT_ONCE: Pace = Pace { launch: Span::ZERO, reports_start: true, stop: Span::ZERO };
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { stop: Span::from_s(1), ..Pace::AT_ONCE }
    }
}

/// How a part of a job behaves when it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// How long it runs, all attempts that count taken together, before it exits by itself.
    pub work: Span,
    pub code: i32,
    /// What it reports after how much work.
    pub reports: Vec<(Span, JobReport)>,
    /// Whether it saves its work when it is told to stop.
    pub saves_on_stop: bool,
    /// Whether nothing whole is left to save once a rank of it is lost.
    pub breaks_with_a_rank: bool,
}

/// Tells how a part of a job behaves, in a state that knows the job.
pub type ConductOf<'a> = dyn Fn(&State, JobId, u16) -> Conduct + 'a;

/// What a running job may report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobReport {
    /// So much of its work need not be done again.
    Saved(Span),
    /// Its GPUs are idle.
    Idle,
}

#[derive(Clone, Debug)]
struct VirtualRun {
    attempt: u32,
    since: Time,
    /// Work that earlier attempts saved.
    before: Span,
    tasks: Vec<(TaskId, NodeId)>,
    /// When its guard ends it, whatever it does.
    until: Time,
    /// How it behaves, once it has begun.
    conduct: Option<Conduct>,
    saved_at_stop: bool,
}

impl VirtualRun {
    /// When it is over, if it has begun, and with which code.
    fn end(&self) -> Option<(Time, i32)> {
        let conduct = self.conduct.as_ref()?;
        let done = self.since + Span((conduct.work.0 - self.before.0).max(1));
        Some(if done <= self.until { (done, conduct.code) } else { (self.until, KILLED) })
    }
}

/// The code of a task that its guard ended.
const KILLED: i32 = 137;
/// The code of a task that stopped when it was told to.
const STOPPED: i32 = 143;

#[derive(Clone, Copy, Debug)]
enum Due {
    Started(TaskId),
    Exits { job: JobId, part: u16, attempt: u32 },
    Reports { job: JobId, part: u16, attempt: u32, report: JobReport },
    Stopped(TaskId),
}

/// What runs, and what it will report.
#[derive(Clone, Debug, Default)]
pub struct VirtualExecutor {
    pace: Pace,
    runs: BTreeMap<(JobId, u16), VirtualRun>,
    due: BTreeMap<(Time, u64), Due>,
    order: u64,
}

impl VirtualExecutor {
    /// Machines on which nothing runs.
    pub fn new(pace: Pace) -> VirtualExecutor {
        VirtualExecutor { pace, ..VirtualExecutor::default() }
    }

    /// Takes over what a state says is running.
    pub fn take_over(&mut self, state: &State, conduct: &ConductOf<'_>) {
        for job in state.jobs().filter(|job| job.ended.is_none()) {
            for (index, part) in job.parts.iter().enumerate() {
                let Some(run) = part.run() else { continue };
                let seats = run.plan.seats.iter().zip(&run.tasks).enumerate();
                for (rank, (seat, _)) in seats.filter(|(_, (_, task))| task.is_live()) {
                    let (index, rank) = (index as u16, rank as u32);
                    let task = TaskId { job: job.id, part: index, attempt: part.attempt, rank };
                    self.launch((run.since, Time::MAX), task, seat.node, part.done);
                    self.begin(run.since, task, || conduct(state, job.id, index));
                }
            }
        }
    }

    /// Carries out what the core asks for. `state` is as it was left when it did.
    pub fn obey(&mut self, state: &State, effects: &[Effect]) {
        let now = state.now();
        for effect in effects {
            match effect {
                Effect::Launch { task, node, until, .. } => {
                    let part = |job: &era_core::job::Job| {
                        job.parts.get(usize::from(task.part)).map(|part| part.done)
                    };
                    let done = state.job(task.job).ok().and_then(|job| part(job));
                    let done = done.unwrap_or(Span::ZERO);
                    self.launch((now + self.pace.launch, *until), *task, *node, done);
                }
                Effect::Stop { task, until, why, .. } => self.stop(now, *task, *until, why),
                Effect::Prolong { task, until, .. } => self.prolong(*task, *until),
                Effect::Resize { .. } | Effect::Notify { .. } => {}
            }
        }
    }

    /// A node is gone, and what ran there with it.
    pub fn node_lost(&mut self, node: NodeId) {
        for run in self.runs.values_mut() {
            run.tasks.retain(|(_, on)| *on != node);
        }
        self.runs.retain(|_, run| !run.tasks.is_empty());
    }

    /// When something is reported next.
    pub fn next(&self) -> Option<Time> {
        let mut due = self.due.iter();
        due.find(|((time, _), due)| self.stands(*time, due)).map(|((time, _), _)| *time)
    }

    /// Whether what was foreseen is still to come.
    fn stands(&self, time: Time, due: &Due) -> bool {
        let run = |job, part| self.runs.get(&(job, part));
        let has =
            |run: &VirtualRun, task: &TaskId| run.tasks.iter().any(|(known, _)| known == task);
        match due {
            Due::Started(task) | Due::Stopped(task) => {
                run(task.job, task.part).is_some_and(|run| has(run, task))
            }
            Due::Exits { job, part, attempt } => run(*job, *part)
                .filter(|run| run.attempt == *attempt)
                .and_then(VirtualRun::end)
                .is_some_and(|(end, _)| end == time),
            Due::Reports { job, part, attempt, .. } => {
                run(*job, *part).is_some_and(|run| run.attempt == *attempt)
            }
        }
    }

    /// Takes out the next report that is due: what it says, for each task that says it.
    pub fn take(
        &mut self,
        now: Time,
        state: &State,
        conduct: &ConductOf<'_>,
    ) -> Option<Vec<Command>> {
        let (key, _) = self.due.first_key_value().filter(|((time, _), _)| *time <= now)?;
        let key = *key;
        let due = self.due.remove(&key)?;
        if let Due::Started(task) = due {
            self.begin(key.0, task, || conduct(state, task.job, task.part));
        }
        Some(self.reported(key.0, due))
    }

    /// A task begins at an instant, and is guarded until another.
    fn launch(&mut self, (since, until): (Time, Time), task: TaskId, node: NodeId, before: Span) {
        self.at(since, Due::Started(task));
        let (key, attempt) = ((task.job, task.part), task.attempt);
        match self.runs.get_mut(&key).filter(|run| run.attempt == attempt) {
            Some(run) => run.tasks.push((task, node)),
            None => {
                let tasks = vec![(task, node)];
                let (conduct, saved_at_stop) = (None, false);
                let run =
                    VirtualRun { attempt, since, before, tasks, until, conduct, saved_at_stop };
                self.runs.insert(key, run);
            }
        }
    }

    /// The first task of a run begins: from then on it is known what will come of it.
    fn begin(&mut self, now: Time, task: TaskId, conduct: impl FnOnce() -> Conduct) {
        let run = self.runs.get_mut(&(task.job, task.part));
        let Some(run) = run.filter(|run| run.attempt == task.attempt && run.conduct.is_none())
        else {
            return;
        };
        let (conduct, before) = (conduct(), run.before);
        run.conduct = Some(conduct.clone());
        let end = run.end();
        let (job, part, attempt) = (task.job, task.part, task.attempt);
        for (after, report) in conduct.reports.into_iter().filter(|(after, _)| *after > before) {
            self.at(now + Span(after.0 - before.0), Due::Reports { job, part, attempt, report });
        }
        if let Some((end, _)) = end {
            self.at(end, Due::Exits { job, part, attempt });
        }
    }

    /// A task may run on: it is over when its work is, or when its guard says so now.
    fn prolong(&mut self, task: TaskId, until: Time) {
        let Some(run) = self.runs.get_mut(&(task.job, task.part)) else { return };
        if run.attempt != task.attempt || run.until == until {
            return;
        }
        run.until = until;
        if let Some((end, _)) = run.end() {
            let (job, part, attempt) = (task.job, task.part, task.attempt);
            self.at(end, Due::Exits { job, part, attempt });
        }
    }

    fn stop(&mut self, now: Time, task: TaskId, until: Time, why: &StopReason) {
        let Some(run) = self.runs.get_mut(&(task.job, task.part)) else { return };
        if !run.tasks.iter().any(|(known, _)| *known == task) {
            return;
        }
        let is_lost = matches!(why, StopReason::Lost);
        let saves_on_stop = run.conduct.as_ref().is_some_and(|conduct| {
            conduct.saves_on_stop && !(is_lost && conduct.breaks_with_a_rank)
        });
        let saves = saves_on_stop && !run.saved_at_stop && task.rank == 0;
        if saves {
            run.saved_at_stop = true;
            let done = Span(run.before.0 + now.since(run.since).0);
            let (job, part, attempt) = (task.job, task.part, task.attempt);
            let report = JobReport::Saved(done);
            self.at(now, Due::Reports { job, part, attempt, report });
        }
        self.at(until.min(now + self.pace.stop), Due::Stopped(task));
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
                let told = here && self.pace.reports_start;
                told.then_some(Command::Started { task }).into_iter().collect()
            }
            Due::Stopped(task) => {
                let key = (task.job, task.part);
                let Some(run) = self.runs.get_mut(&key) else { return Vec::new() };
                let before = run.tasks.len();
                run.tasks.retain(|(known, _)| *known != task);
                let ran = run.tasks.len() < before;
                if run.tasks.is_empty() {
                    self.runs.remove(&key);
                }
                ran.then_some(Command::Exited { task, code: STOPPED, at: None })
                    .into_iter()
                    .collect()
            }
            Due::Exits { job, part, attempt } => {
                let run = self.runs.get(&(job, part)).filter(|run| run.attempt == attempt);
                // It may have been prolonged since this end was foreseen.
                let end = run.and_then(VirtualRun::end).filter(|(end, _)| *end == now);
                let Some(code) = end.map(|(_, code)| code) else { return Vec::new() };
                let Some(run) = self.runs.remove(&(job, part)) else { return Vec::new() };
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
                    JobReport::Saved(done) => Command::Checkpointed { task, done },
                    JobReport::Idle => {
                        Command::UsageCrossed { task, threshold: Threshold::GpusIdle }
                    }
                }]
            }
        }
    }
}
