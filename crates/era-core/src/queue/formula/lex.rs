//! From characters to tokens.
//!
//! The lexer knows how numbers, texts, names and operators are written, and nothing of what they
//! mean together. What people bring along from other languages (`&&`, `!`, `1e9`, `'x'`) is
//! refused with what to write instead.

use super::{Fault, FormulaError};
use crate::queue::fixed::{DIGITS, Fixed};
use crate::units::Name;

/// A piece of a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Number(Fixed),
    Text(Name),
    Ident(String),
    /// An operator, a parenthesis or a comma.
    Symbol(&'static str),
    End,
}

impl Token {
    /// How a refusal calls it; the end has no name.
    pub(super) fn describe(&self) -> Option<String> {
        match self {
            Token::Number(number) => Some(format!("`{number}`")),
            Token::Text(text) => Some(format!("\"{text}\"")),
            Token::Ident(name) => Some(format!("`{name}`")),
            Token::Symbol(symbol) => Some(format!("`{symbol}`")),
            Token::End => None,
        }
    }
}

/// Longer ones first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 13] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ","];

/// What others write, and what is written here.
const ELSEWHERE: [(&str, &str); 9] = [
    ("&", "write `and`"),
    ("|", "write `or`"),
    ("!", "write `not`, or `!=` to compare"),
    ("=", "write `==` to compare"),
    ("'", "write texts in double quotes"),
    (".", "write a digit before the point, as in 0.5"),
    ("^", "there are no powers: multiply"),
    ("%", "there is no remainder: divide"),
    ("?", "write if(condition, a, b)"),
];

/// Longest part of a source that a refusal repeats.
const QUOTED_MAX: usize = 40;

/// All tokens with the index of their first character, [`Token::End`] last.
pub(super) fn tokens(source: &[char]) -> Result<Vec<(usize, Token)>, FormulaError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = source.get(at) {
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let rest = &source[at..];
        let (token, len) = match c {
            '0'..='9' => number(rest),
            '"' => text(rest),
            c if starts_name(c) => {
                let name = prefix(rest, continues_name);
                Ok((Token::Ident(shown(name)), name.len()))
            }
            _ => symbol(rest),
        }
        .map_err(|problem| FormulaError { at, problem })?;
        tokens.push((at, token));
        at += len;
    }
    tokens.push((at, Token::End));
    Ok(tokens)
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn prefix(rest: &[char], belongs: fn(char) -> bool) -> &[char] {
    let len = rest.iter().position(|c| !belongs(*c)).unwrap_or(rest.len());
    &rest[..len]
}

/// The characters as text, cut where no refusal would want to repeat more. Cutting a name cannot
/// make it a known one: those are shorter.
fn shown(chars: &[char]) -> String {
    chars.iter().take(QUOTED_MAX).collect()
}

fn number(rest: &[char]) -> Result<(Token, usize), Fault> {
    let is_digit = |c: char| c.is_ascii_digit();
    let whole = prefix(rest, is_digit);
    let mut len = whole.len();
    let mut fraction: &[char] = &[];
    if rest.get(len) == Some(&'.') {
        fraction = prefix(&rest[len + 1..], is_digit);
        if fraction.is_empty() {
            return Err(Fault::NoFraction { whole: shown(whole) });
        }
        len += 1 + fraction.len();
    }
    if rest.get(len).is_some_and(|c| continues_name(*c) || *c == '.') {
        return Err(broken_number(rest));
    }
    if fraction.iter().skip(DIGITS).any(|c| *c != '0') {
        return Err(Fault::TooFine { number: shown(&rest[..len]) });
    }
    let padded = fraction.iter().chain(std::iter::repeat(&'0')).take(DIGITS);
    let raw = whole.iter().chain(padded).try_fold(0_i64, |raw, digit| {
        raw.checked_mul(10)?.checked_add(i64::from(digit.to_digit(10)?))
    });
    let raw = raw.ok_or_else(|| Fault::OutOfRange { number: shown(&rest[..len]), most: most() })?;
    Ok((Token::Number(Fixed(raw)), len))
}

fn most() -> String {
    Fixed::MAX.to_string()
}

/// Why digits with letters or a further point after them are no number.
fn broken_number(rest: &[char]) -> Fault {
    let all = prefix(rest, |c| continues_name(c) || c == '.');
    let number = shown(all);
    let after_digits = all.iter().find(|c| !c.is_ascii_digit() && **c != '.');
    match after_digits {
        Some('e' | 'E') => Fault::Exponent { number, most: most() },
        Some(_) => Fault::GluedName { number },
        None => Fault::TwoPoints { number },
    }
}

fn text(rest: &[char]) -> Result<(Token, usize), Fault> {
    let inside = prefix(&rest[1..], |c| c != '"');
    if rest.get(inside.len() + 1).is_none() {
        return Err(Fault::OpenText);
    }
    let text: String = inside.iter().collect();
    // What is no name can be no job's attribute, and would silently never match.
    let bad = |bad: crate::units::BadName| bad.to_string().escape_debug().to_string();
    let name = Name::new(&text).map_err(|e| Fault::BadText { problem: bad(e) })?;
    Ok((Token::Text(name), inside.len() + 2))
}

fn symbol(rest: &[char]) -> Result<(Token, usize), Fault> {
    let starts = |text: &str| text.chars().zip(rest).filter(|(a, b)| a == *b).count() == text.len();
    if let Some(symbol) = SYMBOLS.into_iter().find(|s| starts(s)) {
        return Ok((Token::Symbol(symbol), symbol.len()));
    }
    let hint = ELSEWHERE.into_iter().find(|(s, _)| starts(s)).map(|(_, hint)| hint);
    let hint = hint.unwrap_or("write numbers, names, texts in double quotes and operators");
    let given = match rest.first() {
        Some(c) if c.is_control() => c.escape_debug().to_string(),
        c => c.into_iter().collect(),
    };
    Err(Fault::Strange { given, hint })
}
