//! What a journal tells of the world outside the scheduler: what users asked for, what happened
//! to the hardware, which rules were set, and how each job behaved when it ran.
//!
//! Starts, exits and passes of the recorded schedule are not kept: they belong to it.

use std::collections::BTreeMap;

use era_core::job::StopReason;
use era_core::units::{HoldId, JobId, Span, Time};
use era_core::{Command, Event, Input, Reply, State};
use era_drive::{Conduct, JobReport};

use super::book::{self, Book};
use super::verify::{NotReplayed, ReplayStep, Replayed, verify};
use crate::journal::Reader;

/// A recorded history.
#[derive(Clone, Debug)]
pub struct RecordedHistory {
    /// The state that it begins with.
    pub start: State,
    /// What came from outside, in order.
    pub asks: Vec<RecordedInput>,
    /// How each part of each job behaves when it runs, where that is known.
    pub conduct: BTreeMap<(JobId, u16), Conduct>,
    /// What became of each job in the record.
    pub book: Book,
    /// The last instant of the record.
    pub end: Time,
    /// States of the record, evenly over it: each with how many asks came before.
    pub marks: Vec<(usize, State)>,
    /// How many tasks executors reported lost: that belongs to where they ran.
    pub tasks_lost: u64,
}

/// Most states that are kept on the way. They share structure, but what changed is kept twice.
const MARKS_MAX: usize = 64;

impl RecordedHistory {
    /// The last state on the way that has at most so many asks before it, and how many it has.
    pub fn mark_before(&self, asks: usize) -> (usize, &State) {
        let before = self.marks.iter().rfind(|(count, _)| *count <= asks);
        before.map_or((0, &self.start), |(count, state)| (*count, state))
    }
}

/// Something that came from outside, and what it was answered.
#[derive(Clone, Debug)]
pub struct RecordedInput {
    pub at: Time,
    pub command: Command,
    /// The job that came of it in the record.
    pub job: Option<JobId>,
    /// The hold that came of it in the record.
    pub hold: Option<HoldId>,
    /// Whether it was refused in the record.
    pub refused: bool,
}

/// A run of a part as it is recorded.
struct Attempt {
    since: Time,
    before: Span,
    stopped: bool,
}

/// Collects a history while a journal is replayed.
struct HistoryLearner {
    history: RecordedHistory,
    attempts: BTreeMap<(JobId, u16), Attempt>,
    /// How many asks lie between two marks.
    spacing: usize,
    /// What every part does, complete or not.
    seen: BTreeMap<(JobId, u16), SeenJob>,
}

#[derive(Default)]
struct SeenJob {
    work: Option<(Span, i32)>,
    reports: Vec<(Span, JobReport)>,
    saves_on_stop: bool,
}

/// Replays a journal exactly, and keeps what is to be learned from it. `progress` is told how
/// many inputs are through.
pub fn learn(
    journal: Reader,
    progress: &dyn Fn(u64),
) -> Result<(RecordedHistory, Replayed), NotReplayed> {
    let learner = std::cell::RefCell::new(None::<HistoryLearner>);
    let mut count = 0;
    let replayed = verify(
        journal,
        &mut |state| *learner.borrow_mut() = Some(HistoryLearner::new(state)),
        &mut |step| {
            count += 1;
            progress(count);
            if let Some(learner) = learner.borrow_mut().as_mut() {
                learner.note(&step);
            }
        },
    )?;
    let learner =
        learner.into_inner().unwrap_or_else(|| HistoryLearner::new(replayed.replay.state()));
    Ok((learner.finish(replayed.replay.state().now()), replayed))
}

impl HistoryLearner {
    fn new(state: &State) -> HistoryLearner {
        let mut attempts = BTreeMap::new();
        for job in state.jobs().filter(|job| job.ended.is_none()) {
            for (index, part) in job.parts.iter().enumerate() {
                if let Some(run) = part.run() {
                    let (since, stopped) = (run.since, run.stop().is_some());
                    let attempt = Attempt { since, before: part.done, stopped };
                    attempts.insert((job.id, index as u16), attempt);
                }
            }
        }
        let history = RecordedHistory {
            start: state.clone(),
            asks: Vec::new(),
            conduct: BTreeMap::new(),
            book: Book::of(state),
            end: state.now(),
            marks: Vec::new(),
            tasks_lost: 0,
        };
        HistoryLearner { history, attempts, spacing: 16, seen: BTreeMap::new() }
    }

    fn note(&mut self, step: &ReplayStep<'_>) {
        self.history.book.follow(step.state, step.input, &step.output.events);
        self.note_ask(step.input, &step.output.reply, step.state.now());
        for event in &step.output.events {
            self.note_event(event, step);
        }
        self.mark(step.state);
        if let Command::UsageCrossed { task, .. } = &step.input.command {
            self.report(task.job, task.part, step.state.now(), JobReport::Idle);
        }
    }

    /// Keeps a state now and then: ever more seldom, so that they stay few.
    fn mark(&mut self, state: &State) {
        let asks = self.history.asks.len();
        let marks = &mut self.history.marks;
        let last = marks.last().map_or(0, |(count, _)| *count);
        if asks < last + self.spacing {
            return;
        }
        marks.push((asks, state.clone()));
        if marks.len() > MARKS_MAX {
            let mut index = 0;
            marks.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.spacing *= 2;
        }
    }

    fn note_ask(&mut self, input: &Input, reply: &Reply, at: Time) {
        match input.command {
            Command::TaskLost { .. } => self.history.tasks_lost += 1,
            Command::Started { .. }
            | Command::Exited { .. }
            | Command::Checkpointed { .. }
            | Command::UsageCrossed { .. }
            | Command::Pass
            | Command::Tick => {}
            _ => {
                let mut ask = RecordedInput {
                    at,
                    command: input.command.clone(),
                    job: None,
                    hold: None,
                    refused: matches!(reply, Reply::Refused { .. }),
                };
                match reply {
                    Reply::Accepted { job, .. } => ask.job = Some(*job),
                    Reply::Held { hold, .. } => ask.hold = Some(*hold),
                    _ => {}
                }
                self.history.asks.push(ask);
            }
        }
    }

    fn note_event(&mut self, event: &Event, step: &ReplayStep<'_>) {
        let (state, now) = (step.state, step.state.now());
        match event {
            Event::Launched { job, part, .. } => {
                let done = state
                    .job(*job)
                    .ok()
                    .and_then(|job| job.parts.get(usize::from(*part)).map(|part| part.done));
                let before = done.unwrap_or(Span::ZERO);
                self.attempts.insert((*job, *part), Attempt { since: now, before, stopped: false });
            }
            Event::Stopping { job, part, why, .. } => {
                let Some(attempt) = self.attempts.get_mut(&(*job, *part)) else { return };
                attempt.stopped = true;
                if let StopReason::Failed { code } = why {
                    let work = attempt.work(book::exited(step.input, *job).unwrap_or(now));
                    self.seen.entry((*job, *part)).or_default().work = Some((work, *code));
                }
            }
            Event::PartDone { job, part } => {
                let Some(attempt) = self.attempts.remove(&(*job, *part)) else { return };
                if !attempt.stopped {
                    let work = attempt.work(book::done_at(state, *job, *part));
                    self.seen.entry((*job, *part)).or_default().work = Some((work, 0));
                }
            }
            Event::Checkpointed { job, part, done_ms } => {
                self.report(*job, *part, now, JobReport::Saved(Span(*done_ms)));
            }
            _ => {}
        }
    }

    fn report(&mut self, job: JobId, part: u16, now: Time, report: JobReport) {
        let Some(attempt) = self.attempts.get(&(job, part)) else { return };
        let seen = self.seen.entry((job, part)).or_default();
        match report {
            JobReport::Saved(_) if attempt.stopped => seen.saves_on_stop = true,
            _ => seen.reports.push((attempt.work(now), report)),
        }
    }

    fn finish(mut self, end: Time) -> RecordedHistory {
        self.history.end = end;
        for (key, seen) in self.seen {
            // Who was cut short has no known length: whoever runs it assumes one.
            let (work, code) = seen.work.unwrap_or((Span::ZERO, 0));
            let mut reports = seen.reports;
            reports.sort_by_key(|(after, _)| *after);
            let saves_on_stop = seen.saves_on_stop;
            let conduct = Conduct { work, code, reports, saves_on_stop, ..Conduct::default() };
            self.history.conduct.insert(key, conduct);
        }
        self.history
    }
}

impl Attempt {
    fn work(&self, until: Time) -> Span {
        Span(self.before.0 + until.since(self.since).0.max(0))
    }
}
