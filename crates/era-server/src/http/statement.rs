//! Wallets' statements.

use axum::Json;
use axum::extract::State;
use era_api::account::StatementLine;
use era_api::page::PageAsk;
use era_api::{Credits, Page};
use era_store::tables::StatementRow;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::seen::{event_place, page_size};
use super::spending::seen_account;
use super::watched::may_watch;
use super::{Caller, Failure, Path, Query};
use crate::App;
use crate::wire::{Wrong, stamp};

/// Statements.
pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(statement)).routes(routes!(of_job))
}

/// What came into a wallet and went out of it, newest first.
#[utoipa::path(get, path = "/wallets/{user}/statement", tag = "wallets",
    params(("user" = String, Path), PageAsk), responses(
    (status = 200, body = Page<StatementLine>),
))]
async fn statement(
    State(app): State<App>,
    caller: Caller,
    Path(user): Path<String>,
    Query(page): Query<PageAsk>,
) -> Result<Json<Page<StatementLine>>, Failure> {
    let limit = page_size(page.limit)?;
    let bad = || Failure::bad_field("cursor", Wrong::Cursor);
    let before = page.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let before = before.transpose()?;
    // A grant that was just given is on it.
    app.wait_for(app.driver.snapshot().seq()).await;
    let account = seen_account(&app, &caller, &user).await?;
    let found = app.feed.tables().statement(account, before, limit).await?;
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

fn line(row: &StatementRow) -> StatementLine {
    StatementLine {
        seq: row.seq,
        at: stamp(row.at),
        job: row.job.map(|job| job.0),
        reason: row.reason.clone(),
        amount: Credits(row.amount),
        balance: Credits(row.balance),
    }
}
