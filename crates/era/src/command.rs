//! The command line as a whole: its commands, and how the one that was meant is found.
//!
//! The whole command line has some seventy commands, and making all of them known takes longer
//! than most commands take to run. So those that scripts call in a loop, and the one that every
//! task's keeper is started by, are read alone first. Whatever cannot be read so (a mistake, a
//! question for help) is read again with all of them at hand, which say what is wrong: nothing
//! here prints, and nothing is understood otherwise than there.

use std::ffi::OsString;

use clap::{FromArgMatches, Parser, Subcommand};

use crate::alone::one;
use crate::cli::ClientCommand;
use crate::{bench, cli, demo, numbers, replay, sim, tune, version};
#[cfg(unix)]
use crate::{shim, up, worker};

/// An economic scheduler for GPU clusters.
#[derive(Parser)]
#[command(name = "era", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Each command is a type of arguments with a `run` of its own.
#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one of them, once
pub(crate) enum Command {
    #[command(flatten)]
    Client(ClientCommand),
    Data(cli::data::Data),
    Demo(demo::Demo),
    /// Measure the core on seeded work
    #[command(subcommand)]
    Bench(bench::Bench),
    /// The laboratory: experiments on the production core
    #[command(subcommand)]
    Sim(sim::Sim),
    Replay(Box<replay::Replay>),
    #[cfg(unix)]
    #[command(hide = true)]
    Shim(shim::Shim),
    Tune(Box<tune::Tune>),
    #[cfg(unix)]
    Up(up::Up),
    #[cfg(unix)]
    Core(up::core::Core),
    #[cfg(unix)]
    App(up::app::Application),
    #[cfg(unix)]
    Cloud(up::cloud::Cloud),
    #[cfg(unix)]
    Files(up::app::FileService),
    Version(version::Version),
    #[cfg(unix)]
    Worker(worker::Worker),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Client(command) => command.run(whole),
            Command::Data(data) => data.run(),
            Command::Demo(demo) => demo.run(),
            Command::Bench(bench) => bench::run(&bench),
            Command::Sim(sim) => sim.run(),
            Command::Replay(replay) => replay.run(),
            #[cfg(unix)]
            Command::Shim(shim) => shim.run(),
            Command::Tune(tune) => tune.run(),
            #[cfg(unix)]
            Command::Up(up) => up.run(),
            #[cfg(unix)]
            Command::Core(core) => core.run(),
            #[cfg(unix)]
            Command::App(app) => app.run(),
            #[cfg(unix)]
            Command::Cloud(cloud) => cloud.run(),
            #[cfg(unix)]
            Command::Files(files) => files.run(),
            Command::Version(version) => version.run(),
            #[cfg(unix)]
            Command::Worker(worker) => worker.run(),
        }
    }
}

/// The command that the arguments of this process name. What is wrong with them is said, and ends
/// it.
pub(crate) fn read() -> Command {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(command) = read_alone(words.iter().cloned()) {
        return command;
    }
    match parsed(&words) {
        Ok(command) => command,
        Err(error) => numbers::plainly(without_secrets(error), &words).exit(),
    }
}

/// The command that these arguments name, if it is one of those and they are right.
fn read_alone(arguments: impl Iterator<Item = OsString>) -> Option<Command> {
    let mut arguments = arguments.skip(1);
    let name = arguments.next()?;
    match name.to_str()? {
        #[cfg(unix)]
        "shim" => Some(Command::Shim(one::<shim::Shim>(arguments)?)),
        name => ClientCommand::alone(name, arguments).map(Command::Client),
    }
}

/// The whole command line, for what is written from it: completions, manual pages, the reference.
pub(crate) fn whole() -> clap::Command {
    numbers::taken(<Arguments as clap::CommandFactory>::command())
}

/// What the words of a command line say.
pub(crate) fn parsed<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
) -> Result<Command, clap::Error> {
    Ok(Arguments::from_arg_matches(&whole().try_get_matches_from(words)?)?.command)
}

/// An address may have a password in it, and what is said of a wrong one ends in a log.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let is_address = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(argument)) if argument.contains("<URL>")
    );
    if is_address && error.get(ContextKind::InvalidValue).is_some() {
        error.insert(ContextKind::InvalidValue, ContextValue::String("***".to_owned()));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_wrong_address_is_refused_without_its_password() {
        for words in [
            ["up", "--database", "mysql://era:s3cret@host:99999/era"],
            ["up", "--database", "mysql//era:s3cret@host/era"],
            ["up", "--influx", "http://era:s3cret@host:8086?token=s3cret"],
            ["app", "--database-replica", "foo://era:s3cret@host/era"],
        ] {
            let error = parsed(["era"].iter().chain(&words)).err().unwrap();
            let said = without_secrets(error).to_string();
            assert!(said.contains(words[1]) && !said.contains("s3cret"), "{said}");
        }
    }

    fn alone(line: &str) -> Option<Command> {
        read_alone(line.split(' ').map(OsString::from))
    }

    #[test]
    fn what_scripts_call_in_a_loop_is_read_alone() {
        for line in [
            "era submit --cpu 1 --time 10m -- true",
            "era quote --gpu 1 --time 2h",
            "era jobs",
            "era job 7 -o json",
            "era cancel 7",
            #[cfg(unix)]
            "era shim --keeper",
        ] {
            assert!(alone(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_mistake_and_a_question_are_left_to_the_whole_command_line() {
        for line in ["era", "era submit --help", "era submit --cpus 1", "era jbos", "era shim -h"] {
            assert!(alone(line).is_none(), "{line}");
        }
    }
}
