//! Where a job stands, for whoever asks often: from memory as long as it is not over, and only then
//! from the tables.

use era_api::job::JobStatus;
use era_core::units::JobId;
use era_core::{Refusal, Snapshot, explain};

use super::{change, view};
use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::{Services, visibility, wire};

/// Where a job stands by a snapshot. Nothing is said of one that has ended, if it ever was, since
/// snapshots forget those: the tables have to say it ([`ended`]).
pub fn now(snapshot: &Snapshot, caller: &Caller, id: u64) -> Result<Option<JobStatus>, AppError> {
    if snapshot.job(JobId(id)).map_or(true, |job| job.ended.is_some()) {
        return Ok(None);
    }
    let job = change::visible(snapshot, caller, id)?;
    let explanation = wire::explanation(&explain(snapshot, job)?);
    Ok(Some(JobStatus { job: id, explanation, outcome: None, exit_code: None }))
}

/// Where a job stands that is over, by the tables.
pub async fn ended(services: &Services, caller: &Caller, id: u64) -> Result<JobStatus, AppError> {
    let row = visibility::job(services, caller, id).await.map_err(|error| match error.0.kind {
        Kind::NotFound => Refusal::UnknownJob { job: JobId(id) }.into(),
        _ => error,
    })?;
    let outcome = view::outcome(services, &row).await?;
    let explanation = view::explained(services, &row).await?;
    Ok(JobStatus { job: id, explanation, outcome, exit_code: row.exit_code })
}
