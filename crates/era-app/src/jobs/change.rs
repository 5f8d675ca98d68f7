//! Jobs as they are handed in and changed.

use era_api::Credits;
use era_api::account::Scope;
use era_api::job::{Extension, JobEdit, JobSpec, Refund, Resubmission, Submitted};
use era_core::units::{JobId, Name};
use era_core::{Command, Refusal, Snapshot};

use crate::Services;
use crate::answer::done;
use crate::auth::Caller;
use crate::error::AppError;
use crate::submit::{self, Owner};
use crate::what_if::{self, GivenUp};
use crate::wire;

/// Hands in a job of the caller's own: a bid with its value, a held quote, or work for a queue.
pub async fn submit(
    services: &Services,
    caller: &Caller,
    job: JobSpec,
    key: Option<Name>,
) -> Result<Submitted, AppError> {
    caller.may(Scope::Write)?;
    submit::submit(services, &Owner::of(services, caller), job, key, None).await
}

/// Changes a waiting job.
pub async fn edit(
    services: &Services,
    caller: &Caller,
    id: u64,
    edit: &JobEdit,
) -> Result<(), AppError> {
    let job = may_change(services, caller, id)?;
    let command = Command::Edit {
        job,
        by: caller.actor(),
        priority: edit.priority,
        limit: edit.duration_s.map(wire::span),
        queue: wire::optional_name("queue", edit.queue.as_deref())?,
    };
    done(services.driver.ask(command, None).await?)
}

/// Gives up a job, whatever it does, or all that is left of its array.
pub async fn cancel(
    services: &Services,
    caller: &Caller,
    id: u64,
    array: bool,
) -> Result<(), AppError> {
    let job = may_change(services, caller, id)?;
    let by = caller.actor();
    let command = match array {
        true => Command::CancelArray { job, by },
        false => Command::Cancel { job, by },
    };
    done(services.driver.ask(command, None).await?)
}

/// Gives back what is left of a running reservation.
pub async fn release(services: &Services, caller: &Caller, id: u64) -> Result<(), AppError> {
    let job = may_change(services, caller, id)?;
    let command = Command::Release { job, by: caller.actor() };
    done(services.driver.ask(command, None).await?)
}

/// What giving up a job would bring back now, or all of its array. Nothing is given up.
pub async fn refund(
    services: &Services,
    caller: &Caller,
    id: u64,
    array: bool,
) -> Result<Refund, AppError> {
    let snapshot = services.driver.snapshot();
    let job = visible(&snapshot, caller, id)?;
    let (now, by) = (services.clock.now().max(snapshot.now()), caller.actor());
    // Off the runtime: an array may be long.
    let told =
        tokio::task::spawn_blocking(move || what_if::given_up(&snapshot, job, array, by, now));
    let GivenUp { back, kept, runs } = told.await.map_err(|e| AppError::internal(&e))??;
    Ok(Refund { back: wire::credits(back), kept: wire::credits(kept), runs })
}

/// Lets a running reservation last longer, at the market's price.
pub async fn extend(
    services: &Services,
    caller: &Caller,
    id: u64,
    extend: &Extension,
) -> Result<(), AppError> {
    let job = may_change(services, caller, id)?;
    let command = Command::Extend {
        job,
        by: caller.actor(),
        span: wire::span(extend.by_s),
        most: wire::money(extend.most),
    };
    done(services.driver.ask(command, None).await?)
}

/// A job as it would be handed in again. Nothing is handed in.
pub async fn as_again(
    services: &Services,
    caller: &Caller,
    id: u64,
) -> Result<Resubmission, AppError> {
    let again = submit::again(services, caller, id).await?.renewed;
    Ok(Resubmission { promise: again.is_bid(), job: again.job })
}

/// Hands in again what a job was, as a new one of the same owner. For at most this price, where it
/// was a promise; `fresh`, or else from the checkpoints that it left.
pub async fn retry(
    services: &Services,
    caller: &Caller,
    id: u64,
    most: Option<Credits>,
    fresh: bool,
    key: Option<Name>,
) -> Result<Submitted, AppError> {
    caller.may(Scope::Write)?;
    // What was handed in a moment ago is found as well.
    services.wait_for(services.driver.snapshot().seq()).await;
    let again = submit::again(services, caller, id).await?;
    let checkpoints_of = again.checkpoints_of.filter(|_| !fresh);
    let job = again.renewed.for_at_most(most);
    submit::submit(services, &again.owner, job, key, checkpoints_of).await
}

/// A job that the caller may see and change.
fn may_change(services: &Services, caller: &Caller, id: u64) -> Result<JobId, AppError> {
    caller.may(Scope::Write)?;
    visible(&services.driver.snapshot(), caller, id)
}

/// A job that the caller may see; a foreign one is as if it were not there.
pub fn visible(snapshot: &Snapshot, caller: &Caller, id: u64) -> Result<JobId, AppError> {
    let job = snapshot.job(JobId(id))?;
    if !caller.sees(job.user, job.group) {
        return Err(Refusal::UnknownJob { job: JobId(id) }.into());
    }
    Ok(JobId(id))
}
