//! The messages that a worker holds, and how far each is: what inspection by Celery's clients shows.

use std::collections::BTreeMap;

use era_core::units::Time;
use serde_json::{Value, json};

use crate::celery::message::{TaskMessage, iso};
use crate::celery::queue;

/// Messages by their tags; nothing is known of one that was not read yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    all: BTreeMap<String, Option<About>>,
}

/// What is known of a message.
#[derive(Clone, Debug)]
struct About {
    id: String,
    name: String,
    /// Arguments to show: they may be long, so they are cut.
    shown: (String, String),
    queue: String,
    phase: Phase,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for its time.
    Scheduled(Time),
    /// It waits for a place.
    Reserved,
    /// It is served since then.
    Active(Time),
}

impl Held {
    pub(super) fn insert(&mut self, tag: &str) {
        self.all.insert(tag.to_owned(), None);
    }

    pub(super) fn remove(&mut self, tag: &str) {
        self.all.remove(tag);
    }

    pub(super) fn tags(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// A message was read.
    pub(super) fn read(&mut self, tag: &str, key: &str, message: &TaskMessage) {
        if let Some(held) = self.all.get_mut(tag) {
            *held = Some(About {
                id: message.headers.id.clone(),
                name: message.headers.task.clone(),
                shown: message.shown(),
                queue: queue::of_key(key).to_owned(),
                phase: Phase::Reserved,
            });
        }
    }

    /// A message is so far.
    pub(super) fn is(&mut self, tag: &str, phase: Phase) {
        if let Some(Some(about)) = self.all.get_mut(tag) {
            about.phase = phase;
        }
    }

    /// Those that are served.
    pub(super) fn active(&self, worker: &str) -> Value {
        self.shown(|about| {
            let Phase::Active(since) = about.phase else { return None };
            Some(about.request(worker, Some(since)))
        })
    }

    /// Those that wait for a place.
    pub(super) fn reserved(&self, worker: &str) -> Value {
        let waits = |about: &About| about.phase == Phase::Reserved;
        self.shown(|about| waits(about).then(|| about.request(worker, None)))
    }

    /// Those that wait for their time.
    pub(super) fn scheduled(&self, worker: &str) -> Value {
        self.shown(|about| {
            let Phase::Scheduled(at) = about.phase else { return None };
            let request = about.request(worker, None);
            Some(json!({ "eta": iso(at), "priority": 6, "request": request }))
        })
    }

    fn shown(&self, show: impl Fn(&About) -> Option<Value>) -> Value {
        self.all.values().flatten().filter_map(show).collect()
    }
}

impl About {
    /// As Celery's workers show a request.
    fn request(&self, worker: &str, since: Option<Time>) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "type": self.name,
            "args": self.shown.0,
            "kwargs": self.shown.1,
            "hostname": worker,
            "time_start": since.map(|at| at.0 as f64 / 1000.0),
            "acknowledged": false,
            "delivery_info": { "exchange": "", "routing_key": self.queue },
            "worker_pid": since.map(|_| std::process::id()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_shown_where_it_is() {
        let mut held = Held::default();
        let message = TaskMessage::new("era.exec", "x", vec![json!(["true"])], Default::default());
        held.insert("t");
        assert_eq!(held.active("w"), json!([]), "nothing is known of it yet");
        held.read("t", "eracompute", &message);
        assert_eq!(held.reserved("w")[0]["id"], "x");
        held.is("t", Phase::Scheduled(Time(1_794_764_301_016)));
        assert_eq!(held.scheduled("w")[0]["eta"], "2026-11-15T17:38:21.016000+00:00");
        assert_eq!(held.scheduled("w")[0]["request"]["name"], "era.exec");
        held.is("t", Phase::Active(Time(1500)));
        let active = held.active("w");
        assert_eq!(active[0]["time_start"], 1.5);
        assert_eq!(active[0]["args"], "(['true'],)");
        assert_eq!((held.reserved("w"), held.scheduled("w")), (json!([]), json!([])));
        held.remove("t");
        assert_eq!(held.active("w"), json!([]));
    }
}
