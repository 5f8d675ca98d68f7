//! What an event says of itself agrees with what is written of it.

use era_core::Event;
use era_core::event::{Audience, Fact};
use serde_json::Value;

use crate::wire_examples::events;

/// Its kind is its tag, its job the one that is written in it, its owner is that job's, and its
/// sentence has no gap.
#[track_caller]
pub(crate) fn agrees_with_its_text(event: &Event) {
    let written = serde_json::to_value(event).unwrap();
    assert_eq!(written["type"], event.kind());
    let job = written.get("job").or_else(|| written.get("task")?.get("job"));
    assert_eq!(job.and_then(Value::as_u64), event.job().map(|job| job.0), "{written}");
    if let Audience::Owner(job) = event.audience() {
        assert_eq!(event.job(), Some(job), "{written}");
    }
    if let Some((first, count)) = event.accepted() {
        assert_eq!(event.job(), Some(first), "{written}");
        assert!(count > 0, "{written}");
    }
    let sentence = event.sentence(|fact| match fact {
        Fact::Word(word) => word.replace(['{', '}'], ""),
        fact => format!("<{fact:?}>").replace(['{', '}'], ""),
    });
    assert!(!sentence.is_empty() && !sentence.contains(['{', '}']), "{sentence}");
}

#[test]
fn every_event_agrees_with_its_text() {
    events().iter().for_each(agrees_with_its_text);
}

#[test]
fn every_event_says_who_may_see_it_and_whether_it_concerns_all() {
    let line = |event: &Event| {
        let accepted = event
            .accepted()
            .map_or(String::new(), |(job, count)| format!(", accepts {count} from {job}"));
        let all = if event.changes_cluster() { ", changes the cluster" } else { "" };
        format!("{}: {:?}{all}{accepted}", event.kind(), event.audience())
    };
    let lines: Vec<String> = events().iter().map(line).collect();
    insta::assert_snapshot!("audiences", lines.join("\n"));
}

#[test]
fn of_what_changed_everybody_hears_but_of_accounts_and_limits() {
    let concerns_all = |what: &str| {
        let what = era_core::units::Name::new(what).unwrap();
        Event::Changed { what, name: None }.changes_cluster()
    };
    assert!(["queue", "policy", "market", "pool", "domain"].into_iter().all(concerns_all));
    assert!(!["user", "group", "quota"].into_iter().any(concerns_all));
}
