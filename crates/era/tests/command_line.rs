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

/// Where something is, with a password in it.
const WITH_PASSWORD: &str = "redis://ada:s3cret@db.example:6379/0";

/// All that `--help` says of a command and of those below it.
fn help(command: &[String], all: &mut String) {
    let asked = Command::new(env!("CARGO_BIN_EXE_era"))
        .args(command)
        .arg("--help")
        .envs(
            ["REDIS", "EXECUTOR", "IMAGES", "BROKER", "DATABASE", "DATABASE_REPLICA", "INFLUX"]
                .map(|name| (format!("ERA_{name}"), WITH_PASSWORD)),
        )
        .env("ERA_TOKEN", "s3cret")
        .output()
        .unwrap_or_else(|error| panic!("the binary does not start: {error}"));
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    let below = text.split_once("Commands:\n").map_or("", |(_, below)| below);
    for line in below.lines().take_while(|line| !line.is_empty()) {
        // What stands further in goes on with the line before.
        let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
        let name = name.and_then(|line| line.split_whitespace().next());
        if let Some(name) = name.filter(|name| *name != "help") {
            help(&[command, &[name.to_owned()]].concat(), all);
        }
    }
    *all += &text;
}

#[test]
fn no_help_repeats_a_password_of_the_environment() {
    let mut all = String::new();
    help(&[], &mut all);
    // A line that is too long goes on in the next.
    let words = all.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in ["ERA_REDIS", "ERA_EXECUTOR", "ERA_IMAGES", "ERA_BROKER", "ERA_DATABASE"] {
        let told = words.contains(&format!("[env: {name}]"));
        assert!(told, "{name} is not told of, or with its value");
    }
    let told: Vec<&str> = all.lines().filter(|line| line.contains("s3cret")).collect();
    assert!(told.is_empty(), "{told:#?}");
}

#[test]
fn an_executor_that_is_none_is_refused_without_its_password() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder: {error}"));
    let data = folder.path().display().to_string();
    for executor in
        ["docker://ada:s3cret@host:2375", "https://ada:s3cret@host", "amqp://ada:s3cret@host"]
    {
        let told = era(&["up", "--listen", "127.0.0.1:0", "--data", &data, "--executor", executor]);
        assert!(told.contains("is no e") && !told.contains("s3cret"), "{told}");
    }
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
