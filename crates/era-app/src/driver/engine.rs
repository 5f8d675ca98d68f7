//! The engine with its journal, its clock and its callers, one batch at a time. No thread, no
//! channel: what the driver's thread does between waiting and answering.

use std::sync::Arc;

use era_core::units::{JobId, Time};
use era_core::{Command, Effect, Event, Input, Output, Reply, Snapshot, State};
use era_drive::Record;
use era_store::StoreError;
use era_store::journal::{Entry, Journal};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Answer, Asked, Released, Unanswered};
use crate::clock::Clock;

/// The state, its journal and its clock.
pub(super) struct Engine {
    engine: era_drive::Engine,
    journal: Journal,
    clock: Arc<dyn Clock>,
}

/// The end of a task that is told to a scheduler before it goes on, and its note.
pub type Late = (Command, Option<Box<RawValue>>);

/// Who waits for an answer.
type Caller = oneshot::Sender<Result<Answer, Unanswered>>;

/// What a batch came to. None of it may leave before the batch is in the journal.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    pub(super) answers: Vec<(Caller, Answer)>,
    pub(super) released: Released,
}

impl Record for Batch {
    type Note = Box<RawValue>;

    fn input(&mut self, input: &Input, note: Option<Box<RawValue>>) {
        self.entries.push(Entry::of(input, note));
    }

    fn output(&mut self, output: &Output, _: &State) {
        if let Some(entry) = self.entries.last_mut() {
            entry.decided(output);
        }
    }
}

impl Engine {
    pub(super) fn new(state: Box<State>, journal: Journal, clock: Arc<dyn Clock>) -> Engine {
        Engine { engine: era_drive::Engine::new(state), journal, clock }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.engine.state().snapshot()
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// How long nothing happens by itself; `None` while nothing is foreseen at all.
    pub(super) fn idle_for(&self) -> Option<std::time::Duration> {
        let ms = self.engine.next()?.since(self.clock.now()).0.max(0);
        Some(std::time::Duration::from_millis(ms.unsigned_abs()))
    }

    /// Takes what ended while nobody was here at the last instant that is known, before any limit
    /// that passed since is judged; then time goes on.
    pub(super) fn catch_up(&mut self, ended: Vec<Late>) -> Batch {
        let (then, now) = (self.engine.state().now(), self.now());
        let mut batch = Batch::default();
        if ended.is_empty() {
            return batch;
        }
        for (command, note) in ended {
            let output = self.engine.send(then, command, note, &mut batch);
            batch.release(output);
        }
        self.pass_if_due(now, &mut batch);
        batch
    }

    fn now(&self) -> Time {
        self.engine.clamp(self.clock.now())
    }

    /// Carries out a batch: what was asked, then a pass where one is due. With nothing asked, a
    /// tick if anything is due.
    pub(super) fn carry_out(&mut self, asked: Vec<Asked>) -> Batch {
        let now = self.now();
        let mut batch = Batch {
            entries: Vec::with_capacity(asked.len() + 2),
            answers: Vec::with_capacity(asked.len()),
            released: Released::default(),
        };
        if asked.is_empty() {
            let output = self.engine.tick_if_due(now, &mut batch);
            output.map(|output| batch.release(output));
        }
        for Asked { command, note, answer, .. } in asked {
            let accepts = matches!(command, Command::Submit { .. });
            let kept = if accepts { note.clone() } else { None };
            let output = self.engine.send(now, command, note, &mut batch);
            let made = made(&output);
            // A repeated submission gets the first one's answer, and changes nothing of its job.
            batch.released.accepted.extend(made.zip(kept));
            let (seq, made) = (self.engine.state().seq(), made.is_some());
            let reply = batch.release(output);
            batch.answers.push((answer, Answer { seq, at: now, reply, made }));
        }
        self.pass_if_due(now, &mut batch);
        batch
    }

    fn pass_if_due(&mut self, now: Time, batch: &mut Batch) {
        let output = self.engine.pass_if_due(now, batch);
        output.map(|output| batch.release(output));
    }

    /// Puts a batch into the journal.
    pub(super) async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.journal.append(&batch.entries).await
    }
}

/// The job that this made; of an array the first.
pub fn made(output: &Output) -> Option<JobId> {
    let Reply::Accepted { job, .. } = output.reply else { return None };
    let mut made = output.events.iter().filter_map(Event::accepted);
    made.any(|(first, _)| first == job).then_some(job)
}

impl Batch {
    /// What is to be done because of an input is done with all else of the batch.
    fn release(&mut self, mut output: Output) -> Reply {
        self.released.effects.append(&mut output.effects);
        output.reply
    }

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
