//! Accounts beside the first: where there may be any, and what those who lead a group may do.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc::channel;

use era_api::Credits;
use serde_json::{Value, json};

use crate::harness::{Platform, WAIT_MAX};

#[test]
fn without_root_a_second_account_needs_a_word_that_names_the_risk() {
    let Some(mut platform) = Platform::start_without_root(&[]) else { return };
    let new = json!({"name": "ada", "password": "correct horse battery"});
    let (status, refused) = platform.send("POST", "/users", &new);
    assert_eq!((status, &refused["code"]), (403, &json!("shared_user")), "{refused}");
    // Whoever started it uses it as before.
    let job = platform.submit(&json!({
        "work": {"command": ["true"]},
        "ask": {"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 60},
    }));
    assert_eq!(platform.ended(job)["state"], "succeeded");
    assert!(platform.stop());
    platform.restart_with(&["--insecure-shared-user"]);
    let (status, made) = platform.send("POST", "/users", &new);
    assert_eq!(status, 201, "{made}");
    assert!(platform.stop());
    let (code, said) = platform.fails_to_start_with(&[]);
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("--insecure-shared-user"), "{said}");
}

#[test]
fn whoever_has_no_credits_is_told_at_once_and_goes_on_once_there_are_some() {
    let platform = Platform::start_with(&["--insecure-shared-user"]);
    let ada = json!({ "name": "ada", "password": "correct horse battery" });
    assert_eq!(platform.send("POST", "/users", &ada).0, 201);
    let login = json!({ "user": "ada", "password": "correct horse battery" });
    let (_, logged) = platform.send("POST", "/sessions", &login);
    let token = logged["token"].as_str().unwrap();
    let run = ["-c", "100m", "-m", "32Mi", "-t", "20m", "--no-code", "--", "echo", "it ran"];
    let era = || {
        let mut command = platform.era();
        command.env("ERA_TOKEN", token).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let told = |text: &str| {
        text.contains("the wallet holds 0.00 credits")
            && text.contains("an administrator can grant")
    };
    let submitted = era().arg("submit").args(run).output().unwrap();
    let text = String::from_utf8(submitted.stdout).unwrap();
    assert!(text.starts_with("job ") && told(&text), "{text}");

    let mut running = era().arg("run").args(run).spawn().unwrap();
    let (sender, lines) = channel();
    let errors = BufReader::new(running.stderr.take().unwrap());
    std::thread::spawn(move || {
        errors.lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
    });
    while !told(&lines.recv_timeout(WAIT_MAX).expect("it says what is missing")) {}
    let (status, wallet) = platform.send("POST", "/users/ada/grants", &json!({ "amount": "100" }));
    assert_eq!(status, 201, "{wallet}");
    let mut printed = String::new();
    running.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!((running.wait().unwrap().code(), printed.as_str()), (Some(0), "it ran\n"));
    let again = era().arg("submit").args(run).output().unwrap();
    let text = String::from_utf8(again.stdout).unwrap();
    assert!(text.ends_with("starts now\n"), "{text}");
}

/// Of an array some may run while others wait for credits: that is said too, and to whoever
/// follows the log of one that waits.
#[test]
fn whoever_waits_for_an_array_hears_of_those_that_nobody_can_pay() {
    let platform = Platform::start_with(&["--insecure-shared-user"]);
    let ada = json!({ "name": "ada", "password": "correct horse battery" });
    assert_eq!(platform.send("POST", "/users", &ada).0, 201);
    let login = json!({ "user": "ada", "password": "correct horse battery" });
    let (_, logged) = platform.send("POST", "/sessions", &login);
    let token = logged["token"].as_str().unwrap();
    let era = |args: &[&str]| {
        let mut command = platform.era();
        command.env("ERA_TOKEN", token).stdout(Stdio::null()).stderr(Stdio::piped());
        command.args(args).spawn().unwrap()
    };
    let hears = |child: &mut std::process::Child| {
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        let granting = |line: &String| line.contains("an administrator can grant");
        while !granting(&lines.recv_timeout(WAIT_MAX).expect("it says what is missing")) {}
    };
    let asked = ["-c", "100m", "-m", "32Mi", "-t", "1h", "--no-code"];
    // What one of them may cost, and no more.
    let ask = json!({"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 3600});
    let (status, made) = platform.send_as(
        token,
        "POST",
        "/jobs",
        &json!({"work": {"command": ["true"]}, "ask": ask}),
    );
    assert_eq!(status, 201, "{made}");
    let alone = made["job"].as_u64().unwrap();
    let needed = platform.wait_for("what is missing", &format!("/jobs/{alone}"), |job| {
        job["explanation"]["parameters"]["needed"].as_i64().map(Credits)
    });
    let (status, gone) =
        platform.send_as(token, "POST", &format!("/jobs/{alone}/cancel"), &json!({}));
    assert_eq!(status, 204, "{gone}");
    let grant = json!({ "amount": needed.to_string() });
    let (status, wallet) = platform.send("POST", "/users/ada/grants", &grant);
    assert_eq!(status, 201, "{wallet}");
    let script = "until [ -e $ERA_OUTPUTS/go ]; do sleep 0.05; done";
    let run = [&["run", "--array", "0-1", "--no-outputs"], &asked[..], &["--", "sh", "-c", script]];
    let mut running = era(&run.concat());
    hears(&mut running);
    let waiting = platform.wait_for("one that waits", "/jobs?user=ada&state=waiting", |jobs| {
        jobs["items"][0]["id"].as_u64()
    });
    let mut following = era(&["logs", "-f", &waiting.to_string()]);
    hears(&mut following);
    let (status, _) = platform.send("POST", "/users/ada/grants", &json!({ "amount": "10" }));
    assert_eq!(status, 201);
    for job in [alone + 1, alone + 2] {
        let outputs = platform.outputs(job);
        platform.wait_for("its start", &format!("/jobs/{job}"), |job| {
            (job["state"] == "running").then_some(())
        });
        std::fs::write(outputs.join("go"), "").unwrap();
    }
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert_eq!(following.wait().unwrap().code(), Some(0));
}

#[test]
fn a_new_password_leaves_commands_of_the_servers_own_machine_alone() {
    let platform = Platform::start();
    let me: Value = serde_json::from_str(&platform.ok(&["whoami", "-o", "json"])).unwrap();
    let reset = json!({ "reset_password": true });
    let (status, made) =
        platform.send("PATCH", &format!("/users/{}", me["name"].as_str().unwrap()), &reset);
    assert_eq!(status, 200, "{made}");
    let one_time = made["password"].as_str().unwrap();
    let login = json!({ "user": me["name"], "password": one_time });
    let (_, logged) = platform.send("POST", "/sessions", &login);
    let change = json!({ "old": one_time, "new": "correct horse battery" });
    let (status, refused) =
        platform.send_as(logged["token"].as_str().unwrap(), "PUT", "/password", &change);
    assert_eq!(status, 204, "{refused}");
    assert_eq!(
        platform.ok(&["whoami", "-o", "json"]),
        serde_json::to_string_pretty(&me).unwrap() + "\n"
    );
}
