//! One command read without the others.
//!
//! The whole command line has some seventy commands, and making all of them known takes longer
//! than most commands take to run. So those that scripts call in a loop, and the one that every
//! task's keeper is started by, are read alone first. Whatever cannot be read so (a mistake, a
//! question for help) is read again with all of them at hand, which say what is wrong: nothing
//! here prints, and nothing is understood otherwise than there.

use std::ffi::OsString;

use clap::Args;

use crate::Command;
use crate::cli::ClientCommand;
#[cfg(unix)]
use crate::shim::Shim;

/// The command that these arguments name, if it is one of those and they are right.
pub(crate) fn read(arguments: impl Iterator<Item = OsString>) -> Option<Command> {
    let mut arguments = arguments.skip(1);
    let name = arguments.next()?;
    match name.to_str()? {
        #[cfg(unix)]
        "shim" => Some(Command::Shim(one::<Shim>(arguments)?)),
        name => ClientCommand::alone(name, arguments).map(Command::Client),
    }
}

/// A command's own arguments.
pub(crate) fn one<T: Args>(arguments: impl Iterator<Item = OsString>) -> Option<T> {
    let command = T::augment_args(clap::Command::new("era")).no_binary_name(true);
    let matches = command.try_get_matches_from(arguments).ok()?;
    T::from_arg_matches(&matches).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_alone(line: &str) -> Option<Command> {
        read(line.split(' ').map(OsString::from))
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
            assert!(read_alone(line).is_some(), "{line}");
        }
    }

    #[test]
    fn a_mistake_and_a_question_are_left_to_the_whole_command_line() {
        for line in ["era", "era submit --help", "era submit --cpus 1", "era jbos", "era shim -h"] {
            assert!(read_alone(line).is_none(), "{line}");
        }
    }
}
