//! What a parser says, in plain words: what was given, what belongs there, and which known word was
//! probably meant. Every door reads its sentences here, so that no door tells of the types that
//! values are read into.
//!
//! The sentences are those of `serde`, of the readers below it, and of the standard library's
//! numbers. Whatever else a sentence says was written by us and is left as it is.

use crate::reading::BEGINNING_MIN;

/// Most characters of what was given that are repeated.
const GIVEN_MAX: usize = 80;

/// Words of the language's types, for which there are plain ones.
pub const TYPE_WORDS: [&str; 27] = [
    "Option<",
    "struct ",
    "enum ",
    "variant",
    "newtype",
    "from_multiple",
    "tuple",
    "untagged",
    "sequence",
    "unit value",
    "borrowed",
    "deserialize",
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i8",
    "i16",
    "i32",
    "i64",
    "f32",
    "f64",
    "isize",
    "digit found in string",
    "target type",
    "Vec<",
];

/// What a parser says, and the words in it that programs want.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParserMessage {
    pub sentence: String,
    /// The field that is missing, unknown or there twice.
    pub field: Option<String>,
    /// The word that is not known.
    pub given: Option<String>,
    /// The known word that was probably meant.
    pub meant: Option<String>,
}

/// Whether a sentence names a type. What was given stands in backquotes, and may be any word.
pub fn names_a_type(told: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let stands_in = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let after = text[at + word.len()..].chars().next();
            // `u8` is a type, and neither `gpu8` nor `u80` is.
            let ends = !word.ends_with(|c: char| c.is_ascii_digit()) || !joins(after);
            ends && !joins(text[..at].chars().next_back())
        })
    };
    told.split('`').step_by(2).any(|text| TYPE_WORDS.iter().any(|word| stands_in(text, word)))
}

/// A parser's sentence in plain words. A name in front of a value is called a `field` by some and a
/// `key` by others.
pub fn said(problem: &str, called: &str) -> ParserMessage {
    for (start, what) in [("unknown field `", called), ("unknown variant `", "value")] {
        if let Some((given, known)) = quoted(problem, start) {
            let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            let meant = nearest(given, &known).map(str::to_owned);
            let given = cut(given);
            let hint = match &meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if known.is_empty() => "none is known here".to_owned(),
                None => format!("known are {}", known.join(", ")),
            };
            let sentence = format!("unknown {what} `{given}`: {hint}");
            let field = (what == called).then(|| given.clone());
            return ParserMessage { sentence, field, given: Some(given), meant };
        }
    }
    for (start, end) in [
        ("missing field `", "is missing: give it"),
        ("duplicate field `", "stands here twice: leave one out"),
    ] {
        if let Some((field, _)) = quoted(problem, start) {
            let sentence = format!("`{field}` {end}");
            return ParserMessage {
                sentence,
                field: Some(field.to_owned()),
                ..ParserMessage::default()
            };
        }
    }
    ParserMessage { sentence: other(problem), ..ParserMessage::default() }
}

/// What stands in backquotes behind this beginning, and what follows it.
fn quoted<'a>(problem: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    problem.split_once(start)?.1.split_once('`')
}

fn cut(text: &str) -> String {
    text.chars().take(GIVEN_MAX).collect()
}

fn other(problem: &str) -> String {
    if problem.contains("expected key to be a number") {
        return "a whole number belongs here as the name".to_owned();
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    if let Some(rest) = kinds.iter().find_map(|kind| problem.strip_prefix(kind)) {
        // What was given is a stranger's text; what was expected is not.
        let (given, wanted) = rest.rsplit_once(", expected ").unwrap_or((rest, ""));
        // How many were read of a list: of one in place of an object, those before what is missing.
        let given = if problem.starts_with("invalid length ") { "sequence" } else { given };
        return mismatch(&Given::of(given), wanted);
    }
    if is_about_a_number(problem) {
        return "this is no number in the range that belongs here".to_owned();
    }
    if let Some(wanted) = problem.strip_prefix("unexpected event: expected ") {
        return match wanted {
            "sequence start" => "a list belongs here, such as [this, that]",
            "mapping start" => "keys and values belong here, such as {key: value}",
            _ => "a single value belongs here",
        }
        .to_owned();
    }
    if problem.contains("was not `true` or `false`") || problem.starts_with("invalid YAML 1.1 bool")
    {
        return "give true or false".to_owned();
    }
    if is_about_a_time(problem) {
        return "this is no point in time: write it as 2026-11-20T06:00:00Z".to_owned();
    }
    if problem == "expected value" || names_a_type(problem) {
        return "another kind of value belongs here".to_owned();
    }
    problem.to_owned()
}

/// A text that was to be read as one of these types, in plain words. The type is as the language
/// writes it; unknown where it is empty.
pub fn unread(given: &str, wanted: &str) -> String {
    let given = match given.parse::<i128>() {
        Ok(number) => Given::Whole(number.to_string(), number < 0),
        Err(_) => Given::Other(format!("`{}`", cut(given))),
    };
    mismatch(&given, if wanted.is_empty() { "u64" } else { wanted })
}

/// What is wrong in a text of keys and values, and where: line and column, each from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    pub line: u64,
    pub column: u64,
    pub what: String,
}

/// What a reader of YAML says of a text, and where it stood then, as one sentence and its place.
pub fn misread(text: &str, problem: &str, read: Option<(u64, u64)>) -> Misread {
    // The reader writes the place behind its sentence too.
    let problem = problem.split(" at line ").next().unwrap_or_default();
    let said = said(problem, "key");
    // For an unknown key the reader only knows the map that it is in.
    let named = said.given.as_ref().and_then(|key| place_of(text, key));
    let (line, column) = named.or(read).map_or((1, 1), |(line, col)| (line.max(1), col.max(1)));
    let number = problem.strip_prefix("invalid ").filter(|word| TYPE_WORDS.contains(word));
    let given = number.and_then(|_| value_at(text, line, column));
    let what = match (number, given) {
        (Some(number), Some(given)) => unread(given, number),
        _ => said.sentence,
    };
    Misread { line, column, what }
}

/// The value that begins at a line and column, each from 1.
fn value_at(text: &str, line: u64, column: u64) -> Option<&str> {
    let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let (at, _) = line.char_indices().nth(usize::try_from(column).ok()?.checked_sub(1)?)?;
    let value = line[at..].split([',', '}', ']', '#']).next()?.trim();
    Some(value.trim_matches(['"', '\'']))
}

/// Line and column of a key, each from 1.
fn place_of(text: &str, key: &str) -> Option<(u64, u64)> {
    for (line, content) in text.lines().enumerate() {
        for (at, _) in content.match_indices(key) {
            let before = content[..at].chars().next_back();
            let begins = before.is_none_or(|c| c.is_whitespace() || "{,\"'".contains(c));
            let after = content[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
            if begins && after.starts_with(':') {
                let column = content[..at].chars().count() + 1;
                return Some((line as u64 + 1, column as u64));
            }
        }
    }
    None
}

/// Whether a sentence says that a text is no number, as the standard library says it.
pub fn is_about_a_number(problem: &str) -> bool {
    [
        "invalid digit found",
        "number too large",
        "number too small",
        "cannot parse integer",
        "invalid float literal",
        "cannot parse float",
    ]
    .iter()
    .any(|said| problem.contains(said))
}

/// Whether a sentence says that a text is no time, as the library of times says it.
fn is_about_a_time(problem: &str) -> bool {
    [
        "failed to parse",
        "parsing failed",
        "failed to find",
        "to find offset",
        "but found",
        "unparsed input",
        "parsed timestamp",
        "is not in the required range",
    ]
    .iter()
    .any(|said| problem.contains(said))
}

/// What was given.
enum Given {
    /// A whole number, and whether it is below zero.
    Whole(String, bool),
    /// A number with a fraction.
    Broken(String),
    Other(String),
}

impl Given {
    /// Out of a parser's words.
    fn of(text: &str) -> Given {
        let (kind, value) = text.split_once(' ').unwrap_or((text, ""));
        let bare = value.trim_matches('`');
        match (kind, text) {
            ("integer", _) => Given::Whole(bare.to_owned(), bare.starts_with('-')),
            ("floating", _) => {
                Given::Broken(value.trim_start_matches("point ").trim_matches('`').to_owned())
            }
            ("boolean" | "character", _) => Given::Other(cut(value)),
            ("string", _) => Given::Other(format!("the text {}", cut(value))),
            (_, "null" | "unit value" | "Option value") => Given::Other("nothing".to_owned()),
            (_, "sequence") => Given::Other("a list".to_owned()),
            (_, "map") => Given::Other("an object".to_owned()),
            _ => Given::Other("this".to_owned()),
        }
    }
}

fn mismatch(given: &Given, wanted: &str) -> String {
    let unsigned = matches!(wanted, "u8" | "u16" | "u32" | "u64" | "usize");
    let whole = unsigned || matches!(wanted, "i8" | "i16" | "i32" | "i64" | "isize");
    let belongs = self::wanted(wanted);
    match given {
        Given::Whole(number, true) if unsigned => {
            format!("{number} must not be negative: give {belongs}")
        }
        Given::Whole(number, _) if whole => format!("{number} is out of range: give {belongs}"),
        Given::Whole(number, _) => {
            format!("the number {number} does not belong here: give {belongs}")
        }
        Given::Broken(number) if whole => {
            format!("{number} is no whole number in range: give {belongs}")
        }
        Given::Broken(number) => {
            format!("the number {number} does not belong here: give {belongs}")
        }
        Given::Other(other) => format!("{other} does not belong here: give {belongs}"),
    }
}

/// What belongs somewhere, by what a parser calls it.
fn wanted(parsers: &str) -> String {
    let most = |bits: u32| (1_u64 << (bits - 1)) - 1 + (1 << (bits - 1));
    match parsers {
        "u8" => format!("a whole number from 0 to {}", most(8)),
        "u16" => format!("a whole number from 0 to {}", most(16)),
        "u32" => format!("a whole number from 0 to {}", most(32)),
        "u64" | "usize" => "a whole number of 0 or more".to_owned(),
        "i8" => format!("a whole number from {} to {}", i8::MIN, i8::MAX),
        "i16" => format!("a whole number from {} to {}", i16::MIN, i16::MAX),
        "i32" => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" | "bool" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "string" | "str" | "String" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        _ if parsers.starts_with("a nonzero ") => "a whole number above 0".to_owned(),
        _ if parsers.starts_with("struct ") => "an object".to_owned(),
        _ if parsers.contains("relative error") || parsers.contains("timestamp") => {
            "a point in time such as \"2026-11-20T06:00:00Z\"".to_owned()
        }
        _ if parsers.contains("enum ")
            || parsers.contains("variant")
            || parsers == "string or map" =>
        {
            "one of the words that are known here".to_owned()
        }
        _ if parsers.contains("tuple") || parsers.contains("array") => {
            let long = parsers.rsplit_once(' ').filter(|(_, long)| long.parse::<u32>().is_ok());
            long.map_or_else(|| "a list".to_owned(), |(_, long)| format!("a list of {long}"))
        }
        "" => "another kind of value".to_owned(),
        ours if names_a_type(ours) => "another kind of value".to_owned(),
        ours => ours.to_owned(),
    }
}

/// The known word that was most likely meant, where one is near enough: but for a slip or two, or
/// as its beginning.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |word: &&&str| strsim::damerau_levenshtein(given, word);
    let near = known.iter().min_by_key(distance)?;
    let limit = (near.len().max(given.len()) / 3).max(1);
    if distance(&near) <= limit {
        return Some(near);
    }
    let begun = |word: &&&str| given.len() >= BEGINNING_MIN && word.starts_with(given);
    known.iter().filter(begun).min_by_key(|word| word.len()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parsers_words_become_plain_ones() {
        for (parsers, plain) in [
            (
                "unknown field `memry`, expected one of `cpu`, `memory`",
                "unknown field `memry`: did you mean `memory`?",
            ),
            ("unknown field `x`, there are no fields", "unknown field `x`: none is known here"),
            (
                "unknown variant `amin`, expected one of `user`, `administrator`",
                "unknown value `amin`: known are user, administrator",
            ),
            ("missing field `work`", "`work` is missing: give it"),
            ("duplicate field `ask`", "`ask` stands here twice: leave one out"),
            (
                "invalid type: string \"two\", expected u32",
                "the text \"two\" does not belong here: give a whole number from 0 to 4294967295",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "-1 must not be negative: give a whole number of 0 or more",
            ),
            (
                "invalid value: integer `4294967296`, expected u32",
                "4294967296 is out of range: give a whole number from 0 to 4294967295",
            ),
            (
                "invalid type: floating point `1.5`, expected u32",
                "1.5 is no whole number in range: give a whole number from 0 to 4294967295",
            ),
            ("invalid type: null, expected a string", "nothing does not belong here: give a text"),
            (
                "invalid type: sequence, expected struct NewJob",
                "a list does not belong here: give an object",
            ),
            (
                "invalid type: integer `7`, expected a string",
                "the number 7 does not belong here: give a text",
            ),
            (
                "invalid type: map, expected a number of replicas, or {\"min\": 2, \"max\": 8}",
                "an object does not belong here: give a number of replicas, or {\"min\": 2, \"max\": 8}",
            ),
            (
                "invalid length 3, expected a tuple of size 2",
                "a list does not belong here: give a list of 2",
            ),
            (
                "invalid length 2, expected struct NewJob with 15 elements",
                "a list does not belong here: give an object",
            ),
            (
                "invalid value: integer `99999999999`, expected i32",
                "99999999999 is out of range: give a whole number from -2147483648 to 2147483647",
            ),
            ("invalid YAML 1.1 bool: `1`", "give true or false"),
            (
                "invalid value: expected key to be a number in quotes",
                "a whole number belongs here as the name",
            ),
            ("`lots` is no amount of credits", "`lots` is no amount of credits"),
            ("`u8` is no amount of credits", "`u8` is no amount of credits"),
            ("no pool is called gpu8", "no pool is called gpu8"),
            (
                "data did not match any variant of untagged enum Spelling",
                "another kind of value belongs here",
            ),
        ] {
            let told = said(parsers, "field").sentence;
            assert_eq!(told, plain, "{parsers}");
        }
    }

    #[test]
    fn a_text_that_is_no_number_is_told_with_what_belongs_there() {
        assert_eq!(
            unread("-1", "u32"),
            "-1 must not be negative: give a whole number from 0 to 4294967295"
        );
        assert_eq!(
            unread("abc", "u64"),
            "`abc` does not belong here: give a whole number of 0 or more"
        );
    }

    /// The library of times has a sentence of its own for each place at which a text may be wrong.
    #[test]
    fn whatever_is_wrong_with_a_time_is_told_as_one_thing() {
        const GOOD: &str = "2026-11-20T06:00:30.5+01:00[Europe/Berlin]";
        let spoilt = |at: usize| {
            let (head, tail) = (&GOOD[..at], &GOOD[at..]);
            let with = |c: &str| format!("{head}{c}{}", tail.get(1..).unwrap_or_default());
            let inserted = |c: &str| format!("{head}{c}{tail}");
            let marks = ["x", "9", "-", ":", "T", " ", "[", "é", ""];
            let one = [head.to_owned(), tail.to_owned()].into_iter();
            one.chain(marks.map(with)).chain(marks.map(inserted)).collect::<Vec<_>>()
        };
        let mut refused = 0;
        for text in (0..=GOOD.len()).flat_map(spoilt) {
            let json = serde_json::to_string(&text).unwrap();
            let Err(error) = serde_json::from_str::<jiff::Timestamp>(&json) else { continue };
            let error = error.to_string();
            let problem = error.rsplit_once(" at line ").unwrap().0;
            let told = "this is no point in time: write it as 2026-11-20T06:00:00Z";
            assert_eq!(said(problem, "field").sentence, told, "{text}: {problem}");
            refused += 1;
        }
        assert!(refused > 100, "{refused}");
    }

    #[test]
    fn only_near_words_are_meant() {
        let known = ["resources", "replicas", "command", "queue"];
        for (given, known, meant) in [
            ("memry", &["memory", "cpu"][..], Some("memory")),
            ("mem", &["cpu", "memory", "gpu", "gpu.model", "gpu.memory"], Some("memory")),
            ("gup", &["gpu", "cpu"], Some("gpu")),
            ("mx", &["min", "max"], Some("max")),
            ("resorces", &known, Some("resources")),
            ("comand", &known, Some("command")),
            ("colour", &["memory", "cpu"], None),
            ("xyzzy", &known, None),
            ("x", &[], None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
    }
}
