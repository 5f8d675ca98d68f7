//! Canvases, taken apart as Celery does it: groups, chains and chords become the messages of the
//! tasks that they begin with, and what comes after those is embedded in them.
//!
//! The body of a chord goes with every task that its header ends in. How many of them return is
//! written down in the step that sends them, since whoever brings the last one calls the body.

use serde_json::{Map, Value, json};

use super::{BadFollowing, Call, Caller, OneOrMany, Signature, TASKS_MAX};

/// Most bytes of bodies that are sent with the headers of chords: each task has a copy.
const BODIES_BYTES_MAX: usize = 64 << 20;
/// Most groups in a row in a chain: each is in the body of the one before it.
const GROUPS_MAX: usize = 16;
/// What the members of a group or a chord have from it.
const INHERITED: [&str; 9] = [
    "queue",
    "exchange",
    "routing_key",
    "priority",
    "serializer",
    "expires",
    "time_limit",
    "soft_time_limit",
    "ignore_result",
];

/// What a caller sends.
pub(super) struct Sending<'a> {
    caller: &'a Caller<'a>,
    pub(super) calls: Vec<Call>,
    /// Groups that are headers of chords, and how many of their tasks return.
    pub(super) sizes: Vec<(String, usize)>,
    bodies_bytes: usize,
}

/// What a signature is applied with, beside what is its own.
#[derive(Clone, Copy, Default)]
pub(super) struct With<'a> {
    /// Arguments before its own.
    pub(super) first: &'a [Value],
    /// What is chained behind it, the next one last.
    pub(super) behind: &'a [Value],
    /// The group that it is in, and its place there.
    pub(super) group: Option<(&'a str, i64)>,
    /// The body of the chord in whose header it is.
    pub(super) chord: Option<&'a Value>,
}

/// What a signature is: nothing for a task.
fn kind(value: &Value) -> Option<&str> {
    value["subtask_type"].as_str()
}

fn nested(what: &str) -> BadFollowing {
    BadFollowing::Nested(what.chars().take(100).collect())
}

fn malformed(what: &str) -> BadFollowing {
    BadFollowing::Malformed(what.to_owned())
}

/// A map inside of a signature, made where there is none.
fn map<'a>(value: &'a mut Value, name: &str) -> Result<&'a mut Map<String, Value>, BadFollowing> {
    let all = value.as_object_mut().ok_or_else(|| malformed("it is no map"))?;
    let inner = all.entry(name).or_insert(Value::Null);
    if inner.is_null() {
        *inner = json!({});
    }
    inner.as_object_mut().ok_or_else(|| malformed("its options or arguments are no map"))
}

/// A list inside of a signature; empty where there is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The tasks of a group, or of a header that may be a bare list; groups in it are as if their tasks
/// stood there.
fn members(value: &Value) -> Vec<&Value> {
    let tasks = if value.is_array() { value } else { &value["kwargs"]["tasks"] };
    let mut all = Vec::new();
    for task in list(tasks) {
        match kind(task) {
            Some("group") => all.extend(members(task)),
            _ => all.push(task),
        }
    }
    all
}

/// The steps of a chain; chains in it are as if their steps stood there.
fn steps(value: &Value) -> Vec<&Value> {
    let mut all = Vec::new();
    for step in list(&value["kwargs"]["tasks"]) {
        match kind(step) {
            Some("chain") => all.extend(steps(step)),
            _ => all.push(step),
        }
    }
    all
}

/// The tasks whose results are those of a signature, and that fail with what they are behind.
pub(super) fn ends(value: &Value) -> Result<Vec<Signature>, BadFollowing> {
    let inner = match kind(value) {
        None => return Ok(vec![Signature::read(value)?]),
        Some("group") => members(value),
        Some("chain") => steps(value),
        Some("chord") => vec![&value["kwargs"]["body"]],
        Some(other) => return Err(nested(other)),
    };
    let mut all = Vec::new();
    for one in inner {
        all.extend(ends(one)?);
        if all.len() > TASKS_MAX {
            return Err(BadFollowing::Many);
        }
    }
    Ok(all)
}

/// Whether it ends in several tasks at once, behind which nothing can be called.
pub(super) fn ends_in_group(value: &Value) -> bool {
    match kind(value) {
        Some("group") => true,
        Some("chord") => ends_in_group(&value["kwargs"]["body"]),
        Some("chain") => steps(value).last().is_some_and(|last| ends_in_group(last)),
        _ => false,
    }
}

/// How many tasks of it return to the chord in whose header it is.
fn size(value: &Value) -> Result<usize, BadFollowing> {
    match kind(value) {
        None => Ok(1),
        Some("chain") => match steps(value).last() {
            Some(last) => size(last),
            None => Err(malformed("a chain of nothing")),
        },
        Some("chord") => size(&value["kwargs"]["body"]),
        // Its results would be a list within the list.
        _ => Err(nested("group at the end of a chain in the header of a chord")),
    }
}

/// Makes what a signature ends in a part of what the signature is in.
fn join(value: &mut Value, with: With<'_>) -> Result<(), BadFollowing> {
    match kind(value) {
        None => {
            let options = map(value, "options")?;
            if let Some((group, index)) = with.group {
                options.entry("group_id").or_insert_with(|| group.into());
                options.entry("group_index").or_insert_with(|| index.into());
            }
            if let Some(body) = with.chord {
                options.insert("chord".to_owned(), body.clone());
            }
            Ok(())
        }
        Some("chord") => join(inner(value, "body")?, with),
        Some("chain") => {
            let last = inner(value, "tasks")?.as_array_mut().and_then(|all| all.last_mut());
            join(last.ok_or_else(|| malformed("a chain of nothing"))?, with)
        }
        _ if with.chord.is_none() => Ok(()),
        _ => Err(nested("group at the end of a chain in the header of a chord")),
    }
}

fn inner<'a>(value: &'a mut Value, name: &str) -> Result<&'a mut Value, BadFollowing> {
    Ok(map(value, "kwargs")?.entry(name).or_insert(Value::Null))
}

/// Adds callbacks (`link`) to what a signature ends in, or errbacks (`link_error`) to all of it
/// that may fail.
fn link(value: &mut Value, name: &str, more: &[Value]) -> Result<(), BadFollowing> {
    if more.is_empty() {
        return Ok(());
    }
    match (kind(value), name) {
        (None, _) => {
            let own = map(value, "options")?.entry(name).or_insert(Value::Null);
            let mut all = match own.take() {
                Value::Null => Vec::new(),
                Value::Array(all) => all,
                one => vec![one],
            };
            all.extend_from_slice(more);
            *own = all.into();
            Ok(())
        }
        (Some("chord"), _) => link(inner(value, "body")?, name, more),
        (Some("chain"), "link") => {
            let last = inner(value, "tasks")?.as_array_mut().and_then(|all| all.last_mut());
            link(last.ok_or_else(|| malformed("a chain of nothing"))?, name, more)
        }
        (Some("chain" | "group"), "link_error") => {
            let tasks = inner(value, "tasks")?.as_array_mut();
            tasks.into_iter().flatten().try_for_each(|task| link(task, name, more))
        }
        _ => Err(nested("callback of a group")),
    }
}

/// Gives a signature what the one that it is in was told.
fn inherit(value: &mut Value, from: &Value) -> Result<(), BadFollowing> {
    for name in INHERITED {
        let told = &from["options"][name];
        if !told.is_null() {
            map(value, "options")?.insert(name.to_owned(), told.clone());
        }
    }
    Ok(())
}

impl<'a> Sending<'a> {
    pub(super) fn new(caller: &'a Caller<'a>) -> Sending<'a> {
        Sending { caller, calls: Vec::new(), sizes: Vec::new(), bodies_bytes: 0 }
    }

    /// Sends what a signature begins with.
    pub(super) fn apply(&mut self, value: &Value, with: With<'_>) -> Result<(), BadFollowing> {
        if self.calls.len() >= TASKS_MAX {
            return Err(BadFollowing::Many);
        }
        match kind(value) {
            None => self.task(value, with),
            Some("group") => self.group(value, with),
            Some("chain") => self.chain(value, with),
            Some("chord") => self.chord(value, with),
            Some(other) => Err(nested(other)),
        }
    }

    /// A name that is the same if this is done again.
    fn name(&self) -> String {
        format!("{}-{}", self.caller.id, self.calls.len())
    }

    fn task(&mut self, value: &Value, with: With<'_>) -> Result<(), BadFollowing> {
        let mut one = Signature::read(value)?;
        if let Some((group, index)) = with.group {
            one.options.group_id.get_or_insert_with(|| group.to_owned());
            one.options.group_index.get_or_insert(index);
        }
        if let Some(body) = with.chord {
            one.options.chord = Some(body.clone());
        }
        let call = one.call(self.caller, self.name(), with.first, with.behind)?;
        self.calls.push(call);
        Ok(())
    }

    fn group(&mut self, value: &Value, with: With<'_>) -> Result<(), BadFollowing> {
        let options = &value["options"];
        if !with.behind.is_empty() || !list(&options["chain"]).is_empty() {
            return Err(BadFollowing::BehindGroup);
        }
        let members = members(value);
        let parts = |one: &&Value| !one["options"]["chord"].is_null();
        if with.chord.is_some() || members.iter().any(parts) {
            return Err(nested("group at the end of a chain in the header of a chord"));
        }
        let id = text(&options["task_id"]).or_else(|| text(&options["group_id"]));
        let id = id.unwrap_or_else(|| self.name());
        for (index, member) in (0..).zip(members) {
            let mut member = member.clone();
            inherit(&mut member, value)?;
            let group = Some((id.as_str(), index));
            self.apply(&member, With { first: with.first, group, ..With::default() })?;
        }
        Ok(())
    }

    fn chain(&mut self, value: &Value, with: With<'_>) -> Result<(), BadFollowing> {
        let one = Signature::read(value)?;
        // As the field of a message has it: the next one last.
        let (mut rest, mut groups): (Vec<Value>, usize) = (Vec::new(), 0);
        for step in steps(value).into_iter().rev() {
            let is_group = kind(step) == Some("group");
            groups = if is_group { groups + 1 } else { 0 };
            if groups > GROUPS_MAX {
                return Err(nested("chain of so many groups in a row"));
            }
            match rest.pop() {
                Some(body) if is_group => rest.push(chord_of(step, body)),
                before => {
                    rest.extend(before);
                    rest.push(step.clone());
                }
            }
        }
        let links = |links: Option<OneOrMany>| links.map(OneOrMany::list).unwrap_or_default();
        let (callbacks, errbacks) = (links(one.options.link), links(one.options.link_error));
        if let Some(last) = rest.first_mut() {
            if let (None, Some(id)) = (kind(last), &one.options.task_id) {
                map(last, "options")?.entry("task_id").or_insert_with(|| id.as_str().into());
            }
            link(last, "link", &callbacks)?;
            join(last, with)?;
        }
        for step in &mut rest {
            link(step, "link_error", &errbacks)?;
        }
        let mut next = rest.pop().ok_or_else(|| malformed("a chain of nothing"))?;
        if kind(&next) == Some("group") {
            return Err(nested("chain of a group"));
        }
        inherit(&mut next, value)?;
        let outer = if with.behind.is_empty() { one.options.chain.as_deref() } else { None };
        let behind = [outer.unwrap_or(with.behind), &rest].concat();
        let first = before(with.first, &one.args, one.immutable);
        self.apply(&next, With { first: &first, behind: &behind, ..With::default() })
    }

    fn chord(&mut self, value: &Value, with: With<'_>) -> Result<(), BadFollowing> {
        let one = Signature::read(value)?;
        let inner = &value["kwargs"];
        if inner["kwargs"].as_object().is_some_and(|named| !named.is_empty()) {
            return Err(nested("chord with arguments by name"));
        }
        if one.options.countdown.is_some() || one.options.eta.is_some() {
            return Err(nested("chord that waits"));
        }
        let body = self.body(value, &one, with)?;
        let header = &inner["header"];
        let members = members(header);
        if members.is_empty() {
            let none = [json!([])];
            return self.apply(&body, With { first: &none, ..With::default() });
        }
        let copies = serde_json::to_string(&body).map_or(0, |text| text.len());
        self.bodies_bytes = self.bodies_bytes.saturating_add(copies.saturating_mul(members.len()));
        if self.bodies_bytes > BODIES_BYTES_MAX {
            return Err(BadFollowing::Heavy);
        }
        let id = text(&header["options"]["task_id"]).unwrap_or_else(|| self.name());
        let mut returning = 0;
        for member in &members {
            returning += size(member)?;
        }
        self.sizes.push((id.clone(), returning));
        let first = before(with.first, &one.args, one.immutable);
        for (index, member) in (0..).zip(members) {
            let mut member = member.clone();
            inherit(&mut member, value)?;
            let group = Some((id.as_str(), index));
            let with = With { first: &first, group, chord: Some(&body), ..With::default() };
            self.apply(&member, with)?;
        }
        Ok(())
    }

    /// The body of a chord, as it goes with the header.
    fn body(&self, value: &Value, one: &Signature, with: With<'_>) -> Result<Value, BadFollowing> {
        let mut body = value["kwargs"]["body"].clone();
        let links = |links: &Option<OneOrMany>| links.clone().map(OneOrMany::list);
        link(&mut body, "link", &links(&one.options.link).unwrap_or_default())?;
        link(&mut body, "link_error", &links(&one.options.link_error).unwrap_or_default())?;
        inherit(&mut body, value)?;
        join(&mut body, with)?;
        let behind = if with.behind.is_empty() { one.options.chain.as_deref() } else { None };
        let behind = behind.unwrap_or(with.behind);
        let is_task = kind(&body).is_none();
        let id = one.options.task_id.clone().unwrap_or_else(|| format!("{}-body", self.name()));
        let options = map(&mut body, "options")?;
        if !behind.is_empty() {
            options.insert("chain".to_owned(), behind.into());
        }
        if is_task && options.get("task_id").is_none_or(Value::is_null) {
            options.insert("task_id".to_owned(), id.into());
        }
        Ok(body)
    }
}

/// A group with something behind it is a chord with that as its body.
fn chord_of(group: &Value, body: Value) -> Value {
    let id = body["options"]["task_id"].clone();
    let options = if id.is_null() { json!({}) } else { json!({ "task_id": id }) };
    json!({
        "task": "celery.chord", "args": [], "options": options, "subtask_type": "chord",
        "immutable": false, "kwargs": { "kwargs": {}, "header": group, "body": body },
    })
}

/// Arguments with those that come before them.
fn before(first: &[Value], own: &[Value], immutable: bool) -> Vec<Value> {
    if immutable { own.to_vec() } else { [first, own].concat() }
}
