//! The terminals of running tasks.
//!
//! To type is to act in the owner's name, so only the owner and administrators may, with a token
//! that may write; who only sees a job, as its group's administrator does, reads its log.

use std::net::IpAddr;

use era_api::account::{Role, Scope};
use era_cloud::{Attached, NoTerminal};
use era_core::units::JobId;
use era_store::tables::JobRow;

use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::{Services, audit, visibility};

/// The job, if the caller may type in its terminals.
pub async fn may_type(services: &Services, caller: &Caller, id: u64) -> Result<JobRow, AppError> {
    caller.may(Scope::Write)?;
    let job = visibility::job(services, caller, id).await?;
    if caller.user != job.account && caller.role != Role::Administrator {
        let detail = "only its owner and administrators may type there: read its log instead";
        return Err(AppError::forbidden(detail));
    }
    Ok(job)
}

/// Attaches to the terminal of a task of a job in which the caller [`may_type`].
pub async fn attach(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    job: &JobRow,
    rank: u32,
) -> Result<Attached, AppError> {
    let attached = reach(services, job, rank).await;
    let (who, target) = (&caller.name, job.id.0.to_string());
    audit::note(services, who, from, "job.attach", &target, attached.is_ok()).await;
    attached
}

/// Attaches to a task by the executor that runs it.
async fn reach(services: &Services, job: &JobRow, rank: u32) -> Result<Attached, AppError> {
    let no = |why: &str| Err(no_terminal(job.id, why));
    let Some(engines) = &services.terminals else {
        return no("tasks of this server have no terminals");
    };
    let Some((engine, task)) = engines.running(&services.driver.snapshot(), job.id, rank) else {
        let why = match job.state.is_over() {
            true => "it is over: `era logs` shows what it printed".to_owned(),
            false => format!("no task of it with rank {rank} runs now: `era explain` says more"),
        };
        let detail = format!("job {} cannot be attached to: {why}", job.id.0);
        return Err(AppError::new(Kind::Conflict, "not_running", detail));
    };
    match engine.attach(task).await {
        Ok(attached) => Ok(attached),
        Err(NoTerminal::Unreachable(error)) => {
            tracing::warn!(%error, "a supervisor cannot be reached");
            let detail = "the node's supervisor does not answer: try again in a moment";
            Err(AppError::new(Kind::Unavailable, "busy", detail).after(1))
        }
        Err(why) => no(&why.to_string()),
    }
}

fn no_terminal(job: JobId, why: &str) -> AppError {
    let detail = format!("job {} cannot be attached to: {why}", job.0);
    AppError::new(Kind::Conflict, "no_terminal", detail)
}
