//! One line: what is asked, and how it is answered. Pure, but for the driver's road.

use std::borrow::Cow;

use era_api::Problem;
use era_api::account::Scope;
use era_api::quote::{QuoteAsk, Quoted};
use era_app::Services;
use era_app::error::Kind;
use era_app::jobs::{change, view};
use era_app::quotes::{self, Moment};
use era_app::wire::{self, Wrong};
use era_app::{AppError, seen};
use era_core::units::JobId;
use era_core::{Refusal, explain};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::http::reading::json;
use crate::http::{Caller, Failure};

/// A line, before its body is looked at.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'a> {
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
pub(super) fn answer<T: Serialize>(out: &mut Vec<u8>, id: u64, told: &Result<T, Failure>) {
    #[derive(Serialize)]
    struct Told<'a, T> {
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ok: Option<&'a T>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Problem>,
    }
    let told = match told {
        Ok(ok) => Told { id, ok: Some(ok), error: None },
        Err(failure) => Told { id, ok: None, error: Some(&*failure.0) },
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
) -> Result<Quoted, Failure> {
    caller.may(Scope::Read)?;
    let asked: QuoteAsk = body("ask", ask)?;
    if asked.hold {
        let detail = "a hold is asked for over REST: `POST /api/v1/quotes`";
        return Err(Failure::bad_field("ask.hold", Wrong::said(detail)));
    }
    Ok(quotes::quote(services, caller, at, &asked)?)
}

/// Where a job stands, or that the tables have to say it.
pub(super) fn status(
    caller: &Caller,
    at: Moment<'_>,
    job: Option<&RawValue>,
) -> Result<Standing, Failure> {
    caller.may(Scope::Read)?;
    let id = JobId(body("job", job)?);
    // What has ended is forgotten after a while.
    if at.snapshot.job(id).map_or(true, |job| job.ended.is_some()) {
        return Ok(Standing::Over(id));
    }
    change::visible(at.snapshot, caller, id.0)?;
    let explanation = wire::explanation(&explain(at.snapshot, id)?);
    let status = Status { job: id.0, explanation, outcome: None, exit_code: None };
    Ok(Standing::Told(Box::new(status)))
}

/// What a snapshot has to say of a job.
pub(super) enum Standing {
    /// Where it stands.
    Told(Box<Status>),
    /// It has ended, if it ever was.
    Over(JobId),
}

/// Where a job stands.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    job: u64,
    #[serde(flatten)]
    explanation: era_api::job::Explanation,
    /// How it ended, and with which code, once it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<era_api::job::Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
}

/// Where a job stands that is over, by the tables.
pub(super) async fn over(app: &Services, caller: &Caller, id: JobId) -> Result<Status, AppError> {
    let row = seen::job(app, caller, id.0).await.map_err(|error| match error.0.kind {
        Kind::NotFound => Refusal::UnknownJob { job: id }.into(),
        _ => error,
    })?;
    let outcome = view::outcome(app, &row).await?;
    let explanation = view::explained(app, &row).await?;
    Ok(Status { job: id.0, explanation, outcome, exit_code: row.exit_code })
}

/// The body of a line.
pub(super) fn body<T: serde::de::DeserializeOwned>(
    field: &str,
    raw: Option<&RawValue>,
) -> Result<T, Failure> {
    let Some(raw) = raw else {
        return Err(Failure::bad_field(field, Wrong::Missing));
    };
    json(raw.get().as_bytes())
}

/// What is wrong with a line that cannot be read, and the id that it may still have.
pub(super) fn unreadable(text: &[u8]) -> (u64, Failure) {
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
    let failure = match json::<Shape>(text) {
        Ok(_) => Failure::bad_field("line", Wrong::said("it cannot be read")),
        Err(failure) => failure,
    };
    (id, failure)
}
