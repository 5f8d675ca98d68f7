//! Jobs, to read: lists, one job, its history, and why it waits.

use axum::Json;
use axum::http::HeaderMap;
use axum::response::Response;
use era_api::Page;
use era_api::job::{
    ExplanationView, JobCountFilter, JobCounts, JobFilter, JobSummary, JobView, TimelineFilter,
    TimelineLine,
};
use era_app::jobs::view;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::tagged::tagged;
use super::{Call, Failure, Path, Query};
use crate::App;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(count))
        .routes(routes!(get))
        .routes(routes!(timeline))
        .routes(routes!(explain))
}

/// Jobs that the caller may see, newest first.
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(JobFilter), responses(
    (status = 200, body = Page<JobSummary>),
    (status = 304, description = "As it was"),
))]
async fn list(
    call: Call,
    headers: HeaderMap,
    Query(filter): Query<JobFilter>,
) -> Result<Response, Failure> {
    tagged(&headers, &view::list(&call.app, &call.caller, &filter).await?)
}

/// How many jobs that the caller may see are in each state: no more than 100,000 are counted.
#[utoipa::path(get, path = "/jobs/counts", tag = "jobs", params(JobCountFilter), responses(
    (status = 200, body = JobCounts),
))]
async fn count(
    call: Call,
    Query(filter): Query<JobCountFilter>,
) -> Result<Json<JobCounts>, Failure> {
    Ok(Json(view::count(&call.app, &call.caller, &filter).await?))
}

/// One job with all that is known of it.
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path)), responses(
    (status = 200, body = JobView),
    (status = 304, description = "As it was"),
))]
async fn get(call: Call, headers: HeaderMap, Path(id): Path<u64>) -> Result<Response, Failure> {
    tagged(&headers, &view::get(&call.app, &call.caller, id).await?)
}

/// What happened to a job, oldest first.
#[utoipa::path(get, path = "/jobs/{id}/timeline", tag = "jobs",
    params(("id" = u64, Path), TimelineFilter), responses(
    (status = 200, body = Page<TimelineLine>),
))]
async fn timeline(
    call: Call,
    Path(id): Path<u64>,
    Query(filter): Query<TimelineFilter>,
) -> Result<Json<Page<TimelineLine>>, Failure> {
    Ok(Json(view::timeline(&call.app, &call.caller, id, &filter).await?))
}

/// Why a job waits, or when it will run.
#[utoipa::path(get, path = "/jobs/{id}/explain", tag = "jobs", params(("id" = u64, Path)),
    responses(
    (status = 200, body = ExplanationView),
))]
async fn explain(call: Call, Path(id): Path<u64>) -> Result<Json<ExplanationView>, Failure> {
    Ok(Json(view::explain(&call.app, &call.caller, id).await?))
}
