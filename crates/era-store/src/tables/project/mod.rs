//! From an entry of the journal to what it changes in the tables: a pure function of the entry
//! and of what is remembered of those before it.
//!
//! Nothing here reads a database, a clock or the core's state. What an event means for a job's
//! row is in [`jobs`], for tasks and what they had in [`tasks`], for money in [`money`], for
//! machines and accounts in [`house`].

mod changes;
mod house;
mod jobs;
mod memory;
mod money;
mod tasks;

use era_core::units::{GroupId, JobId, Time, UserId};
use era_core::{Command, Event, Input};

use super::rows::EventRow;
use crate::Note;

pub(super) use changes::Changes;
pub use changes::{HOUR_MS, hour_of, hours};
pub(super) use memory::{Account, Live, Memory, Untouched};

/// An entry of the journal, read.
#[derive(Debug)]
pub struct Fact {
    pub input: Input,
    /// What was decided about it.
    pub events: Vec<Event>,
    /// What the platform keeps with it.
    pub note: Note,
}

impl Fact {
    /// The jobs that it is about.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.events.iter().filter_map(job_of).chain(match &self.input.command {
            Command::Started { task } => Some(task.job),
            _ => None,
        })
    }
}

/// Carries one entry out on the memory, and notes what it changes.
pub(super) fn project(memory: &mut Memory, changes: &mut Changes, fact: &Fact) {
    let mut projection = Projection { memory, changes, fact, place: 0 };
    projection.house();
    projection.started();
    // A job is paid for before its promise is told: it must be known first.
    for event in &fact.events {
        projection.accepted(event);
    }
    for (place, event) in fact.events.iter().enumerate() {
        projection.place = u32::try_from(place).unwrap_or(u32::MAX);
        projection.event(event);
        projection.keep(event);
    }
}

struct Projection<'a> {
    memory: &'a mut Memory,
    changes: &'a mut Changes,
    fact: &'a Fact,
    /// The place of the event among its input's.
    place: u32,
}

impl Projection<'_> {
    fn at(&self) -> Time {
        self.fact.input.at
    }

    fn seq(&self) -> u64 {
        self.fact.input.seq
    }

    /// Changes a job that is not over.
    fn change(&mut self, id: JobId, how: impl FnOnce(&mut Live, &mut Changes)) {
        let seq = self.seq();
        if let Some(live) = self.memory.job(id) {
            how(live, self.changes);
            live.row.changed = seq;
            self.changes.touched.insert(id);
        }
    }

    fn accepted(&mut self, event: &Event) {
        match event {
            Event::Promised { job, user, price, parts } => {
                self.promised(*job, *user, *price, parts);
            }
            Event::Queued { job, user, queue, count } => self.queued(*job, *user, queue, *count),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Refused { refusal } => self.refused(refusal),
            Event::Held { hold, .. } => self.held(*hold),
            Event::HoldEnded { hold } => self.hold_ended(*hold),
            Event::Launched { job, part, attempt, plan } => {
                self.launched(*job, *part, *attempt, plan);
            }
            Event::Running { job, part, attempt } => self.running(*job, *part, *attempt),
            Event::Stopping { job, part, why, until, .. } => {
                self.stopping(*job, *part, *why, *until);
            }
            Event::TaskEnded { task, code } => self.task_ended(*task, *code),
            Event::PartDone { job, part } => self.part_done(*job, *part),
            Event::Requeued { job, .. } => self.requeued(*job),
            Event::Replanned { job, plan, .. } => self.replanned(*job, plan.to),
            Event::Broken { job, reason } => self.broken(*job, reason),
            Event::Extended { job, to, .. } => self.extended(*job, *to),
            Event::Ended { job, outcome, at } => self.ended(*job, outcome, *at),
            Event::Posted { job, posting } => self.posted(*job, posting),
            Event::Edited { job } => self.edited(*job),
            Event::Promised { .. }
            | Event::Queued { .. }
            | Event::Ready { .. }
            | Event::NodesChanged { .. }
            | Event::BidDeclined { .. }
            | Event::Moved { .. }
            | Event::HoldMoved { .. }
            | Event::Resized { .. }
            | Event::Checkpointed { .. }
            | Event::IdleReported { .. }
            | Event::Ignored { .. }
            | Event::Changed { .. }
            | Event::Forgotten { .. } => {}
        }
    }

    /// Keeps an event for the timeline and the stream, unless it is told elsewhere (money, in
    /// statements) or to nobody.
    fn keep(&mut self, event: &Event) {
        if matches!(
            event,
            Event::Posted { .. }
                | Event::PartDone { .. }
                | Event::HoldMoved { .. }
                | Event::Ignored { .. }
                | Event::Forgotten { .. }
        ) {
            return;
        }
        let job = job_of(event);
        let (account, team) = self.whose(event, job);
        // The core's types have string keys and finite numbers only: writing cannot fail.
        let body = serde_json::to_string(event).unwrap_or_default();
        let kind = kind_of(&body).to_owned();
        let (seq, place, at) = (self.seq(), self.place, self.at());
        self.changes.events.push(EventRow { seq, place, at, kind, job, account, team, body });
    }

    fn whose(&mut self, event: &Event, job: Option<JobId>) -> (Option<UserId>, Option<GroupId>) {
        if let Some(live) = job.and_then(|id| self.memory.job(id)) {
            return (Some(live.row.account), Some(live.row.team));
        }
        let account = match event {
            Event::BidDeclined { user, .. } | Event::Held { user, .. } => Some(*user),
            Event::Refused { .. } => jobs::asker(&self.fact.input.command),
            _ => None,
        };
        (account, account.map(|account| self.memory.team_of(account)))
    }
}

/// The job that an event is about.
pub fn job_of(event: &Event) -> Option<JobId> {
    match event {
        Event::Promised { job, .. }
        | Event::Queued { job, .. }
        | Event::Moved { job, .. }
        | Event::Launched { job, .. }
        | Event::Running { job, .. }
        | Event::Stopping { job, .. }
        | Event::PartDone { job, .. }
        | Event::Requeued { job, .. }
        | Event::Replanned { job, .. }
        | Event::Broken { job, .. }
        | Event::Extended { job, .. }
        | Event::Resized { job, .. }
        | Event::Ended { job, .. }
        | Event::Edited { job }
        | Event::Checkpointed { job, .. }
        | Event::IdleReported { job, .. } => Some(*job),
        Event::TaskEnded { task, .. } | Event::Ignored { task } => Some(task.job),
        Event::Posted { job, .. } => *job,
        Event::Refused { .. }
        | Event::BidDeclined { .. }
        | Event::Held { .. }
        | Event::HoldEnded { .. }
        | Event::HoldMoved { .. }
        | Event::Ready { .. }
        | Event::NodesChanged { .. }
        | Event::Changed { .. }
        | Event::Forgotten { .. } => None,
    }
}

/// What the journal calls an event: its tag, which is written first.
fn kind_of(body: &str) -> &str {
    let tag = body.strip_prefix("{\"type\":\"");
    tag.and_then(|rest| rest.split('"').next()).unwrap_or("event")
}
