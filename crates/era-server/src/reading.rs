//! What a parser says, in words that help: where it is, which field, and what was probably meant.

use era_app::AppError;
use era_app::error::Kind;
use era_app::wire::Wrong;
use era_spec::plain::{self, ParserMessage};
use serde::de::DeserializeOwned;

/// Reads a JSON text into a value, or says what is wrong with it. To know where it is, a parser
/// has to keep note of every step, so it is read that way only once it is known to be wrong.
pub(crate) fn json<T: DeserializeOwned>(text: &[u8]) -> Result<T, AppError> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        let path = error.path().to_string();
        describe(text, &path, error.inner())
    })?;
    parser.end().map_err(|error| describe(text, ".", &error))?;
    Ok(value)
}

fn describe(text: &[u8], path: &str, error: &serde_json::Error) -> AppError {
    use serde_json::error::Category;
    let sentence = error.to_string();
    // The parser puts the place at the end; it is told once, in front.
    let (problem, _) = sentence.rsplit_once(" at line ").unwrap_or((&sentence, ""));
    let at = format!("line {}, column {}", error.line(), error.column());
    // What is no name of a value, or no number as a name, the parser takes for broken JSON.
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    match error.classify() {
        _ if problem.starts_with("recursion limit") => {
            let detail = format!("the body is nested too deeply, at {at}: give at most 127 levels");
            AppError::new(Kind::Malformed, "too_deep", detail)
        }
        class if class == Category::Data || is_json() => {
            let ParserMessage { sentence, field, given, meant } = plain::said(problem, "field");
            let wrong = Wrong::Unread {
                told: sentence,
                line: error.line(),
                column: error.column(),
                given,
                meant,
            };
            AppError::bad_field(&field_of(path, field), wrong)
        }
        _ => {
            let detail = format!("the body is no JSON: {problem}, at {at}");
            AppError::new(Kind::Malformed, "bad_json", detail)
        }
    }
}

/// The field that a problem is about: the one that is named in it, below the path to it.
fn field_of(path: &str, named: Option<String>) -> String {
    // What cannot be named, as a key that is wrong itself, is a `?` in the path.
    let parent = path.replace('?', "");
    let parent = parent.trim_matches('.').to_owned();
    match named {
        // The path may or may not end in the unknown field already.
        Some(field) if parent.ends_with(&field) => parent,
        Some(field) if parent.is_empty() => field,
        Some(field) => format!("{parent}.{field}"),
        None if parent.is_empty() => "body".to_owned(),
        None => parent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_api::account::{NewUser, QuotaView};

    fn refused<T: DeserializeOwned>(text: &str) -> era_api::Problem {
        match json::<T>(text.as_bytes()) {
            Ok(_) => panic!("{text} was read"),
            Err(error) => crate::problem::of(error),
        }
    }

    #[test]
    fn an_unknown_field_is_told_with_the_nearest_known_one() {
        let problem = refused::<QuotaView>(r#"{"memry": "1Gi"}"#);
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
        let problem = refused::<QuotaView>(r#"{"colour": "red"}"#);
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
            let problem = refused::<era_api::job::JobSpec>(&job(ask));
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

    /// The parser has the same words for a wrong value as for broken JSON.
    #[test]
    fn a_number_in_place_of_a_word_is_no_broken_json() {
        let problem = refused::<NewUser>(r#"{"name": "a", "role": 3}"#);
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("role")));
        let told = "another kind of value belongs here, at line 1, column 23";
        assert_eq!(problem.detail, told);
        let problem = refused::<era_api::cluster::PoolView>(r#"{"level_caps": {"one": 0.5}}"#);
        assert_eq!((problem.status, problem.field.as_deref()), (422, Some("level_caps")));
        assert!(problem.detail.starts_with("a whole number belongs here"), "{}", problem.detail);
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
}
