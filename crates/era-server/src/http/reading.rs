//! What a parser says, in words that help: where it is, which field, and what was probably meant.

use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::Failure;
use crate::wire::Wrong;

/// Reads a JSON text into a value, or says what is wrong with it. To know where it is, a parser
/// has to keep note of every step, so it is read that way only once it is known to be wrong.
pub fn json<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        let path = error.path().to_string();
        describe(&path, error.inner())
    })?;
    parser.end().map_err(|error| describe(".", &error))?;
    Ok(value)
}

fn describe(path: &str, error: &serde_json::Error) -> Failure {
    use serde_json::error::Category;
    let sentence = error.to_string();
    // The parser puts the place at the end; it is told once, in front.
    let (problem, _) = sentence.rsplit_once(" at line ").unwrap_or((&sentence, ""));
    let at = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Data => {
            let word = UnknownWord::of(problem);
            let wrong = Wrong::Unread {
                told: meant(problem),
                line: error.line(),
                column: error.column(),
                given: word.as_ref().map(|word| word.given.clone()),
                meant: word.and_then(|word| Some(word.nearest()?.to_owned())),
            };
            Failure::bad_field(&field_of(path, problem), wrong)
        }
        _ if problem.starts_with("recursion limit") => {
            let detail = format!("the body is nested too deeply, at {at}: give at most 127 levels");
            Failure::new(StatusCode::BAD_REQUEST, "too_deep", detail)
        }
        _ => {
            let detail = format!("the body is no JSON: {problem}, at {at}");
            Failure::new(StatusCode::BAD_REQUEST, "bad_json", detail)
        }
    }
}

/// The field that a problem is about: the one that is named in it, below the path to it.
fn field_of(path: &str, problem: &str) -> String {
    let parent = path.trim_matches('.').replace("?", "");
    let named = ["missing field `", "unknown field `"].iter().find_map(|start| {
        let (_, rest) = problem.split_once(start)?;
        Some(rest.split_once('`')?.0)
    });
    match named {
        // The path may or may not end in the unknown field already.
        Some(field) if parent.ends_with(field) => parent,
        Some(field) if parent.is_empty() => field.to_owned(),
        Some(field) => format!("{parent}.{field}"),
        None if parent.is_empty() => "body".to_owned(),
        None => parent,
    }
}

/// A parser's sentence, with the nearest known name where an unknown one was given.
pub fn meant(problem: &str) -> String {
    let Some(word) = UnknownWord::of(problem) else { return problem.to_owned() };
    let UnknownWord { what, given, known } = &word;
    match word.nearest() {
        Some(near) => format!("unknown {what} `{given}`: did you mean `{near}`?"),
        None if known.is_empty() => format!("unknown {what} `{given}`: none is known here"),
        None => format!("unknown {what} `{given}`: known are {}", known.join(", ")),
    }
}

/// A word that a parser does not know, and those that it does.
struct UnknownWord<'a> {
    what: &'static str,
    given: String,
    known: Vec<&'a str>,
}

impl<'a> UnknownWord<'a> {
    /// Out of a parser's sentence, where it is about one.
    fn of(problem: &'a str) -> Option<UnknownWord<'a>> {
        let kinds = [("field", "unknown field `"), ("value", "unknown variant `")];
        let (what, rest) = kinds.into_iter().find_map(|(what, start)| {
            let (_, rest) = problem.split_once(start)?;
            Some((what, rest))
        })?;
        let (given, expected) = rest.split_once('`')?;
        let known = expected.split('`').skip(1).step_by(2).collect();
        Some(UnknownWord { what, given: given.chars().take(80).collect(), known })
    }

    fn nearest(&self) -> Option<&'a str> {
        nearest(&self.given, &self.known)
    }
}

/// A word that is none of those known here, with the one that was probably meant.
pub fn unknown_word(given: &str, known: &[&str]) -> Wrong {
    let given: String = given.chars().take(40).collect();
    let meant = nearest(&given, known).map(str::to_owned);
    Wrong::Unknown { given, meant, known: known.iter().map(|&word| word.to_owned()).collect() }
}

/// Words by comma, each of which a value of this type is written as.
pub fn words<T: DeserializeOwned>(field: &str, text: &str) -> Result<Vec<T>, Failure> {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};
    let read = |word: &str| {
        let word: StrDeserializer<'_, Error> = word.trim().into_deserializer();
        T::deserialize(word).map_err(|error| unread_word(field, &error.to_string()))
    };
    text.split(',').map(read).collect()
}

/// Kinds of events by comma.
pub fn kinds(text: &str) -> Result<Vec<String>, Failure> {
    let read = |word: &str| {
        let bare = serde_json::json!({ "type": word.trim() });
        // Of a kind that is known it says at most that something is missing.
        match serde_json::from_value::<era_core::Event>(bare) {
            Err(error) if error.to_string().starts_with("unknown variant") => {
                Err(unread_word("event", &error.to_string()))
            }
            _ => Ok(word.trim().to_owned()),
        }
    };
    let kinds: std::collections::BTreeSet<_> =
        text.split(',').map(read).collect::<Result<_, _>>()?;
    Ok(kinds.into_iter().collect())
}

fn unread_word(field: &str, problem: &str) -> Failure {
    let wrong = UnknownWord::of(problem).map(|word| unknown_word(&word.given, &word.known));
    Failure::bad_field(field, wrong.unwrap_or(Wrong::Word))
}

/// The known word that is most likely meant, where one is near enough.
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |word: &&&str| strsim::damerau_levenshtein(given, word);
    let near = known.iter().min_by_key(distance)?;
    let limit = (near.len().max(given.len()) / 3).max(1);
    (distance(&near) <= limit).then_some(*near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_api::account::{NewUser, Quota};

    fn refused<T: DeserializeOwned>(text: &str) -> era_api::Problem {
        match json::<T>(text.as_bytes()) {
            Ok(_) => panic!("{text} was read"),
            Err(Failure(problem)) => *problem,
        }
    }

    #[test]
    fn an_unknown_field_is_told_with_the_nearest_known_one() {
        let problem = refused::<Quota>(r#"{"memry": "1Gi"}"#);
        assert_eq!((problem.status, problem.code.as_str()), (422, "bad_field"));
        assert_eq!(problem.field.as_deref(), Some("memry"));
        assert_eq!(
            problem.detail,
            "unknown field `memry`: did you mean `memory`?, at line 1, column 8"
        );
        let parameters = serde_json::json!(
            {"problem": "unread", "line": 1, "column": 8, "given": "memry", "meant": "memory"}
        );
        assert_eq!(serde_json::Value::Object(problem.parameters), parameters);
        let problem = refused::<Quota>(r#"{"colour": "red"}"#);
        assert!(problem.detail.contains("known are cpu, memory"), "{}", problem.detail);
    }

    #[test]
    fn an_unknown_field_deep_within_a_job_is_told_like_any_other() {
        let job = |ask: &str| format!("{{\"work\": {{}},\n \"ask\": {{{ask}}}}}");
        let cases = [
            (r#""resources": {"memry": "16Gi"}"#, "ask.resources.memry", "memory"),
            (r#""resources": {}, "replicas": {"min": 1, "mx": 2}"#, "ask.replicas.mx", "max"),
            (r#""resources": {}, "constraints": {"poool": "a"}"#, "ask.constraints.poool", "pool"),
        ];
        for (ask, field, meant) in cases {
            let problem = refused::<era_api::job::NewJob>(&job(ask));
            assert_eq!(problem.field.as_deref(), Some(field), "{}", problem.detail);
            assert_eq!(problem.parameters["meant"], meant, "{}", problem.detail);
            assert_eq!(problem.parameters["line"], 2, "{}", problem.detail);
        }
    }

    #[test]
    fn a_wrong_type_is_told_with_its_field_line_and_column() {
        let problem = refused::<NewUser>("{\n  \"name\": 7\n}");
        assert_eq!(problem.field.as_deref(), Some("name"));
        assert!(problem.detail.contains("line 2"), "{}", problem.detail);
        let problem = refused::<NewUser>(r#"{"name": "a", "role": "amin"}"#);
        assert_eq!(problem.field.as_deref(), Some("role"));
        let problem = refused::<NewUser>("{}");
        assert_eq!(problem.field.as_deref(), Some("name"));
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (text, code) in
            [("{", "bad_json"), ("{\"name\": \"a\"} x", "bad_json"), ("", "bad_json")]
        {
            let problem = refused::<NewUser>(text);
            assert_eq!((problem.status, problem.code.as_str()), (400, code), "{text}");
            assert!(problem.detail.contains("line"), "{}", problem.detail);
        }
        let deep = format!("{{\"name\":{}", "[".repeat(100_000));
        let problem = refused::<serde_json::Value>(&deep);
        assert_eq!(problem.code, "too_deep");
    }

    #[test]
    fn words_are_read_by_comma_and_an_unknown_one_is_told_with_the_nearest() {
        use era_core::cluster::Health;
        assert_eq!(words::<Health>("health", "up, lost").unwrap(), [Health::Up, Health::Lost]);
        assert_eq!(kinds("running,ended, running").unwrap(), ["ended", "running"]);
        for (told, field, given, meant) in [
            (words::<Health>("health", "lots").unwrap_err(), "health", "lots", "lost"),
            (kinds("ended,runing").unwrap_err(), "event", "runing", "running"),
        ] {
            assert_eq!(told.0.field.as_deref(), Some(field));
            assert_eq!(
                (&told.0.parameters["given"], &told.0.parameters["meant"]),
                (&given.into(), &meant.into())
            );
        }
    }

    #[test]
    fn only_near_words_are_meant() {
        assert_eq!(nearest("memry", &["memory", "cpu"]), Some("memory"));
        assert_eq!(nearest("gup", &["gpu", "cpu"]), Some("gpu"));
        assert_eq!(nearest("colour", &["memory", "cpu"]), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
