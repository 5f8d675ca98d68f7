//! What the platform keeps with an input and the core need not know.
//!
//! A note stands beside its input in the journal, so that tables can be made anew from the journal
//! alone: what a job runs, what accounts are called, and what an executor saw of a task. Which
//! fields are there depends on the input, and none is required: an input without a note is
//! projected by what the core knows. Nothing secret belongs here.

use era_core::calendar::Seat;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Beside an input.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// What the account is called: the owner of a submission, or the user that is put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What the account's group is called, or the group that is put.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// With a submission: the job as it was handed in, the wire's `NewJob` as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<RawValue>>,
    /// With a submission: what it is done for, as its owner says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// With the submission of an array: which indices its jobs have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<Indices>,
    /// With a submission: the trees of its inputs as they were then, in their order, by hash; of
    /// an empty data set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Option<String>>>,
    /// With a submission: when it reached the server, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_ms: Option<i64>,
    /// With a submission that took a quote: how long that quote took to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote_us: Option<u64>,
    /// With an executor's report on a task: what it saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Seen>,
    /// With nodes that join: whether their tasks only sleep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// The indices of an array: the n-th job, from 0, has `from + n * step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indices {
    /// The first.
    pub from: u32,
    /// From one to the next.
    pub step: u32,
}

impl Indices {
    /// The index of the n-th job, from 0.
    pub fn nth(self, n: u32) -> u32 {
        self.from.saturating_add(n.saturating_mul(self.step))
    }
}

/// What an executor saw of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// When it happened there: the first instruction, or the end; milliseconds since the epoch.
    pub at_ms: i64,
    /// With a start: how long code and data took to be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared_ms: Option<i64>,
    /// With the start of growth beyond a promise: where it sits, which no plan tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seat: Option<Seat>,
    /// With an end that was not its own doing: `out_of_memory`, `out_of_disk`, `stopped`,
    /// `limit`, `not_started` or `lost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl Note {
    /// As it goes into the journal; `None` where there is nothing to keep.
    pub fn write(&self) -> Option<Box<RawValue>> {
        // Strings and numbers only, so writing to memory cannot fail.
        let text = serde_json::to_string(self).ok()?;
        if text == "{}" { None } else { RawValue::from_string(text).ok() }
    }

    /// As it came out of the journal.
    pub fn read(text: &str) -> Result<Note, serde_json::Error> {
        serde_json::from_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_keeps_the_spec_byte_for_byte() {
        let spec = r#"{"work":{"command":["true"]},  "ask":{"duration_s":1.50}}"#;
        let note = Note {
            user: Some("ada".into()),
            spec: Some(RawValue::from_string(spec.into()).unwrap()),
            array: Some(Indices { from: 2, step: 3 }),
            task: Some(Seen { at_ms: 7, prepared_ms: Some(2), ..Seen::default() }),
            ..Note::default()
        };
        let text = note.write().unwrap();
        let read = Note::read(text.get()).unwrap();
        assert_eq!(read.user.as_deref(), Some("ada"));
        assert_eq!(read.spec.unwrap().get(), spec);
        assert_eq!(read.array.unwrap().nth(2), 8);
        assert_eq!(read.task, note.task);
    }

    #[test]
    fn an_empty_note_is_not_kept_and_a_newer_ones_fields_are_passed_over() {
        assert!(Note::default().write().is_none());
        assert_eq!(Note::read(r#"{"user":"ada","later":1}"#).unwrap().user.unwrap(), "ada");
    }
}
