//! Numbers on the command line. Below zero they are values like any other and no flags, so that
//! what is wrong with one can be said; and that is said in plain words.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use era_spec::plain;

/// A command line that reads numbers below zero as values.
pub(crate) fn taken(command: clap::Command) -> clap::Command {
    let taken = |arg: clap::Arg| match arg.get_action().takes_values() {
        // What a job runs has flags of its own.
        true if !arg.is_trailing_var_arg_set() => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(taken).mut_subcommands(self::taken)
}

/// The same error of these words, where it is about a number, without the names of types.
pub(crate) fn plainly(error: clap::Error, words: &[OsString]) -> clap::Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(told) = context(ContextKind::InvalidArg).and_then(|begin| below(&begin, words))
    {
        return clap::Error::raw(ErrorKind::ValueValidation, told);
    }
    let why = std::error::Error::source(&error).map(ToString::to_string);
    let told = (|| {
        let (flag, given) =
            (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
        let why = wrong(&given, &why?)?;
        Some(format!("{flag}: {why}\n\nFor more information, try '--help'.\n"))
    })();
    match told {
        Some(told) if error.kind() == ErrorKind::ValueValidation => {
            clap::Error::raw(ErrorKind::ValueValidation, told)
        }
        _ => error,
    }
}

/// What is wrong with an amount below zero, such as `-5m`, of which `-5` was taken for a flag.
fn below(begin: &str, words: &[OsString]) -> Option<String> {
    begin.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let at = words.iter().position(|word| word.starts_with(begin))?;
    let flag = at.checked_sub(1).map(|before| &words[before]).filter(|it| it.starts_with('-'));
    let of = flag.map(|flag| format!("{flag}: ")).unwrap_or_default();
    Some(format!(
        "{of}`{}` must not be negative\n\nFor more information, try '--help'.\n",
        words[at]
    ))
}

/// What is wrong with a number, by what its parser says.
fn wrong(given: &str, why: &str) -> Option<String> {
    if let Some((_, range)) = why.split_once(" is not in ") {
        let (least, most) = range.split_once("..=")?;
        return Some(match given.starts_with('-') && !least.starts_with('-') {
            true => format!("{given} must not be negative: give {least} to {most}"),
            false => format!("{given} is out of range: give {least} to {most}"),
        });
    }
    let float = why.contains("float");
    plain::is_about_a_number(why).then(|| plain::unread(given, if float { "f64" } else { "u64" }))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    fn refused(words: &[&str]) -> String {
        let words: Vec<OsString> = ["era"].iter().chain(words).map(OsString::from).collect();
        let error = crate::command::parsed(&words).err().expect("it is refused");
        super::plainly(error, &words).to_string()
    }

    #[test]
    fn a_number_below_zero_is_named_as_such() {
        for words in [
            &["submit", "--gpus", "-1", "--", "true"][..],
            &["jobs", "--limit", "-3"],
            &["cancel", "-7"],
            &["admin", "queue", "put", "q", "--waiting-max", "-2"],
        ] {
            let told = refused(words);
            assert!(told.contains("must not be negative: give "), "{told}");
        }
    }

    #[test]
    fn an_amount_below_zero_is_no_flag_either() {
        for (words, told) in [
            (&["submit", "-t", "-5m", "--", "true"][..], "-t: `-5m` must not be negative"),
            (&["submit", "--memory", "-4Gi", "--", "true"], "--memory: `-4Gi` must not be"),
            (&["submit", "--gpu-memory", "-40Gi"], "--gpu-memory: `-40Gi` must not be negative"),
            (&["extend", "5", "-5m"], "`-5m` must not be negative"),
        ] {
            let said = refused(words);
            assert!(said.contains(told), "{said}");
        }
        // What is run has flags of its own.
        assert!(crate::command::parsed(["era", "submit", "--", "head", "-5x"]).is_ok());
    }

    #[test]
    fn what_is_no_number_is_told_without_the_names_of_types() {
        for words in [
            &["submit", "--gpus", "two", "--", "true"][..],
            &["job", "x"],
            &["logs", "1", "-n", "x"],
        ] {
            let told = refused(words);
            assert!(told.contains("does not belong here: give a whole number"), "{told}");
        }
    }

    #[test]
    fn amounts_below_zero_reach_whoever_judges_them() {
        for words in [
            ["submit", "-g", "-1", "--", "true"],
            ["submit", "--value", "-5", "--", "true"],
            ["submit", "--memory", "-4", "--", "true"],
        ] {
            crate::command::parsed(["era"].iter().chain(&words))
                .map_err(|e| e.to_string())
                .ok()
                .unwrap();
        }
    }
}
