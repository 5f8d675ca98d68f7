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
    let called = called.expect("a call").calls.remove(0);
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
    assert_eq!(following_error(of_kind("made-up")), BadFollowing::Nested("made-up".into()));
    for kind in ["chord", "chain"] {
        let empty = following_error(of_kind(kind));
        assert!(matches!(empty, BadFollowing::Malformed(_)), "{empty}");
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

/// A canvas of this kind.
fn canvas(kind: &str, kwargs: Value, options: Value) -> Value {
    json!({"task": format!("celery.{kind}"), "args": [], "kwargs": kwargs, "options": options,
        "subtask_type": kind, "immutable": false})
}

fn task(id: &str) -> Value {
    signature(id, Some(id), false)
}

fn chain(tasks: Value) -> Value {
    canvas("chain", json!({"tasks": tasks}), json!({}))
}

fn chord(group: &str, header: Value, body: Value) -> Value {
    let header = canvas("group", json!({"tasks": header}), json!({"task_id": group}));
    let id = body["options"]["task_id"].clone();
    canvas("chord", json!({"kwargs": {}, "header": header, "body": body}), json!({"task_id": id}))
}

fn after(embed: Value) -> Sequel {
    let sequel = following(embed).expect("read").after(&headers(), &good(json!(1)), Time(0));
    sequel.expect("calls")
}

fn ids(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(Call::id).collect()
}

#[test]
fn a_chord_that_follows_is_its_header_with_the_body_and_what_is_behind_it() {
    let inner = chord("inner", json!([task("x"), task("y")]), task("z"));
    let header = json!([task("b"), chain(json!([task("c"), task("d")])), inner]);
    let sequel = after(json!({"chain": [task("f"), chord("gid", header, task("e"))]}));
    assert_eq!(ids(&sequel.calls), ["b", "c", "x", "y"]);
    assert_eq!(sequel.sizes, [("gid".to_owned(), 3), ("inner".to_owned(), 2)]);
    let mut body = task("e");
    body["options"]["chain"] = json!([task("f")]);
    let [b, c, x, _] = &sequel.calls[..] else { panic!("{sequel:?}") };
    let place = |call: &Call| {
        let headers = &call.message.headers;
        (headers.group.clone().unwrap_or_default(), headers.group_index.unwrap_or(-1))
    };
    assert_eq!((place(b), &b.message.embed.chord), (("gid".into(), 0), &Some(body.clone())));
    assert_eq!(b.message.args, [json!(1), json!(7)]);
    // The last of a chain returns, and of a chord its body.
    assert_eq!((place(c).1, &c.message.embed.chord), (-1, &None));
    let last = &c.message.embed.chain.as_ref().expect("a chain")[0]["options"];
    assert_eq!((&last["group_id"], &last["group_index"]), (&json!("gid"), &json!(1)));
    assert_eq!(last["chord"], body);
    let inner = &x.message.embed.chord.as_ref().expect("a body")["options"];
    assert_eq!((&inner["group_id"], &inner["group_index"]), (&json!("gid"), &json!(2)));
    assert_eq!(inner["chord"], body);
}

#[test]
fn a_chain_that_follows_begins_with_its_first_and_a_group_in_it_is_a_chord() {
    let group = canvas("group", json!({"tasks": [task("b"), task("c")]}), json!({"task_id": "g"}));
    let steps = json!([task("a"), chain(json!([group, task("d"), task("e")]))]);
    let sequel = after(json!({"callbacks": [chain(steps)]}));
    assert_eq!(ids(&sequel.calls), ["a"]);
    let [last, next] = &sequel.calls[0].message.embed.chain.clone().expect("a chain")[..] else {
        panic!("{sequel:?}")
    };
    assert_eq!((last, next), (&task("e"), &chord("g", json!([task("b"), task("c")]), task("d"))));
    let sequel = after(json!({"chain": [canvas("group", json!({"tasks": [
        chain(json!([task("p"), task("q")])), task("r")]}), json!({"task_id": "h"}))]}));
    assert_eq!(ids(&sequel.calls), ["p", "r"]);
    let q = &sequel.calls[0].message.embed.chain.as_ref().expect("a chain")[0];
    assert_eq!(q["options"]["group_id"], "h");
}

#[test]
fn a_body_may_be_a_canvas_and_fails_with_all_that_it_is_made_of() {
    for (body, begins, fails) in [
        (chain(json!([task("a"), task("b")])), vec!["a"], vec!["a", "b", "b"]),
        (
            canvas("group", json!({"tasks": [task("a"), task("b")]}), json!({})),
            vec!["a", "b"],
            vec!["a", "b", "b"],
        ),
        (chord("g", json!([task("x"), task("y")]), task("b")), vec!["x", "y"], vec!["b", "b"]),
    ] {
        let sequel = after(json!({"chord": body}));
        let part = &sequel.parts[0];
        let done = part.complete(&headers(), vec![json!(1)], Time(0)).expect("calls");
        assert_eq!(ids(&done.calls), begins);
        assert_eq!(done.calls[0].message.args[0], json!([1]));
        let broken = part.break_off(&headers(), "why", Time(0)).expect("calls");
        let failed: Vec<_> = broken.failed.iter().map(|meta| meta.task_id.as_str()).collect();
        assert_eq!(failed, fails);
    }
    // A body that is itself a part tells its own chord.
    let mut body = task("b");
    body["options"]["chord"] = task("outer");
    body["options"]["group_id"] = "o".into();
    let sequel = after(json!({"chord": body}));
    let broken = sequel.parts[0].break_off(&headers(), "why", Time(0)).expect("calls");
    let parts: Vec<_> = broken.parts.iter().map(|p| (p.task.as_str(), p.group.as_str())).collect();
    assert_eq!(parts, [("b", "o")]);
}

#[test]
fn canvases_that_grow_or_are_none_are_refused() {
    let many = |count: usize| Value::from(vec![task("x"); count]);
    let group = canvas("group", json!({"tasks": many(2)}), json!({}));
    let mut groups = vec![task("a")];
    groups.extend(vec![group.clone(); 20]);
    let nested = following_error(json!({"callbacks": [chain(groups.into())]}));
    assert!(matches!(nested, BadFollowing::Nested(_)), "{nested}");
    let deep = chord("g", json!([chain(json!([task("a"), group]))]), task("b"));
    let nested = following_error(json!({"chain": [deep]}));
    assert!(matches!(nested, BadFollowing::Nested(_)), "{nested}");
    let all = following_error(json!({"chain": [chord("g", many(TASKS_MAX + 1), task("b"))]}));
    assert_eq!(all, BadFollowing::Many);
    let mut heavy = task("b");
    heavy["args"] = json!(["x".repeat(1 << 20)]);
    let heavy = following_error(json!({"chain": [chord("g", many(100), heavy)]}));
    assert_eq!(heavy, BadFollowing::Heavy);
    for odd in [json!(7), json!("x"), json!([]), json!({}), json!({"task": "x", "options": 3})] {
        for canvas in [
            chord("g", json!([task("a")]), odd.clone()),
            chord("g", json!([odd]), task("b")),
            chain(json!([odd])),
            chain(odd.clone()),
            canvas("group", json!({"tasks": [odd]}), json!({})),
            canvas("chord", odd.clone(), odd.clone()),
            canvas("chord", json!({"header": odd, "body": task("b")}), json!({"link": odd})),
        ] {
            // Whatever comes of it: nobody panics, and nothing of it is half done.
            let _ = following(json!({"chain": [canvas], "chord": canvas}));
        }
    }
}
