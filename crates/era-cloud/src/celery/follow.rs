//! What follows a task: the signatures that its message embeds, and the messages that they become.
//!
//! A task that went well calls its callbacks and the next task of its chain, each with its result
//! as the first argument; one that failed calls its errbacks with its id, and all that was chained
//! behind it has failed too. Either way it is a part that has returned, where it is in the header
//! of a chord. Signatures are tasks, or canvases that are taken apart (`canvas`); what cannot be
//! sent is refused before anything is run.
//!
//! Values only: what is written where, and when, is the worker's.

mod canvas;

use era_core::units::Time;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::body::Format;
use super::envelope::Envelope;
use super::message::{
    BadMessage, Embed, Headers, NAME_CHARS_MAX, TaskMessage, TimeLimits, iso, null_is_default,
};
use super::queue;
use super::result::Meta;
use super::{EXEC, RUN};
use canvas::{Sending, With};

/// The queue of a task of others that names none: where Celery's workers listen by default.
const DEFAULT_QUEUE: &str = "celery";
/// Most tasks that follow one.
const TASKS_MAX: usize = 10_000;

/// Why what is to follow a task cannot be.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum BadFollowing {
    /// It is no signature.
    #[error("what is to follow is no signature of Celery: {0}")]
    Malformed(String),
    /// It would have to be taken apart.
    #[error(
        "a {0} that follows a task is taken apart by Celery workers only: send this task to a \
         queue that one of them consumes"
    )]
    Nested(String),
    /// More than one would have to be waited for.
    #[error("what is chained behind a group is a chord, and this is none")]
    BehindGroup,
    /// Nobody here knows where it leads.
    #[error("exchange `{0}` is not known here: name the `queue` of what follows")]
    Exchange(String),
    /// It is written as nobody here writes.
    #[error("serializer `{0}` is not written here: use json, msgpack or yaml for what follows")]
    Serializer(String),
    /// There are too many.
    #[error("more than {TASKS_MAX} tasks follow this one")]
    Many,
    /// It would be sent too often.
    #[error("the body of a chord that follows this task is too long for so many tasks before it")]
    Heavy,
    /// It cannot be sent.
    #[error(transparent)]
    Message(#[from] BadMessage),
}

/// A task that is to be called, as Celery's clients write it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Signature {
    task: String,
    #[serde(default, deserialize_with = "null_is_default")]
    args: Vec<Value>,
    #[serde(default, deserialize_with = "null_is_default")]
    kwargs: Map<String, Value>,
    #[serde(default, deserialize_with = "null_is_default")]
    options: Options,
    #[serde(default)]
    subtask_type: Option<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    immutable: bool,
}

/// How it is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Options {
    task_id: Option<String>,
    queue: Option<String>,
    exchange: Option<String>,
    routing_key: Option<String>,
    priority: Option<u8>,
    serializer: Option<String>,
    countdown: Option<f64>,
    eta: Option<String>,
    expires: Option<Value>,
    time_limit: Option<f64>,
    soft_time_limit: Option<f64>,
    group_id: Option<String>,
    group_index: Option<i64>,
    retries: Option<u64>,
    shadow: Option<String>,
    ignore_result: Option<bool>,
    replaced_task_nesting: Option<u64>,
    link: Option<OneOrMany>,
    link_error: Option<OneOrMany>,
    chain: Option<Vec<Value>>,
    chord: Option<Value>,
    stamped_headers: Option<Vec<String>>,
    /// Stamps, by their own names, and what the transport is told.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Value>),
    One(Value),
}

impl OneOrMany {
    fn list(self) -> Vec<Value> {
        match self {
            OneOrMany::Many(all) => all,
            OneOrMany::One(one) => vec![one],
        }
    }
}

/// All that follows one task. It can be sent: that was tried when it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Following {
    callbacks: Vec<Value>,
    errbacks: Vec<Value>,
    /// The chain, the next one last.
    chain: Vec<Value>,
    /// What fails with the task: all of the chain.
    chained: Vec<Signature>,
    part: Option<Part>,
}

/// A task in the header of a chord.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The task.
    pub task: String,
    /// The chord's group.
    pub group: String,
    /// Its place there.
    pub index: Option<i64>,
    /// What is called with the results of all parts.
    body: Value,
}

/// What follows an end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequel {
    /// To be sent.
    pub calls: Vec<Call>,
    /// Groups among them that are headers of chords, and how many tasks of each return.
    pub sizes: Vec<(String, usize)>,
    /// Results of tasks that will never run.
    pub failed: Vec<Meta>,
    /// Parts of chords that have returned, each as the task ended.
    pub parts: Vec<Part>,
}

/// A message, and how it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    message: TaskMessage,
    queue: String,
    format: Format,
    priority: Option<u8>,
}

impl Call {
    /// The id of the task.
    pub fn id(&self) -> &str {
        &self.message.headers.id
    }

    /// Wraps it for its queue.
    pub fn wrap(&self, delivery_tag: String) -> Result<Envelope, BadMessage> {
        self.message.wrap(&self.queue, self.format, self.priority, delivery_tag)
    }
}

/// Who calls: the id that is told as the parent, and the first of all.
struct Caller<'a> {
    id: &'a str,
    root: &'a str,
    now: Time,
}

impl<'a> Caller<'a> {
    fn of(headers: &'a Headers, now: Time) -> Caller<'a> {
        let root = headers.root_id.as_deref().unwrap_or(&headers.id);
        Caller { id: &headers.id, root, now }
    }
}

impl Following {
    /// Reads what a message embeds.
    pub fn read(headers: &Headers, embed: &Embed) -> Result<Following, BadFollowing> {
        let all = |list: &Option<Vec<Value>>| list.clone().unwrap_or_default();
        let chain = all(&embed.chain);
        let mut chained = Vec::new();
        for one in &chain {
            chained.extend(canvas::ends(one)?);
        }
        let part = match &embed.chord {
            Some(Value::Null) | None => None,
            Some(body) => part_of(&headers.id, headers.group.as_deref(), headers.group_index, body),
        };
        let (callbacks, errbacks) = (all(&embed.callbacks), all(&embed.errbacks));
        let following = Following { callbacks, errbacks, chain, chained, part };
        following.check(headers)?;
        Ok(following)
    }

    /// Tries all that could be sent, with a result that is none.
    fn check(&self, headers: &Headers) -> Result<(), BadFollowing> {
        if self.chained.len() > TASKS_MAX {
            return Err(BadFollowing::Many);
        }
        let caller = Caller::of(headers, Time(0));
        let mut sending = Sending::new(&caller);
        let with = With { first: &[Value::Null], ..With::default() };
        for one in self.callbacks.iter().chain(&self.errbacks).chain(&self.chain) {
            sending.apply(one, with)?;
        }
        // Behind each of these is another.
        if self.chain.iter().skip(1).any(canvas::ends_in_group) {
            return Err(BadFollowing::BehindGroup);
        }
        for part in self.part.iter().chain(&self.failed_parts()) {
            canvas::ends(&part.body)?;
            Sending::new(&caller).apply(&part.body, with)?;
        }
        Ok(())
    }

    /// Whether nothing follows.
    pub fn is_empty(&self) -> bool {
        *self == Following::default()
    }

    /// What follows this end of the task.
    pub fn after(&self, headers: &Headers, end: &Meta, now: Time) -> Result<Sequel, BadFollowing> {
        use super::result::State;
        let caller = Caller::of(headers, now);
        let mut sending = Sending::new(&caller);
        let mut sequel = Sequel::default();
        match end.status {
            State::Success => {
                let first = std::slice::from_ref(&end.result);
                for one in &self.callbacks {
                    sending.apply(one, With { first, ..With::default() })?;
                }
                if let Some((next, behind)) = self.chain.split_last() {
                    sending.apply(next, With { first, behind, ..With::default() })?;
                }
                sequel.parts.extend(self.part.clone());
            }
            State::Failure | State::Rejected => {
                let first = &[Value::from(headers.id.as_str())];
                for one in &self.errbacks {
                    sending.apply(one, With { first, ..With::default() })?;
                }
                let ids = self.chained.iter().filter_map(|one| one.options.task_id.clone());
                sequel.failed = ids.map(|task_id| Meta { task_id, ..end.clone() }).collect();
                sequel.parts.extend(self.part.clone());
                sequel.parts.extend(self.failed_parts());
            }
            State::Revoked => sequel.parts.extend(self.part.clone()),
            _ => {}
        }
        Ok(Sequel { calls: sending.calls, sizes: sending.sizes, ..sequel })
    }

    /// Parts of chords that will never run, since what they are chained behind has failed.
    fn failed_parts(&self) -> Vec<Part> {
        let part = |one: &Signature| {
            let Options { task_id, group_id, group_index, chord, .. } = &one.options;
            part_of(task_id.as_deref()?, group_id.as_deref(), *group_index, chord.as_ref()?)
        };
        self.chained.iter().filter_map(part).collect()
    }
}

impl Part {
    /// What is called when all parts have returned well.
    pub fn complete(
        &self,
        of: &Headers,
        results: Vec<Value>,
        now: Time,
    ) -> Result<Sequel, BadFollowing> {
        let caller = Caller::of(of, now);
        let mut sending = Sending::new(&caller);
        sending.apply(&self.body, With { first: &[results.into()], ..With::default() })?;
        let Sending { calls, sizes, .. } = sending;
        Ok(Sequel { calls, sizes, ..Sequel::default() })
    }

    /// What follows if one of them has not: the body failed without having been called.
    pub fn break_off(&self, of: &Headers, why: &str, now: Time) -> Result<Sequel, BadFollowing> {
        let Signature { options, subtask_type, .. } = Signature::read(&self.body)?;
        let ends = canvas::ends(&self.body)?;
        let last = || ends.last().and_then(|end| end.options.task_id.clone());
        let id = options.task_id.or_else(last).unwrap_or_else(|| self.group.clone());
        let end = Meta::failure(&id, ("celery.exceptions", "ChordError"), why, now);
        let mut chain = options.chain.unwrap_or_default();
        let mut errbacks = options.link_error.map(OneOrMany::list).unwrap_or_default();
        if subtask_type.is_some() {
            // All that the body is made of fails with it.
            chain.push(self.body.clone());
        }
        if subtask_type.as_deref() == Some("group") {
            let own = ends.into_iter().filter_map(|end| end.options.link_error);
            errbacks.extend(own.flat_map(OneOrMany::list));
        }
        let embed = Embed {
            errbacks: Some(errbacks),
            chain: Some(chain),
            chord: options.chord,
            ..Embed::default()
        };
        let mut headers = of.clone();
        (headers.id, headers.group, headers.group_index) =
            (id, options.group_id, options.group_index);
        let following = Following::read(&headers, &embed)?;
        let mut sequel = following.after(&headers, &end, now)?;
        sequel.failed.push(end);
        Ok(sequel)
    }
}

/// A part of a chord. What is in no group returns to nobody.
fn part_of(task: &str, group: Option<&str>, index: Option<i64>, body: &Value) -> Option<Part> {
    let (task, group, body) = (task.to_owned(), group?.to_owned(), body.clone());
    Some(Part { task, group, index, body })
}

impl Signature {
    fn read(value: &Value) -> Result<Signature, BadFollowing> {
        serde_json::from_value(value.clone())
            .map_err(|error| BadFollowing::Malformed(error.to_string()))
    }

    /// The message that it becomes, with what is put before its own arguments. Where it has no id
    /// it gets this one.
    fn call(
        &self,
        caller: &Caller<'_>,
        id: String,
        first: &[Value],
        behind: &[Value],
    ) -> Result<Call, BadFollowing> {
        let options = self.options.clone();
        let id = options.task_id.unwrap_or(id);
        let args = match self.immutable {
            true => self.args.clone(),
            false => [first, &self.args].concat(),
        };
        let mut message = TaskMessage::new(&self.task, &id, args, self.kwargs.clone());
        let headers = &mut message.headers;
        headers.root_id = Some(caller.root.to_owned());
        headers.parent_id = Some(caller.id.to_owned());
        let later =
            |seconds: f64| iso(Time(caller.now.0.saturating_add((seconds * 1000.0) as i64)));
        headers.eta = options.countdown.filter(|s| *s > 0.0).map(later).or(options.eta);
        headers.expires = match options.expires {
            Some(Value::Number(seconds)) => seconds.as_f64().map(later),
            Some(Value::String(at)) => Some(at),
            _ => None,
        };
        headers.group = options.group_id;
        headers.group_index = options.group_index;
        headers.retries = options.retries.unwrap_or(0);
        headers.timelimit = TimeLimits(options.time_limit, options.soft_time_limit);
        headers.shadow = options.shadow;
        headers.ignore_result = options.ignore_result.unwrap_or(false);
        headers.replaced_task_nesting = options.replaced_task_nesting.unwrap_or(0);
        let stamp = |name: &String| Some((name.clone(), options.rest.get(name)?.clone()));
        headers.stamps = Some(options.stamped_headers.iter().flatten().filter_map(stamp).collect());
        headers.stamped_headers = options.stamped_headers;
        headers.starts()?;
        headers.ends()?;
        let long = |text: &str| text.is_empty() || text.chars().count() > NAME_CHARS_MAX;
        if long(&self.task) || long(&id) {
            let words = "a name or an id that is empty or too long".to_owned();
            return Err(BadFollowing::Malformed(words));
        }
        let chain = if behind.is_empty() { options.chain } else { Some(behind.to_vec()) };
        message.embed = Embed {
            callbacks: options.link.map(OneOrMany::list),
            errbacks: options.link_error.map(OneOrMany::list),
            chain,
            chord: options.chord,
            rest: Map::new(),
        };
        if let Some(exchange) = options.exchange.filter(|name| !name.is_empty()) {
            return Err(BadFollowing::Exchange(exchange.chars().take(100).collect()));
        }
        let ours = [RUN, EXEC].contains(&self.task.as_str());
        let otherwise = if ours { queue::COMPUTE } else { DEFAULT_QUEUE };
        let queue = options.queue.or(options.routing_key).unwrap_or_else(|| otherwise.to_owned());
        let format = match options.serializer.as_deref() {
            None | Some("json") => Format::Json,
            Some("msgpack") => Format::Msgpack,
            Some("yaml") => Format::Yaml,
            Some(other) => {
                return Err(BadFollowing::Serializer(other.chars().take(100).collect()));
            }
        };
        Ok(Call { message, queue, format, priority: options.priority })
    }
}

#[cfg(test)]
mod tests;
