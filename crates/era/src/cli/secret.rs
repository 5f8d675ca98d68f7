//! `era secret`: tokens and keys that jobs find in their environment, and nobody else.

use std::io::Read;

use anyhow::Context;
use clap::{Args, Subcommand};
use era_api::secret::{NewSecret, Secret, VALUE_BYTES_MAX, is_name, is_value};
use serde_json::json;

use super::connection::Common;
use super::exit::BadUsage;
use super::look::{self, Look};
use super::prompt;

/// Set tokens and keys for your jobs, which nobody is told again; list and remove them
///
/// A job that names a secret (`--secret NAME`, or `secrets: [NAME]` in its file) finds its value
/// in its environment, as it is when the job starts. It stands in no job's description, no
/// journal and no log of the platform's.
#[derive(Debug, Args)]
pub(crate) struct SecretCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set a secret, or another value for it
    ///
    /// The value is typed, not shown; or it comes from a pipe, all of it but a line's end at its
    /// end. It is never an argument, since others see a command's arguments.
    Set {
        /// What the variable is called: capital letters, digits and _
        name: String,
        /// Take the value of the variable of that name here
        #[arg(long)]
        from_env: bool,
        #[command(flatten)]
        common: Common,
    },
    /// List the names of your secrets
    Ls {
        #[command(flatten)]
        common: Common,
    },
    /// Remove a secret: a job that names it and has not started will not start
    Rm {
        /// What the variable is called
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

impl SecretCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Set { name, from_env, common } => {
                if !is_name(&name) {
                    return Err(BadUsage(bad_name(&name)).into());
                }
                let value = if from_env { of_environment(&name)? } else { asked(&name)? };
                if !is_value(&value) {
                    let kib = VALUE_BYTES_MAX >> 10;
                    let what = format!("{name}: give 1 byte to {kib} KiB, without a zero byte");
                    return Err(BadUsage(what).into());
                }
                let set = common.client()?.set_secret(&name, &NewSecret { value })?;
                look::print(common.output, &set, |set| {
                    format!("{0} is set: give it to a job with --secret {0}\n", set.name)
                })
            }
            Command::Ls { common } => {
                let secrets = common.client()?.secrets()?;
                look::print(common.output, &secrets, |secrets| render(secrets, &common.look()))
            }
            Command::Rm { name, common } => {
                common.client()?.remove_secret(&name)?;
                look::print(common.output, &json!({ "removed": name }), |_| {
                    format!("{name} is gone.\n")
                })
            }
        }
    }
}

/// What is wrong with a name. Not the name itself, where that may be a value: `NAME=VALUE`.
fn bad_name(name: &str) -> String {
    let name = match name.split_once('=') {
        Some((name, _)) => format!("{name}=…"),
        None => name.to_owned(),
    };
    format!(
        "`{name}` is no name of a secret: use capital letters, digits and _, 64 at most, and nothing \
         that begins with ERA_; its value is asked for"
    )
}

fn of_environment(name: &str) -> anyhow::Result<String> {
    match std::env::var(name) {
        Ok(value) => Ok(value),
        Err(std::env::VarError::NotPresent) => {
            Err(BadUsage(format!("--from-env: {name} is not set here: export it first")).into())
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(BadUsage(format!("--from-env: {name} is no text")).into())
        }
    }
}

/// What is typed, or all that a pipe brings: a key may have many lines.
fn asked(name: &str) -> anyhow::Result<String> {
    if prompt::somebody_types() {
        return prompt::password(&format!("{name}: "));
    }
    let mut bytes = Vec::new();
    let most = VALUE_BYTES_MAX as u64 + 2;
    std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).ok().context("standard input is no text: give UTF-8")?;
    Ok(without_line_end(&text).to_owned())
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn render(secrets: &[Secret], look: &Look) -> String {
    if secrets.is_empty() {
        return "no secrets: set one with `era secret set NAME`\n".to_owned();
    }
    look.rows(&["SECRET", "SET"], secrets, |secret| [secret.name.clone(), look.time(secret.set)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_a_line_is_not_the_values() {
        for (given, value) in
            [("x\n", "x"), ("x\r\n", "x"), ("x", "x"), ("a\nb\n\n", "a\nb\n"), ("\n", "")]
        {
            assert_eq!(without_line_end(given), value);
        }
    }

    #[test]
    fn a_value_that_was_given_as_an_argument_is_not_repeated() {
        let told = bad_name("HF_TOKEN=hf_1");
        assert!(told.contains("`HF_TOKEN=…`") && !told.contains("hf_1"), "{told}");
    }

    #[test]
    fn secrets_are_listed_by_name_and_never_by_value() {
        let set = "2026-11-15T15:00:00Z".parse().unwrap();
        let secret = |name: &str| Secret { name: name.to_owned(), set };
        let some = [secret("HF_TOKEN"), secret("WANDB_API_KEY")];
        let text = [render(&some, &look::plain()), render(&[], &look::plain())].join("\n");
        insta::assert_snapshot!(text);
    }
}
