//! `era up --try`, as `make run` starts it: a first training without a terminal.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::commands::redacted;
use crate::harness::{Platform, free_address};

/// Starts it on a folder, and waits until it has ended by itself: its standard output.
fn tried(folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(["up", "--try", "--listen", &free_address(), "--data"])
        .arg(folder.join("data"))
        .env("ERA_CONFIG", folder.join("tried"))
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    out
}

/// What it said, without what differs from one machine or run to the next.
fn plain(said: &str, folder: &Path) -> String {
    let of_all = |line: &&str| !line.starts_with("without root");
    let text: String = said.lines().filter(of_all).map(|line| format!("{line}\n")).collect();
    let text = match text.split_once("one-time password: ") {
        Some((before, after)) => {
            let after = after.split_once('\n').map_or("", |(_, after)| after);
            format!("{before}one-time password: SECRET\n{after}")
        }
        None => text,
    };
    let text = text.replace(&folder.display().to_string(), "FOLDER");
    let mut bars = String::new();
    for letter in text.chars() {
        if letter != '█' || !bars.ends_with('█') {
            bars.push(letter);
        }
    }
    redacted(&bars, &[])
}

#[test]
fn a_first_training_ends_by_itself_and_the_folder_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let first = tried(folder.path());
    insta::assert_snapshot!(plain(&first, folder.path()));
    let again = tried(folder.path());
    assert!(!again.contains("one-time password"), "the account is still there: {again}");

    let platform = Platform::start_in(folder, &[]);
    let jobs = platform.get("/jobs")["items"].as_array().unwrap().clone();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    for job in &jobs {
        assert_eq!(job["name"], "first-training", "{job}");
        assert_eq!(job["state"], "succeeded", "{job}");
        let id = job["id"].as_u64().unwrap();
        assert!(platform.outputs(id).join("model.json").is_file(), "{id}");
        let lines = platform.ok(&["logs", &id.to_string()]);
        assert!(lines.contains("loss"), "{lines}");
    }
}
