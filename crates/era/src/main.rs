//! The one binary of ERA. It reads arguments, runs one command and turns an error into an exit
//! code: 2 for bad usage (clap's own) and bad input, 1 for everything else.

mod admin;
mod bench;
mod demo;
mod laboratory;
mod names;
mod replay;
mod sim;
mod tune;
mod version;

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
    Demo(demo::Demo),
    /// Measure the core on seeded work
    #[command(subcommand)]
    Bench(bench::Bench),
    /// The laboratory: experiments on the production core
    #[command(subcommand)]
    Sim(sim::Sim),
    Replay(Box<replay::Replay>),
    Tune(Box<tune::Tune>),
    /// What administrators do
    #[command(subcommand)]
    Admin(admin::Admin),
    Version(version::Version),
}

impl Command {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Demo(demo) => demo.run(),
            Command::Bench(bench) => bench::run(&bench),
            Command::Sim(sim) => sim.run(),
            Command::Replay(replay) => replay.run(),
            Command::Tune(tune) => tune.run(),
            Command::Admin(admin) => admin.run(),
            Command::Version(version) => version.run(),
        }
    }
}

fn main() -> ExitCode {
    match Arguments::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads us has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let hint =
                "hint: `era --help` lists the commands, `era <COMMAND> --help` their options";
            // If even standard error is closed, the exit code has to do.
            let _ = writeln!(std::io::stderr(), "error: {error:#}\n{hint}");
            let bad_input = error.downcast_ref::<era_sim::BadInput>().is_some();
            if bad_input { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}
