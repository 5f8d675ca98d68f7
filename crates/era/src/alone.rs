//! One command read without the others: why, says [`crate::command`].

use std::ffi::OsString;

use clap::Args;

/// A command's own arguments.
pub(crate) fn one<T: Args>(arguments: impl Iterator<Item = OsString>) -> Option<T> {
    let command = T::augment_args(clap::Command::new("era")).no_binary_name(true);
    let matches = crate::numbers::taken(command).try_get_matches_from(arguments).ok()?;
    T::from_arg_matches(&matches).ok()
}
