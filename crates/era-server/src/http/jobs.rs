//! Jobs as they are handed in and changed. Reading them is another file's.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use era_api::Credits;
use era_api::job::{Extension, JobChecked, JobEdit, JobSpec, Refund, Resubmission, Submitted};
use era_app::jobs::change;
use era_app::submit::{self, CheckedDraft};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, Path, Query};
use super::failure::Failure;
use super::idempotency::Key;
use super::{Call, Caller};
use crate::App;

/// The routes that change jobs.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(submit_job))
        .routes(routes!(check))
        .routes(routes!(edit))
        .routes(routes!(cancel))
        .routes(routes!(release))
        .routes(routes!(refund))
        .routes(routes!(extend))
        .routes(routes!(as_again))
        .routes(routes!(retry))
}

/// Hands in a job: a bid with its value, a held quote, or work for a queue.
#[utoipa::path(post, path = "/jobs", tag = "jobs",
    request_body = JobSpec,
    responses((status = 201, body = Submitted)))]
async fn submit_job(
    call: Call,
    key: Option<Key>,
    Body(job): Body<JobSpec>,
) -> Result<impl IntoResponse, Failure> {
    let key = key.and_then(|key| key.for_core(call.caller.user));
    Ok(created(change::submit(&call.app, &call.caller, job, key).await?))
}

/// What a job would be refused for, field by field, and what its owner leaves open. It may be
/// unfinished. Nothing is handed in.
#[utoipa::path(post, path = "/jobs/check", tag = "jobs",
    request_body = JobSpec,
    responses((status = 200, body = JobChecked)))]
async fn check(
    call: Call,
    Body(draft): Body<serde_json::Map<String, serde_json::Value>>,
) -> Result<Json<JobChecked>, Failure> {
    let CheckedDraft { job, at_most, problems } =
        submit::check(&call.app, &call.caller, draft).await?;
    let problems = problems.into_iter().map(|error| *Failure::from(error).0).collect();
    Ok(Json(JobChecked { bid: job.is_bid(), at_most, job, problems }))
}

fn created(submitted: Submitted) -> impl IntoResponse {
    (StatusCode::CREATED, [(header::LOCATION, submitted.location())], Json(submitted))
}

/// Changes a waiting job.
#[utoipa::path(patch, path = "/jobs/{id}", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    request_body = JobEdit,
    responses((status = 204)))]
async fn edit(
    call: Call,
    Path(id): Path<u64>,
    Body(edit): Body<JobEdit>,
) -> Result<StatusCode, Failure> {
    change::edit(&call.app, &call.caller, id, &edit).await?;
    Ok(StatusCode::NO_CONTENT)
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
#[utoipa::path(post, path = "/jobs/{id}/cancel", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number"), Extent),
    responses((status = 204)))]
async fn cancel(
    call: Call,
    Path(id): Path<u64>,
    Query(extent): Query<Extent>,
) -> Result<StatusCode, Failure> {
    change::cancel(&call.app, &call.caller, id, extent.array.unwrap_or(false)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives back what is left of a running reservation.
#[utoipa::path(post, path = "/jobs/{id}/release", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    responses((status = 204)))]
async fn release(call: Call, Path(id): Path<u64>) -> Result<StatusCode, Failure> {
    change::release(&call.app, &call.caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What giving up a job would bring back now, or all of its array. Nothing is given up.
#[utoipa::path(get, path = "/jobs/{id}/refund", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number"), Extent),
    responses((status = 200, body = Refund)))]
async fn refund(
    call: Call,
    Path(id): Path<u64>,
    Query(extent): Query<Extent>,
) -> Result<Json<Refund>, Failure> {
    Ok(Json(change::refund(&call.app, &call.caller, id, extent.array.unwrap_or(false)).await?))
}

/// Lets a running reservation last longer, at the market's price.
#[utoipa::path(post, path = "/jobs/{id}/extend", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    request_body = Extension,
    responses((status = 204)))]
async fn extend(
    call: Call,
    Path(id): Path<u64>,
    Body(extend): Body<Extension>,
) -> Result<StatusCode, Failure> {
    change::extend(&call.app, &call.caller, id, &extend).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A job as it would be handed in again. Nothing is handed in.
#[utoipa::path(get, path = "/jobs/{id}/again", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number")),
    responses((status = 200, body = Resubmission)))]
async fn as_again(call: Call, Path(id): Path<u64>) -> Result<Json<Resubmission>, Failure> {
    Ok(Json(change::as_again(&call.app, &call.caller, id).await?))
}

/// How a job is handed in again.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Retry {
    /// For a promise, at most this price. Where nothing is said, what it was worth, or cost where
    /// its owner said no worth.
    most: Option<Credits>,
    /// Whether the checkpoints of the job are left behind. Otherwise the new one finds a copy of
    /// them among its own.
    fresh: Option<bool>,
}

/// Hands in again what a job was, as a new one of the same owner, which goes on from its checkpoints.
#[utoipa::path(post, path = "/jobs/{id}/retry", tag = "jobs",
    params(("id" = u64, Path, description = "The job's number"), Retry),
    responses((status = 201, body = Submitted)))]
async fn retry(
    State(app): State<App>,
    caller: Caller,
    key: Option<Key>,
    Path(id): Path<u64>,
    Query(Retry { most, fresh }): Query<Retry>,
) -> Result<impl IntoResponse, Failure> {
    let key = key.and_then(|key| key.for_core(caller.user));
    let fresh = fresh.unwrap_or(false);
    Ok(created(change::retry(&app, &caller, id, most, fresh, key).await?))
}
