//! How a task ended, as a result of Celery carries it.

use era_core::job::TaskId;
use era_core::units::{Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::result::{Meta, TaskState};
use crate::executor::{Ending, ExecutorReport};

/// The module of our exceptions in Python.
pub const MODULE: &str = "era.errors";
/// The exception of a task that is gone through no fault of its own.
pub const LOST: &str = "TaskLost";

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// Its code; 128 and the signal's number where a signal ended it.
    pub code: i32,
    pub ending: Ending,
    /// When its first instruction was, if it had one.
    #[serde(default)]
    pub started_ms: Option<i64>,
    /// How long code and data took to be there.
    #[serde(default)]
    pub prepared_ms: Option<i64>,
    /// When it was over.
    pub ended_ms: i64,
    /// The end of what it printed, where somebody asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// How a task that was taken by a node came to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskEnd {
    /// It ran, or could not be started.
    Outcome(TaskOutcome),
    /// It is gone, and certainly runs no more.
    Lost(String),
}

impl TaskEnd {
    /// As it is kept.
    pub fn meta(&self, id: &str, now: Time) -> Meta {
        match self {
            TaskEnd::Outcome(outcome) => {
                let value = serde_json::to_value(outcome);
                Meta::success(id, value.unwrap_or_default(), Time(outcome.ended_ms))
            }
            TaskEnd::Lost(reason) => Meta::failure(id, (MODULE, LOST), reason, now),
        }
    }
}

/// What is kept of a task that runs.
pub fn started_meta(id: &str, node: &str, at: Time, prepared: Span) -> Meta {
    let told = json!({ "node": node, "started_ms": at.0, "prepared_ms": prepared.0 });
    Meta::started(id, told)
}

/// What a result says to the scheduler, in the order in which it happened. Nothing while nothing
/// is certain.
pub fn reports(task: TaskId, meta: &Meta, now: Time) -> Vec<ExecutorReport> {
    let number = |name: &str| meta.result[name].as_i64();
    let started = |result: &Value| {
        let at = Time(result["started_ms"].as_i64()?);
        let prepared = Span(result["prepared_ms"].as_i64().unwrap_or(0));
        Some(ExecutorReport::Started { task, at, prepared })
    };
    match meta.status {
        TaskState::Started => started(&meta.result).into_iter().collect(),
        TaskState::Success => match serde_json::from_value::<TaskOutcome>(meta.result.clone()) {
            Ok(outcome) => {
                let TaskOutcome { code, ending, ended_ms, .. } = outcome;
                let end = ExecutorReport::Exited { task, at: Time(ended_ms), code, ending };
                started(&meta.result).into_iter().chain([end]).collect()
            }
            // A worker that is not ours says that it went well, and no more.
            Err(_) => {
                let code = number("code").and_then(|code| i32::try_from(code).ok()).unwrap_or(0);
                vec![ExecutorReport::Exited { task, at: now, code, ending: Ending::Itself }]
            }
        },
        TaskState::Revoked => {
            vec![ExecutorReport::Exited { task, at: now, code: 128 + 15, ending: Ending::Stopped }]
        }
        TaskState::Failure | TaskState::Rejected => {
            let (name, words) = meta.exception();
            let reason = if name == LOST { words } else { format!("{name} {words}") };
            vec![ExecutorReport::Lost { task, reason }]
        }
        TaskState::Pending | TaskState::Received | TaskState::Retry | TaskState::Other => {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::JobId;

    const TASK: TaskId = TaskId { job: JobId(1), part: 0, attempt: 1, rank: 0 };

    fn outcome(started_ms: Option<i64>) -> TaskOutcome {
        let ending = Ending::OutOfMemory;
        TaskOutcome {
            code: 137,
            ending,
            started_ms,
            prepared_ms: Some(3),
            ended_ms: 90,
            output: None,
        }
    }

    #[test]
    fn an_end_tells_the_start_too_so_that_neither_is_missed() {
        let meta = TaskEnd::Outcome(outcome(Some(50))).meta("x", Time(0));
        let told = reports(TASK, &meta, Time(0));
        assert_eq!(
            told,
            [
                ExecutorReport::Started { task: TASK, at: Time(50), prepared: Span(3) },
                ExecutorReport::Exited {
                    task: TASK,
                    at: Time(90),
                    code: 137,
                    ending: Ending::OutOfMemory
                },
            ]
        );
    }

    #[test]
    fn what_never_started_only_ended() {
        let meta = TaskEnd::Outcome(outcome(None)).meta("x", Time(0));
        assert!(matches!(
            reports(TASK, &meta, Time(0))[..],
            [ExecutorReport::Exited { code: 137, .. }]
        ));
    }

    #[test]
    fn lost_revoked_and_failed_are_told_apart() {
        let lost = TaskEnd::Lost("lease-lapsed".into()).meta("x", Time(0));
        let lost = reports(TASK, &lost, Time(0));
        assert_eq!(lost, [ExecutorReport::Lost { task: TASK, reason: "lease-lapsed".into() }]);
        let revoked = reports(TASK, &Meta::revoked("x", "revoked", Time(5)), Time(5));
        assert!(matches!(revoked[..], [ExecutorReport::Exited { ending: Ending::Stopped, .. }]));
        let failed = Meta::failure("x", ("builtins", "OSError"), "no disk", Time(5));
        let failed = reports(TASK, &failed, Time(5));
        assert_eq!(failed, [ExecutorReport::Lost { task: TASK, reason: "OSError no disk".into() }]);
    }

    #[test]
    fn states_in_between_say_nothing() {
        let meta = Meta::read(br#"{"status": "RETRY", "result": null}"#).expect("read");
        assert_eq!(reports(TASK, &meta, Time(0)), []);
    }
}
