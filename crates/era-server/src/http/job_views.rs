//! Jobs, to read: lists, one job, its history, and why it waits.
//!
//! All of it comes from the tables, but for the explanation, which the newest snapshot gives.
//! A job that the caller may not see does not exist for it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use era_api::Page;
use era_api::job::{
    Explanation, Job, JobFilter, JobState, JobSummary, Outcome, TimelineFilter, TimelineLine,
};
use era_core::explain::{Estimate, queue_order};
use era_core::likely_starts;
use era_core::units::JobId;
use era_store::tables::{EventRow, JobCursor, JobRow, TaskRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::reading::kinds;
use super::reading_jobs::{self, query, summary};
use super::seen::{self, event_place, page_size, seen_by, tagged};
use super::{Caller, Failure, Path, Query};
use crate::App;
use crate::wire::{Wrong, stamp};

/// Most tasks that one job shows.
const TASKS_MAX: u32 = 4096;
/// Most jobs ahead that an explanation names.
const AHEAD_MAX: usize = 10;

/// Reading jobs.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
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
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(filter): Query<JobFilter>,
) -> Result<Response, Failure> {
    let query = query(&filter, seen_by(&caller))?;
    let after = filter.cursor.as_deref().map(|text| JobCursor::read(text, &query));
    let after = after.transpose().map_err(|_| Failure::bad_field("cursor", Wrong::Cursor))?;
    // Whoever just submitted finds it in the list: the tables are a moment behind at most.
    app.wait_for(app.driver.snapshot().seq()).await;
    let page = app.feed.tables().jobs(&query, after).await?;
    let next = page.next.map(|next| next.write(&query));
    let mut items: Vec<JobSummary> = page.rows.iter().map(summary).collect();
    if filter.likely == Some(true) {
        say_starts(&app, &mut items).await?;
    }
    tagged(&headers, &Page { items, next })
}

/// Says when those that wait are likely to start; off the runtime, since it plans on paper.
async fn say_starts(app: &App, jobs: &mut [JobSummary]) -> Result<(), Failure> {
    let waits = jobs.iter().filter(|job| job.state == JobState::Waiting);
    let waiting: Vec<JobId> = waits.map(|job| JobId(job.id)).collect();
    let snapshot = app.driver.snapshot();
    let starts = tokio::task::spawn_blocking(move || likely_starts(&snapshot, &waiting));
    let starts: BTreeMap<JobId, Estimate> =
        starts.await.map_err(|e| Failure::internal(&e))?.into_iter().collect();
    for job in jobs {
        job.likely_start = starts.get(&JobId(job.id)).map(|start| stamp(start.likely));
    }
    Ok(())
}

/// One job with all that is known of it.
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path)), responses(
    (status = 200, body = Job),
    (status = 304, description = "As it was"),
))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<u64>,
) -> Result<Response, Failure> {
    let row = seen::job(&app, &caller, id).await?;
    let tables = app.feed.tables();
    let spec = tables.spec(&row).await?;
    let tasks = tables.tasks(row.id, TASKS_MAX).await?;
    let mut job = reading_jobs::job(&row, spec.as_deref(), &tasks, &app.feed.names());
    if row.state.is_over() {
        job.outcome = ending(&app, &row, &tasks).await?;
    } else {
        job.explanation = Some(explained(&app, &row).await?);
    }
    tagged(&headers, &job)
}

/// How a job ended; nothing before it has.
pub(crate) async fn outcome(app: &App, row: &JobRow) -> Result<Option<Outcome>, Failure> {
    if !row.state.is_over() {
        return Ok(None);
    }
    let tasks = app.feed.tables().tasks(row.id, TASKS_MAX).await?;
    ending(app, row, &tasks).await
}

async fn ending(app: &App, row: &JobRow, tasks: &[TaskRow]) -> Result<Option<Outcome>, Failure> {
    let end = app.feed.tables().end_of(row.id).await?;
    Ok(end.and_then(|end| reading_jobs::outcome(&end, tasks)))
}

/// What happened to a job, oldest first.
#[utoipa::path(get, path = "/jobs/{id}/timeline", tag = "jobs",
    params(("id" = u64, Path), TimelineFilter), responses(
    (status = 200, body = Page<TimelineLine>),
))]
async fn timeline(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
    Query(filter): Query<TimelineFilter>,
) -> Result<Json<Page<TimelineLine>>, Failure> {
    let limit = page_size(filter.limit)?;
    let bad = || Failure::bad_field("cursor", Wrong::Cursor);
    let kinds = filter.event.as_deref().map(kinds).transpose()?.unwrap_or_default();
    let after = filter.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let row = seen::job(&app, &caller, id).await?;
    let after = after.transpose()?.unwrap_or((0, 0));
    let tables = app.feed.tables();
    let mut rows = tables.timeline(&row, after, &kinds, limit.saturating_add(1)).await?;
    let asleep = if row.simulated { tables.simulated_since(row.id).await? } else { None };
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.seq, row.place));
    let line = |row: EventRow| {
        let simulated = asleep.is_some_and(|since| (row.seq, row.place) >= since);
        let told = app.feed.told(row);
        let era_api::event::Event { at, event, sentence, parameters, .. } = told.event;
        TimelineLine { seq: told.place.0, at, event, sentence, parameters, simulated }
    };
    Ok(Json(Page { items: rows.into_iter().map(line).collect(), next }))
}

/// Why a job waits, or when it will run.
#[utoipa::path(get, path = "/jobs/{id}/explain", tag = "jobs", params(("id" = u64, Path)),
    responses(
    (status = 200, body = Explanation),
))]
async fn explain(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<Json<Explanation>, Failure> {
    let row = seen::job(&app, &caller, id).await?;
    Ok(Json(explained(&app, &row).await?))
}

/// The newest snapshot's word on a job, worked out off the runtime: it plans those ahead on paper.
pub(crate) async fn explained(app: &App, row: &JobRow) -> Result<Explanation, Failure> {
    let (snapshot, id) = (app.driver.snapshot(), row.id);
    let told = tokio::task::spawn_blocking(move || {
        let told = era_core::explain(&snapshot, id).ok()?;
        let mut told = crate::wire::explanation(&told);
        told.ahead = ahead(&snapshot, id);
        Some(told)
    });
    let told = told.await.map_err(|e| Failure::internal(&e))?;
    Ok(told.unwrap_or_else(|| over(row)))
}

/// Jobs just ahead of one that waits, the next one first.
fn ahead(snapshot: &era_core::Snapshot, id: JobId) -> Vec<u64> {
    let Ok(job) = snapshot.job(id) else { return Vec::new() };
    let Some(terms) = job.queue().filter(|_| job.is_waiting()) else { return Vec::new() };
    let order = queue_order(snapshot, &terms.queue, None).unwrap_or_default();
    let ahead: Vec<u64> = order.into_iter().take_while(|job| *job != id).map(|job| job.0).collect();
    let from = ahead.len().saturating_sub(AHEAD_MAX);
    ahead[from..].to_vec()
}

/// What can be said of a job that the scheduler has forgotten.
fn over(row: &JobRow) -> Explanation {
    let when = row.ended.map(|at| format!(" at {}", crate::wire::stamp(at)));
    let why = row.reason.as_deref().unwrap_or("it is over");
    Explanation {
        state: "ended".to_owned(),
        sentence: format!("It ended{}: {why}.", when.unwrap_or_default()),
        position: None,
        why: None,
        parameters: era_api::Parameters::new(),
        start: None,
        earliest: None,
        latest: None,
        ahead: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
