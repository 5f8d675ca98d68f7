//! The binary as a user meets it: exit code, standard output, standard error.

use std::process::Command;

/// Runs the binary without colours, and shows all that came of it.
fn era(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(arguments)
        .env("NO_COLOR", "1")
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
fn the_demo_tells_the_same_day_to_everyone() {
    insta::assert_snapshot!(era(&["demo"]));
}

#[test]
fn the_demo_writes_no_colours_where_nobody_sees_them() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_era")).arg("demo").env_remove("NO_COLOR").output();
    let output = output.unwrap_or_else(|error| panic!("the binary does not start: {error}"));
    assert!(!output.stdout.contains(&0x1b), "a pipe is no terminal");
}

#[test]
fn help_names_every_command() {
    insta::assert_snapshot!(era(&["--help"]));
}

#[test]
fn help_on_the_demo_names_its_options() {
    insta::assert_snapshot!(era(&["demo", "--help"]));
}

#[test]
fn version_names_the_core_and_the_journal_too() {
    insta::assert_snapshot!(era(&["version"]));
}

#[test]
fn no_command_is_bad_usage() {
    insta::assert_snapshot!(era(&[]));
}

#[test]
fn an_unknown_command_is_bad_usage() {
    insta::assert_snapshot!(era(&["dmeo"]));
}

#[test]
fn a_seed_that_is_no_number_is_bad_usage() {
    insta::assert_snapshot!(era(&["demo", "--seed", "monday"]));
}
