//! `era sim generate` as a user meets it.

#[path = "../../skipped.rs"]
mod skipped;

use std::path::Path;
use std::process::{Command, Output};

use era_sim::trace;
use serde_json::Value;

fn generate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_era"))
        .args(["sim", "generate"])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"))
}

/// Writes a workload to a file, and gives the one JSON object that was printed about it.
#[track_caller]
fn report(path: &Path, arguments: &[&str]) -> Value {
    let out = path.to_str().expect("a temporary path is text");
    let output = generate(&[arguments, &["--json", "--out", out]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("exactly one JSON object")
}

fn philly(jobs: &str) -> [&str; 8] {
    ["--kind", "philly", "--jobs", jobs, "--gpus", "64", "--load", "0.8"]
}

#[test]
fn the_same_seed_gives_the_same_file_and_it_reads_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let first = report(&path("a.csv.gz"), &philly("3000"));
    report(&path("b.csv.gz"), &philly("3000"));
    let other = [&philly("3000")[..], &["--seed", "2"]].concat();
    report(&path("c.csv.gz"), &other);
    let bytes = |name: &str| std::fs::read(path(name)).expect("it was written");
    assert!(bytes("a.csv.gz") == bytes("b.csv.gz"));
    assert!(bytes("a.csv.gz") != bytes("c.csv.gz"));
    assert_eq!(first["bytes"], bytes("a.csv.gz").len());
    let load = first["load"].as_f64().expect("a number");
    assert!((load - 0.8).abs() < 0.016, "{load}");
    let read = trace::read(&path("a.csv.gz"), None).expect("we wrote it");
    assert_eq!((read.jobs.len(), read.skipped), (3000, 0));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 3, "nothing half-written stays behind");
}

#[test]
fn standard_output_gets_the_same_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("paper.csv");
    let about = report(&path, &["--kind", "paper"]);
    assert_eq!(about["jobs"], 8700);
    let printed = generate(&["--kind", "paper"]);
    assert!(printed.status.success());
    assert!(printed.stdout == std::fs::read(&path).expect("it was written"));
}

#[test]
fn memory_does_not_grow_with_the_number_of_jobs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.csv");
    let peak_mb = |jobs| report(&path, &philly(jobs))["peak_mb"].as_f64();
    let (Some(few), Some(many)) = (peak_mb("1000"), peak_mb("400000")) else {
        return skipped::skipped("this system does not tell how much memory a process held");
    };
    // 400,000 jobs held in memory would take over 40 MB.
    assert!(many < few + 4.0, "{few} MB for a thousand jobs, {many} MB for 400,000");
}

#[test]
fn people_get_a_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.csv");
    let output = generate(&["--kind", "paper", "-o", path.to_str().expect("text")]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let text = text.replace(&folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(text);
}

#[test]
fn bad_options_are_bad_input() {
    let check = |arguments: &[&str], expected: &str| {
        let output = generate(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(output.stdout.is_empty());
    };
    check(&["--kind", "philly", "--jobs", "1"], "`jobs`: give 2 to 10000000, not 1");
    check(&["--kind", "philly", "--jobs", "10000001"], "`jobs`: give 2 to 10000000");
    check(&["--kind", "philly", "--gpus", "0"], "`gpus`: give 1 to 1000000, not 0");
    check(&["--kind", "philly", "--load", "nan"], "give 0.001 to 100");
    check(&["--kind", "paper", "--jobs", "5"], "`--jobs`: the paper's workload is fixed");
    check(&["--kind", "paper", "--json"], "--out");
    check(&["--kind", "googol"], "googol");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let output = generate(&["--kind", "paper", "--out", "no/such/folder/a.csv"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot write no/such/folder/a.csv"), "{said}");
}
