//! A job that is being written: what it would be refused for, and what its owner leaves open.
//! Nothing is handed in, kept or set aside.
//!
//! Each field is read by itself, so that one which cannot be read hides nothing about the others.
//! What is found is what a submission would be refused for, by the same functions. Prices and room
//! are not known here: a quote tells them.

use era_api::Credits;
use era_api::account::Scope;
use era_api::job::{Ask, JobSpec, Work};
use era_core::input::{Array, NewJob, Terms};
use era_core::units::Money;
use era_core::{Refusal, dearest_run};
use era_spec::Overlay;
use era_spec::plain::{self, ParserMessage};
use era_store::files::{ContentHash, FilesError};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{data_set, known_secrets, work};
use crate::Services;
use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::files::owner_as_viewer;
use crate::quotes::Moment;
use crate::what_if;
use crate::wire::{self, Wrong};

/// Most problems that are told of one draft: an answer is no many times larger than its question.
const PROBLEMS_MAX: usize = 64;

/// What a draft comes to.
#[derive(Debug)]
pub struct CheckedDraft {
    /// The job that it makes, with what its owner leaves open.
    pub job: JobSpec,
    /// What it costs at most in its queue.
    pub at_most: Option<Credits>,
    /// All that is wrong with it.
    pub problems: Vec<AppError>,
}

/// Reads a draft, and finds out what would be said to it.
pub async fn check(
    app: &Services,
    caller: &Caller,
    draft: Map<String, Value>,
) -> Result<CheckedDraft, AppError> {
    caller.may(Scope::Read)?;
    let mut wrong = Vec::new();
    let mut job = read(draft, &mut wrong);
    job.complete();
    wrong.extend(wire::problems(&job).into_iter().map(AppError::from));
    // What was misread is not there: whatever the core says of the rest would be of another job.
    let mut at_most = None;
    if wrong.is_empty() {
        match on_terms(app, caller, &job) {
            Ok(most) => at_most = most,
            Err(error) => wrong.push(error),
        }
    }
    let parts = work::problems(&job.work, app.runs_images, app.terminals.is_some());
    wrong.extend(parts.into_iter().map(AppError::from));
    wrong.extend(not_there(app, caller, &job.work).await?);
    wrong.truncate(PROBLEMS_MAX);
    Ok(CheckedDraft { job, at_most, problems: wrong })
}

/// What could be read of a draft.
fn read(mut draft: Map<String, Value>, wrong: &mut Vec<AppError>) -> JobSpec {
    let mut part = |name: &str| match draft.get_mut(name) {
        Some(Value::Object(fields)) => std::mem::take(fields),
        _ => Map::new(),
    };
    let (work, ask) = (part("work"), part("ask"));
    let mut job: JobSpec = fields_of("", draft, wrong);
    job.work = fields_of::<Work>("work.", work, wrong);
    job.ask = fields_of::<Ask>("ask.", ask, wrong);
    job
}

/// A value of which each field is read by itself.
fn fields_of<T>(path: &str, fields: Map<String, Value>, wrong: &mut Vec<AppError>) -> T
where
    T: DeserializeOwned + Overlay + Default,
{
    let mut all = T::default();
    for (name, value) in fields {
        if wrong.len() >= PROBLEMS_MAX {
            break;
        }
        let field = format!("{path}{name}");
        match serde_json::from_value::<T>(Value::Object(Map::from_iter([(name, value)]))) {
            Ok(one) => all = one.over(all),
            Err(error) => wrong.push(misread(&field, &error)),
        }
    }
    all
}

fn misread(field: &str, error: &serde_json::Error) -> AppError {
    let ParserMessage { sentence, field: named, given, meant } =
        plain::said(&error.to_string(), "field");
    let wrong = Wrong::Misread { told: sentence, given, meant };
    match named.filter(|named| !field.ends_with(named.as_str())) {
        Some(named) => AppError::bad_field(&format!("{field}.{named}"), wrong),
        None => AppError::bad_field(field, wrong),
    }
}

/// What the core says of a job's terms, as far as that depends on no market: what it costs at most
/// in a queue, or why it is refused.
fn on_terms(app: &Services, caller: &Caller, job: &JobSpec) -> Result<Option<Credits>, AppError> {
    let asked = wire::new_job(caller.user, job)?;
    let snapshot = app.driver.snapshot();
    let Moment { snapshot, now } = Moment::now(&*app.clock, &snapshot);
    let judged = || -> Result<(), Refusal> {
        asked.check_number()?;
        match &asked.terms {
            Terms::Bid { bid, .. } => bid.check(now, snapshot.settings().horizon),
            // One job of an array is refused for what all of them would be.
            Terms::Hold { .. } | Terms::Queue { .. } => {
                let array = asked.array.map(|_| Array { count: 1, running_max: None });
                what_if::handed_in(snapshot, NewJob { array, ..asked.clone() }, now)
            }
        }
    };
    judged()?;
    let Terms::Queue { request, .. } = &asked.terms else { return Ok(None) };
    let jobs = asked.array.map_or(1, |array| i64::from(array.count));
    let each = dearest_run(snapshot, caller.user, request);
    Ok(each.and_then(|each| each.0.checked_mul(jobs)).map(|all| wire::credits(Money(all))))
}

/// What a job names and its owner cannot use.
async fn not_there(
    app: &Services,
    caller: &Caller,
    work: &Work,
) -> Result<Vec<AppError>, AppError> {
    let viewer = owner_as_viewer(&app.driver, caller.user, &caller.name);
    let mut found = Vec::new();
    found.extend(known_secrets(app, caller.user, work).await.err());
    if let Some(code) = &work.code {
        let readable = match code.parse::<ContentHash>() {
            Ok(hash) => app.files.check_readable(&viewer, hash).await.map_err(AppError::from),
            Err(error) => Err(error.into()),
        };
        found.extend(readable.err().map(|error| error.about("work.code")));
    }
    for input in work.inputs.iter().take(work::INPUTS_MAX) {
        let set: Result<_, FilesError> =
            app.files.data_set(&viewer, &data_set(&viewer.name, input)).await;
        found.extend(set.err().map(|error| AppError::from(error).about("work.inputs")));
    }
    // That nobody could look is no fault of the job.
    let ours = |error: &AppError| matches!(error.0.kind, Kind::Internal | Kind::Unavailable);
    match found.iter().position(ours) {
        Some(at) => Err(found.swap_remove(at)),
        None => Ok(found),
    }
}
