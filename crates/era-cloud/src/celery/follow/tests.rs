//! What follows a task, by values.

use super::*;
use serde_json::json;

fn headers() -> Headers {
    let mut headers = TaskMessage::new(EXEC, "me", vec![], Map::new()).headers;
    headers.root_id = Some("root".into());
    headers
}

fn following(embed: Value) -> Result<Following, BadFollowing> {
    let mut of = headers();
    of.group = Some("g".into());
    of.group_index = Some(1);
    Following::read(&of, &serde_json::from_value(embed).expect("an embed"))
}

fn good(result: Value) -> Meta {
    Meta::success("me", result, Time(0))
}

fn bad() -> Meta {
    Meta::failure("me", ("builtins", "OSError"), "no disk", Time(0))
}

/// As Celery 5.7 writes it.
fn signature(task: &str, id: Option<&str>, immutable: bool) -> Value {
    let mut options = json!({"queue": "q", "reply_to": "somebody"});
    if let Some(id) = id {
        options["task_id"] = id.into();
    }
    json!({"task": task, "args": [7], "kwargs": {"k": 1}, "options": options,
        "subtask_type": null, "immutable": immutable})
}

#[test]
fn a_result_goes_before_the_arguments_of_what_follows_unless_that_is_immutable() {
    let embed = json!({
        "callbacks": [signature("seen", None, false)],
        "chain": [signature("last", Some("3"), false), signature("next", Some("2"), true)],
    });
    let sequel = following(embed).expect("read");
    let sequel = sequel.after(&headers(), &good(json!({"code": 0})), Time(0)).expect("calls");
    let [seen, next] = &sequel.calls[..] else { panic!("{sequel:?}") };
    assert_eq!((seen.id(), seen.queue.as_str()), ("me-0", "q"));
    assert_eq!(seen.message.args, [json!({"code": 0}), json!(7)]);
    assert_eq!(next.message.args, [json!(7)]);
    assert_eq!(next.message.kwargs["k"], 1);
    assert_eq!(next.message.headers.parent_id.as_deref(), Some("me"));
    assert_eq!(next.message.headers.root_id.as_deref(), Some("root"));
    assert_eq!(next.message.embed.chain, Some(vec![signature("last", Some("3"), false)]));
    assert_eq!(sequel.failed, []);
}

#[test]
fn a_failure_is_that_of_all_that_was_chained_and_calls_errbacks_with_its_id() {
    let mut part = signature("last", Some("3"), false);
    part["options"]["chord"] = signature("body", Some("b"), false);
    part["options"]["group_id"] = "inner".into();
    let embed = json!({
        "callbacks": [signature("seen", None, false)],
        "errbacks": [signature("told", Some("e"), false)],
        "chain": [part, signature("next", Some("2"), true)],
    });
    let sequel = following(embed).expect("read").after(&headers(), &bad(), Time(0));
    let sequel = sequel.expect("calls");
    assert_eq!(sequel.calls.iter().map(Call::id).collect::<Vec<_>>(), ["e"]);
    assert_eq!(sequel.calls[0].message.args[0], "me");
    let ids: Vec<&str> = sequel.failed.iter().map(|meta| meta.task_id.as_str()).collect();
    assert_eq!(ids, ["3", "2"]);
    assert!(sequel.failed.iter().all(|meta| meta.exception() == bad().exception()));
    let parts: Vec<_> = sequel.parts.iter().map(|p| (p.task.as_str(), p.group.as_str())).collect();
    assert_eq!(parts, [("3", "inner")]);
}

#[test]
fn a_part_of_a_chord_returns_however_it_ends_and_its_body_gets_all_results() {
    let mut body = signature("body", Some("b"), false);
    body["options"]["link_error"] = json!([signature("told", Some("e"), false)]);
    let following = following(json!({"chord": body})).expect("read");
    let revoked = Meta::revoked("me", "revoked", Time(0));
    for end in [good(json!(1)), bad(), revoked] {
        let sequel = following.after(&headers(), &end, Time(0)).expect("calls");
        assert!(matches!(&sequel.parts[..], [part] if part.group == "g"), "{end:?}");
    }
    let sequel = following.after(&headers(), &good(json!(1)), Time(0)).expect("calls");
    let called = sequel.parts[0].complete(&headers(), vec![json!(1), json!(2)], Time(0));
    let called = called.expect("a call");
    assert_eq!((called.id(), &called.message.args[0]), ("b", &json!([1, 2])));
    let broken = sequel.parts[0].break_off(&headers(), "why", Time(0)).expect("calls");
    assert_eq!(broken.failed[0].exception(), ("ChordError".into(), "why".into()));
    assert_eq!((broken.failed[0].task_id.as_str(), broken.calls[0].id()), ("b", "e"));
    assert_eq!(broken.calls[0].message.args[0], "b");
}

#[test]
fn a_group_that_follows_is_all_of_its_tasks() {
    let group = json!({"task": "celery.group", "args": [], "options": {"task_id": "gid"},
        "kwargs": {"tasks": [signature("a", Some("1"), false), signature("b", Some("2"), true)]},
        "subtask_type": "group", "immutable": false});
    let embed = json!({"chain": [group.clone()]});
    let sequel = following(embed).expect("read").after(&headers(), &good(json!(1)), Time(0));
    let calls = sequel.expect("calls").calls;
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            (call.id(), call.message.headers.group.as_deref(), call.message.headers.group_index)
        })
        .collect();
    assert_eq!(told, [("1", Some("gid"), Some(0)), ("2", Some("gid"), Some(1))]);
    let behind = json!({"chain": [signature("c", None, false), group]});
    assert_eq!(following_error(behind), BadFollowing::BehindGroup);
}

fn following_error(embed: Value) -> BadFollowing {
    following(embed).expect_err("refused")
}

#[test]
fn what_cannot_be_sent_is_refused_before_anything_is_run() {
    let of_kind = |kind: &str| {
        let mut one = signature("x", None, false);
        one["subtask_type"] = kind.into();
        json!({"callbacks": [one]})
    };
    for kind in ["chord", "chain", "made-up"] {
        assert_eq!(following_error(of_kind(kind)), BadFollowing::Nested(kind.into()));
    }
    let with = |name: &str, value: Value| {
        let mut one = signature("x", None, false);
        one["options"][name] = value;
        json!({"errbacks": [one]})
    };
    assert!(matches!(following_error(with("exchange", json!("e"))), BadFollowing::Exchange(_)));
    let pickled = following_error(with("serializer", json!("pickle")));
    assert_eq!(pickled, BadFollowing::Serializer("pickle".into()));
    let late = following_error(with("eta", json!("tomorrow")));
    assert!(matches!(late, BadFollowing::Message(BadMessage::Instant { .. })));
    for odd in [json!(7), json!({"args": []}), json!({"task": "x", "options": 3})] {
        assert!(matches!(following_error(json!({"chain": [odd]})), BadFollowing::Malformed(_)));
    }
    assert_eq!(following(json!({})).map(|f| f.is_empty()), Ok(true));
}

#[test]
fn a_task_that_names_no_queue_goes_to_where_its_workers_listen() {
    let queue_of = |task: &str| {
        let embed = json!({"callbacks": [{"task": task}]});
        let sequel = following(embed).expect("read").after(&headers(), &good(json!(1)), Time(0));
        sequel.expect("calls").calls[0].queue.clone()
    };
    assert_eq!(queue_of(EXEC), queue::COMPUTE);
    assert_eq!(queue_of("tasks.add"), "celery");
}
