//! The one binary of ERA. It reads arguments, runs one command and turns an error into an exit
//! code: 2 for bad usage (clap's own) and bad input, those of [`cli`] for what a server says, 75
//! for a server whose place another one has taken, and 1 for everything else.

mod alone;
mod bench;
mod cli;
mod clock;
mod command;
mod demo;
mod job;
#[cfg(unix)]
mod laboratory;
#[cfg(unix)]
mod logging;
mod names;
mod numbers;
mod own_folder;
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

fn main() -> ExitCode {
    match command::read().run() {
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

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}
