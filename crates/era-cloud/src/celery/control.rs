//! Celery's remote control: commands that go to every worker, and answers that come back.
//!
//! Commands are published on one channel for the database; each names a method, its arguments and
//! perhaps the workers that it is for. Answers go to a queue that the asker consumes. What a
//! method does is the worker's to know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::body::{BadBody, Format};
use super::envelope::{BadEnvelope, DeliveryInfo, Envelope};

/// The exchange of commands.
const EXCHANGE: &str = "celery.pidbox";
/// Most ids in one command.
const IDS_MAX: usize = 10_000;

/// A command to workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// What is to be done.
    pub method: String,
    /// With what.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    /// By whom; everybody where this is missing.
    #[serde(default)]
    pub destination: Option<Vec<String>>,
    /// By whom, as a pattern.
    #[serde(default)]
    pub pattern: Option<String>,
    /// What kind of pattern: `glob` or `pcre`.
    #[serde(default)]
    pub matcher: Option<String>,
    /// What an answer carries, to be told from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// Where an answer goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyTo>,
}

/// Where an answer goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyTo {
    /// Its exchange.
    pub exchange: String,
    /// Its key.
    pub routing_key: String,
}

/// The channel of a database's commands.
pub fn channel(database: i64) -> String {
    format!("/{database}.{EXCHANGE}")
}

impl Command {
    /// Calls tasks off: what has not begun never does.
    pub fn revoke(ids: &[String]) -> Command {
        let arguments = json!({ "task_id": ids, "terminate": false, "signal": null });
        let Value::Object(arguments) = arguments else { unreachable!("an object") };
        Command { method: "revoke".into(), arguments: Some(arguments), ..Command::default() }
    }

    /// Reads a command from what was published.
    pub fn read(bytes: &[u8]) -> Result<Command, BadEnvelope> {
        let value = Envelope::read(bytes)?.value()?;
        serde_json::from_value(value).map_err(|e| BadEnvelope::Malformed(e.to_string()))
    }

    /// Writes it as it is published.
    pub fn write(&self, delivery_tag: String) -> Result<Vec<u8>, BadEnvelope> {
        let body = serde_json::to_value(self).map_err(|e| BadEnvelope::Malformed(e.to_string()))?;
        let headers =
            Map::from_iter([("clock".to_owned(), 1.into()), ("expires".into(), 0.into())]);
        let mut envelope = Envelope::to_queue("", Format::Json, &body, headers, delivery_tag)?;
        envelope.properties.delivery_mode = Some(1);
        envelope.properties.delivery_info = DeliveryInfo {
            exchange: Some(EXCHANGE.to_owned()),
            routing_key: Some(String::new()),
            rest: Map::new(),
        };
        envelope.write()
    }

    /// Whether it is for this worker. A pattern is a glob; others are not understood, and what is
    /// not understood is for nobody.
    pub fn is_for(&self, worker: &str) -> bool {
        match (&self.destination, &self.pattern) {
            (Some(names), _) if !names.is_empty() => names.iter().any(|name| name == worker),
            (_, Some(pattern)) if self.matcher.as_deref() == Some("glob") => glob(pattern, worker),
            (_, Some(_)) if self.matcher.is_some() => false,
            _ => true,
        }
    }

    /// The ids that it names: one, or a list.
    pub fn ids(&self) -> Vec<String> {
        self.ids_in("task_id")
    }

    /// The ids in an argument: one, a list, or the keys of a table, as some versions of Celery tell
    /// what was revoked.
    pub fn ids_in(&self, argument: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match self.argument(argument) {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(all)) => all.iter().take(IDS_MAX).filter_map(text).collect(),
            Some(Value::Object(all)) => all.keys().take(IDS_MAX).cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// An argument.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.as_ref()?.get(name)
    }
}

/// An answer of this worker, for the queue that the asker consumes.
pub fn reply(
    worker: &str,
    answer: Value,
    to: &ReplyTo,
    ticket: Option<&str>,
    delivery_tag: String,
) -> Result<Vec<u8>, BadBody> {
    let body = Value::Object(Map::from_iter([(worker.to_owned(), answer)]));
    let headers =
        Map::from_iter([("ticket".to_owned(), ticket.into()), ("clock".to_owned(), 1.into())]);
    let mut envelope = Envelope::to_queue("", Format::Json, &body, headers, delivery_tag)?;
    envelope.properties.delivery_mode = Some(1);
    envelope.properties.delivery_info.exchange = Some(to.exchange.clone());
    envelope.properties.delivery_info.routing_key = Some(to.routing_key.clone());
    envelope.write().map_err(|e| BadBody::Malformed("JSON", e.to_string()))
}

/// `*` for anything, `?` for one character. Linear in the text for each star.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_comes_out_as_it_went_in() {
        let command = Command::revoke(&["a".into(), "b".into()]);
        let read = Command::read(&command.write("tag".into()).expect("written")).expect("read");
        assert_eq!(read, command);
        assert_eq!(read.ids(), ["a", "b"]);
    }

    #[test]
    fn a_command_is_for_those_it_names_and_else_for_everybody() {
        let mut command = Command { method: "ping".into(), ..Command::default() };
        assert!(command.is_for("era@here"));
        command.pattern = Some("era@*".into());
        command.matcher = Some("glob".into());
        assert!(command.is_for("era@here"));
        assert!(!command.is_for("celery@here"));
        command.matcher = Some("pcre".into());
        assert!(!command.is_for("era@here"));
        command.destination = Some(vec!["era@there".into()]);
        assert!(!command.is_for("era@here"));
        assert!(command.is_for("era@there"));
    }

    #[test]
    fn globs_match_as_shells_do() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxb", true),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
        let (pattern, text) = ("*a".repeat(40), "a".repeat(4000));
        assert!(glob(&pattern, &text));
    }

    #[test]
    fn one_id_may_stand_without_a_list() {
        let arguments = Map::from_iter([("task_id".to_owned(), json!("one"))]);
        let command = Command { arguments: Some(arguments), ..Command::default() };
        assert_eq!(command.ids(), ["one"]);
    }

    #[test]
    fn what_another_worker_revoked_is_read_as_a_list_and_as_a_table() {
        for revoked in [json!(["a", "b"]), json!({ "a": 1.5, "b": [2.5, "b"] })] {
            let arguments = Map::from_iter([("revoked".to_owned(), revoked)]);
            let command = Command { arguments: Some(arguments), ..Command::default() };
            assert_eq!(command.ids_in("revoked"), ["a", "b"]);
        }
    }
}
