//! The end of a task as Redis is told of it: its result, and all that follows.
//!
//! Every step here may be repeated: results are the same again, calls are sent once for a task,
//! parts of a chord are counted once. So whoever loses Redis, or dies before its message is
//! acknowledged, leaves nothing undone and nothing done twice.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::celery::bus::{
    self, Bus, BusError, CHORD_DONE, CHORD_PART, FOLLOW, REMEMBERED_TIME, RESULT_TIME,
};
use crate::celery::envelope::Envelope;
use crate::celery::follow::{BadFollowing, Call, Following, Part, Sequel};
use crate::celery::message::Headers;
use crate::celery::result::{self, Meta, State};
use crate::celery::{names, queue};

/// How long the body of a chord is somebody's to call.
const CLAIMED: Duration = Duration::from_secs(10);
/// How often it is looked whether somebody else has called it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What is due when a task is over. It was all made before anything is written.
pub(super) struct Due {
    headers: Option<Headers>,
    end: Meta,
    kept: bool,
    failed: Vec<Meta>,
    calls: Vec<Envelope>,
    sizes: Vec<(String, usize)>,
    parts: Vec<Part>,
}

impl Due {
    /// Nothing but a result.
    pub(super) fn result(end: Meta) -> Due {
        let (failed, calls, sizes, parts) = Default::default();
        Due { headers: None, end, kept: true, failed, calls, sizes, parts }
    }

    /// What follows this end, which is kept only where somebody wants it.
    pub(super) fn of(
        bus: &Bus,
        headers: &Headers,
        following: &Following,
        mut end: Meta,
        kept: bool,
    ) -> Due {
        let follows = |end: &Meta| wrapped(bus, following.after(headers, end, bus::now())?);
        let (sequel, calls) = follows(&end).unwrap_or_else(|error| {
            // A result that is too long for what follows, as Celery sees it.
            let kind = ("kombu.exceptions", "EncodeError");
            end = Meta::failure(&headers.id, kind, &error.to_string(), bus::now());
            follows(&end).unwrap_or_default()
        });
        let child = |call: &Call| json!([[call.id(), null], null]);
        end.children = Some(sequel.calls.iter().map(child).collect());
        for (name, id) in [("group_id", &headers.group), ("parent_id", &headers.parent_id)] {
            if let Some(id) = id {
                end.rest.insert(name.to_owned(), id.as_str().into());
            }
        }
        let (headers, Sequel { failed, sizes, parts, .. }) = (Some(headers.clone()), sequel);
        Due { headers, end, kept, failed, calls, sizes, parts }
    }

    /// The result, where it is to be kept.
    pub(super) fn kept(&self) -> Option<&Meta> {
        self.kept.then_some(&self.end)
    }

    /// Whether nothing follows it.
    pub(super) fn is_alone(&self) -> bool {
        self.failed.is_empty() && self.calls.is_empty() && self.parts.is_empty()
    }

    /// What remembers that all that follows was sent, where something follows.
    pub(super) fn followed(&self) -> Option<String> {
        (!self.is_alone()).then(|| names::followed(&self.end.task_id, self.end.status))
    }

    /// Keeps the results, sends what follows, and counts the parts of chords.
    pub(super) async fn carry_out(&self, bus: &Bus, tag: &str) -> Result<(), BusError> {
        let metas: Vec<Meta> = self.kept().into_iter().chain(&self.failed).cloned().collect();
        if !metas.is_empty() {
            bus.store_all(&metas).await?;
        }
        if !self.calls.is_empty() {
            let _: u8 = bus
                .script("take what follows a task", &FOLLOW, |script| {
                    let end = names::followed(&self.end.task_id, self.end.status);
                    script.key(end).arg(REMEMBERED_TIME.as_secs());
                    script.arg(RESULT_TIME.as_secs()).arg(self.calls.len());
                    self.calls.iter().for_each(|call| add(script, call));
                    self.sizes.iter().for_each(|size| add_size(script, size));
                })
                .await?;
        }
        let Some(headers) = &self.headers else { return Ok(()) };
        let mut parts: VecDeque<(Part, Meta)> =
            self.parts.iter().map(|part| (part.clone(), self.end.clone())).collect();
        while let Some((part, end)) = parts.pop_front() {
            let broken = returned(bus, tag, headers, &part, &end).await?;
            if let Some(Sequel { failed, parts: more, .. }) = broken
                && let Some(end) = failed.last()
            {
                parts.extend(more.into_iter().map(|part| (part, end.clone())));
            }
        }
        Ok(())
    }
}

fn wrapped(bus: &Bus, sequel: Sequel) -> Result<(Sequel, Vec<Envelope>), BadFollowing> {
    let calls = sequel.calls.iter().map(|call| call.wrap(bus.tag()));
    let calls = calls.collect::<Result<_, _>>()?;
    Ok((sequel, calls))
}

/// A message, with the list that it goes to.
fn add(script: &mut redis::ScriptInvocation<'_>, call: &Envelope) {
    script.key(queue::key(call.routing_key(), call.priority()));
    script.arg(call.write().unwrap_or_default());
}

/// How many parts a chord has, with the key that it is kept under.
fn add_size(script: &mut redis::ScriptInvocation<'_>, (group, size): &(String, usize)) {
    script.key(format!("{}.s", result::group_key(group))).arg(*size);
}

/// A part of a chord has returned. If it was the last, the body is called, or has failed; what
/// follows that.
async fn returned(
    bus: &Bus,
    tag: &str,
    headers: &Headers,
    part: &Part,
    end: &Meta,
) -> Result<Option<Sequel>, BusError> {
    let group = result::group_key(&part.group);
    let keys = ["j", "t", "s", "d", "c"].map(|kind| format!("{group}.{kind}"));
    let place = part.index.map_or_else(|| "+inf".to_owned(), |index| index.to_string());
    let told = json!([1, part.task, end.status, end.result]).to_string();
    loop {
        let due: u8 = bus
            .script("count a part of a chord", &CHORD_PART, |script| {
                script.key(&keys[..]).arg(format!("{}:{place}", part.task)).arg(&told).arg(&place);
                // The same message claims again what it claimed before.
                script.arg(RESULT_TIME.as_secs()).arg(tag).arg(CLAIMED.as_secs());
            })
            .await?;
        match due {
            0 => return Ok(None),
            1 => break,
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
    let mut read = redis::pipe();
    read.cmd("ZRANGE").arg(&keys[0]).arg(0).arg(-1).cmd("GET").arg(&group);
    let (results, header): (Vec<Vec<u8>>, Option<Vec<u8>>) =
        bus.run_all("give the results of a chord", &read).await?;
    let now = bus::now();
    let broken = |why: &str| part.break_off(headers, why, now).and_then(|all| wrapped(bus, all));
    let complete = |values| wrapped(bus, part.complete(headers, values, now)?);
    let (sequel, calls) = match values(&results, header.as_deref()) {
        Ok(values) => complete(values).or_else(|error| broken(&error.to_string())),
        Err(why) => broken(&why),
    }
    .unwrap_or_else(|error| {
        tracing::error!(%error, group = part.group, "nobody can be told that a chord failed");
        Default::default()
    });
    let _: u8 = bus
        .script("end a chord", &CHORD_DONE, |script| {
            script.key(&keys[..]).arg(tag).arg(REMEMBERED_TIME.as_secs());
            script.arg(RESULT_TIME.as_secs()).arg(calls.len());
            calls.iter().for_each(|call| add(script, call));
            sequel.sizes.iter().for_each(|size| add_size(script, size));
            for meta in &sequel.failed {
                script.key(result::key(&meta.task_id)).arg(meta.write());
            }
        })
        .await?;
    Ok(Some(sequel))
}

/// The results of all parts in their order, or why there are none.
fn values(results: &[Vec<u8>], header: Option<&[u8]>) -> Result<Vec<Value>, String> {
    if header.is_some_and(has_groups) {
        return Err("a chord with groups in its header is joined by Celery workers only".into());
    }
    let value = |bytes: &Vec<u8>| {
        let told: (u8, String, State, Value) = serde_json::from_slice(bytes)
            .map_err(|error| format!("the result of a part cannot be read: {error}"))?;
        let (_, task, status, result) = told;
        if matches!(status, State::Failure | State::Revoked) {
            let end = Meta { result, ..Meta::success(&task, Value::Null, bus::now()) };
            let (name, words) = end.exception();
            return Err(format!("Dependency {task} raised {name}({words})"));
        }
        Ok(result)
    };
    results.iter().map(value).collect()
}

/// Whether what Celery keeps of a chord's header has groups in it: it keeps a tuple of the group
/// and its results, of which those of a group have results themselves.
fn has_groups(kept: &[u8]) -> bool {
    let kept: Value = serde_json::from_slice(kept).unwrap_or_default();
    kept["result"][1].as_array().into_iter().flatten().any(|one| !one[1].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(status: &str, result: Value) -> Vec<u8> {
        json!([1, "x", status, result]).to_string().into_bytes()
    }

    #[test]
    fn the_results_of_a_chord_are_those_of_its_parts_or_the_first_failure() {
        let good = [part("SUCCESS", json!(1)), part("SUCCESS", json!({"a": []}))];
        assert_eq!(values(&good, None), Ok(vec![json!(1), json!({"a": []})]));
        let failure = json!({"exc_type": "OSError", "exc_message": ["no disk"]});
        let bad = [good[0].clone(), part("FAILURE", failure)];
        assert_eq!(values(&bad, None), Err("Dependency x raised OSError(no disk)".into()));
        assert!(values(&[b"?".to_vec()], None).is_err());
    }

    #[test]
    fn groups_in_a_header_are_left_to_celery() {
        let flat = br#"{"result": [["g", null], [[["1", null], null], [["2", null], null]]]}"#;
        let deep = br#"{"result": [["g", null], [[["1", null], [[["2", null], null]]]]]}"#;
        assert!(!has_groups(flat) && has_groups(deep));
        assert!(values(&[], Some(deep)).is_err_and(|why| why.contains("Celery workers only")));
    }
}
