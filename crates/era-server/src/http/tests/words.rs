//! What is wrong is said in plain words, whatever is sent and to whichever door: no type of the
//! language that it is read into, and no number of the core.

use era_spec::plain::names_a_type;

use super::*;

/// Values of every kind, for a place where most of them are wrong.
fn wrong_values() -> Vec<Value> {
    let values = r#"[null, true, -1, 1.5, 1e300, 18446744073709551616, "", "x", "-1", [], {}, ["x"], [{}],
        {"x": 1}, [1, 2, 3]]"#;
    serde_json::from_str(values).unwrap()
}

/// A schema, followed to where it is written.
fn followed<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(path) => document.pointer(path.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// A value as a schema describes it, to be spoilt in one place.
fn example(document: &Value, schema: &Value, depth: u32) -> Value {
    let schema = followed(document, schema);
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(all) = schema[several].as_array() {
            let first = all.iter().find(|one| one["type"] != "null").unwrap_or(&all[0]);
            return example(document, first, depth);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match kind {
        Some("object") if depth > 0 => {
            let empty = serde_json::Map::new();
            let fields = schema["properties"].as_object().unwrap_or(&empty).iter();
            fields.map(|(name, of)| (name.clone(), example(document, of, depth - 1))).collect()
        }
        Some("object") => json!({}),
        Some("array") => json!([]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        _ if schema["format"] == "date-time" => json!("2030-01-01T00:00:00Z"),
        _ if schema["example"].is_string() => schema["example"].clone(),
        _ => json!("x"),
    }
}

/// A value with each of its fields, at whatever depth, spoilt in every way, left out or misnamed.
fn spoilt(value: &Value) -> Vec<Value> {
    let mut all = wrong_values();
    let Some(fields) = value.as_object() else { return all };
    for (name, inner) in fields {
        for wrong in spoilt(inner) {
            let mut whole = fields.clone();
            whole.insert(name.clone(), wrong);
            all.push(whole.into());
        }
        let mut less = fields.clone();
        less.remove(name);
        all.push(less.clone().into());
        less.insert(format!("{name}x"), inner.clone());
        all.push(less.into());
    }
    all
}

/// What an answer says is plain, and not the server's fault.
#[track_caller]
fn assert_plain(what: &str, answer: &Answer) {
    let detail = answer.body["detail"].as_str().unwrap_or_default();
    assert!(!names_a_type(detail), "{what}: {}", answer.body);
    assert!(answer.status.as_u16() != 500, "{what}: {}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_body_is_refused_in_the_words_of_types() {
    let (server, admin) = with_a_node().await;
    let document = serde_json::to_value(crate::http::openapi::document()).unwrap();
    let mut refused = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix(era_api::PREFIX) else { continue };
        // Whoever may not go on asks no more.
        if path == "/sessions" || path == "/password" {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() {
                continue;
            }
            let steps = path.split('/').map(|step| if step.starts_with('{') { "7" } else { step });
            let path = steps.collect::<Vec<_>>().join("/");
            for body in spoilt(&example(&document, schema, 4)) {
                let what = format!("{method} {path} {body}");
                let answer = server.ask(&admin, &method.to_uppercase(), &path, Some(body)).await;
                assert_plain(&what, &answer);
                refused += u32::from(answer.status.is_client_error());
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// The document does not say which settings there are, so they are asked for.
#[tokio::test]
async fn no_setting_is_refused_in_the_words_of_types() {
    let server = server().await;
    let admin = server.administrator().await;
    let settings = server.ask(&admin, "GET", "/settings", None).await.body;
    let mut refused = 0;
    for body in spoilt(&settings) {
        let answer = server.ask(&admin, "PATCH", "/settings", Some(body.clone())).await;
        assert_plain(&body.to_string(), &answer);
        refused += u32::from(answer.status.is_client_error());
    }
    assert!(refused > 300, "{refused}");
    for (body, told) in [
        (json!({"holds_max": -1}), "-1 must not be negative"),
        (json!({"backfill": "hard"}), "unknown value `hard`"),
    ] {
        let answer = server.ask(&admin, "PATCH", "/settings", Some(body)).await;
        let detail = answer.body["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(told), "{detail}");
    }
}

#[tokio::test]
async fn no_parameter_is_refused_in_the_words_of_types() {
    let server = server().await;
    let admin = server.administrator().await;
    let document = serde_json::to_value(crate::http::openapi::document()).unwrap();
    let mut refused = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix(era_api::PREFIX) else { continue };
        let steps = |with: &str| {
            let step =
                |step: &str| if step.starts_with('{') { with.into() } else { step.to_owned() };
            path.split('/').map(step).collect::<Vec<_>>().join("/")
        };
        // Streams go on.
        let operation = &item["get"];
        if operation.is_null() || path.contains("follow") || path.contains("events/") {
            continue;
        }
        let mut asked: Vec<String> = ["x", "-1", "18446744073709551616"].map(steps).into();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "query" {
                let name = parameter["name"].as_str().unwrap();
                let ask = |value: &str| format!("{}?{name}={value}", steps("7"));
                asked.extend(["x", "-1", "1.5", "", "18446744073709551616"].map(ask));
            }
        }
        for path in asked {
            let one = tokio::time::timeout(
                Duration::from_secs(20),
                server.ask(&admin, "GET", &path, None),
            );
            let answer = one.await.unwrap_or_else(|_| panic!("GET {path} does not end"));
            assert_plain(&path, &answer);
            refused += u32::from(answer.status.is_client_error());
        }
    }
    assert!(refused > 100, "{refused}");
    for (path, told) in [
        (
            "/jobs?limit=-1",
            "in the query: -1 must not be negative: give a whole number of 0 or more",
        ),
        ("/jobs/-7", "in the path: -7 must not be negative: give a whole number of 0 or more"),
    ] {
        let answer = server.ask(&admin, "GET", path, None).await;
        assert_eq!(answer.body["detail"], told);
    }
}

#[tokio::test]
async fn a_resource_is_meant_by_its_beginning_and_a_negative_amount_is_named() {
    let (server, admin) = with_a_node().await;
    let job = |name: &str, amount: Value| {
        json!({ "work": { "command": ["true"] }, "value": "5",
            "ask": { "resources": { name: amount }, "duration_s": 60 } })
    };
    for (name, amount, told) in [
        ("mem", json!("1Gi"), "unknown field `mem`: did you mean `memory`?"),
        ("cpu", json!(-1), "cpu: `-1` must not be negative"),
        ("memory", json!("-4Gi"), "memory: `-4Gi` must not be negative"),
        ("fpga", json!("-2"), "fpga: `-2` must not be negative"),
    ] {
        let refused = server.ask(&admin, "POST", "/jobs", Some(job(name, amount))).await;
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(refused.status == 422 && detail.starts_with(told), "{detail}");
    }
    let mut below = job("cpu", json!(1));
    below["value"] = json!("-5");
    let refused = server.ask(&admin, "POST", "/jobs", Some(below)).await;
    assert_eq!(
        refused.body["detail"],
        "a value of -5.00 must not be negative: give 0 to 1000000000.00"
    );
}

#[tokio::test]
async fn what_a_wallet_cannot_pay_is_told_with_both_amounts() {
    let (server, admin) = with_a_node().await;
    let ada = server.user(&admin, "ada", "user").await;
    let ask = |cpu: &str, value: Value| json!({ "value": value, "ask": { "resources": { "cpu": cpu }, "duration_s": 7200 } });
    // Four cores for two hours at half a credit each: four, of ten.
    let quoted = server.ask(&ada, "POST", "/quotes", Some(ask("4", json!("9")))).await;
    assert_eq!(
        (quoted.status.as_u16(), &quoted.body["wallet"]),
        (200, &Value::Null),
        "{}",
        quoted.body
    );
    let beyond = server.ask(&ada, "POST", "/quotes", Some(ask("4", json!("11")))).await;
    assert_eq!(beyond.body["wallet"], "10.00", "{}", beyond.body);
    let take = json!({ "amount": "-9" });
    assert_eq!(server.ask(&admin, "POST", "/users/ada/grants", Some(take)).await.status, 201);
    let dear = server.ask(&ada, "POST", "/quotes", Some(ask("4", Value::Null))).await;
    assert_eq!(dear.body["wallet"], "1.00", "{}", dear.body);
    let refused = server.ask(&ada, "POST", "/quotes", Some(ask("4", json!("0.5")))).await;
    assert_eq!(refused.body["counter_offers"]["wallet"], "1.00", "{}", refused.body);
    let mut job = ask("4", json!("20"));
    job["work"] = json!({ "command": ["true"] });
    let refused = server.ask(&ada, "POST", "/jobs", Some(job.clone())).await;
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.starts_with("the wallet holds 1.00 credits and this needs 4.00"), "{detail}");
    // In a queue it waits, and says for what.
    job.as_object_mut().unwrap().remove("value");
    let made = server.ask(&ada, "POST", "/jobs", Some(job)).await;
    let told = server.ask(&ada, "GET", &format!("/jobs/{}/explain", made.body["job"]), None).await;
    let sentence = told.body["sentence"].as_str().unwrap();
    assert!(sentence.contains("the wallet holds 1.00 credits and"), "{}", told.body);
    assert!(sentence.contains("an administrator can grant credits"), "{}", told.body);
}

#[tokio::test]
async fn a_job_is_called_in_any_script_and_by_nothing_that_disturbs_a_line() {
    let (server, admin) = with_a_node().await;
    let named = |name: &str, project: &str| {
        json!({ "name": name, "project": project, "work": { "command": ["true"] },
            "ask": { "resources": { "cpu": "1" }, "duration_s": 60 } })
    };
    for name in ["ResNet 实验 3", "تجربة", "👩🏽‍🔬"] {
        let made = server.ask(&admin, "POST", "/jobs", Some(named(name, "语言"))).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let job = server
            .app
            .driver
            .snapshot()
            .job(era_core::units::JobId(made.body["job"].as_u64().unwrap()))
            .unwrap()
            .clone();
        assert_eq!(job.name.as_ref().unwrap().as_str(), name);
    }
    for (name, project, field) in [
        ("a\nb", "p", "name"),
        ("a\u{1b}[31m", "p", "name"),
        ("a\u{202e}b", "p", "name"),
        ("", "p", "name"),
        ("a", "\u{2066}p", "project"),
    ] {
        let refused = server.ask(&admin, "POST", "/jobs", Some(named(name, project))).await;
        assert_eq!((refused.status.as_u16(), &refused.body["field"]), (422, &json!(field)));
        assert_eq!(refused.body["parameters"]["problem"], "title", "{}", refused.body);
    }
}

#[tokio::test]
async fn a_new_password_ends_all_logins_and_no_token_of_the_servers_own_machine() {
    use era_app::auth::{NewSession, OWN_MACHINE, scopes_of};
    let server = server().await;
    let admin = server.administrator().await;
    let account = server.app.auth.directory().user_named("admin").unwrap().clone();
    let own = NewSession {
        label: OWN_MACHINE.to_owned(),
        scopes: scopes_of(account.role),
        valid_ms: 3_600_000,
        cookie: false,
        limited: false,
    };
    let own = server.app.auth.issue(&account, own).await.unwrap().secret;
    let login = json!({ "user": "admin", "password": "a better password" });
    let other = server.ask("", "POST", "/sessions", Some(login.clone())).await;
    let other = other.body["token"].as_str().unwrap().to_owned();
    let change = json!({ "old": "a better password", "new": "the best password" });
    assert_eq!(server.ask(&admin, "PUT", "/password", Some(change)).await.status, 204);
    for (token, status) in [(&admin, 200), (&own, 200), (&other, 401)] {
        assert_eq!(server.ask(token, "GET", "/sessions", None).await.status, status);
    }
    // Nobody who knew the old password has left one behind that looks like it.
    for (path, body) in [
        ("/tokens", json!({ "label": OWN_MACHINE, "scopes": ["read"], "valid_s": 60 })),
        (
            "/sessions",
            json!({ "user": "admin", "password": "the best password", "label": OWN_MACHINE }),
        ),
    ] {
        let refused = server.ask(&admin, "POST", path, Some(body)).await;
        assert_eq!((refused.status.as_u16(), &refused.body["field"]), (422, &json!("label")));
    }
    // Another administrator's new password for the account leaves it, too; a lesser role does not.
    server.user(&admin, "ada", "administrator").await;
    let reset = json!({ "reset_password": true });
    assert_eq!(server.ask(&own, "PATCH", "/users/admin", Some(reset)).await.status, 200);
    assert_eq!(server.ask(&admin, "GET", "/sessions", None).await.status, 401);
    let lesser = json!({ "role": "user" });
    assert_eq!(server.ask(&own, "PATCH", "/users/admin", Some(lesser)).await.status, 200);
    assert_eq!(server.ask(&own, "GET", "/sessions", None).await.status, 401);
}
