//! Nodes, pools and domains, and who holds what.

use axum::Json;
use axum::http::StatusCode;
use era_api::cluster::{BookingView, DomainView, NodeEdit, NodeFilter, NodeView, PoolView};
use era_api::page::NameFilter;
use era_api::{Page, Timestamp};
use era_app::nodes;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Call;
use super::extract::{Body, Path, Query};
use super::failure::Failure;
use crate::App;

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
#[utoipa::path(get, path = "/nodes", tag = "cluster", params(NodeFilter),
    responses((status = 200, body = Page<NodeView>)))]
async fn nodes(
    call: Call,
    Query(filter): Query<NodeFilter>,
) -> Result<Json<Page<NodeView>>, Failure> {
    Ok(Json(nodes::list(&call.app, filter)?))
}

#[utoipa::path(get, path = "/nodes/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The node's name")),
    responses((status = 200, body = NodeView)))]
async fn one_node(call: Call, Path(name): Path<String>) -> Result<Json<NodeView>, Failure> {
    Ok(Json(nodes::get(&call.app, &name)?))
}

/// Cordons, drains, resumes or removes a node, moves it to a domain, announces absences.
#[utoipa::path(patch, path = "/nodes/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The node's name")),
    request_body = NodeEdit,
    responses((status = 204)))]
async fn edit_node(
    call: Call,
    Path(name): Path<String>,
    Body(edit): Body<NodeEdit>,
) -> Result<StatusCode, Failure> {
    nodes::edit(&call.app, &call.caller, call.from, &name, &edit).await?;
    Ok(StatusCode::NO_CONTENT)
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
#[utoipa::path(get, path = "/nodes/{name}/bookings", tag = "cluster",
    params(("name" = String, Path, description = "The node's name"), Stretch),
    responses((status = 200, body = Vec<BookingView>)))]
async fn bookings(
    call: Call,
    Path(name): Path<String>,
    Query(stretch): Query<Stretch>,
) -> Result<Json<Vec<BookingView>>, Failure> {
    let Stretch { from, to } = stretch;
    Ok(Json(nodes::bookings(&call.app, &call.caller, &name, from, to)?))
}

/// Pools, by name.
#[utoipa::path(get, path = "/pools", tag = "cluster", params(NameFilter),
    responses((status = 200, body = Page<PoolView>)))]
async fn pools(
    call: Call,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<PoolView>>, Failure> {
    Ok(Json(nodes::pools(&call.app, filter)?))
}

/// Makes or changes a pool.
#[utoipa::path(put, path = "/pools/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The pool's name")),
    request_body = PoolView,
    responses((status = 204)))]
async fn put_pool(
    call: Call,
    Path(name): Path<String>,
    Body(pool): Body<PoolView>,
) -> Result<StatusCode, Failure> {
    nodes::put_pool(&call.app, &call.caller, call.from, &name, pool).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Domains, by name.
#[utoipa::path(get, path = "/domains", tag = "cluster", params(NameFilter),
    responses((status = 200, body = Page<DomainView>)))]
async fn domains(
    call: Call,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<DomainView>>, Failure> {
    Ok(Json(nodes::domains(&call.app, filter)?))
}

/// Makes or changes a domain.
#[utoipa::path(put, path = "/domains/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The domain's name")),
    request_body = DomainView,
    responses((status = 204)))]
async fn put_domain(
    call: Call,
    Path(name): Path<String>,
    Body(domain): Body<DomainView>,
) -> Result<StatusCode, Failure> {
    nodes::put_domain(&call.app, &call.caller, call.from, &name, domain).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes an empty domain.
#[utoipa::path(delete, path = "/domains/{name}", tag = "cluster",
    params(("name" = String, Path, description = "The domain's name")),
    responses((status = 204)))]
async fn remove_domain(call: Call, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    nodes::remove_domain(&call.app, &call.caller, call.from, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
