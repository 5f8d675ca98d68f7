//! Wallets' statements.

use std::collections::BTreeSet;

use era_api::account::{StatementFilter, StatementLineView};
use era_api::{Credits, Page};
use era_core::ledger::PostingReason;
use era_core::units::UserId;
use era_store::tables::{StatementQuery, StatementRow};

use crate::Services;
use crate::auth::Caller;
use crate::error::AppError;
use crate::visibility::{self, event_place, job_id, page_size};
use crate::wire::{Wrong, stamp, time, words};

/// Most lines that are told of one job: one that was extended or moved again and again.
const JOB_LINES_MAX: u32 = 1000;

/// What came into a wallet and went out of it, newest first.
pub async fn of_wallet(
    services: &Services,
    caller: &Caller,
    user: &str,
    filter: &StatementFilter,
) -> Result<Page<StatementLineView>, AppError> {
    let bad = || AppError::bad_field("cursor", Wrong::Cursor);
    let before = filter.cursor.as_deref().map(|text| event_place(text).ok_or_else(bad));
    let reasons = filter.reason.as_deref().map(|text| words::<PostingReason>("reason", text));
    let reasons: BTreeSet<PostingReason> =
        reasons.transpose()?.unwrap_or_default().into_iter().collect();
    let mut query = StatementQuery {
        before: before.transpose()?,
        reasons: reasons.into_iter().filter_map(written).collect(),
        job: filter.job.map(job_id).transpose()?,
        since: filter.since.map(time),
        until: filter.until.map(time),
        ..StatementQuery::all(UserId(0), page_size(filter.limit)?)
    };
    // A grant that was just given is on it.
    services.wait_for(services.driver.snapshot().seq()).await;
    query.account = visibility::account(services, caller, user).await?;
    let found = services.feed.tables().statement(&query).await?;
    let next = found.rows.last().filter(|_| found.more);
    let next = next.map(|row| format!("{}.{}", row.seq, row.place));
    Ok(Page { items: found.rows.iter().map(line).collect(), next })
}

/// What a job was charged and got back, line by line, oldest first.
pub async fn of_job(
    services: &Services,
    caller: &Caller,
    id: u64,
) -> Result<Vec<StatementLineView>, AppError> {
    let job = visibility::job(services, caller, id).await?;
    let tables = services.feed.tables();
    let rows = tables.statement_of_job(job.account, job.id, JOB_LINES_MAX).await?;
    Ok(rows.iter().map(line).collect())
}

/// A reason as the tables write it.
fn written(reason: PostingReason) -> Option<String> {
    serde_json::to_value(reason).ok()?.as_str().map(str::to_owned)
}

fn line(row: &StatementRow) -> StatementLineView {
    StatementLineView {
        seq: row.seq,
        at: stamp(row.at),
        job: row.job.map(|job| job.0),
        reason: row.reason.clone(),
        amount: Credits(row.amount),
        balance: Credits(row.balance),
        simulated: row.simulated,
    }
}
