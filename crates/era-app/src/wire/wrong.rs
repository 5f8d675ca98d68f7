//! What can be wrong with a field: a code with its numbers for programs and for other languages,
//! and a sentence that says what would be right.

use era_core::refusal::Refusal;
use era_core::resources::BadQuantity;
use era_core::units::{BadName, BadTitle};
use serde::Serialize;

/// What is wrong with a field. The code is written as `problem`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Wrong {
    // Texts.
    #[error(transparent)]
    Name(BadName),
    #[error(transparent)]
    Title(BadTitle),
    #[error("{told}")]
    AccountName {
        #[serde(skip)]
        told: String,
        given: String,
    },
    #[error("give 1 to {most} characters, none of them a control one")]
    Text { most: usize },
    #[error("give 1 to {most} characters without blanks")]
    Blanks { most: usize },
    #[error("give one line of 1 to {most} characters")]
    Line { most: usize },
    #[error("this is no name: see the documentation for those there are")]
    Word,
    #[error("a password has {least} to {most} characters: choose another")]
    PasswordLength { least: usize, most: usize },
    #[error(
        "this password is too easily guessed: choose one that is not the account's name or one letter"
    )]
    PasswordGuessable,
    #[error("{told}")]
    Url {
        #[serde(skip)]
        told: &'static str,
    },

    // Numbers.
    #[error("give {least} to {most}")]
    Range { least: u64, most: u64 },
    #[error("give 0.01 to 10")]
    Load,
    #[error("{given} must not be negative: give 0 or more")]
    Negative { given: String },
    #[error("so much cannot be counted: give less")]
    Uncountable,
    #[error("at most {most} {what}")]
    TooMany { most: usize, what: &'static str },
    #[error("give a first index, a last one that is no smaller, and a step")]
    Indices,
    #[error("give a time before the end and before now, and at most {days} days")]
    Period { days: i64 },

    // What goes together, and what does not.
    #[error("it is missing: give it")]
    Missing,
    #[error("give `{one}` or `{other}`, not both")]
    NotBoth { one: &'static str, other: &'static str },
    #[error("give `{one}`, `{other}`, or both")]
    Neither { one: &'static str, other: &'static str },
    #[error("`price_below` needs `pool` and `below`, and these need `price_below`")]
    PriceAlert,
    #[error("only a drain stops what runs: give it with one")]
    DrainOnly,
    #[error("{mechanism} has no such parameter: leave it out")]
    NoParameter { mechanism: String },
    #[error("say at least one event, each of them once")]
    Events,
    #[error("tokens of the server's own machine are labelled so: choose another label")]
    OwnMachine,
    #[error("a token has at least one scope, and none that you do not have here")]
    Scopes,
    #[error("a formula here may have no comma")]
    Comma,

    // What is looked up.
    #[error("there is no `{given}`: {}", known_or_meant(meant.as_deref(), known))]
    Unknown { given: String, meant: Option<String>, known: Vec<String> },
    #[error("there is no such job")]
    NoJob,
    #[error("give `next` of the page before, with the same filter")]
    Cursor,
    #[error("give the id of an event, such as `12.0`")]
    EventId,

    // What is run.
    #[error("say what is run, such as [\"python\", \"train.py\"]")]
    NoCommand,
    #[error("the program has no name")]
    NoProgram,
    #[error("at most {most} arguments and {kib} KiB: put the rest into a file of the code")]
    LongCommand { most: usize, kib: usize },
    #[error("an argument contains a zero byte, which no program can be given")]
    ZeroByte,
    #[error("at most {most} variables and {kib} KiB")]
    LargeEnvironment { most: usize, kib: usize },
    #[error("`{given}` is no name of a variable: begin with a letter or `_`")]
    VariableStart { given: String },
    #[error("`{given}` is no name of a variable: use letters, digits and `_`")]
    VariableLetters { given: String },
    #[error("`{given}`: names that begin with ERA_ are set by the platform")]
    VariableReserved { given: String },
    #[error("the value of `{given}` contains a zero byte")]
    VariableZero { given: String },
    #[error(
        "`{given}` is no name of a secret: begin with a capital letter or `_`, go on with those and \
         digits, 64 at most; names that begin with ERA_ are set by the platform"
    )]
    SecretName { given: String },
    #[error("give 1 byte to {kib} KiB, without a zero byte")]
    SecretValue { kib: usize },
    #[error("there is no secret `{given}`: set it first, with `era secret set {given}`")]
    NoSecret { given: String },
    #[error("`{given}` is named twice: leave it out of the variables, or out of the secrets")]
    SecretTwice { given: String },
    #[error("`{given}` is no path: give 1 to {most} bytes")]
    PathLength { given: String, most: usize },
    #[error("`{given}` must be relative to the working folder, with `/`")]
    PathAbsolute { given: String },
    #[error("`{given}` contains control characters")]
    PathControl { given: String },
    #[error("`{given}` must not contain empty steps, `.` or `..`")]
    PathSteps { given: String },
    #[error("`{given}`: outputs/ and checkpoints/ are the job's own, give another path")]
    PathKept { given: String },
    #[error(
        "tasks here are plain processes, so it would run without `{given}`: leave the image out, or \
         ask for a server with `--executor docker://…`"
    )]
    NoImages { given: String },
    #[error(
        "tasks here have no terminals: leave it out (`--pty`), or ask for a server that runs tasks \
         as processes of its own machine, as `era up` does"
    )]
    NoTerminals,
    #[error("the log has more than {most} tasks: ask for one attempt, or for one rank")]
    ManyTasks { most: usize },

    // What a parser or another part of the house said.
    #[error("{told}, at line {line}, column {column}")]
    Unread {
        #[serde(skip)]
        told: String,
        line: usize,
        column: usize,
        /// A word that is not known here.
        given: Option<String>,
        meant: Option<String>,
    },
    /// The same of a field that was read by itself.
    #[error("{told}")]
    Misread {
        #[serde(skip)]
        told: String,
        /// A word that is not known here.
        #[serde(skip_serializing_if = "Option::is_none")]
        given: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        meant: Option<String>,
    },
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// For programs alone: nobody reads it in another language.
    #[error("{told}")]
    Said {
        #[serde(skip)]
        told: String,
    },
    #[error(transparent)]
    #[serde(untagged)]
    Quantity(BadQuantity),
}

impl Wrong {
    /// Told in words alone, where only programs ask.
    pub fn said(told: impl std::fmt::Display) -> Wrong {
        Wrong::Said { told: told.to_string() }
    }
}

fn known_or_meant(meant: Option<&str>, known: &[String]) -> String {
    match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => "none is known here".into(),
        None => format!("known are {}", known.join(", ")),
    }
}

impl From<BadName> for Wrong {
    fn from(bad: BadName) -> Wrong {
        Wrong::Name(bad)
    }
}

impl From<BadTitle> for Wrong {
    fn from(bad: BadTitle) -> Wrong {
        Wrong::Title(bad)
    }
}

impl From<BadQuantity> for Wrong {
    fn from(bad: BadQuantity) -> Wrong {
        match bad {
            BadQuantity::Name(bad) => Wrong::Name(bad),
            bad => Wrong::Quantity(bad),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_core::units::Name;
    use serde_json::json;

    fn written(wrong: impl Into<Wrong>) -> serde_json::Value {
        serde_json::to_value(wrong.into()).unwrap()
    }

    #[test]
    fn each_has_a_code_with_its_numbers_and_no_sentence() {
        let name = Name::new("two words").unwrap_err();
        assert_eq!(written(name), json!({"problem": "name", "given": "two words"}));
        let quantity = era_core::resources::parse_milli("gpu", "many").unwrap_err();
        assert_eq!(written(quantity)["problem"], "unreadable");
        let length = written(Wrong::PasswordLength { least: 10, most: 512 });
        assert_eq!(length["problem"], "password_length");
        assert_eq!(length["least"], 10);
        let nowhere = Refusal::UnknownJob { job: era_core::units::JobId(7) };
        let refused = written(Wrong::Refused(Box::new(nowhere)));
        assert_eq!(refused, json!({"problem": "refused", "code": "unknown_job", "job": 7}));
        assert_eq!(written(Wrong::said("a sentence")), json!({"problem": "said"}));
    }

    #[test]
    fn the_nearest_known_word_is_told_before_all_others() {
        let unknown = |meant: Option<&str>| Wrong::Unknown {
            given: "gup".into(),
            meant: meant.map(str::to_owned),
            known: vec!["cpu".into(), "gpu".into()],
        };
        assert_eq!(unknown(Some("gpu")).to_string(), "there is no `gup`: did you mean `gpu`?");
        assert_eq!(unknown(None).to_string(), "there is no `gup`: known are cpu, gpu");
    }
}
