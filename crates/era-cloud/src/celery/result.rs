//! Results as Celery's Redis backend keeps them: a key for each task, told on a channel of the
//! same name.

use era_core::units::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::message::iso;

/// What keys and channels of results begin with.
const PREFIX: &str = "celery-task-meta-";
/// Longest result that is read.
const RESULT_BYTES_MAX: usize = 16 << 20;

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskState {
    /// Nobody knows it.
    Pending,
    /// A worker has it.
    Received,
    Started,
    /// It went well.
    Success,
    Failure,
    /// It is to be tried again.
    Retry,
    /// It was called off.
    Revoked,
    /// A worker would not have it.
    Rejected,
    /// A state that a task made up for itself.
    #[serde(other)]
    Other,
}

/// The states that nothing follows.
pub const FINAL: [TaskState; 4] =
    [TaskState::Success, TaskState::Failure, TaskState::Revoked, TaskState::Rejected];

impl TaskState {
    /// Whether nothing follows it.
    pub fn is_final(self) -> bool {
        FINAL.contains(&self)
    }

    /// As it is written.
    pub fn word(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// What is kept of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// How far it is.
    pub status: TaskState,
    /// What it returned, or what went wrong.
    #[serde(default)]
    pub result: Value,
    /// Where it went wrong.
    #[serde(default)]
    pub traceback: Option<String>,
    /// What it started.
    #[serde(default)]
    pub children: Option<Vec<Value>>,
    /// When it was over.
    #[serde(default)]
    pub date_done: Option<String>,
    #[serde(default)]
    pub task_id: String,
    /// Groups, parents, and what `result_extended` adds.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Meta {
    /// A task that runs.
    pub fn started(task_id: &str, result: Value) -> Meta {
        Meta::new(task_id, TaskState::Started, result, None)
    }

    /// A task that went well.
    pub fn success(task_id: &str, result: Value, at: Time) -> Meta {
        Meta::new(task_id, TaskState::Success, result, Some(at))
    }

    /// A task that failed, as an exception of Python.
    pub fn failure(task_id: &str, kind: (&str, &str), message: &str, at: Time) -> Meta {
        let (module, name) = kind;
        let exception = json!({ "exc_type": name, "exc_message": [message], "exc_module": module });
        Meta::new(task_id, TaskState::Failure, exception, Some(at))
    }

    /// A task that was called off.
    pub fn revoked(task_id: &str, why: &str, at: Time) -> Meta {
        let exception = json!({
            "exc_type": "TaskRevokedError",
            "exc_message": [why],
            "exc_module": "celery.exceptions",
        });
        Meta::new(task_id, TaskState::Revoked, exception, Some(at))
    }

    fn new(task_id: &str, status: TaskState, result: Value, done: Option<Time>) -> Meta {
        Meta {
            status,
            result,
            traceback: None,
            children: Some(Vec::new()),
            date_done: done.map(iso),
            task_id: task_id.to_owned(),
            rest: Map::new(),
        }
    }

    /// Reads what is kept. `None` for what is no result.
    pub fn read(bytes: &[u8]) -> Option<Meta> {
        if bytes.len() > RESULT_BYTES_MAX {
            return None;
        }
        serde_json::from_slice(bytes).ok()
    }

    /// Writes it as it is kept.
    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| unreachable!("a result is JSON"))
    }

    /// What went wrong: the exception's name and its words.
    pub fn exception(&self) -> (String, String) {
        let name = self.result["exc_type"].as_str().unwrap_or("Exception").to_owned();
        let words = match &self.result["exc_message"] {
            Value::Array(parts) => {
                let part =
                    |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
                parts.iter().map(part).collect::<Vec<_>>().join(" ")
            }
            Value::Null => String::new(),
            other => other.to_string(),
        };
        (name, words)
    }
}

/// The key, and the channel, of a task's result.
pub fn key(task_id: &str) -> String {
    format!("{PREFIX}{task_id}")
}

/// The task of such a key.
pub fn of_key(key: &str) -> Option<&str> {
    key.strip_prefix(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_celery_kept_is_read() {
        let text = br#"{"status": "FAILURE", "result": {"exc_type": "ValueError", "exc_message": ["no", 3], "exc_module": "builtins"}, "traceback": "Traceback", "children": [], "date_done": "2026-11-15T17:38:21.048864+00:00", "group_id": "g", "task_id": "x"}"#;
        let meta = Meta::read(text).expect("a result");
        assert_eq!(meta.status, TaskState::Failure);
        assert_eq!(meta.exception(), ("ValueError".into(), "no 3".into()));
        assert_eq!(meta.rest["group_id"], "g");
        assert!(meta.status.is_final());
    }

    #[test]
    fn states_that_tasks_make_up_are_not_final() {
        let meta = Meta::read(br#"{"status": "PROGRESS", "result": {"done": 3}}"#).expect("read");
        assert_eq!(meta.status, TaskState::Other);
        assert!(!meta.status.is_final());
        assert_eq!(Meta::read(b"not JSON"), None);
    }

    #[test]
    fn a_state_s_word_is_what_stands_in_a_result() {
        for state in FINAL {
            assert_eq!(serde_json::to_value(state).expect("JSON"), state.word());
        }
    }

    #[test]
    fn what_we_keep_has_the_fields_that_celery_reads() {
        let meta = Meta::success("x", json!({"code": 0}), Time(1_794_764_301_016));
        let text: Value = serde_json::from_str(&meta.write()).expect("JSON");
        assert_eq!(
            text,
            json!({"status": "SUCCESS", "result": {"code": 0}, "traceback": null, "children": [],
                "date_done": "2026-11-15T17:38:21.016000+00:00", "task_id": "x"})
        );
    }

    #[test]
    fn a_key_leads_back_to_its_task() {
        assert_eq!(of_key(&key("abc")), Some("abc"));
        assert_eq!(of_key("unacked"), None);
    }
}
