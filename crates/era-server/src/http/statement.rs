//! Wallets' statements.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use era_api::account::{StatementFilter, StatementLine};
use era_api::{Credits, Page};
use era_app::seen::{event_place, job_id, page_size};
use era_app::wire::{Wrong, stamp, time, words};
use era_core::ledger::Reason;
use era_core::units::UserId;
use era_store::tables::{StatementQuery, StatementRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::spending::seen_account;
use super::watched::may_watch;
use super::{Caller, Failure, Path, Query};
use crate::App;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(statement)).routes(routes!(of_job))
}

/// What came into a wallet and went out of it, newest first.
#[utoipa::path(get, path = "/wallets/{user}/statement", tag = "wallets",
    params(("user" = String, Path), StatementFilter), responses(
    (status = 200, body = Page<StatementLine>),
))]
async fn statement(
    State(app): State<App>,
    caller: Caller,
    Path(user): Path<String>,
    Query(filter): Query<StatementFilter>,
) -> Result<Json<Page<StatementLine>>, Failure> {
    let bad = || Failure::bad_field("cursor", Wrong::Cursor);
    let before = filter.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let reasons = filter.reason.as_deref().map(|text| words::<Reason>("reason", text));
    let reasons: BTreeSet<Reason> = reasons.transpose()?.unwrap_or_default().into_iter().collect();
    let mut query = StatementQuery {
        before: before.transpose()?,
        reasons: reasons.into_iter().filter_map(written).collect(),
        job: filter.job.map(job_id).transpose()?,
        since: filter.since.map(time),
        until: filter.until.map(time),
        ..StatementQuery::all(UserId(0), page_size(filter.limit)?)
    };
    // A grant that was just given is on it.
    app.wait_for(app.driver.snapshot().seq()).await;
    query.account = seen_account(&app, &caller, &user).await?;
    let found = app.feed.tables().statement(&query).await?;
    let next = found.rows.last().filter(|_| found.more);
    let next = next.map(|row| format!("{}.{}", row.seq, row.place));
    Ok(Json(Page { items: found.rows.iter().map(line).collect(), next }))
}

/// Most lines that are told of one job: one that was extended or moved again and again.
const JOB_LINES_MAX: u32 = 1000;

/// What a job was charged and got back, line by line, oldest first.
#[utoipa::path(get, path = "/jobs/{id}/statement", tag = "jobs", params(("id" = u64, Path)),
    responses(
    (status = 200, body = Vec<StatementLine>),
))]
async fn of_job(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<u64>,
) -> Result<Json<Vec<StatementLine>>, Failure> {
    let job = may_watch(&app, &caller, id).await?;
    let owner = app.feed.tables().owner(job).await?;
    let (account, _) = owner.ok_or_else(|| Failure::not_found("job", id.to_string()))?;
    let rows = app.feed.tables().statement_of_job(account, job, JOB_LINES_MAX).await?;
    Ok(Json(rows.iter().map(line).collect()))
}

/// A reason as the tables write it.
fn written(reason: Reason) -> Option<String> {
    serde_json::to_value(reason).ok()?.as_str().map(str::to_owned)
}

fn line(row: &StatementRow) -> StatementLine {
    StatementLine {
        seq: row.seq,
        at: stamp(row.at),
        job: row.job.map(|job| job.0),
        reason: row.reason.clone(),
        amount: Credits(row.amount),
        balance: Credits(row.balance),
        simulated: row.simulated,
    }
}
