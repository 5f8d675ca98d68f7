//! The journal: every input with what was decided about it, in order.
//!
//! It is cut into segments, each of which begins with a state. To start again is to load the
//! newest segment's state and to carry out what came after it ([`Journal::restore`]), which an
//! upgrade has brought to this version before ([`Journal::migrate`]); whatever is
//! read for tables or copied into a file is read in pages, so memory does not grow with history.
//! Who sends inputs, when a segment is due and what an input means to a user is not known here.

mod append;
mod asks;
mod export;
mod follow;
mod migrate;
mod restore;
mod segment;
#[cfg(test)]
mod tests;

use era_core::units::{JobId, Time};
use era_core::{Event, Input, Output, Reply};
use serde_json::value::RawValue;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::{Database, Generation, StoreError};

pub use asks::{AskedQuote, Asks};
pub use export::Export;
pub use follow::Follower;
pub use restore::Restored;
pub use segment::Segment;

/// Most entries that are read at a time.
pub const PAGE: u32 = 1000;

/// The journal in its database. A clone shares.
#[derive(Clone, Debug)]
pub struct Journal {
    database: Database,
    generation: Generation,
}

/// An input with what was decided about it, written as it is kept.
#[derive(Clone, Debug)]
pub struct JournalEntry {
    pub seq: u64,
    /// When it happened.
    pub at: Time,
    /// The input, as JSON.
    pub input: String,
    /// Its events, as a JSON list.
    pub events: String,
    /// What the platform keeps with it, as JSON.
    pub note: Option<Box<RawValue>>,
    /// The job that it made, of an array the first: by it the note is found again.
    pub job: Option<JobId>,
}

impl JournalEntry {
    /// An input that is about to be carried out: its events are not known yet.
    pub fn of(input: &Input, note: Option<Box<RawValue>>) -> JournalEntry {
        JournalEntry {
            seq: input.seq,
            at: input.at,
            input: written(input),
            events: String::from("[]"),
            note,
            job: None,
        }
    }

    /// Adds what was decided.
    pub fn decided(&mut self, output: &Output) {
        self.events = written(&output.events);
        if let Reply::Accepted { job, .. } = output.reply {
            self.job = Some(job);
        }
    }
}

/// An entry as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub seq: u64,
    /// When it happened.
    pub at: Time,
    /// The input, as JSON.
    pub input: String,
    /// Its events, as a JSON list.
    pub events: String,
    /// What the platform keeps with it, as JSON.
    pub note: Option<String>,
}

impl Stored {
    pub fn input(&self) -> Result<Input, StoreError> {
        serde_json::from_str(&self.input).map_err(|e| damaged(self.seq, &e))
    }

    pub fn events(&self) -> Result<Vec<Event>, StoreError> {
        serde_json::from_str(&self.events).map_err(|e| damaged(self.seq, &e))
    }

    /// Each event with its text, which is what is passed on: an event is written once.
    pub(crate) fn written_events(&self) -> Result<Vec<(Event, Box<RawValue>)>, StoreError> {
        let read = |text: Box<RawValue>| Ok((serde_json::from_str(text.get())?, text));
        let texts: Result<Vec<Box<RawValue>>, _> = serde_json::from_str(&self.events);
        let events = texts.and_then(|texts| texts.into_iter().map(read).collect());
        events.map_err(|e: serde_json::Error| damaged(self.seq, &e))
    }

    fn of(row: &AnyRow) -> Result<Stored, StoreError> {
        let seq: i64 = row.try_get(0)?;
        Ok(Stored {
            seq: number("journal", seq)?,
            at: Time(row.try_get(1)?),
            input: row.try_get(2)?,
            events: row.try_get(3)?,
            note: row.try_get(4)?,
        })
    }
}

impl Journal {
    pub(crate) fn new(database: Database, generation: Generation) -> Journal {
        Journal { database, generation }
    }

    /// Entries after this number, in order; at most `most` of them, and never more than a page.
    /// Entries become visible in their order, so whoever follows the journal asks for what is
    /// after the last that it saw, and misses none.
    pub async fn read(&self, after: u64, most: u32) -> Result<Vec<Stored>, StoreError> {
        let rows = sqlx::query(
            "SELECT seq, at, input, events, note FROM journal WHERE seq > ? ORDER BY seq LIMIT ?",
        )
        .bind(signed(after)?)
        .bind(i64::from(most.min(PAGE)))
        .fetch_all(self.database.readers())
        .await?;
        rows.iter().map(Stored::of).collect()
    }

    pub async fn entry(&self, seq: u64) -> Result<Option<Stored>, StoreError> {
        let Some(before) = seq.checked_sub(1) else { return Ok(None) };
        let found = self.read(before, 1).await?.pop();
        Ok(found.filter(|entry| entry.seq == seq))
    }

    /// The submission that made this job: its own, or that of its array, whose first job's number
    /// comes with it.
    pub async fn submission(&self, job: JobId) -> Result<Option<(JobId, Stored)>, StoreError> {
        let row = sqlx::query(
            "SELECT seq, at, input, events, note, job FROM journal WHERE job <= ? \
             ORDER BY job DESC, seq LIMIT 1",
        )
        .bind(signed(job.0)?)
        .fetch_optional(self.database.readers())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let first = number("journal", row.try_get(5)?)?;
        Ok(Some((JobId(first), Stored::of(&row)?)))
    }

    /// The number of the last entry; 0 where there is none.
    pub async fn last_seq(&self) -> Result<u64, StoreError> {
        let seq: Option<i64> = sqlx::query_scalar("SELECT MAX(seq) FROM journal")
            .fetch_one(self.database.readers())
            .await?;
        number("journal", seq.unwrap_or(0))
    }
}

fn written<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // The core's types have string keys and finite numbers only, so writing them to memory cannot
    // fail; should that ever change, what is written reads back as damage and not as history.
    serde_json::to_string(value).unwrap_or_default()
}

fn damaged(seq: u64, problem: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged {
        what: format!("entry {seq} of the journal"),
        problem: problem.to_string(),
    }
}

fn number(what: &str, found: i64) -> Result<u64, StoreError> {
    u64::try_from(found).map_err(|_| StoreError::Damaged {
        what: what.to_owned(),
        problem: format!("{found} is not a number of an entry"),
    })
}

fn signed(seq: u64) -> Result<i64, StoreError> {
    i64::try_from(seq).map_err(|_| damaged(seq, &"its number is out of range"))
}
