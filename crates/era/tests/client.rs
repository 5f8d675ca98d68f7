//! The commands of a user: their help, and how they fail, without any server.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::process::Command;

/// Runs the binary in an empty folder; exit code, standard output, standard error.
fn era(arguments: &[&str], files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(arguments)
        .current_dir(folder.path())
        .env_remove("ERA_URL")
        .env_remove("ERA_TOKEN")
        .env_remove("ERA_CA")
        .env("ERA_CONFIG", folder.path().join("config"))
        .env("NO_COLOR", "1")
        .env("TZ", "UTC")
        .output()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    format!(
        "exit code: {code}\n--- stdout\n{}--- stderr\n{}",
        text(&output.stdout),
        text(&output.stderr)
    )
}

#[test]
fn every_command_has_its_help() {
    // The reference is written from the commands themselves, so none can be forgotten.
    let reference = era(&["reference"], &[]);
    let names = reference.lines().filter_map(|line| line.strip_prefix("## `era "));
    let commands: Vec<Vec<&str>> =
        names.map(|name| name.trim_end_matches('`').split(' ').collect()).collect();
    assert!(commands.len() > 90, "{commands:?}");
    let told: Vec<String> = commands
        .iter()
        .map(|command| {
            let line: Vec<&str> = command.iter().copied().chain(["-h"]).collect();
            format!("$ era {}\n{}", line.join(" "), era(&line, &[]))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

/// Nobody listens on port 1 of this machine.
const NOBODY: &str = "http://127.0.0.1:1";

#[test]
fn no_server_is_told_with_what_to_do() {
    insta::assert_snapshot!(era(&["jobs", "--url", NOBODY], &[]));
}

#[test]
fn an_address_that_is_none_is_bad_input() {
    insta::assert_snapshot!(era(&["jobs", "--url", "ftp://example.org"], &[]));
}

#[test]
fn a_job_without_a_command_is_bad_input() {
    insta::assert_snapshot!(era(&["submit", "--gpu", "1"], &[]));
}

#[test]
fn a_time_that_is_none_names_its_flag() {
    insta::assert_snapshot!(era(&["submit", "--by", "whenever", "--", "true"], &[]));
}

#[test]
fn a_terminal_does_not_obey_what_an_error_repeats() {
    let text = era(&["submit", "--by", "a\x1b[31mb", "--", "true"], &[]);
    assert!(text.contains(r"a\u{1b}[31mb") && !text.contains('\x1b'), "{text}");
}

#[test]
fn a_mistake_in_a_jobs_file_is_told_with_its_place() {
    let file = ("job.yaml", "command: [true]\nresorces: {gpu: 1}\n");
    insta::assert_snapshot!(era(&["submit", "job.yaml"], &[file]));
}

#[test]
fn a_mistake_in_a_script_is_told_with_its_line() {
    let file = ("job.sh", "#!/bin/sh\n#SBATCH --time=soon\ntrue\n");
    insta::assert_snapshot!(era(&["submit", "job.sh"], &[file]));
}

#[test]
fn a_bid_cannot_be_an_array() {
    let line = ["submit", "--value", "3", "--array", "0-9", "--", "true"];
    insta::assert_snapshot!(era(&line, &[]));
}

#[test]
fn nobody_buys_by_being_out_of_reach() {
    insta::assert_snapshot!(era(&["run", "--url", NOBODY, "--by", "now+2h", "--", "true"], &[]));
}

#[cfg(unix)]
#[test]
fn a_bad_file_of_nodes_is_bad_input() {
    let text = era(&["up", "--nodes", "nodes.yaml"], &[("nodes.yaml", "- name: a\n")]);
    assert!(text.starts_with("exit code: 2\n"), "{text}");
    assert!(text.contains("nodes.yaml: ") && text.contains("\nnodes:\n- name: a100\n"), "{text}");
}

#[test]
fn all_of_ones_jobs_are_not_cancelled_by_number() {
    insta::assert_snapshot!(era(&["cancel", "--mine", "7"], &[]));
}

#[test]
fn a_hold_that_was_not_made_here_cannot_be_taken() {
    insta::assert_snapshot!(era(&["accept", "7"], &[]));
}

#[test]
fn top_needs_a_terminal() {
    insta::assert_snapshot!(era(&["top", "--url", NOBODY], &[]));
}

#[test]
fn the_doctor_finds_a_server_that_does_not_answer() {
    insta::assert_snapshot!(era(&["admin", "doctor", "--url", NOBODY], &[]));
}

#[test]
fn completions_name_the_commands() {
    let text = era(&["completions", "fish"], &[]);
    assert!(text.starts_with("exit code: 0") && text.contains("submit"), "{text}");
}
