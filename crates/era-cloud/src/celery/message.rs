//! A task as a message of Celery's protocol, version 2.
//!
//! Headers say what is known without reading the body; the body is positional and named arguments
//! and the *embed*: what is to be called afterwards. All of it is read and written here, whether a
//! worker of ours acts on it or not, so that a message that is passed on is whole. What a task
//! means is not known here.

use era_core::units::Time;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::body::BodyFormat;
use super::envelope::{BadEnvelope, Envelope};

/// Longest `argsrepr` and `kwargsrepr`, as in Celery.
const REPR_CHARS_MAX: usize = 1024;
/// Longest name of a task and longest id.
const NAME_CHARS_MAX: usize = 512;

/// A task that is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskMessage {
    /// What is known without reading the body.
    pub headers: Headers,
    pub args: Vec<Value>,
    pub kwargs: Map<String, Value>,
    /// What is to be called afterwards.
    pub embed: Embed,
}

/// The headers of protocol 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headers {
    /// The language of who sent it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub lang: String,
    /// What is to be run.
    pub task: String,
    /// Which run of it.
    pub id: String,
    /// Another name to show.
    #[serde(default)]
    pub shadow: Option<String>,
    #[serde(default)]
    pub eta: Option<String>,
    #[serde(default)]
    pub expires: Option<String>,
    /// The group it is in.
    #[serde(default)]
    pub group: Option<String>,
    /// Its place in that group.
    #[serde(default)]
    pub group_index: Option<i64>,
    /// How often it was tried before.
    #[serde(default, deserialize_with = "null_is_default")]
    pub retries: u64,
    /// Seconds until it is killed, and until it is told to end.
    #[serde(default, deserialize_with = "null_is_default")]
    pub timelimit: TimeLimits,
    /// The first of the tasks that led to it.
    #[serde(default)]
    pub root_id: Option<String>,
    /// The one that led to it.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// Positional arguments to show.
    #[serde(default)]
    pub argsrepr: Option<String>,
    /// Named arguments to show.
    #[serde(default)]
    pub kwargsrepr: Option<String>,
    /// Who sent it.
    #[serde(default)]
    pub origin: Option<String>,
    /// Whether nobody wants its result.
    #[serde(default, deserialize_with = "null_is_default")]
    pub ignore_result: bool,
    /// How often it took the place of another.
    #[serde(default, deserialize_with = "null_is_default")]
    pub replaced_task_nesting: u64,
    /// Which headers are stamps.
    #[serde(default)]
    pub stamped_headers: Option<Vec<String>>,
    #[serde(default)]
    pub stamps: Option<Map<String, Value>>,
    /// Headers that others added.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Celery writes `null` where nothing was said.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Seconds: until it is killed, and until it is told to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeLimits(pub Option<f64>, pub Option<f64>);

/// What is to be called afterwards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Embed {
    /// When it went well.
    #[serde(default)]
    pub callbacks: Option<Vec<Value>>,
    /// When it failed.
    #[serde(default)]
    pub errbacks: Option<Vec<Value>>,
    /// The tasks that follow, the next one last.
    #[serde(default)]
    pub chain: Option<Vec<Value>>,
    /// What is called when a whole group is done.
    #[serde(default)]
    pub chord: Option<Value>,
    /// What newer versions add.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Embed {
    /// Whether something is to be called when the task is over.
    pub fn calls(&self) -> bool {
        let lists = [&self.callbacks, &self.errbacks, &self.chain];
        lists.iter().any(|list| list.as_ref().is_some_and(|list| !list.is_empty()))
            || self.chord.as_ref().is_some_and(|body| !body.is_null())
    }

    /// The ids of tasks that never run unless this one does: what is chained behind it, and the body
    /// of its chord.
    pub fn behind(&self) -> impl Iterator<Item = &str> {
        let chain = self.chain.iter().flatten();
        chain.chain(&self.chord).filter_map(|task| task["options"]["task_id"].as_str())
    }
}

/// Why a message is no task of protocol 2.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum BadMessage {
    /// What it is wrapped in.
    #[error(transparent)]
    Envelope(#[from] BadEnvelope),
    /// It has no header `task`.
    #[error("the message has no header `task`: send tasks by protocol 2 (`task_protocol = 2`)")]
    NotProtocol2,
    /// A header is wrong.
    #[error("its headers are not those of protocol 2: {0}")]
    Headers(String),
    /// A name is too long.
    #[error("its {0} is too long: use at most {NAME_CHARS_MAX} characters")]
    LongName(&'static str),
    /// A time is none.
    #[error("its {field} `{text}` is no instant: write it by ISO 8601")]
    Instant {
        field: &'static str,
        /// What it says.
        text: String,
    },
    /// The body has another form.
    #[error("its body is not [arguments, named arguments, embed]")]
    Body,
}

impl TaskMessage {
    /// A task with these arguments and nothing else.
    pub fn new(task: &str, id: &str, args: Vec<Value>, kwargs: Map<String, Value>) -> TaskMessage {
        let headers = Headers {
            lang: "py".to_owned(),
            task: task.to_owned(),
            id: id.to_owned(),
            shadow: None,
            eta: None,
            expires: None,
            group: None,
            group_index: None,
            retries: 0,
            timelimit: TimeLimits::default(),
            root_id: Some(id.to_owned()),
            parent_id: None,
            argsrepr: Some(shorten(repr_args(&args))),
            kwargsrepr: Some(shorten(repr_map(&kwargs))),
            origin: Some("era".to_owned()),
            ignore_result: false,
            replaced_task_nesting: 0,
            stamped_headers: None,
            stamps: Some(Map::new()),
            rest: Map::new(),
        };
        TaskMessage { headers, args, kwargs, embed: Embed::default() }
    }

    /// Takes a task out of its envelope.
    pub fn read(envelope: &Envelope) -> Result<TaskMessage, BadMessage> {
        let headers = read_headers(envelope)?;
        let Value::Array(body) = envelope.value()? else { return Err(BadMessage::Body) };
        let [args, kwargs, embed]: [Value; 3] = body.try_into().map_err(|_| BadMessage::Body)?;
        let (Value::Array(args), Value::Object(kwargs)) = (args, kwargs) else {
            return Err(BadMessage::Body);
        };
        let embed = match embed {
            Value::Null => Embed::default(),
            embed => serde_json::from_value(embed).map_err(|_| BadMessage::Body)?,
        };
        Ok(TaskMessage { headers, args, kwargs, embed })
    }

    /// Wraps it for a queue.
    pub fn wrap(
        &self,
        queue: &str,
        format: BodyFormat,
        priority: Option<u8>,
        delivery_tag: String,
    ) -> Result<Envelope, BadMessage> {
        let not = |e: serde_json::Error| BadMessage::Headers(e.to_string());
        let Value::Object(headers) = serde_json::to_value(&self.headers).map_err(not)? else {
            return Err(BadMessage::Headers("they are no object".to_owned()));
        };
        let embed = serde_json::to_value(&self.embed).map_err(not)?;
        let body = Value::from(vec![
            Value::Array(self.args.clone()),
            Value::Object(self.kwargs.clone()),
            embed,
        ]);
        let wrapped = Envelope::to_queue(queue, format, &body, headers, delivery_tag);
        let mut envelope = wrapped.map_err(BadEnvelope::from)?;
        envelope.properties.correlation_id = Some(self.headers.id.clone());
        envelope.properties.reply_to = Some(String::new());
        envelope.properties.priority = priority.map(i64::from);
        Ok(envelope)
    }
}

/// The headers alone: enough to know whether a message is ours.
fn read_headers(envelope: &Envelope) -> Result<Headers, BadMessage> {
    if !envelope.headers.contains_key("task") {
        return Err(BadMessage::NotProtocol2);
    }
    let headers = Value::Object(envelope.headers.clone());
    let headers: Headers =
        serde_json::from_value(headers).map_err(|e| BadMessage::Headers(e.to_string()))?;
    let long = |text: &str| text.chars().count() > NAME_CHARS_MAX;
    if long(&headers.task) {
        return Err(BadMessage::LongName("name"));
    }
    if headers.id.is_empty() || long(&headers.id) {
        return Err(BadMessage::LongName("id"));
    }
    Ok(headers)
}

impl Headers {
    /// Before which instant it must not start.
    pub fn starts(&self) -> Result<Option<Time>, BadMessage> {
        self.eta.as_deref().map(|text| instant("eta", text)).transpose()
    }

    /// After which instant it must not start.
    pub fn ends(&self) -> Result<Option<Time>, BadMessage> {
        self.expires.as_deref().map(|text| instant("expires", text)).transpose()
    }
}

/// An instant as Celery writes it: with an offset, or in UTC without one.
fn instant(field: &'static str, text: &str) -> Result<Time, BadMessage> {
    let with_offset = text.parse::<Timestamp>().ok();
    let bare = || {
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    };
    let at = with_offset.or_else(bare).map(|at| Time(at.as_millisecond()));
    at.ok_or_else(|| BadMessage::Instant { field, text: text.chars().take(64).collect() })
}

/// An instant as Celery writes it.
pub fn iso(at: Time) -> String {
    let at = Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

fn shorten(text: String) -> String {
    if text.chars().count() <= REPR_CHARS_MAX {
        return text;
    }
    text.chars().take(REPR_CHARS_MAX - 3).chain("...".chars()).collect()
}

/// Positional arguments as Python shows a tuple.
fn repr_args(args: &[Value]) -> String {
    let shown: Vec<String> = args.iter().map(repr).collect();
    if let [one] = &shown[..] { format!("({one},)") } else { format!("({})", shown.join(", ")) }
}

/// Named arguments as Python shows a dictionary.
fn repr_map(map: &Map<String, Value>) -> String {
    let pair = |(key, value): (&String, &Value)| format!("{}: {}", repr_text(key), repr(value));
    format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(", "))
}

fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => repr_text(text),
        Value::Array(all) => {
            format!("[{}]", all.iter().map(repr).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => repr_map(map),
    }
}

fn repr_text(text: &str) -> String {
    format!("'{}'", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Headers as Celery 5.7 sent them.
    fn from_celery() -> Value {
        json!({
            "lang": "py", "task": "era.run", "id": "3340e1da", "shadow": null,
            "eta": "2026-11-15T17:38:21.016329+00:00",
            "expires": "2026-11-15T17:39:16.016329+00:00",
            "group": null, "group_index": null, "retries": 0, "timelimit": [9, 8],
            "root_id": "3340e1da", "parent_id": null, "argsrepr": "(1,)",
            "kwargsrepr": "{'b': 2}", "origin": "gen20701@vm", "ignore_result": false,
            "replaced_task_nesting": 0, "stamped_headers": ["team"],
            "stamps": {"team": "vision"}, "their-own": {"x": 1}
        })
    }

    fn wrapped(headers: Value, body: Value) -> Envelope {
        let Value::Object(headers) = headers else { panic!("headers") };
        Envelope::to_queue("q", BodyFormat::Json, &body, headers, "tag".into()).expect("wrapped")
    }

    #[test]
    fn every_header_of_celery_survives() {
        let body = json!([[1], {"b": 2}, {"callbacks": [{"task": "x"}], "errbacks": null,
            "chain": [{"task": "y"}], "chord": {"task": "z"}}]);
        let message = TaskMessage::read(&wrapped(from_celery(), body.clone())).expect("read");
        assert_eq!(message.headers.timelimit, TimeLimits(Some(9.0), Some(8.0)));
        assert_eq!(message.headers.starts(), Ok(Some(Time(1_794_764_301_016))));
        assert_eq!(message.headers.ends(), Ok(Some(Time(1_794_764_356_016))));
        let again = message.wrap("q", BodyFormat::Json, Some(4), "tag".into()).expect("wrapped");
        // 9 and 9.0 are the same limit.
        let mut expected = from_celery();
        expected["timelimit"] = json!([9.0, 8.0]);
        assert_eq!(Value::Object(again.headers.clone()), expected);
        assert_eq!(again.value().expect("a body"), body);
        assert_eq!(again.properties.correlation_id.as_deref(), Some("3340e1da"));
        assert_eq!(again.properties.priority, Some(4));
    }

    #[test]
    fn what_celery_leaves_open_is_the_default() {
        let mut headers = from_celery();
        for name in ["ignore_result", "retries", "timelimit", "lang", "stamps"] {
            headers[name] = Value::Null;
        }
        let message = TaskMessage::read(&wrapped(headers, json!([[], {}, null]))).expect("read");
        assert!(!message.headers.ignore_result);
        assert_eq!(message.headers.timelimit, TimeLimits::default());
        assert_eq!(message.embed, Embed::default());
    }

    #[test]
    fn what_is_to_be_called_afterwards_is_told_from_nothing() {
        let embed = |value: Value| serde_json::from_value::<Embed>(value).expect("an embed");
        for nothing in [
            json!({}),
            json!({"callbacks": null, "errbacks": null, "chain": null, "chord": null}),
            json!({"callbacks": [], "chain": []}),
        ] {
            assert!(!embed(nothing.clone()).calls(), "{nothing}");
        }
        let task = |id: &str| json!({"task": "x", "options": {"task_id": id}});
        for something in [
            json!({"callbacks": [task("a")]}),
            json!({"errbacks": [task("a")]}),
            json!({"chord": {"task": "x"}}),
        ] {
            let embed = embed(something.clone());
            assert!(embed.calls(), "{something}");
            assert_eq!(embed.behind().count(), 0, "{something}");
        }
        let all = embed(json!({"chain": [task("last"), {}, task("next")], "chord": task("body")}));
        assert!(all.calls());
        assert_eq!(all.behind().collect::<Vec<_>>(), ["last", "next", "body"]);
    }

    #[test]
    fn older_protocols_and_foreign_messages_are_told_apart() {
        let old = wrapped(json!({}), json!({"task": "era.run", "id": "1", "args": []}));
        assert_eq!(TaskMessage::read(&old), Err(BadMessage::NotProtocol2));
        let odd = wrapped(json!({"task": 7}), json!([[], {}, {}]));
        assert!(matches!(TaskMessage::read(&odd), Err(BadMessage::Headers(_))));
        for body in [json!({}), json!([]), json!([[], {}]), json!([{}, [], {}]), json!("x")] {
            let bad = wrapped(from_celery(), body.clone());
            assert_eq!(TaskMessage::read(&bad), Err(BadMessage::Body), "{body}");
        }
        let mut long = from_celery();
        long["id"] = "x".repeat(NAME_CHARS_MAX + 1).into();
        assert_eq!(
            TaskMessage::read(&wrapped(long, json!([[], {}, {}]))),
            Err(BadMessage::LongName("id"))
        );
    }

    #[test]
    fn instants_are_read_with_and_without_an_offset() {
        let at = instant("eta", "2026-11-15T17:38:21.016329+00:00");
        assert_eq!(at, instant("eta", "2026-11-15T17:38:21.016329"));
        assert_eq!(at, instant("eta", "2026-11-15T18:38:21.016329+01:00"));
        assert!(instant("eta", "tomorrow").is_err());
        assert_eq!(instant("eta", &iso(Time(1_794_764_301_016))), Ok(Time(1_794_764_301_016)));
    }

    #[test]
    fn arguments_are_shown_as_python_shows_them() {
        let message = TaskMessage::new(
            "era.exec",
            "1",
            vec![json!(["true"]), json!(null)],
            Map::from_iter([("deep".to_owned(), json!({"a": true}))]),
        );
        assert_eq!(message.headers.argsrepr.as_deref(), Some("(['true'], None)"));
        assert_eq!(message.headers.kwargsrepr.as_deref(), Some("{'deep': {'a': True}}"));
        let long = TaskMessage::new("t", "1", vec![json!("x".repeat(5000))], Map::new());
        assert_eq!(long.headers.argsrepr.map(|text| text.chars().count()), Some(1024));
    }

    proptest! {
        #[test]
        fn a_task_comes_out_as_it_went_in(
            number in any::<i64>(),
            text in "[ -~]{0,20}",
            priority in 0u8..=9,
            limits in (prop::option::of(1u32..9999), prop::option::of(1u32..9999)),
        ) {
            let kwargs = Map::from_iter([(text.clone(), json!(number))]);
            let mut message = TaskMessage::new("era.run", "id-1", vec![json!(text)], kwargs);
            message.headers.timelimit =
                TimeLimits(limits.0.map(f64::from), limits.1.map(f64::from));
            message.embed.chain = Some(vec![json!({"task": "next"})]);
            for format in [BodyFormat::Json, BodyFormat::Msgpack, BodyFormat::Yaml] {
                let sent = message.wrap("q", format, Some(priority), "t".into()).expect("wrapped");
                let bytes = sent.write().expect("written");
                let got = Envelope::read(&bytes).expect("read");
                prop_assert_eq!(TaskMessage::read(&got).expect("a task"), message.clone());
                prop_assert_eq!(got.priority(), priority);
            }
        }
    }
}
