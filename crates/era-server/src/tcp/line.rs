//! One line: what is asked, and how it is answered. Pure, but for the driver's road.

use std::borrow::Cow;

use era_api::Problem;
use era_api::account::Scope;
use era_api::quote::{QuoteAsk, Quoted};
use era_app::auth::Caller;
use era_app::quotes::{self, Moment};
use era_app::wire::Wrong;
use era_app::{AppError, Services};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::problem;
use crate::reading::json;

/// A line, before its body is looked at.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestLine<'a> {
    pub(super) id: u64,
    #[serde(borrow)]
    pub(super) op: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) token: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) ask: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) job: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) key: Option<Cow<'a, str>>,
}

/// Writes an answer as one line.
pub(super) fn answer<T: Serialize>(out: &mut Vec<u8>, id: u64, told: Result<T, AppError>) {
    #[derive(Serialize)]
    struct IdOnly<T> {
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ok: Option<T>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Problem>,
    }
    let told = match told {
        Ok(ok) => IdOnly { id, ok: Some(ok), error: None },
        Err(error) => IdOnly { id, ok: None, error: Some(problem::of(error)) },
    };
    let before = out.len();
    // Wire types have string keys and finite numbers only.
    if let Err(error) = serde_json::to_writer(&mut *out, &told) {
        out.truncate(before);
        tracing::error!(%error, "an answer could not be written");
    }
    out.push(b'\n');
}

/// What a bid would get.
pub(super) fn quote(
    services: &Services,
    caller: &Caller,
    at: Moment<'_>,
    ask: Option<&RawValue>,
) -> Result<Quoted, AppError> {
    caller.may(Scope::Read)?;
    let asked: QuoteAsk = body("ask", ask)?;
    if asked.hold {
        let detail = "a hold is asked for over REST: `POST /api/v1/quotes`";
        return Err(AppError::bad_field("ask.hold", Wrong::said(detail)));
    }
    quotes::quote(services, caller, at, &asked)
}

/// The body of a line.
pub(super) fn body<T: serde::de::DeserializeOwned>(
    field: &str,
    raw: Option<&RawValue>,
) -> Result<T, AppError> {
    let Some(raw) = raw else {
        return Err(AppError::bad_field(field, Wrong::Missing));
    };
    json(raw.get().as_bytes())
}

/// What is wrong with a line that cannot be read, and the id that it may still have.
pub(super) fn unreadable(text: &[u8]) -> (u64, AppError) {
    #[derive(Deserialize)]
    struct Id {
        id: u64,
    }
    /// The same as a line, for a parser that says where it stopped.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)] // only whether it can be read is asked
    struct Shape {
        id: u64,
        op: String,
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        ask: Option<serde::de::IgnoredAny>,
        #[serde(default)]
        job: Option<serde::de::IgnoredAny>,
        #[serde(default)]
        key: Option<String>,
    }
    let id = serde_json::from_slice::<Id>(text).map_or(0, |Id { id }| id);
    let error = match json::<Shape>(text) {
        Ok(_) => AppError::bad_field("line", Wrong::said("it cannot be read")),
        Err(error) => error,
    };
    (id, error)
}
