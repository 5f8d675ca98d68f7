//! `era tune` as a user meets it.

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

/// A folder with a trace, `t.csv`: many short jobs and a few long ones, on one GPU.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut table = String::from("job,submit_s,duration_s,gpus,user\n");
    for number in 0..150 {
        let (duration, user) = if number % 5 == 0 { (700 + number, "long") } else { (20, "short") };
        table += &format!("{number},{},{duration},1,{user}\n", number * 40);
    }
    std::fs::write(folder.path().join("t.csv"), table).expect("written");
    folder
}

const TRACE: [&str; 11] = [
    "tune",
    "--trace",
    "t.csv",
    "--gpus",
    "1",
    "--gpus-per-node",
    "1",
    "--budget",
    "24",
    "--objective",
    "mean_jct_s + 0.01 * p99_wait_s",
];

#[test]
fn the_same_seed_writes_the_same_files_and_they_are_a_policy_to_apply() {
    let folder = folder();
    let written = |out: &str| {
        let output = era(folder.path(), &[&TRACE[..], &["--out", out, "--json"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let about: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(about["rules"][0]["rule"], "tuned");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
        (read(out), read(&out.replace("json", "md")))
    };
    let first = written("a.json");
    assert_eq!(first, written("b.json"));
    let command: era_core::Command = serde_json::from_str(&first.0).expect("a command");
    let era_core::Command::PublishPolicy { name, .. } = command else { panic!("{}", first.0) };
    assert_eq!(name.as_str(), "tuned");
    // What was written can be tried on a journal at once.
    era(folder.path(), &["replay", "--sample", "j.jsonl", "--inputs", "150"]);
    let output = era(folder.path(), &["replay", "j.jsonl", "--policy", "a.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn people_get_a_summary_to_review() {
    let folder = folder();
    let output = era(folder.path(), &TRACE);
    assert!(output.status.success(), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn a_journal_is_tuned_with_its_prices() {
    let folder = folder();
    era(folder.path(), &["replay", "--sample", "j.jsonl", "--inputs", "1200"]);
    let arguments = ["tune", "--journal", "j.jsonl", "--objective", "-value", "--budget", "6"];
    let output = era(folder.path(), &[&arguments[..], &["--out", "p.json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let market = std::fs::read_to_string(folder.path().join("p.market.json")).expect("a file");
    let command: era_core::Command = serde_json::from_str(&market).expect("a command");
    let era_core::Command::SetMarket { rules } = command else { panic!("{market}") };
    rules.check().expect("rules that the core takes");
}

#[test]
fn bad_options_are_bad_input() {
    let folder = folder();
    let check = |arguments: &[&str], expected: &str| {
        let output = era(folder.path(), &[&["tune"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(output.stdout.is_empty());
    };
    let trace = ["--trace", "t.csv", "--gpus", "1", "--gpus-per-node", "1"];
    let with = |more: &[&'static str]| [&trace[..], more].concat();
    check(&with(&["--objective", "mean_jtc_s"]), "known are jobs, mean_wait_s, p50_wait_s");
    check(&with(&["--objective", "jobs", "--train", "1.5"]), "`--train`: give 0.1 to 0.9");
    check(&with(&["--objective", "jobs", "--template", "wait"]), "`--template`: give 1 to 16");
    check(&with(&["--objective", "jobs", "--name", "a b"]), "is not a name");
    check(&["--objective", "jobs"], "--trace <FILE>");
    check(&["--trace", "t.csv", "--objective", "jobs"], "--gpus");
    check(&["--journal", "t.csv", "--objective", "jobs"], "t.csv, line 1: a journal begins");
}
