//! From an entry of the journal to what it changes in the tables: a pure function of the entry
//! and of what is remembered of those before it.
//!
//! Nothing here reads a database, a clock or the core's state. What an event means for a job's
//! row is in [`jobs`], for tasks and what they had in [`tasks`], for money in [`money`], for
//! machines and accounts in [`cluster`].

mod changes;
mod cluster;
mod jobs;
mod memory;
mod money;
mod tasks;

use era_core::event::Audience;
use era_core::units::{GroupId, JobId, Time, UserId};
use era_core::{Command, Event, Input};
use serde_json::value::RawValue;

use super::rows::EventRow;
use crate::Note;

pub(super) use changes::Changes;
pub(super) use memory::{Account, LiveJob, Memory, Untouched};

/// An entry of the journal, read.
#[derive(Debug)]
pub(super) struct ReadEntry {
    pub input: Input,
    /// What was decided about it.
    pub events: Vec<Event>,
    /// The same as the journal has it.
    pub texts: Vec<Box<RawValue>>,
    /// What the platform keeps with it.
    pub note: Note,
}

impl ReadEntry {
    /// The jobs that it is about.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.events.iter().filter_map(Event::job).chain(match &self.input.command {
            Command::Started { task } => Some(task.job),
            _ => None,
        })
    }
}

/// Carries one entry out on the memory, and notes what it changes.
pub(super) fn project(memory: &mut Memory, changes: &mut Changes, entry: &ReadEntry) {
    let mut projection = Projection { memory, changes, entry, place: 0 };
    projection.cluster();
    projection.started();
    // A job is paid for before its promise is told: it must be known first.
    for event in &entry.events {
        projection.accepted(event);
    }
    for (place, (event, text)) in entry.events.iter().zip(&entry.texts).enumerate() {
        projection.place = u32::try_from(place).unwrap_or(u32::MAX);
        projection.event(event);
        projection.keep(event, text);
    }
}

struct Projection<'a> {
    memory: &'a mut Memory,
    changes: &'a mut Changes,
    entry: &'a ReadEntry,
    /// The place of the event among its input's.
    place: u32,
}

impl Projection<'_> {
    fn at(&self) -> Time {
        self.entry.input.at
    }

    fn seq(&self) -> u64 {
        self.entry.input.seq
    }

    /// Changes a job that is not over.
    fn change(&mut self, id: JobId, how: impl FnOnce(&mut LiveJob, &mut Changes)) {
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
            // The others change no row.
            _ => {}
        }
    }

    /// Keeps an event for the timeline and the stream, as the journal has it, unless nobody may
    /// see it.
    fn keep(&mut self, event: &Event, text: &RawValue) {
        let Some((account, team)) = self.owner(event.audience()) else { return };
        let row = EventRow {
            seq: self.seq(),
            place: self.place,
            at: self.at(),
            kind: event.kind().to_owned(),
            job: event.job(),
            account,
            team,
            event: Some(event.clone()),
        };
        self.changes.events.push((row, text.to_owned()));
    }

    /// The account and the group that may see an event, beside administrators; `None` where nobody
    /// may.
    fn owner(&mut self, audience: Audience) -> Option<(Option<UserId>, Option<GroupId>)> {
        let account = match audience {
            Audience::Nobody => return None,
            Audience::Administrators => None,
            // A job of which nothing is known is for administrators.
            Audience::Owner(job) => {
                let live = self.memory.job(job);
                let owner = live.map(|live| (live.row.account, live.row.team));
                return Some(owner.unzip());
            }
            Audience::User(user) => Some(user),
            Audience::Sender => jobs::asker(&self.entry.input.command),
        };
        Some((account, account.map(|account| self.memory.team_of(account))))
    }
}
