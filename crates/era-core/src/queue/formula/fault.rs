//! Every way in which a text is no formula, each with a sentence that says what would be right.

use serde::Serialize;

use super::names::{Attr, Function, Var, nearest};

/// What is wrong with a formula. It is written with its code as `fault` and its values beside it,
/// for whoever puts it in words of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    // The whole.
    #[error("the formula is too long: write at most {most} characters")]
    TooLong { most: usize },
    #[error("the formula is empty: write at least a number, such as 0")]
    Empty,
    #[error("the formula is nested too deeply: nest at most {most} levels")]
    TooDeep { most: usize },
    #[error(
        "more than {most} values wait here for their operators: write nested parts first, as in (a * b) + c"
    )]
    TooManyHeld { most: usize },
    #[error("the formula is too large: write at most {most} operations")]
    TooLarge { most: usize },

    // What was expected.
    #[error("expected an operator or the end, found {}", or_end(found))]
    ExpectedOperator { found: Option<String> },
    #[error("expected a number, a name or `(`, found {}", or_end(found))]
    ExpectedOperand { found: Option<String> },
    #[error("expected `)` for the `(` at character {open}, found {}", or_end(found))]
    Unclosed { open: usize, found: Option<String> },
    #[error("expected `,` or `)` for `{name}(` at character {open}, found {}", or_end(found))]
    UnclosedCall { name: String, open: usize, found: Option<String> },

    // Numbers.
    #[error("`{whole}.` has no digit after its point: write {whole}")]
    NoFraction { whole: String },
    #[error("`{number}` is too fine: write at most 6 decimals")]
    TooFine { number: String },
    #[error("`{number}` is out of range: numbers go up to {most}")]
    OutOfRange { number: String, most: String },
    #[error("`{number}` has an exponent: write numbers in digits, up to {most}")]
    Exponent { number: String, most: String },
    #[error("`{number}` is no number: put an operator between number and name")]
    GluedName { number: String },
    #[error("`{number}` is no number: write one point at most")]
    TwoPoints { number: String },

    // Texts.
    #[error("the text has no end: close it with `\"`")]
    OpenText,
    #[error("{problem}")]
    BadText { problem: String },
    #[error("write the text in quotes: {attr} == \"{word}\"")]
    Unquoted { attr: String, word: String },
    #[error("texts have no order: compare them with == or !=")]
    TextsHaveNoOrder,
    #[error(
        "a text is no number: compare one of the job's with one in quotes, as in field == \"vision\""
    )]
    TextIsNoNumber,

    // Signs and names.
    #[error("`{given}` means nothing here: {hint}")]
    Strange {
        given: String,
        #[serde(skip)]
        hint: &'static str,
    },
    #[error("comparisons do not chain: write `a < b and b < c`")]
    Chained,
    #[error("`not` binds loosely: put it in parentheses, as in 1 + (not a)")]
    LooseNot,
    #[error("`{name}` is a function: {signature}")]
    NotCalled { name: String, signature: &'static str },
    #[error("`{name}` is no function: put an operator before the `(`")]
    NoFunction { name: String },
    #[error("{given} {} given: write {signature}", if *given == 1 { "argument" } else { "arguments" })]
    Arguments { given: usize, signature: &'static str },
    #[error("`{name}` is no number here: write a finite one in digits")]
    NotFinite { name: String },
    #[error("`{name}` is not known here: write 1 or 0")]
    NoTruth { name: String },
    #[error("`{name}` is not known{}: {}", meaning(*meant), known())]
    UnknownName { name: String, meant: Option<&'static str> },

    // Constants.
    #[error("this divides by zero: divide by something else")]
    DividesByZero,
    #[error("clamp's {low} is above its {high}: give the lower first")]
    Backwards { low: String, high: String },
    #[error("{number} has no logarithm: give a number above 0")]
    NoLogarithm { number: String },
    #[error("{number} has no square root: give 0 or more")]
    NoRoot { number: String },
    #[error("this is out of range whatever the job: stay between {min} and {max}")]
    BeyondRange { min: String, max: String },
}

impl Fault {
    /// What is wrong with a name that is in no table, and what is nearest to it.
    pub(super) fn of_name(name: &str) -> Fault {
        let given = name.to_owned();
        match name.to_ascii_lowercase().as_str() {
            "nan" | "inf" | "infinity" => Fault::NotFinite { name: given },
            "true" | "false" => Fault::NoTruth { name: given },
            _ => Fault::UnknownName { name: given, meant: nearest(name) },
        }
    }
}

fn or_end(found: &Option<String>) -> &str {
    found.as_deref().unwrap_or("the end")
}

fn meaning(meant: Option<&str>) -> String {
    meant.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// All names that there are.
fn known() -> String {
    fn list<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
        all.iter().map(|known| name(*known)).collect::<Vec<_>>().join(", ")
    }
    format!(
        "numbers are {}; texts are {}; functions are {}",
        list(Var::ALL, Var::name),
        list(Attr::ALL, Attr::name),
        list(Function::ALL, Function::name),
    )
}
