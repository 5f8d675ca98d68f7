//! Queues and the policies that order them.

use axum::Json;
use axum::http::StatusCode;
use era_api::Page;
use era_api::page::{NameFilter, PageAsk};
use era_api::queue::{
    Policy, PolicyVersion, QueueFilter, QueueView, RollBack, Rule, RuleCheck, RuleChecked, Waiter,
};
use era_app::queues;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Call;
use super::extract::{Body, Path, Query};
use super::failure::Failure;
use crate::App;

/// The routes of queues and policies.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(queues))
        .routes(routes!(put_queue, remove_queue))
        .routes(routes!(waiting))
        .routes(routes!(policies))
        .routes(routes!(publish))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(roll_back))
        .routes(routes!(check))
}

/// Queues, in the order of service.
#[utoipa::path(get, path = "/queues", tag = "queues", params(QueueFilter),
    responses((status = 200, body = Page<QueueView>)))]
async fn queues(
    call: Call,
    Query(filter): Query<QueueFilter>,
) -> Result<Json<Page<QueueView>>, Failure> {
    Ok(Json(queues::list(&call.app, filter)?))
}

/// Makes or changes a queue.
#[utoipa::path(put, path = "/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue's name")),
    request_body = QueueView,
    responses((status = 204)))]
async fn put_queue(
    call: Call,
    Path(name): Path<String>,
    Body(queue): Body<QueueView>,
) -> Result<StatusCode, Failure> {
    queues::put(&call.app, &call.caller, call.from, &name, queue).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a queue in which nothing waits.
#[utoipa::path(delete, path = "/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue's name")),
    responses((status = 204)))]
async fn remove_queue(call: Call, Path(name): Path<String>) -> Result<StatusCode, Failure> {
    queues::remove(&call.app, &call.caller, call.from, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who waits in a queue, the next one first, and why; those that wait for other jobs come last.
#[utoipa::path(get, path = "/queues/{name}/waiting", tag = "queues",
    params(("name" = String, Path, description = "The queue's name"), PageAsk),
    responses((status = 200, body = Page<Waiter>)))]
async fn waiting(
    call: Call,
    Path(name): Path<String>,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<Waiter>>, Failure> {
    Ok(Json(queues::waiting(&call.app, &call.caller, &name, ask).await?))
}

/// Policies, by name.
#[utoipa::path(get, path = "/policies", tag = "queues", params(NameFilter),
    responses((status = 200, body = Page<Policy>)))]
async fn policies(
    call: Call,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<Policy>>, Failure> {
    Ok(Json(queues::policies(&call.app, filter)?))
}

/// Publishes a version of a policy, which is in force at once.
#[utoipa::path(put, path = "/policies/{name}", tag = "queues",
    params(("name" = String, Path, description = "The policy's name")),
    request_body = Rule,
    responses((status = 200, body = Policy)))]
async fn publish(
    call: Call,
    Path(name): Path<String>,
    Body(rule): Body<Rule>,
) -> Result<Json<Policy>, Failure> {
    Ok(Json(queues::publish(&call.app, &call.caller, call.from, &name, rule).await?))
}

/// All versions of a policy that are kept, the newest first.
#[utoipa::path(get, path = "/policies/{name}/versions", tag = "queues",
    params(("name" = String, Path, description = "The policy's name"), PageAsk),
    responses((status = 200, body = Page<PolicyVersion>)))]
async fn versions(
    call: Call,
    Path(name): Path<String>,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<PolicyVersion>>, Failure> {
    Ok(Json(queues::versions(&call.app, &name, ask)?))
}

/// One version of a policy.
#[utoipa::path(get, path = "/policies/{name}/versions/{version}", tag = "queues",
    params(("name" = String, Path, description = "The policy's name"),
        ("version" = u32, Path, description = "The version's number")),
    responses((status = 200, body = PolicyVersion)))]
async fn version(
    call: Call,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Json<PolicyVersion>, Failure> {
    Ok(Json(queues::version(&call.app, name, version)?))
}

/// Puts an older version of a policy in force again.
#[utoipa::path(post, path = "/policies/{name}/rollback", tag = "queues",
    params(("name" = String, Path, description = "The policy's name")),
    request_body = RollBack,
    responses((status = 200, body = Policy)))]
async fn roll_back(
    call: Call,
    Path(name): Path<String>,
    Body(asked): Body<RollBack>,
) -> Result<Json<Policy>, Failure> {
    Ok(Json(queues::roll_back(&call.app, &call.caller, call.from, &name, asked).await?))
}

/// Says whether a rule can be published, and how it would re-order a queue.
#[utoipa::path(post, path = "/policies/check", tag = "queues",
    request_body = RuleCheck,
    responses((status = 200, body = RuleChecked)))]
async fn check(call: Call, Body(asked): Body<RuleCheck>) -> Result<Json<RuleChecked>, Failure> {
    Ok(Json(queues::check(&call.app, &call.caller, asked)?))
}
