//! The one binary of ERA. It reads arguments, runs one command and turns an error into an exit
//! code: 2 for bad usage (clap's own) and bad input, those of [`cli`] for what a server says, 75
//! for a server whose place another one has taken, and 1 for everything else.

mod alone;
mod bench;
mod cli;
mod data;
mod demo;
mod job;
#[cfg(unix)]
mod laboratory;
#[cfg(unix)]
mod logging;
mod names;
mod paint;
mod progress;
mod replay;
#[cfg(unix)]
mod shim;
mod sim;
mod tune;
#[cfg(unix)]
mod up;
#[cfg(unix)]
mod upkeep;
mod version;
#[cfg(unix)]
mod worker;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
enum Command {
    #[command(flatten)]
    Client(cli::ClientCommand),
    Data(data::Data),
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
    fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Client(command) => command.run(),
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

/// The whole command line, for what is written from it: completions, manual pages, the reference.
pub(crate) fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

fn main() -> ExitCode {
    let command = alone::read(std::env::args_os());
    match command.unwrap_or_else(read).run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads us has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if let Some(verdict) = cli::verdict(&error) => {
            let mut text = match verdict.silent {
                true => String::new(),
                false => format!("error: {}\n", cli::told(&error)),
            };
            verdict.hints.iter().for_each(|hint| text += &format!("{hint}\n"));
            // If even standard error is closed, the exit code has to do.
            let _ = std::io::stderr().write_all(text.as_bytes());
            ExitCode::from(verdict.code)
        }
        Err(error) => {
            let hint =
                "hint: `era --help` lists the commands, `era <COMMAND> --help` their options";
            // If even standard error is closed, the exit code has to do.
            let _ = writeln!(std::io::stderr(), "error: {}\n{hint}", cli::told(&error));
            let bad_input = error.downcast_ref::<era_sim::BadInput>().is_some();
            #[cfg(unix)]
            if up::is_deposed(&error) {
                return ExitCode::from(up::DEPOSED);
            }
            if bad_input { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn read() -> Command {
    match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => without_secrets(error).exit(),
    }
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

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
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
            let error = Arguments::try_parse_from(["era"].iter().chain(&words)).err().unwrap();
            let said = without_secrets(error).to_string();
            assert!(said.contains(words[1]) && !said.contains("s3cret"), "{said}");
        }
    }
}
