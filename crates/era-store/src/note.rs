//! What the platform keeps with an input and the core need not know.
//!
//! A note stands beside its input in the journal, so that tables can be made anew from the journal
//! alone: what a job runs, what accounts are called, and what an executor saw of a task. Which
//! fields are there depends on the input, and none is required: an input without a note is
//! projected by what the core knows. Nothing secret belongs here.

use era_core::calendar::Seat;
use era_spec::JobSpec;
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
    /// With a submission: the job as it was handed in, with the defaults of that day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Box<JobSpec>>,
    /// With a submission: the trees of its inputs as they were then, in their order, by hash; of
    /// an empty data set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Option<String>>>,
    /// With the submission of a job in the place of one that is over: the job whose checkpoints it
    /// begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints_of: Option<u64>,
    /// With a submission: when it reached the server, in milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_ms: Option<i64>,
    /// With a submission that took a quote: how long that quote took to be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote_us: Option<u64>,
    /// With an executor's report on a task: what it saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Observation>,
    /// With nodes that join: whether their tasks only sleep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// What an executor saw of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
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
    fn a_note_reads_back() {
        let spec = r#"{"work": {"command": ["true"]}, "array": {"from": 2, "to": 9, "step": 3}}"#;
        let note = Note {
            user: Some("ada".into()),
            spec: Some(serde_json::from_str(spec).unwrap()),
            task: Some(Observation { at_ms: 7, prepared_ms: Some(2), ..Observation::default() }),
            ..Note::default()
        };
        let text = note.write().unwrap();
        let read = Note::read(text.get()).unwrap();
        assert_eq!(read.user.as_deref(), Some("ada"));
        assert_eq!(read.spec.as_ref().unwrap().array.unwrap().nth(2), 8);
        assert_eq!(read.spec, note.spec);
        assert_eq!(read.task, note.task);
    }

    #[test]
    fn a_note_of_an_earlier_release_is_read() {
        // Of the first release: what the spec says as well stood beside it.
        let text = r#"{"user":"ada","group":"vision","spec":{"name":"train","project":"thesis",
            "work":{"command":["python","train.py"],"env":{"SEED":"7"}},
            "ask":{"resources":{"cpu":"4","gpu":2},"replicas":{"min":1,"max":2},"duration_s":3600,
            "deadline":"2026-11-20T06:00:00Z","constraints":{"pool":"a"}},"value":"30.00",
            "most":"12.50","priority":0,"array":{"from":0,"to":9,"step":1,"limit":2}},
            "project":"thesis","array":{"from":0,"step":1},"received_ms":5}"#;
        let note = Note::read(text).unwrap();
        let spec = note.spec.unwrap();
        assert_eq!((spec.ask.duration_s, spec.priority), (Some(3600), Some(0)));
        assert_eq!((spec.project.as_deref(), spec.accept_price), (Some("thesis"), false));
    }

    #[test]
    fn an_empty_note_is_not_kept_and_a_newer_ones_fields_are_passed_over() {
        assert!(Note::default().write().is_none());
        assert_eq!(Note::read(r#"{"user":"ada","later":1}"#).unwrap().user.unwrap(), "ada");
    }
}
