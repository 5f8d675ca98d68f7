//! Nodes, pools and domains, and who holds what.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::cluster::{Booking, Domain, Node, NodeAction, NodeEdit, NodeFilter, Pool};
use era_api::page::{NameFilter, PageAsk};
use era_api::{Page, Timestamp};
use era_core::cluster::{Health, Node as CoreNode};
use era_core::units::{NodeId, Span};
use era_core::{Command, Input, Reply, Snapshot, step};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::{Body, From, Path, Query};
use super::failure::Failure;
use super::reply::audited;
use super::{paging, reading};
use crate::App;
use crate::clock::{Clock, SystemClock};
use crate::wire::{self, Wrong};

/// The routes of the cluster.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(nodes))
        .routes(routes!(one_node, edit_node))
        .routes(routes!(bookings))
        .routes(routes!(pools))
        .routes(routes!(put_pool))
        .routes(routes!(domains))
        .routes(routes!(put_domain, remove_domain))
}

/// Nodes, in the order in which they came, with the jobs that hold each of them and each GPU now.
#[utoipa::path(
    get, path = "/nodes", tag = "cluster", params(NodeFilter),
    responses((status = 200, body = Page<Node>))
)]
async fn nodes(
    State(app): State<App>,
    _caller: Caller,
    Query(filter): Query<NodeFilter>,
) -> Result<Json<Page<Node>>, Failure> {
    let ask = PageAsk { cursor: filter.cursor.clone(), limit: filter.limit };
    let (size, after) = (paging::size(&ask)?, paging::number(&ask, 0)?);
    let state = app.driver.snapshot();
    let wanted = wanted(&filter)?;
    let rest = |node: &CoreNode| ask.cursor.is_none() || u64::from(node.id.0) > after;
    let some = state.cluster().nodes().filter(|node| rest(node) && wanted(node)).take(size + 1);
    let page = paging::page(some.collect(), size, |node| node.id.0.to_string());
    Ok(Json(page.map(|node| wire::node(&state, node))))
}

/// Whether a node is one of those that a filter lets through.
fn wanted(filter: &NodeFilter) -> Result<impl Fn(&CoreNode) -> bool, Failure> {
    let health: Option<Vec<Health>> =
        filter.health.as_deref().map(|text| reading::words("health", text)).transpose()?;
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
    Ok(move |node: &CoreNode| {
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

/// A node.
#[utoipa::path(
    get, path = "/nodes/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The node's name")),
    responses((status = 200, body = Node))
)]
async fn one_node(
    State(app): State<App>,
    _caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Node>, Failure> {
    let state = app.driver.snapshot();
    let node = find(&state, &name)?;
    Ok(Json(wire::node(&state, state.cluster().node(node)?)))
}

/// Cordons, drains, resumes or removes a node, moves it to a domain, announces absences.
#[utoipa::path(
    patch, path = "/nodes/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The node's name")),
    request_body = NodeEdit,
    responses((status = 204))
)]
async fn edit_node(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(edit): Body<NodeEdit>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    let state = app.driver.snapshot();
    let changes = changes(find(&state, &name)?, &edit)?;
    if changes.len() > 1 {
        possible(&state, &changes)?;
    }
    for (what, command) in changes {
        audited(&app, &caller, from, what, &name, command).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses changes of which one would be refused, before the first is made.
fn possible(state: &Snapshot, changes: &[(&'static str, Command)]) -> Result<(), Failure> {
    let mut state = state.snapshot();
    for (_, command) in changes {
        let at = SystemClock.now().max(state.now());
        let input = Input { seq: state.seq() + 1, at, command: command.clone() };
        if let Reply::Refused { refusal, counter } = step(&mut state, input).reply {
            return Err(Failure::refused(&refusal, &counter));
        }
    }
    Ok(())
}

/// The inputs that an edit comes to, in the order in which they are made.
fn changes(node: NodeId, edit: &NodeEdit) -> Result<Vec<(&'static str, Command)>, Failure> {
    let mut changes = Vec::new();
    if edit.stop_at.is_some() && edit.action != Some(NodeAction::Drain) {
        return Err(Failure::bad_field("stop_at", Wrong::DrainOnly));
    }
    if let Some(domain) = &edit.domain {
        let domain = Some(domain.as_str()).filter(|name| !name.is_empty());
        let domain = wire::optional_name("domain", domain)?;
        changes.push(("node.domain", Command::SetDomain { node, domain }));
    }
    if let Some(absences) = &edit.maintenance {
        let windows = absences.iter().map(|a| (wire::time(a.from), wire::time(a.to))).collect();
        changes.push(("node.maintenance", Command::SetMaintenance { node, windows }));
    }
    match edit.action {
        Some(NodeAction::Cordon) => changes.push(("node.cordon", Command::Cordon { node })),
        Some(NodeAction::Drain) => {
            let stop_at = edit.stop_at.map(wire::time);
            changes.push(("node.drain", Command::Drain { node, stop_at }));
        }
        Some(NodeAction::Resume) => changes.push(("node.resume", Command::Resume { node })),
        Some(NodeAction::Leave) => changes.push(("node.leave", Command::Leave { node })),
        None => {}
    }
    Ok(changes)
}

/// Which stretch of time is wanted.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Stretch {
    /// From; now where nothing is said.
    from: Option<Timestamp>,
    /// Until; a day later where nothing is said.
    to: Option<Timestamp>,
}

/// What is booked on a node over time.
#[utoipa::path(
    get, path = "/nodes/{name}/bookings", tag = "cluster",
    params(("name" = String, Path, description = "The node's name"), Stretch),
    responses((status = 200, body = Vec<Booking>))
)]
async fn bookings(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(stretch): Query<Stretch>,
) -> Result<Json<Vec<Booking>>, Failure> {
    let state = app.driver.snapshot();
    let node = state.cluster().node(find(&state, &name)?)?;
    let from = stretch.from.map_or(state.now(), wire::time);
    let to = stretch.to.map_or(from + Span::from_days(1), wire::time);
    let may_see = |id| state.job(id).is_ok_and(|job| caller.sees(job.user, job.group));
    Ok(Json(wire::bookings(&state, node, from, to, may_see)))
}

/// Pools, by name.
#[utoipa::path(
    get, path = "/pools", tag = "cluster", params(NameFilter),
    responses((status = 200, body = Page<Pool>))
)]
async fn pools(
    State(app): State<App>,
    _caller: Caller,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<Pool>>, Failure> {
    let state = app.driver.snapshot();
    let page = paging::named(&filter, state.cluster().pools(), |pool| pool.name.as_str())?;
    Ok(Json(page.map(|pool| wire::pool(&state, pool))))
}

/// Makes or changes a pool.
#[utoipa::path(
    put, path = "/pools/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The pool's name")),
    request_body = Pool,
    responses((status = 204))
)]
async fn put_pool(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(mut pool): Body<Pool>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    pool.name = name;
    let command = Command::PutPool { pool: wire::pool_put(&pool)? };
    audited(&app, &caller, from, "pool.put", &pool.name, command).await
}

/// Domains, by name.
#[utoipa::path(
    get, path = "/domains", tag = "cluster", params(NameFilter),
    responses((status = 200, body = Page<Domain>))
)]
async fn domains(
    State(app): State<App>,
    _caller: Caller,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<Domain>>, Failure> {
    let state = app.driver.snapshot();
    let page = paging::named(&filter, state.cluster().domains(), |domain| domain.name.as_str())?;
    Ok(Json(page.map(|domain| wire::domain(&state, domain))))
}

/// Makes or changes a domain.
#[utoipa::path(
    put, path = "/domains/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The domain's name")),
    request_body = Domain,
    responses((status = 204))
)]
async fn put_domain(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(mut domain): Body<Domain>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    domain.name = name;
    let command = Command::PutDomain { domain: wire::domain_put(&domain)? };
    audited(&app, &caller, from, "domain.put", &domain.name, command).await
}

/// Removes an empty domain.
#[utoipa::path(
    delete, path = "/domains/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The domain's name")),
    responses((status = 204))
)]
async fn remove_domain(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    let command = Command::RemoveDomain { name: wire::name("name", &name)? };
    audited(&app, &caller, from, "domain.remove", &name, command).await
}

/// A node by its name.
fn find(state: &Snapshot, name: &str) -> Result<NodeId, Failure> {
    let found = state.cluster().nodes().find(|node| node.name.as_str() == name);
    found.map(|node| node.id).ok_or_else(|| {
        let known = state.cluster().nodes().map(|n| n.name.as_str()).take(10);
        let known = known.collect::<Vec<_>>().join(", ");
        let told: String = name.chars().take(64).collect();
        let detail = format!("no node is called `{told}`: known are {known}");
        Failure::new(StatusCode::NOT_FOUND, "unknown", detail).about("name")
    })
}
