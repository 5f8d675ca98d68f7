//! Jobs as they are handed in and changed. Reading them is another file's.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use era_api::account::Scope;
use era_api::job::{Extend, JobEdit, NewJob, Submitted};
use era_core::units::{JobId, Name};
use era_core::{Command, Reply};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::{Body, Path, Query};
use super::failure::Failure;
use super::idempotency::Key;
use super::reply::{done, refused};
use crate::App;
use crate::submit::{self, Owner};
use crate::wire;

/// The routes that change jobs.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit_job))
        .routes(routes!(edit))
        .routes(routes!(cancel))
        .routes(routes!(release))
        .routes(routes!(extend))
        .routes(routes!(retry))
}

/// Hands in a job: a bid with its value, a held quote, or work for a queue.
#[utoipa::path(
    post, path = "/jobs", tag = "jobs",
    request_body = NewJob,
    responses((status = 201, body = Submitted))
)]
async fn submit_job(
    State(app): State<App>,
    caller: Caller,
    key: Option<Key>,
    Body(job): Body<NewJob>,
) -> Result<impl IntoResponse, Failure> {
    caller.may(Scope::Write)?;
    let owner = Owner::of(&app, &caller);
    let submitted =
        submit::submit(&app, &owner, job, key.and_then(|key| key.for_core(caller.user))).await?;
    Ok(created(submitted))
}

fn created(submitted: Submitted) -> impl IntoResponse {
    let location = location(submitted.job);
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(submitted))
}

/// Where a job is found.
pub(super) fn location(job: u64) -> String {
    format!("{}/jobs/{job}", era_api::PREFIX)
}

/// Changes a waiting job.
#[utoipa::path(
    patch, path = "/jobs/{id}", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    request_body = JobEdit,
    responses((status = 204))
)]
async fn edit(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Body(edit): Body<JobEdit>,
) -> Result<StatusCode, Failure> {
    let job = may_change(&app, &caller, id)?;
    let command = Command::Edit {
        job,
        by: caller.actor(),
        priority: edit.priority,
        limit: edit.duration_s.map(wire::span),
        queue: wire::optional_name("queue", edit.queue.as_deref())?,
    };
    done(app.driver.ask(command, None).await?)
}

/// How much is given up.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Extent {
    /// Whether all that is left of its array is given up, rather than the job alone.
    array: Option<bool>,
}

/// Gives up a job, whatever it does, or all of its array.
#[utoipa::path(
    post, path = "/jobs/{id}/cancel", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number"), Extent),
    responses((status = 204))
)]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Query(extent): Query<Extent>,
) -> Result<StatusCode, Failure> {
    let job = may_change(&app, &caller, id)?;
    let by = caller.actor();
    let command = match extent.array.unwrap_or(false) {
        true => Command::CancelArray { job, by },
        false => Command::Cancel { job, by },
    };
    done(app.driver.ask(command, None).await?)
}

/// Gives back what is left of a running reservation.
#[utoipa::path(
    post, path = "/jobs/{id}/release", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    responses((status = 204))
)]
async fn release(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<StatusCode, Failure> {
    let job = may_change(&app, &caller, id)?;
    let command = Command::Release { job, by: caller.actor() };
    done(app.driver.ask(command, None).await?)
}

/// Lets a running reservation last longer, at the market's price.
#[utoipa::path(
    post, path = "/jobs/{id}/extend", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    request_body = Extend,
    responses((status = 204))
)]
async fn extend(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Body(extend): Body<Extend>,
) -> Result<StatusCode, Failure> {
    let job = may_change(&app, &caller, id)?;
    let command = Command::Extend {
        job,
        by: caller.actor(),
        span: wire::span(extend.by_s),
        most: wire::money(extend.most),
    };
    done(app.driver.ask(command, None).await?)
}

/// Hands in again what a job was, as a new one of the same owner.
#[utoipa::path(
    post, path = "/jobs/{id}/retry", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    responses((status = 201, body = Submitted))
)]
async fn retry(
    State(app): State<App>,
    caller: Caller,
    key: Option<Key>,
    Path(id): Path<u64>,
) -> Result<impl IntoResponse, Failure> {
    caller.may(Scope::Write)?;
    // What was handed in a moment ago is found as well.
    app.wait_for(app.driver.snapshot().seq()).await;
    let (owner, again) = submit::again(&app, &caller, id).await?;
    let key: Option<Name> = key.and_then(|key| key.for_core(caller.user));
    Ok(created(submit::submit(&app, &owner, again, key).await?))
}

/// A job that the caller may see and change; a foreign one is as if it were not there.
fn may_change(app: &App, caller: &Caller, id: u64) -> Result<JobId, Failure> {
    caller.may(Scope::Write)?;
    let snapshot = app.driver.snapshot();
    let job = snapshot.job(JobId(id))?;
    if !caller.sees(job.user, job.group) {
        return Err(era_core::Refusal::UnknownJob { job: JobId(id) }.into());
    }
    Ok(JobId(id))
}

/// What a submission was answered.
pub fn submitted(reply: Reply) -> Result<Submitted, Failure> {
    match reply {
        Reply::Accepted { job, quote, count } => {
            Ok(Submitted { job: job.0, count, quote: quote.as_ref().map(wire::quote) })
        }
        other => Err(refused(other)),
    }
}
