//! The language in which administrators say which waiting job comes first.
//!
//! A formula is arithmetic over the numbers in [`Var`] and comparisons of the texts in [`Attr`],
//! such as `100 * user_level + wait / 60 - if(field == "vision", 5, 0)`. It is parsed once, when
//! it is set, into flat postfix code; ranking a queue only runs that code, without allocating.
//! All limits are checked at parsing, so evaluation cannot fail. A formula knows nothing of
//! queues, jobs or clocks: whoever ranks fills in [`Inputs`].
//!
//! From loosest to tightest: `or`, `and`, `not`, comparisons (which do not chain), `+ -`, `* /`,
//! unary minus. Conditions are numbers: everything but 0 means yes, and a comparison gives 1 or 0.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::queue::fixed::Fixed;
use crate::refusal::Refusal;
use crate::units::Name;

mod code;
mod fault;
mod lex;
mod names;
mod parse;
#[cfg(test)]
mod tests;
mod trend;

use code::Op;
pub use fault::Fault;
pub use names::{Attr, Function, Var};

/// Longest accepted source, in characters.
pub const SOURCE_LEN_MAX: usize = 4096;
/// Deepest accepted nesting, and most values that wait for their operator at one time.
pub const DEPTH_MAX: usize = 64;
/// Most operations, each number, name and operator being one.
pub const OPS_MAX: usize = 512;

/// Why a text is no formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at character {at}")]
pub struct FormulaError {
    /// Index of the character that it is about, the first being 0.
    pub at: usize,
    /// What is wrong, and what would be right.
    pub problem: Fault,
}

impl From<FormulaError> for Refusal {
    fn from(FormulaError { at, problem }: FormulaError) -> Refusal {
        Refusal::BadFormula { at, problem: problem.to_string() }
    }
}

/// A checked formula. Cloning shares it. Two are equal if their sources are.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Formula {
    source: Arc<str>,
    /// Never empty; leaves exactly one value and never holds more than [`DEPTH_MAX`].
    code: Arc<[Op]>,
    /// The texts that the code compares with, by index.
    texts: Arc<[Name]>,
}

/// What a formula is evaluated on: all that is known about one waiting job now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs<'a> {
    /// The numbers, in the order of [`Var::ALL`].
    pub numbers: [Fixed; Var::COUNT],
    /// The job's field, if it stated one. A missing text equals no text.
    pub field: Option<&'a Name>,
    /// The job's framework, if it stated one.
    pub framework: Option<&'a Name>,
    /// The job's network, if it stated one.
    pub network: Option<&'a Name>,
}

impl<'a> Inputs<'a> {
    /// Sets one number.
    pub fn set(&mut self, var: Var, value: Fixed) {
        self.numbers[var as usize] = value;
    }

    pub fn get(&self, var: Var) -> Fixed {
        self.numbers[var as usize]
    }

    /// One text, if the job stated it.
    pub fn text(&self, attr: Attr) -> Option<&'a Name> {
        match attr {
            Attr::Field => self.field,
            Attr::Framework => self.framework,
            Attr::Network => self.network,
        }
    }
}

impl Formula {
    /// Checks and compiles a formula.
    pub fn parse(source: &str) -> Result<Formula, FormulaError> {
        let (code, texts) = parse::compile(source)?;
        Ok(Formula { source: source.into(), code: code.into(), texts: texts.into() })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it asks for a number.
    pub fn asks(&self, var: Var) -> bool {
        self.code.contains(&Op::Load(var))
    }

    /// The priority of a job. Always exists; see [`crate::queue::fixed`] for the edges.
    pub fn eval(&self, inputs: &Inputs<'_>) -> Fixed {
        let mut stack = [Fixed::ZERO; DEPTH_MAX];
        let mut held = 0;
        for op in self.code.iter() {
            held -= op.takes();
            stack[held] = match *op {
                Op::Load(var) => inputs.get(var),
                Op::Is(attr, text) => {
                    let same = inputs.text(attr) == self.texts.get(usize::from(text));
                    Fixed::from_bool(same)
                }
                op => op.value(&stack[held..]),
            };
            held += 1;
        }
        stack[0]
    }
}

impl FromStr for Formula {
    type Err = FormulaError;
    fn from_str(source: &str) -> Result<Formula, FormulaError> {
        Formula::parse(source)
    }
}

impl TryFrom<String> for Formula {
    type Error = FormulaError;
    fn try_from(source: String) -> Result<Formula, FormulaError> {
        Formula::parse(&source)
    }
}

impl From<Formula> for String {
    fn from(formula: Formula) -> String {
        formula.source.to_string()
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Formula) -> bool {
        self.source == other.source
    }
}

impl Eq for Formula {}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}
