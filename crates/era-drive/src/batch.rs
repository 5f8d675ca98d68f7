//! A batch of inputs that share one commit, and everything that may leave once it is durable.
//!
//! How a batch is made durable, and what a caller is, is not known here: whoever drives the engine
//! commits `record`, and only then sends the answers and releases the effects.

use era_core::units::{JobId, Span, Time};
use era_core::{Command, Effect, Event, Output, Reply, State, outstanding};
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, EntryWriter};

/// What became of an input, once it is durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its number in the journal.
    pub seq: u64,
    /// When it happened.
    pub at: Time,
    /// What the core says.
    pub reply: Reply,
    /// Whether this made the job that the reply names; a repeated submission gets the first one's
    /// reply, and made none.
    #[serde(default)]
    pub made: bool,
}

/// What is to be done outside, once it is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Released<N> {
    /// Jobs that were accepted, with what is kept beside the core for them; of an array the first.
    pub accepted: Vec<(JobId, N)>,
    /// What is to be done, in order.
    pub effects: Vec<Effect>,
}

impl<N> Default for Released<N> {
    fn default() -> Released<N> {
        Released { accepted: Vec::new(), effects: Vec::new() }
    }
}

impl<N> Released<N> {
    /// Everything that a state waits for, as if it were released anew: what whoever starts from
    /// that state does first.
    pub fn outstanding(state: &State) -> Released<N> {
        Released { accepted: Vec::new(), effects: outstanding(state) }
    }

    /// Adds what an input came to, and says whether it made a job. A repeated submission gets the
    /// first one's reply, and does not change what that job runs.
    pub fn add(&mut self, output: &mut Output, note: impl FnOnce() -> Option<N>) -> bool {
        self.effects.append(&mut output.effects);
        let made = made(output);
        self.accepted.extend(made.and_then(|job| Some((job, note()?))));
        made.is_some()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.effects.is_empty()
    }
}

/// The job that this made; of an array the first.
fn made(output: &Output) -> Option<JobId> {
    let Reply::Accepted { job, .. } = output.reply else { return None };
    let mut made = output.events.iter().filter_map(Event::accepted);
    made.any(|(first, _)| first == job).then_some(job)
}

/// What a batch came to. None of it may leave before `record` is durable.
#[derive(Debug)]
pub struct Batch<R: EntryWriter, C> {
    /// The inputs with their outputs, in order.
    pub record: R,
    /// Who asked, and what to tell them, in order.
    pub answers: Vec<(C, Answer)>,
    /// What executors are to do.
    pub released: Released<R::Note>,
}

impl<R: EntryWriter, C> Batch<R, C> {
    fn new(record: R) -> Batch<R, C> {
        Batch { record, answers: Vec::new(), released: Released::default() }
    }
}

impl Engine {
    /// How long nothing happens by itself; `None` while nothing is foreseen at all.
    pub fn idle_for(&self, now: Time) -> Option<Span> {
        self.next().map(|next| next.since(now).max(Span::ZERO))
    }

    /// Carries out what ended while nobody drove the core, at the last instant that it knows:
    /// before any limit that passed since is judged. Then time goes on.
    pub fn catch_up<R: EntryWriter, C>(
        &mut self,
        now: Time,
        ended: impl IntoIterator<Item = (Command, Option<R::Note>)>,
        record: R,
    ) -> Batch<R, C> {
        let (then, now) = (self.state().now(), self.clamp(now));
        let mut batch = Batch::new(record);
        let mut ended = ended.into_iter().peekable();
        if ended.peek().is_none() {
            return batch;
        }
        for (command, note) in ended {
            let mut output = self.send(then, command, note, &mut batch.record);
            batch.released.add(&mut output, || None);
        }
        self.end(now, &mut batch);
        batch
    }

    /// Carries out a batch: what was asked, then a pass where one is due. With nothing asked, a
    /// tick if anything is due.
    pub fn carry_out<R: EntryWriter, C>(
        &mut self,
        now: Time,
        asked: impl IntoIterator<Item = (C, Command, Option<R::Note>)>,
        record: R,
    ) -> Batch<R, C>
    where
        R::Note: Clone,
    {
        let now = self.clamp(now);
        let mut batch = Batch::new(record);
        for (caller, command, note) in asked {
            // Only submissions make jobs: no other note is needed twice.
            let kept = note.as_ref().filter(|_| matches!(command, Command::Submit { .. })).cloned();
            let mut output = self.send(now, command, note, &mut batch.record);
            let made = batch.released.add(&mut output, || kept);
            let answer = Answer { seq: self.state().seq(), at: now, reply: output.reply, made };
            batch.answers.push((caller, answer));
        }
        if batch.answers.is_empty()
            && let Some(mut output) = self.tick_if_due(now, &mut batch.record)
        {
            batch.released.add(&mut output, || None);
        }
        self.end(now, &mut batch);
        batch
    }

    /// A batch ends with a pass, where one is due.
    fn end<R: EntryWriter, C>(&mut self, now: Time, batch: &mut Batch<R, C>) {
        if let Some(mut output) = self.pass_if_due(now, &mut batch.record) {
            batch.released.add(&mut output, || None);
        }
    }
}
