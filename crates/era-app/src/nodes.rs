//! Nodes, pools and domains, and who holds what.

use std::net::IpAddr;

use era_api::cluster::{
    BookingView, DomainView, NodeAction, NodeEdit, NodeFilter, NodeView, PoolView,
};
use era_api::page::{NameFilter, PageAsk};
use era_api::{Page, Timestamp};
use era_core::cluster::{Health, Node};
use era_core::input::NodeChange;
use era_core::units::{NodeId, Span};
use era_core::{Command, Snapshot};

use crate::answer::{audited, done};
use crate::auth::Caller;
use crate::error::{AppError, Kind};
use crate::wire::{self, Wrong, words};
use crate::{Services, audit, paging};

/// Nodes, in the order in which they came, with the jobs that hold each of them and each GPU now.
pub fn list(services: &Services, filter: NodeFilter) -> Result<Page<NodeView>, AppError> {
    let ask = PageAsk { cursor: filter.cursor.clone(), limit: filter.limit };
    let (size, after) = (paging::size(&ask)?, paging::number(&ask, 0)?);
    let state = services.driver.snapshot();
    let wanted = wanted(&filter)?;
    let rest = |node: &Node| ask.cursor.is_none() || u64::from(node.id.0) > after;
    let some = state.cluster().nodes().filter(|node| rest(node) && wanted(node)).take(size + 1);
    let page = paging::page(some.collect(), size, |node| node.id.0.to_string());
    Ok(page.map(|node| wire::node(&state, node)))
}

/// Whether a node is one of those that a filter lets through.
fn wanted(filter: &NodeFilter) -> Result<impl Fn(&Node) -> bool, AppError> {
    let health: Option<Vec<Health>> =
        filter.health.as_deref().map(|text| words("health", text)).transpose()?;
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
    Ok(move |node: &Node| {
        let domain = node.domain.as_ref().map_or("", |name| name.as_str());
        let model = filter.gpu_model.as_deref();
        is(&filter.pool, node.pool.as_str())
            && is(&filter.domain, domain)
            && health.as_ref().is_none_or(|some| some.contains(&node.health))
            && model.is_none_or(|m| node.capacity.gpus.iter().any(|gpu| gpu.model.as_str() == m))
            && paging::has(node.name.as_str(), filter.search.as_deref())
            && filter.simulated.is_none_or(|simulated| wire::is_simulated(node) == simulated)
    })
}

pub fn get(services: &Services, name: &str) -> Result<NodeView, AppError> {
    let state = services.driver.snapshot();
    let node = find(&state, name)?;
    Ok(wire::node(&state, state.cluster().node(node)?))
}

/// Cordons, drains, resumes or removes a node, moves it to a domain, announces absences: all that is
/// asked for in one command, which is carried out whole or refused.
pub async fn edit(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    edit: &NodeEdit,
) -> Result<(), AppError> {
    caller.administers()?;
    let node = find(&services.driver.snapshot(), name)?;
    let (whats, changes): (Vec<_>, Vec<_>) = changes(edit)?.into_iter().unzip();
    if changes.is_empty() {
        return Ok(());
    }
    let done = done(services.driver.ask(Command::EditNode { node, changes }, None).await?);
    for what in whats {
        // What an administrator last said of a node is read out of these lines.
        audit::record(services, &caller.name, from, what, name, done.is_ok()).await?;
    }
    done
}

/// The changes that an edit comes to, in the order in which they are made.
fn changes(edit: &NodeEdit) -> Result<Vec<(&'static str, NodeChange)>, AppError> {
    let mut changes = Vec::new();
    if edit.stop_at.is_some() && edit.action != Some(NodeAction::Drain) {
        return Err(AppError::bad_field("stop_at", Wrong::DrainOnly));
    }
    if let Some(domain) = &edit.domain {
        let domain = Some(domain.as_str()).filter(|name| !name.is_empty());
        let domain = wire::optional_name("domain", domain)?;
        changes.push(("node.domain", NodeChange::Domain { domain }));
    }
    if let Some(absences) = &edit.maintenance {
        let windows = absences.iter().map(|a| (wire::time(a.from), wire::time(a.to))).collect();
        changes.push(("node.maintenance", NodeChange::Maintenance { windows }));
    }
    match edit.action {
        Some(NodeAction::Cordon) => changes.push(("node.cordon", NodeChange::Cordon)),
        Some(NodeAction::Drain) => {
            let stop_at = edit.stop_at.map(wire::time);
            changes.push(("node.drain", NodeChange::Drain { stop_at }));
        }
        Some(NodeAction::Resume) => changes.push(("node.resume", NodeChange::Resume)),
        Some(NodeAction::Leave) => changes.push(("node.leave", NodeChange::Leave)),
        None => {}
    }
    Ok(changes)
}

/// What is booked on a node over time: from now on, and for a day, where nothing else is said.
pub fn bookings(
    services: &Services,
    caller: &Caller,
    name: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<Vec<BookingView>, AppError> {
    let state = services.driver.snapshot();
    let node = state.cluster().node(find(&state, name)?)?;
    let from = from.map_or(state.now(), wire::time);
    let to = to.map_or(from + Span::from_days(1), wire::time);
    let may_see = |id| state.job(id).is_ok_and(|job| caller.sees(job.user, job.group));
    Ok(wire::bookings(&state, node, from, to, may_see))
}

/// Pools, by name.
pub fn pools(services: &Services, filter: NameFilter) -> Result<Page<PoolView>, AppError> {
    let state = services.driver.snapshot();
    let page = paging::named(&filter, state.cluster().pools(), |pool| pool.name.as_str())?;
    Ok(page.map(|pool| wire::pool(&state, pool)))
}

/// Makes or changes a pool.
pub async fn put_pool(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    mut pool: PoolView,
) -> Result<(), AppError> {
    caller.administers()?;
    pool.name = name.to_owned();
    let command = Command::PutPool { pool: wire::pool_put(&pool)? };
    audited(services, caller, from, "pool.put", &pool.name, command).await?;
    Ok(())
}

/// Domains, by name.
pub fn domains(services: &Services, filter: NameFilter) -> Result<Page<DomainView>, AppError> {
    let state = services.driver.snapshot();
    let page = paging::named(&filter, state.cluster().domains(), |domain| domain.name.as_str())?;
    Ok(page.map(|domain| wire::domain(&state, domain)))
}

/// Makes or changes a domain.
pub async fn put_domain(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    mut domain: DomainView,
) -> Result<(), AppError> {
    caller.administers()?;
    domain.name = name.to_owned();
    let command = Command::PutDomain { domain: wire::domain_put(&domain)? };
    audited(services, caller, from, "domain.put", &domain.name, command).await?;
    Ok(())
}

/// Removes an empty domain.
pub async fn remove_domain(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
) -> Result<(), AppError> {
    caller.administers()?;
    let command = Command::RemoveDomain { name: wire::name("name", name)? };
    audited(services, caller, from, "domain.remove", name, command).await?;
    Ok(())
}

fn find(state: &Snapshot, name: &str) -> Result<NodeId, AppError> {
    let found = state.cluster().nodes().find(|node| node.name.as_str() == name);
    found.map(|node| node.id).ok_or_else(|| {
        let known = state.cluster().nodes().map(|n| n.name.as_str()).take(10);
        let known = known.collect::<Vec<_>>().join(", ");
        let told: String = name.chars().take(64).collect();
        let detail = format!("no node is called `{told}`: known are {known}");
        AppError::new(Kind::NotFound, "unknown", detail).about("name")
    })
}
