//! `era replay` as a user meets it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn era(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_era"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All that came of it, but for what depends on the machine's speed.
fn shown(output: &Output) -> String {
    let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    let stdout = text(&output.stdout);
    let stdout: Vec<String> = stdout
        .lines()
        .map(|line| match line.split_once("byte for byte (") {
            Some((before, _)) => format!("{before}byte for byte (… inputs a second)"),
            None => line.to_owned(),
        })
        .collect();
    let stderr = text(&output.stderr);
    format!("exit code: {code}\n--- stdout\n{}\n--- stderr\n{stderr}", stdout.join("\n"))
}

/// A folder with a small sampled journal, `j.jsonl`.
fn sampled() -> tempfile::TempDir {
    sampled_with("400")
}

fn sampled_with(inputs: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["replay", "--sample", "j.jsonl", "--inputs", inputs, "--seed", "2", "--json"];
    let output = era(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let about: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(about["seed"], 2);
    folder
}

#[test]
fn a_sample_replays_as_it_was_recorded() {
    let folder = sampled();
    insta::assert_snapshot!(shown(&era(folder.path(), &["replay", "j.jsonl"])));
    let output = era(folder.path(), &["replay", "j.jsonl", "--json"]);
    let about: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!((&about["same"], &about["torn"]), (&true.into(), &Value::Null));
    assert!(about["inputs"].as_u64() >= Some(400));
    assert!(about["inputs_per_second"].as_f64() > Some(0.0));
}

#[test]
fn another_rule_shows_who_gains_and_loses() {
    let folder = sampled_with("3000");
    let arguments = ["replay", "j.jsonl", "--policy", "sjf", "--backfill", "none"];
    insta::assert_snapshot!(shown(&era(folder.path(), &arguments)));
    let output = era(folder.path(), &[&arguments[..], &["--json"]].concat());
    let about: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(about["rules"][0], "policy sjf");
    let users = about["comparison"]["users"].as_array().expect("a list");
    let changes: Vec<i64> = users.iter().filter_map(|u| u["net_change"].as_i64()).collect();
    assert!(changes.len() > 1 && changes.is_sorted_by(|a, b| a >= b), "{changes:?}");
}

#[test]
fn an_event_that_differs_is_shown_with_its_line() {
    let folder = sampled();
    let path = folder.path().join("j.jsonl");
    let journal = std::fs::read_to_string(&path).expect("text");
    let changed = journal.replacen("\"what\":\"group\"", "\"what\":\"grouq\"", 1);
    assert!(changed != journal);
    std::fs::write(&path, changed).expect("written");
    insta::assert_snapshot!(shown(&era(folder.path(), &["replay", "j.jsonl"])));
    let output = era(folder.path(), &["replay", "j.jsonl", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let about: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(about["same"], false);
    assert_eq!(about["difference"]["field"], "what");
}

#[test]
fn a_journal_of_another_core_is_bad_input() {
    let folder = sampled();
    let path = folder.path().join("j.jsonl");
    let journal = std::fs::read_to_string(&path).expect("text");
    let changed = journal.replacen("\"core_version\":4", "\"core_version\":5", 1);
    std::fs::write(&path, changed).expect("written");
    insta::assert_snapshot!(shown(&era(folder.path(), &["replay", "j.jsonl"])));
}

#[test]
fn a_torn_tail_is_told_and_left_out() {
    let folder = sampled();
    let path = folder.path().join("j.jsonl");
    let mut journal = std::fs::read(&path).expect("bytes");
    journal.truncate(journal.len() - 20);
    std::fs::write(&path, journal).expect("written");
    let output = era(folder.path(), &["replay", "j.jsonl"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("was cut off after"), "{}", text(&output.stdout));
}

#[test]
fn a_compressed_sample_replays_alike() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in ["a.jsonl", "b.jsonl.gz"] {
        era(folder.path(), &["replay", "--sample", file, "--inputs", "200"]);
    }
    let about = |file: &str| {
        let output = era(folder.path(), &["replay", file, "--json"]);
        let about: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        (about["inputs"].clone(), about["events"].clone())
    };
    assert_eq!(about("a.jsonl"), about("b.jsonl.gz"));
    let size = |file: &str| std::fs::metadata(folder.path().join(file)).expect("a file").len();
    assert!(size("b.jsonl.gz") * 3 < size("a.jsonl"));
}

#[test]
fn bad_options_are_bad_input() {
    let folder = sampled();
    let check = |arguments: &[&str], expected: &str| {
        let output = era(folder.path(), &[&["replay"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(output.stdout.is_empty());
    };
    check(&[], "<JOURNAL>");
    check(&["none.jsonl"], "none.jsonl: cannot be opened");
    check(&["j.jsonl", "--policy", "sfj"], "no policy `sfj`");
    check(&["j.jsonl", "--policy", "formula:wiat"], "did you mean `wait`?");
    check(&["j.jsonl", "--policy", "none.json"], "none.json: cannot be read");
    check(&["j.jsonl", "--mechanism", "auction"], "basic-econ, first-fit, on-demand, surge");
    check(&["j.jsonl", "--scorer", "worst-fit"], "least-stranded");
    check(&["j.jsonl", "--seed", "3"], "cannot be used with");
}
