//! What is asked of whoever leads, from another process: what is sent, what is sent again to the
//! next leader, and what is told of a question that nobody answers.
//!
//! While nobody leads, questions wait. One that was sent and not answered when the leader went away
//! may have been carried out or not: those that are harmless twice are asked again of the next
//! leader, and of all others it is said that nobody knows. Which is which is the core's nature: a
//! keyed submission is one job however often it is asked, and the second report of a task's end
//! changes nothing. An answer is withheld until the asking process has what it is about, so that
//! whoever wrote something reads it there.
//!
//! How a leader is found and reached, and who asks, is not known here. Instants are counted from
//! wherever the caller likes.

use std::collections::BTreeMap;
use std::time::Duration;

use era_core::Command;

use crate::batch::Answer;

/// How long a question waits for an answer, unless it is patient.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long a leader may say nothing: a line that is cut on its way tells neither end.
pub const SILENCE_MAX: Duration = Duration::from_secs(4);
/// How long an answer waits for the asking process to have what it is about.
pub const CATCH_UP_MAX: Duration = Duration::from_secs(5);
/// Most questions that wait.
const WAITING_MAX: usize = 4096;

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// There was nobody to ask: nothing was done.
    NotAsked,
    /// It was asked, and whether it was done is not known.
    Unknown,
}

/// Somebody who asked, and what is told of the question, which is over.
pub type Settled<C> = (C, Result<Answer, NoAnswer>);

/// Questions on their way to whoever leads, and answers on their way back.
#[derive(Debug)]
pub struct Forwarder<C> {
    /// By number, in the order in which they were asked.
    waiting: BTreeMap<u64, Waiting<C>>,
    /// By the entry that they are about, and the number of the question.
    withheld: BTreeMap<(u64, u64), Withheld<C>>,
    asked_before: u64,
    /// Up to which number questions were sent to the leader that is there.
    sent: u64,
    /// When the leader that is there was heard last.
    heard: Option<Duration>,
}

#[derive(Debug)]
struct Waiting<C> {
    command: Command,
    caller: C,
    /// Until when; `None` for as long as it takes.
    until: Option<Duration>,
    was_sent: bool,
}

#[derive(Debug)]
struct Withheld<C> {
    caller: C,
    answer: Answer,
    until: Duration,
}

impl<C> Default for Forwarder<C> {
    fn default() -> Forwarder<C> {
        let (waiting, withheld) = Default::default();
        Forwarder { waiting, withheld, asked_before: 0, sent: 0, heard: None }
    }
}

impl<C> Forwarder<C> {
    /// Takes a question in.
    pub fn ask(&mut self, command: Command, caller: C, is_patient: bool, now: Duration) {
        self.asked_before += 1;
        let until = (!is_patient).then_some(now + PATIENCE);
        let waiting = Waiting { command, caller, until, was_sent: false };
        self.waiting.insert(self.asked_before, waiting);
    }

    /// Whether another question may be taken in.
    pub fn has_room(&self) -> bool {
        self.waiting.len() + self.withheld.len() < WAITING_MAX
    }

    /// Whether everything is told.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.withheld.is_empty()
    }

    /// A leader is there, who has been asked nothing.
    pub fn met(&mut self, now: Duration) {
        (self.sent, self.heard) = (0, Some(now));
    }

    /// What is to be sent to the leader that is there, by number and in order. It counts as sent.
    pub fn to_send(&mut self) -> impl Iterator<Item = (u64, &Command, &C)> {
        let after = match self.heard {
            Some(_) => std::mem::replace(&mut self.sent, self.asked_before),
            None => self.asked_before,
        };
        self.waiting.range_mut(after + 1..).map(|(id, waiting)| {
            waiting.was_sent = true;
            (*id, &waiting.command, &waiting.caller)
        })
    }

    /// The leader told something.
    pub fn heard(&mut self, now: Duration) {
        self.heard = self.heard.map(|before| before.max(now));
    }

    /// Whether the leader that is there has told nothing for too long.
    pub fn is_silent(&self, now: Duration) -> bool {
        self.heard.is_some_and(|heard| now >= heard + SILENCE_MAX)
    }

    /// The leader answered a question.
    pub fn answered(&mut self, id: u64, answer: Answer, now: Duration) {
        // It may have been given up.
        let Some(Waiting { caller, .. }) = self.waiting.remove(&id) else { return };
        let withheld = Withheld { caller, until: now + CATCH_UP_MAX, answer };
        self.withheld.insert((withheld.answer.seq, id), withheld);
    }

    /// The leader is gone: what it was asked and is not harmless twice is over.
    pub fn parted(&mut self) -> Vec<Settled<C>> {
        self.heard = None;
        let lost = |waiting: &Waiting<C>| waiting.was_sent && !is_harmless_twice(&waiting.command);
        let lost = self.waiting.extract_if(.., |_, waiting| lost(waiting));
        lost.map(|(_, waiting)| (waiting.caller, Err(NoAnswer::Unknown))).collect()
    }

    /// Answers about entries up to this one, which the asking process has.
    pub fn caught_up(&mut self, here: u64) -> Vec<Settled<C>> {
        if self.withheld.first_key_value().is_none_or(|((seq, _), _)| *seq > here) {
            return Vec::new();
        }
        let later = self.withheld.split_off(&(here.saturating_add(1), 0));
        let told = std::mem::replace(&mut self.withheld, later);
        told.into_values().map(|one| (one.caller, Ok(one.answer))).collect()
    }

    /// What has waited long enough: questions for an answer, answers for their entries.
    pub fn given_up(&mut self, now: Duration) -> Vec<Settled<C>> {
        let late = |waiting: &Waiting<C>| waiting.until.is_some_and(|until| now >= until);
        let late = self.waiting.extract_if(.., |_, waiting| late(waiting));
        let late = late.map(|(_, waiting)| {
            let why = if waiting.was_sent { NoAnswer::Unknown } else { NoAnswer::NotAsked };
            (waiting.caller, Err(why))
        });
        let told = self.withheld.extract_if(.., |_, one| now >= one.until);
        late.chain(told.map(|(_, one)| (one.caller, Ok(one.answer)))).collect()
    }
}

/// Whether a command that may have been carried out can be carried out again without harm.
pub fn is_harmless_twice(command: &Command) -> bool {
    match command {
        Command::Submit { key, .. } | Command::Hold { key, .. } => key.is_some(),
        // Reports name an attempt, and one that is over hears nothing.
        Command::Started { .. }
        | Command::Exited { .. }
        | Command::TaskLost { .. }
        | Command::Checkpointed { .. }
        | Command::UsageCrossed { .. }
        | Command::Pass
        | Command::Tick => true,
        _ => false,
    }
}
