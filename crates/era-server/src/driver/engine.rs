//! The state and its journal, one batch at a time. No thread, no channel: what the driver's thread
//! does between waiting and answering.

use std::sync::Arc;

use era_core::units::{JobId, Time};
use era_core::{Command, Effect, Event, Input, Output, Reply, Snapshot, State, next_wakeup, step};
use era_store::StoreError;
use era_store::journal::{Entry, Journal};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::openings::Openings;
use super::{Answer, Asked, Released, Unanswered};
use crate::clock::Clock;

/// The state, its journal and its clock.
pub(super) struct Engine {
    state: Box<State>,
    journal: Journal,
    clock: Arc<dyn Clock>,
    openings: Openings,
}

/// The end of a task that is told to a scheduler before it goes on, and its note.
pub(crate) type Late = (Command, Option<Box<RawValue>>);

/// Who waits for an answer.
type Caller = oneshot::Sender<Result<Answer, Unanswered>>;

/// What a batch came to. None of it may leave before the batch is in the journal.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    pub(super) answers: Vec<(Caller, Answer)>,
    pub(super) released: Released,
}

impl Engine {
    pub(super) fn new(state: Box<State>, journal: Journal, clock: Arc<dyn Clock>) -> Engine {
        let openings = Openings::of(&state);
        Engine { state, journal, clock, openings }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.state.snapshot()
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// How long nothing happens by itself; `None` while nothing is foreseen at all.
    pub(super) fn idle_for(&self) -> Option<std::time::Duration> {
        let ahead = [next_wakeup(&self.state), self.openings.next(&self.state)];
        let next = ahead.into_iter().flatten().min()?;
        let ms = next.since(self.clock.now()).0.max(0);
        Some(std::time::Duration::from_millis(ms.unsigned_abs()))
    }

    /// Takes what ended while nobody was here at the last instant that is known, before any limit
    /// that passed since is judged; then time goes on.
    pub(super) fn catch_up(&mut self, ended: Vec<Late>) -> Batch {
        let (then, now) = (self.state.now(), self.now());
        let mut batch = Batch::default();
        let mut opened = false;
        for (command, note) in ended {
            opened |= self.one(&mut batch, then, command, note).1;
        }
        if opened {
            self.one(&mut batch, now, Command::Pass, None);
            self.openings.passed(now);
        }
        batch
    }

    /// The core keeps time from running backwards too; here it is kept out of the journal.
    fn now(&self) -> Time {
        self.clock.now().clamp(self.state.now().max(Time(0)), Time::LATEST)
    }

    /// Carries out a batch: what was asked, then a pass where one may start something. With
    /// nothing asked, a tick if anything is due.
    pub(super) fn carry_out(&mut self, asked: Vec<Asked>) -> Batch {
        let now = self.now();
        let mut batch = Batch {
            entries: Vec::with_capacity(asked.len() + 2),
            answers: Vec::with_capacity(asked.len()),
            released: Released::default(),
        };
        let mut opened = self.openings.is_due(&self.state, now);
        if asked.is_empty() && next_wakeup(&self.state).is_some_and(|due| due <= now) {
            opened |= self.one(&mut batch, now, Command::Tick, None).1;
        }
        for Asked { command, note, answer, .. } in asked {
            let accepts = matches!(command, Command::Submit { .. });
            let kept = if accepts { note.clone() } else { None };
            let (answered, opens) = self.one(&mut batch, now, command, note);
            opened |= opens;
            // A repeated submission gets the first one's answer, and changes nothing of its job.
            if let (true, Reply::Accepted { job, .. }, Some(kept)) =
                (answered.made, &answered.reply, kept)
            {
                batch.released.accepted.push((*job, kept));
            }
            batch.answers.push((answer, answered));
        }
        if opened {
            self.one(&mut batch, now, Command::Pass, None);
            self.openings.passed(now);
        }
        batch
    }

    /// Puts a batch into the journal.
    pub(super) async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.journal.append(&batch.entries).await
    }

    fn one(
        &mut self,
        batch: &mut Batch,
        at: Time,
        command: Command,
        note: Option<Box<RawValue>>,
    ) -> (Answer, bool) {
        let input = Input { seq: self.state.seq() + 1, at, command };
        let seq = input.seq;
        let mut entry = Entry::of(&input, note);
        let mut output = step(&mut self.state, input);
        // An input that the core would not count must not be in the journal either.
        assert_eq!(self.state.seq(), seq, "the core counts every input that is in order and time");
        entry.decided(&output);
        batch.entries.push(entry);
        let opened = self.openings.look(&self.state, &output.events);
        batch.released.effects.append(&mut output.effects);
        let made = made(&output).is_some();
        (Answer { seq, at, reply: output.reply, made }, opened)
    }
}

/// The job that this made; of an array the first.
pub(crate) fn made(output: &Output) -> Option<JobId> {
    let Reply::Accepted { job, .. } = output.reply else { return None };
    let is_made = output.events.iter().any(|event| match event {
        Event::Promised { job: id, .. } | Event::Queued { job: id, .. } => *id == job,
        _ => false,
    });
    is_made.then_some(job)
}

impl Batch {
    pub(super) fn last_seq(&self) -> Option<u64> {
        self.entries.last().map(|entry| entry.seq)
    }

    pub(super) fn has_news(&self) -> bool {
        !self.released.effects.is_empty() || !self.released.accepted.is_empty()
    }
}

/// All that is to be done outside according to a state, as if it were released anew.
pub(super) fn outstanding(state: &State) -> Vec<Effect> {
    era_core::outstanding(state)
}
