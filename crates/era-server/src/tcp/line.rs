//! One line: what is asked, and how it is answered. Pure, but for the driver's road.

use std::borrow::Cow;

use era_api::Problem;
use era_api::account::Scope;
use era_api::job::NewJob;
use era_api::quote::{QuoteAsk, Quoted};
use era_core::quote::{Quote, menu, quote};
use era_core::units::{JobId, Time};
use era_core::{Refusal, Snapshot, explain};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::App;
use crate::http::reading::json;
use crate::http::{Caller, Failure, job_views, seen};
use crate::wire::{self, Wrong};

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

/// What the lines of one read are answered from.
pub(super) struct Moment<'a> {
    pub(super) app: &'a App,
    pub(super) snapshot: &'a Snapshot,
    pub(super) now: Time,
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

impl Moment<'_> {
    /// What a bid would get.
    pub(super) fn quote(&self, caller: &Caller, ask: Option<&RawValue>) -> Result<Quoted, Failure> {
        caller.may(Scope::Read)?;
        let asked: QuoteAsk = body("ask", ask)?;
        if asked.hold {
            let detail = "a hold is asked for over REST: `POST /api/v1/quotes`";
            return Err(Failure::bad_field("ask.hold", Wrong::said(detail)));
        }
        let begun = std::time::Instant::now();
        let bid = wire::bid(caller.user, &asked)?;
        let found = quote(self.snapshot, &bid, self.now);
        let price = found.as_ref().ok().map(|quote| quote.price);
        self.app.asks.asked(&bid, self.now, price, begun.elapsed());
        let found: Quote =
            found.map_err(|declined| Failure::refused(&declined.refusal, &declined.counter))?;
        let lines = match asked.menu {
            false => Vec::new(),
            true => menu(self.snapshot, &bid, self.now)
                .map_err(|declined| Failure::refused(&declined.refusal, &declined.counter))?,
        };
        Ok(Quoted { quote: wire::quote(&found), hold: None, menu: wire::menu(&lines) })
    }

    /// Where a job stands, or that the tables have to say it.
    pub(super) fn status(
        &self,
        caller: &Caller,
        job: Option<&RawValue>,
    ) -> Result<Standing, Failure> {
        caller.may(Scope::Read)?;
        let id = JobId(body("job", job)?);
        // What has ended is forgotten after a while.
        if self.snapshot.job(id).map_or(true, |job| job.ended.is_some()) {
            return Ok(Standing::Over(id));
        }
        self.visible(caller, id)?;
        let explanation = explain(self.snapshot, id).map_err(|refusal| Failure::from(&refusal))?;
        let explanation = wire::explanation(&explanation);
        let status = Status { job: id.0, explanation, outcome: None, exit_code: None };
        Ok(Standing::Told(Box::new(status)))
    }

    /// A job that the caller may see; a foreign one is as if it were not there.
    pub(super) fn seen(&self, caller: &Caller, job: Option<&RawValue>) -> Result<JobId, Failure> {
        self.visible(caller, JobId(body("job", job)?))
    }

    fn visible(&self, caller: &Caller, id: JobId) -> Result<JobId, Failure> {
        let found = self.snapshot.job(id).map_err(|refusal| Failure::from(&refusal))?;
        if !caller.sees(found.user, found.group) {
            return Err(Failure::from(&Refusal::UnknownJob { job: id }));
        }
        Ok(id)
    }
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
pub(super) async fn over(app: &App, caller: &Caller, id: JobId) -> Result<Status, Failure> {
    let row = seen::job(app, caller, id.0).await.map_err(|failure| match failure.0.status {
        404 => Failure::from(&Refusal::UnknownJob { job: id }),
        _ => failure,
    })?;
    let outcome = job_views::outcome(app, &row).await?;
    let explanation = job_views::explained(app, &row).await?;
    Ok(Status { job: id.0, explanation, outcome, exit_code: row.exit_code })
}

/// A job that is handed in.
pub(super) fn new_job(job: Option<&RawValue>) -> Result<NewJob, Failure> {
    body("job", job)
}

/// The body of a line.
fn body<T: serde::de::DeserializeOwned>(field: &str, raw: Option<&RawValue>) -> Result<T, Failure> {
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
