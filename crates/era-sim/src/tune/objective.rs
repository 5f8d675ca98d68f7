//! What is better: an arithmetic expression over the figures of a run, to be made small.
//!
//! `+ - * /`, unary minus, parentheses, numbers and the names in [`NAMES`]. Parsed once into
//! postfix code; evaluation cannot fail. A division by zero gives a very large number, so that no
//! candidate wins by it.

use super::measured::{Measured, NAMES, index_of};
use crate::BadInput;

/// Longest expression, in bytes.
const SOURCE_BYTES_MAX: usize = 1024;
/// Deepest nesting.
const DEPTH_MAX: usize = 32;

/// An expression over the figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    source: String,
    code: Vec<Op>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Number(f64),
    Figure(usize),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Objective {
    /// Reads an expression.
    pub fn parse(source: &str) -> Result<Objective, BadInput> {
        let bad = |problem: String| BadInput::new(problem).field("--objective");
        if source.len() > SOURCE_BYTES_MAX {
            return Err(bad(format!("give at most {SOURCE_BYTES_MAX} characters")));
        }
        let mut parser = Parser { text: source.as_bytes(), at: 0, depth: 0, code: Vec::new() };
        let parsed = parser.sum().and_then(|()| match parser.peek() {
            None => Ok(()),
            Some(other) => Err(format!("`{}` comes where the end should", char::from(other))),
        });
        parsed.map_err(|problem| bad(format!("{problem}, at character {}", parser.at + 1)))?;
        if !parser.code.iter().any(|op| matches!(op, Op::Figure(_))) {
            return Err(bad(format!("it is the same for every run: use one of {}", known())));
        }
        Ok(Objective { source: source.to_owned(), code: parser.code })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its value for a run: the smaller, the better.
    pub fn of(&self, measured: &Measured) -> f64 {
        let mut stack: Vec<f64> = Vec::with_capacity(self.code.len());
        for op in &self.code {
            let value = match op {
                Op::Number(number) => *number,
                Op::Figure(index) => measured.at(*index),
                Op::Negate => -stack.pop().unwrap_or(0.0),
                op => {
                    let (b, a) = (stack.pop().unwrap_or(0.0), stack.pop().unwrap_or(0.0));
                    match op {
                        Op::Add => a + b,
                        Op::Subtract => a - b,
                        Op::Multiply => a * b,
                        _ if b == 0.0 => f64::MAX,
                        _ => a / b,
                    }
                }
            };
            stack.push(value);
        }
        let value = stack.pop().unwrap_or(0.0);
        if value.is_nan() { f64::MAX } else { value.clamp(f64::MIN, f64::MAX) }
    }
}

fn known() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    code: Vec<Op>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn sum(&mut self) -> Result<(), String> {
        self.product()?;
        while let Some(sign @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            self.product()?;
            self.code.push(if sign == b'+' { Op::Add } else { Op::Subtract });
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), String> {
        self.factor()?;
        while let Some(sign @ (b'*' | b'/')) = self.peek() {
            self.at += 1;
            self.factor()?;
            self.code.push(if sign == b'*' { Op::Multiply } else { Op::Divide });
        }
        Ok(())
    }

    fn factor(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nested more than {DEPTH_MAX} deep"));
        }
        match self.peek() {
            Some(b'-') => {
                self.at += 1;
                self.factor()?;
                self.code.push(Op::Negate);
            }
            Some(b'(') => {
                self.at += 1;
                self.sum()?;
                if self.peek() != Some(b')') {
                    return Err("a parenthesis is not closed".into());
                }
                self.at += 1;
            }
            Some(b'0'..=b'9' | b'.') => {
                let text = self.word(|b| b.is_ascii_digit() || b == b'.');
                let number = text.parse().map_err(|_| format!("`{text}` is no number"))?;
                self.code.push(Op::Number(number));
            }
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                let start = self.at;
                let name = self.word(|b| b.is_ascii_alphanumeric() || b == b'_');
                let Some(index) = index_of(&name) else {
                    self.at = start;
                    return Err(format!("`{name}` is not known: known are {}", known()));
                };
                self.code.push(Op::Figure(index));
            }
            Some(other) => {
                return Err(format!(
                    "`{}` comes where a number or name should",
                    char::from(other).escape_default()
                ));
            }
            None => return Err("a number or name is missing".into()),
        }
        self.depth -= 1;
        Ok(())
    }

    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|b| belongs(*b)) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }
}
