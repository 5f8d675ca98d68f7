//! Runs of the laboratory, and the policies that they propose. For administrators: a run reads what
//! everybody did.

use std::net::IpAddr;

use era_api::Page;
use era_api::lab::{LabAsk, LabRun};
use era_api::page::PageAsk;
use era_api::queue::Proposal;

use crate::auth::Caller;
use crate::error::AppError;
use crate::{Services, audit, paging};

/// Runs, the newest first, without their results.
pub fn list(services: &Services, caller: &Caller, ask: PageAsk) -> Result<Page<LabRun>, AppError> {
    caller.administers()?;
    let (size, before) = (paging::size(&ask)?, paging::number(&ask, u64::MAX)?);
    let runs = services.lab.runs().into_iter().filter(|run| run.id < before).take(size + 1);
    let runs = runs.map(|run| LabRun { result: None, ..run }).collect();
    Ok(paging::page(runs, size, |run: &LabRun| run.id.to_string()))
}

/// Starts a simulation, a replay of this site's history under another rule, or a tuning run.
pub async fn start(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    asked: LabAsk,
) -> Result<LabRun, AppError> {
    caller.administers()?;
    let run = services.lab.ask(asked, Some(caller.name.clone()))?;
    audit::note(services, &caller.name, from, "lab.start", &run.id.to_string(), true).await;
    Ok(run)
}

/// A run: how far it is, and what it found.
pub fn get(services: &Services, caller: &Caller, id: u64) -> Result<LabRun, AppError> {
    caller.administers()?;
    Ok(services.lab.run(id)?)
}

/// Gives a run up; removes one that has ended.
pub async fn remove(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    id: u64,
) -> Result<(), AppError> {
    caller.administers()?;
    services.lab.remove(id)?;
    audit::note(services, &caller.name, from, "lab.remove", &id.to_string(), true).await;
    Ok(())
}

/// The page of charts of a simulation, with its script within.
pub async fn report(services: &Services, caller: &Caller, id: u64) -> Result<String, AppError> {
    caller.administers()?;
    let page = services.lab.report(id)?;
    tokio::fs::read_to_string(page).await.map_err(|error| AppError::internal(&error))
}

/// Versions of policies that tuning proposes, the newest first.
pub fn proposals(
    services: &Services,
    caller: &Caller,
    ask: PageAsk,
) -> Result<Page<Proposal>, AppError> {
    caller.administers()?;
    let (size, before) = (paging::size(&ask)?, paging::number(&ask, u64::MAX)?);
    let all = services.lab.proposals().into_iter().filter(|proposal| proposal.id < before);
    let page = all.take(size + 1).collect();
    Ok(paging::page(page, size, |proposal: &Proposal| proposal.id.to_string()))
}
