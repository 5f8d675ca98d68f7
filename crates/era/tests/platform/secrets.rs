//! Secrets as users have them: set once, found by the jobs that name them, and by nobody else.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::Platform;

/// Prints the hash of a variable, which says that it is there and not what it is.
const TOLD: &str = "printf %s \"$PROBE\" | sha256sum";

fn hash(value: &str) -> String {
    Sha256::digest(value.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a command with this on standard input; what it printed, if it went well.
fn typed(platform: &Platform, arguments: &[&str], text: &str) -> String {
    let mut command = platform.era();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "era {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files below a folder that have this in them.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            // Files of a database that is at work come and go.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

const SMALL: [&str; 8] = ["-c", "100m", "-m", "32Mi", "-t", "5m", "--secret", "PROBE"];

/// What `era run` printed of a job that prints the hash of its secret.
fn run(platform: &Platform) -> String {
    let arguments = [&["run", "--no-code"], &SMALL[..], &["--", "sh", "-c", TOLD]].concat();
    platform.ok(&arguments)
}

#[test]
fn a_secret_reaches_the_jobs_that_name_it_and_stands_nowhere_else() {
    let mut platform = Platform::start_with_env(&[("ERA_LOG", "debug")]);
    let (value, next) = ("first-of-the-values-2718281828", "next-of-the-values-3141592653");
    let said = typed(&platform, &["secret", "set", "PROBE"], &format!("{value}\n"));
    assert!(said.contains("PROBE is set"), "{said}");
    assert!(run(&platform).contains(&hash(value)));

    // A file of a job says it as well; what was set meanwhile counts.
    let file = platform.home().join("job.yaml");
    let text = format!("command: {}\ncode: none\ntime: 5m\n", json!(["sh", "-c", TOLD]))
        + "resources: {cpu: 100m, memory: 32Mi}\nsecrets: [PROBE]\n";
    std::fs::write(&file, text).unwrap();
    let mut set = platform.era();
    set.args(["secret", "set", "PROBE", "--from-env"]).env("PROBE", next);
    assert!(set.status().unwrap().success());
    assert!(platform.ok(&["run", "job.yaml"]).contains(&hash(next)));
    let retried = platform.ok(&["retry", "1"]);
    let again = platform.get("/jobs")["items"][0]["id"].as_u64().unwrap();
    assert_eq!(platform.ended(again)["state"], "succeeded", "{retried}");
    let log = platform.ok(&["logs", &again.to_string()]);
    assert!(log.contains(&hash(next)), "a job that is handed in again has what is set now: {log}");

    let listed = platform.get("/secrets");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(keys(&listed["items"][0]), ["name", "set"], "{listed}");
    assert_eq!(platform.get("/jobs/1")["spec"]["work"]["secrets"], json!(["PROBE"]));
    platform.ok(&["admin", "journal", "journal.jsonl"]);
    assert!(platform.stop());
    let kept = platform.home().join("kept");
    let data = platform.data();
    let (data, to) = (data.to_str().unwrap(), kept.to_str().unwrap());
    platform.ok(&["admin", "backup", "--data", data, to]);
    let everywhere = platform.home();
    let everywhere = everywhere.parent().unwrap();
    for value in [value, next] {
        assert_eq!(files_with(everywhere, value), [""; 0]);
    }
    let noted = files_with(everywhere, "\"secrets\":[\"PROBE\"]");
    assert!(noted.iter().any(|file| file.ends_with("kept/data/era.db")), "{noted:?}");
    assert!(files_with(everywhere, "secret.set").len() > 1, "the audit trail has it");

    // A backup has what is needed to go on with them.
    let folder = tempfile::tempdir().unwrap();
    let restored = folder.path().join("data").display().to_string();
    platform.ok(&["admin", "restore", to, "--data", &restored]);
    let platform = Platform::start_in(folder, &[]);
    assert!(run(&platform).contains(&hash(next)));
}

#[test]
fn who_has_no_such_secret_is_told_so_and_those_of_others_are_not_seen() {
    let platform = Platform::start();
    let submit = |name: &str| {
        let job = ["submit", "-c", "100m", "-m", "32Mi", "-t", "5m", "--secret", name, "true"];
        platform.fails(&job)
    };
    let (code, said) = submit("PROBE");
    assert_ne!(code, 0);
    assert!(
        said.contains("there is no secret `PROBE`") && said.contains("era secret set PROBE"),
        "{said}"
    );
    assert!(submit("probe").1.contains("no name of a secret"));
    let (code, said) = platform.fails(&["secret", "set", "PROBE=sesame"]);
    assert!(code == 2 && !said.contains("sesame"), "{said}");
    let (code, said) = platform.fails(&["secret", "rm", "PROBE"]);
    assert!(code != 0 && said.contains("no secret `PROBE`"), "{said}");
    for (name, body, status) in [
        ("PROBE", json!({"value": ""}), 422),
        ("PROBE", json!({"value": "a\u{0}b"}), 422),
        ("PROBE", json!({"value": "x".repeat(32 * 1024 + 1)}), 422),
        ("probe", json!({"value": "x"}), 422),
        ("ERA_PROBE", json!({"value": "x"}), 422),
        ("PROBE", json!({"value": 271_828}), 422),
        ("PROBE", json!({}), 422),
        ("PROBE", json!({"value": "open sesame"}), 200),
    ] {
        let (answered, told) = platform.send("PUT", &format!("/secrets/{name}"), &body);
        assert_eq!(answered, status, "{name}: {told}");
        assert!(
            !told.to_string().contains("sesame") && !told.to_string().contains("271"),
            "{told}"
        );
    }

    let made = platform.ok(&["admin", "user", "add", "ada", "--credits", "50", "-o", "json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let config = platform.home().join("of-ada");
    let ada = |arguments: &[&str], text: &str| {
        let mut command = platform.era();
        command.args(arguments).env("ERA_CONFIG", &config).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
    };
    let passwords = format!("{}\nhers and hers alone\n", made["password"].as_str().unwrap());
    ada(&["login", "ada"], &passwords);
    assert!(ada(&["secret", "ls"], "").contains("no secrets"));
    let said = ada(&["submit", "--secret", "PROBE", "true"], "");
    assert!(said.contains("there is no secret `PROBE`"), "{said}");
    assert!(ada(&["secret", "rm", "PROBE"], "").contains("no secret `PROBE`"));
    assert_eq!(platform.get("/secrets")["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_job_whose_secret_was_removed_before_its_start_does_not_start_and_its_log_says_why() {
    let platform = Platform::start();
    typed(&platform, &["secret", "set", "PROBE"], "sesame");
    let ask = json!({"resources": {"cpu": "100m", "memory": "32Mi"}, "duration_s": 600});
    let first = platform.submit(&json!({"work": {"command": ["sleep", "500"]}, "ask": ask}));
    let second = platform.submit(&json!({
        "work": {"command": ["touch", "outputs/ran"], "secrets": ["PROBE"]},
        "ask": ask,
        "after": [{"job": first, "when": "any"}],
    }));
    platform.ok(&["secret", "rm", "PROBE"]);
    platform.ok(&["cancel", &first.to_string()]);
    assert_eq!(platform.ended(second)["state"], "failed");
    let log = platform.ok(&["logs", &second.to_string()]);
    assert!(log.contains("its secret `PROBE` was removed"), "{log}");
    assert!(!platform.outputs(second).join("ran").exists());
    let (_, said) = platform.fails(&["retry", &second.to_string()]);
    assert!(said.contains("era secret set PROBE"), "{said}");
}

#[test]
fn whoever_writes_a_credential_among_the_variables_is_told_of_the_better_way() {
    let platform = Platform::start();
    let mut submit = platform.era();
    submit.args(["submit", "-c", "100m", "-m", "32Mi", "-e", "HF_TOKEN=hf_1", "true"]);
    let output = submit.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("era secret set HF_TOKEN"), "{said}");
    assert!(said.contains("stand in the journal") && !said.contains("hf_1"), "{said}");
}
