//! Where two lists of events first differ, in a form that a person can read.

use std::fmt;

use serde_json::Value;

/// The first event that is not as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// The line of the journal.
    pub line: u64,
    /// The number of the input.
    pub seq: u64,
    /// Which of its events, from 1.
    pub event: usize,
    /// The first field that differs.
    pub field: String,
    /// As it was recorded, if it was.
    pub recorded: Option<String>,
    /// As it came now, if it did.
    pub replayed: Option<String>,
}

impl Difference {
    /// Compares two lists of events that are not the same text.
    pub fn of_events(line: u64, seq: u64, recorded: &str, replayed: &str) -> Difference {
        let list = |text: &str| -> Vec<Box<serde_json::value::RawValue>> {
            serde_json::from_str(text).unwrap_or_default()
        };
        let (recorded, replayed) = (list(recorded), list(replayed));
        let text = |list: &[Box<serde_json::value::RawValue>], index: usize| {
            list.get(index).map(|event| event.get().to_owned())
        };
        let same = |index: &usize| text(&recorded, *index) == text(&replayed, *index);
        let most = recorded.len().max(replayed.len());
        let event = (0..most).take_while(same).count();
        let (recorded, replayed) = (text(&recorded, event), text(&replayed, event));
        let field = first_field(recorded.as_deref(), replayed.as_deref());
        Difference { line, seq, event: event + 1, field, recorded, replayed }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { line, seq, event, field, recorded, replayed } = self;
        let nothing = || "nothing".to_owned();
        write!(
            f,
            "line {line}: event {event} of input {seq} is not as it was recorded, first in \
             `{field}`\n  recorded: {}\n  replayed: {}",
            recorded.clone().unwrap_or_else(nothing),
            replayed.clone().unwrap_or_else(nothing)
        )
    }
}

/// The path of the first field in which two texts of JSON differ.
pub(super) fn first_field(a: Option<&str>, b: Option<&str>) -> String {
    let (Some(a), Some(b)) = (a, b) else { return "the event itself".into() };
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (parsed(a), parsed(b)) {
        (Some(a), Some(b)) => path(&a, &b, "").unwrap_or_else(|| "its spelling".into()),
        _ => "its spelling".into(),
    }
}

fn path(a: &Value, b: &Value, at: &str) -> Option<String> {
    let name = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key)));
            keys.into_iter().find_map(|key| match (x.get(key), y.get(key)) {
                (Some(a), Some(b)) => path(a, b, &name(key)),
                _ => Some(name(key)),
            })
        }
        (Value::Array(x), Value::Array(y)) => {
            let within = x.iter().zip(y).enumerate();
            let mut within =
                within.filter_map(|(index, (a, b))| path(a, b, &format!("{at}[{index}]")));
            let longer = || (x.len() != y.len()).then(|| format!("{at}[{}]", x.len().min(y.len())));
            within.next().or_else(longer)
        }
        _ => (a != b).then(|| at.to_owned()),
    }
}
