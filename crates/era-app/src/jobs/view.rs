//! Jobs, to read: lists, one job, its history, and why it waits.
//!
//! All of it comes from the tables, but for the explanation, which the newest snapshot gives.
//! A job that the caller may not see does not exist for it.

use std::collections::BTreeMap;

use era_api::Page;
use era_api::job::{
    ExplanationView, JobCountFilter, JobCounts, JobFilter, JobState, JobSummary, JobView,
    OutcomeView, TimelineFilter, TimelineLine,
};
use era_core::explain::{Estimate, queue_order};
use era_core::likely_starts;
use era_core::units::JobId;
use era_store::tables::{COUNTED_MAX, EventRow, JobCursor, JobRow, TaskRow};

use super::rows::{self, count_query, counts, query, summary};
use crate::Services;
use crate::auth::Caller;
use crate::error::AppError;
use crate::visibility::{self, event_place, page_size, visible_to};
use crate::wire::{self, Wrong, kinds, stamp};

/// Most tasks that one job shows.
const TASKS_MAX: u32 = 4096;
/// Most jobs ahead that an explanation names.
const AHEAD_MAX: usize = 10;

/// Jobs that the caller may see, newest first.
pub async fn list(
    services: &Services,
    caller: &Caller,
    filter: &JobFilter,
) -> Result<Page<JobSummary>, AppError> {
    let query = query(filter, visible_to(caller))?;
    let after = filter.cursor.as_deref().map(|text| JobCursor::read(text, &query));
    let after = after.transpose().map_err(|_| AppError::bad_field("cursor", Wrong::Cursor))?;
    // Whoever just submitted finds it in the list: the tables are a moment behind at most.
    services.wait_for(services.driver.snapshot().seq()).await;
    let page = services.feed.tables().jobs(&query, after).await?;
    let next = page.next.map(|next| next.write(&query));
    let mut items: Vec<JobSummary> = page.rows.iter().map(summary).collect();
    if filter.likely == Some(true) {
        say_starts(services, &mut items).await?;
    }
    Ok(Page { items, next })
}

/// Says when those that wait are likely to start; off the runtime, since it plans on paper.
async fn say_starts(services: &Services, jobs: &mut [JobSummary]) -> Result<(), AppError> {
    let waits = jobs.iter().filter(|job| job.state == JobState::Waiting);
    let waiting: Vec<JobId> = waits.map(|job| JobId(job.id)).collect();
    let snapshot = services.driver.snapshot();
    let starts = tokio::task::spawn_blocking(move || likely_starts(&snapshot, &waiting));
    let starts: BTreeMap<JobId, Estimate> =
        starts.await.map_err(|e| AppError::internal(&e))?.into_iter().collect();
    for job in jobs {
        job.likely_start = starts.get(&JobId(job.id)).map(|start| stamp(start.likely));
    }
    Ok(())
}

/// How many jobs that the caller may see are in each state: no more than 100,000 are counted.
pub async fn count(
    services: &Services,
    caller: &Caller,
    filter: &JobCountFilter,
) -> Result<JobCounts, AppError> {
    let query = count_query(filter, visible_to(caller))?;
    services.wait_for(services.driver.snapshot().seq()).await;
    let found = services.feed.tables().job_counts(&query, COUNTED_MAX).await?;
    Ok(counts(&found))
}

/// One job with all that is known of it.
pub async fn get(services: &Services, caller: &Caller, id: u64) -> Result<JobView, AppError> {
    let row = visibility::job(services, caller, id).await?;
    let tables = services.feed.tables();
    let spec = tables.spec(&row).await?;
    let tasks = tables.tasks(row.id, TASKS_MAX).await?;
    let mut job = rows::job(&row, spec, &tasks, &services.feed.names());
    if row.state.is_over() {
        job.outcome = ending(services, &row, &tasks).await?;
    } else {
        job.explanation = Some(explained(services, &row).await?);
    }
    Ok(job)
}

/// How a job ended; nothing before it has.
pub async fn outcome(services: &Services, row: &JobRow) -> Result<Option<OutcomeView>, AppError> {
    if !row.state.is_over() {
        return Ok(None);
    }
    let tasks = services.feed.tables().tasks(row.id, TASKS_MAX).await?;
    ending(services, row, &tasks).await
}

async fn ending(
    services: &Services,
    row: &JobRow,
    tasks: &[TaskRow],
) -> Result<Option<OutcomeView>, AppError> {
    let end = services.feed.tables().end_of(row.id).await?;
    Ok(end.and_then(|end| rows::outcome(&end, tasks, &services.feed.names())))
}

/// What happened to a job, oldest first.
pub async fn timeline(
    services: &Services,
    caller: &Caller,
    id: u64,
    filter: &TimelineFilter,
) -> Result<Page<TimelineLine>, AppError> {
    let limit = page_size(filter.limit)?;
    let bad = || AppError::bad_field("cursor", Wrong::Cursor);
    let kinds = filter.event.as_deref().map(kinds).transpose()?.unwrap_or_default();
    let after = filter.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let row = visibility::job(services, caller, id).await?;
    let after = after.transpose()?.unwrap_or((0, 0));
    let tables = services.feed.tables();
    let mut rows = tables.timeline(&row, after, &kinds, limit.saturating_add(1)).await?;
    let asleep = if row.simulated { tables.simulated_since(row.id).await? } else { None };
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.seq, row.place));
    let line = |row: EventRow| {
        let simulated = asleep.is_some_and(|since| (row.seq, row.place) >= since);
        let seq = row.seq;
        let era_api::event::EventView { at, event, sentence, parameters, .. } =
            services.feed.event(row);
        TimelineLine { seq, at, event, sentence, parameters, simulated }
    };
    Ok(Page { items: rows.into_iter().map(line).collect(), next })
}

/// Why a job waits, or when it will run.
pub async fn explain(
    services: &Services,
    caller: &Caller,
    id: u64,
) -> Result<ExplanationView, AppError> {
    let row = visibility::job(services, caller, id).await?;
    explained(services, &row).await
}

/// The newest snapshot's word on a job, worked out off the runtime: it plans those ahead on paper.
pub async fn explained(services: &Services, row: &JobRow) -> Result<ExplanationView, AppError> {
    let (snapshot, id) = (services.driver.snapshot(), row.id);
    let told = tokio::task::spawn_blocking(move || {
        let told = era_core::explain(&snapshot, id).ok()?;
        let mut told = wire::explanation(&told);
        told.ahead = ahead(&snapshot, id);
        Some(told)
    });
    let told = told.await.map_err(|e| AppError::internal(&e))?;
    Ok(told.unwrap_or_else(|| over(row)))
}

/// Jobs just ahead of one that waits in its queue, the next one first.
fn ahead(snapshot: &era_core::Snapshot, id: JobId) -> Vec<u64> {
    let Ok(job) = snapshot.job(id) else { return Vec::new() };
    let in_line = job.is_waiting() && job.after.is_empty();
    let Some(terms) = job.queue().filter(|_| in_line) else { return Vec::new() };
    let order = queue_order(snapshot, &terms.queue, None).unwrap_or_default();
    let ahead: Vec<u64> = order.into_iter().take_while(|job| *job != id).map(|job| job.0).collect();
    let from = ahead.len().saturating_sub(AHEAD_MAX);
    ahead[from..].to_vec()
}

/// Whether nothing more will come of a job. Everyone who follows it asks at every look, so it is
/// the state in memory that answers, and not a database.
pub fn is_over(services: &Services, job: JobId) -> bool {
    let state = services.driver.snapshot();
    match state.job(job) {
        Ok(job) => job.ended.is_some(),
        // The state forgets jobs a while after their end. Where another process leads, one that was
        // just accepted may not be in it yet.
        Err(_) => state.had_job(job),
    }
}

/// What can be said of a job that the scheduler has forgotten.
fn over(row: &JobRow) -> ExplanationView {
    let when = row.ended.map(|at| format!(" at {}", wire::stamp(at)));
    let why = row.reason.as_deref().unwrap_or("it is over");
    ExplanationView {
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
