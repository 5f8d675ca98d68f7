//! Queues and the policies that order them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Problem;
use era_api::queue::{Policy, Queue, RollBack, Rule, RuleCheck, RuleChecked};
use era_core::explain::queue_order;
use era_core::queue::formula::Var;
use era_core::{Command, Refusal};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::{Body, From, Path};
use super::failure::Failure;
use super::reply::audited;
use crate::App;
use crate::wire;

/// How many jobs of a queue a preview shows.
const PREVIEW_MAX: usize = 100;

/// The routes of queues and policies.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(queues))
        .routes(routes!(put_queue, remove_queue))
        .routes(routes!(policies))
        .routes(routes!(publish))
        .routes(routes!(roll_back))
        .routes(routes!(check))
}

/// All queues, in the order of service.
#[utoipa::path(
    get, path = "/queues", tag = "queues",
    responses((status = 200, body = Vec<Queue>), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn queues(State(app): State<App>, _caller: Caller) -> Json<Vec<Queue>> {
    let state = app.driver.snapshot();
    Json(state.queues().iter().map(|queue| wire::queue(&state, queue)).collect())
}

/// Makes or changes a queue.
#[utoipa::path(
    put, path = "/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue's name")),
    request_body = Queue,
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn put_queue(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(mut queue): Body<Queue>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    queue.name = name;
    let command = Command::PutQueue { queue: wire::queue_put(&queue)? };
    audited(&app, &caller, from, "queue.put", &queue.name, command).await
}

/// Removes a queue in which nothing waits.
#[utoipa::path(
    delete, path = "/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue's name")),
    responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn remove_queue(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
) -> Result<StatusCode, Failure> {
    caller.administers()?;
    let command = Command::RemoveQueue { name: wire::name("name", &name)? };
    audited(&app, &caller, from, "queue.remove", &name, command).await
}

/// All policies.
#[utoipa::path(
    get, path = "/policies", tag = "queues",
    responses((status = 200, body = Vec<Policy>), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn policies(State(app): State<App>, _caller: Caller) -> Result<Json<Vec<Policy>>, Failure> {
    let state = app.driver.snapshot();
    let all = state.policies().names().map(|name| wire::policy(&state, name));
    Ok(Json(all.collect::<Result<_, Refusal>>()?))
}

/// Publishes a version of a policy, which is in force at once.
#[utoipa::path(
    put, path = "/policies/{name}", tag = "queues",
    params(("name" = String, Path, description = "The policy's name")),
    request_body = Rule,
    responses((status = 200, body = Policy), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn publish(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(rule): Body<Rule>,
) -> Result<Json<Policy>, Failure> {
    caller.administers()?;
    let policy = wire::name("name", &name)?;
    let command = Command::PublishPolicy { name: policy.clone(), rule: wire::rule_put(&rule)? };
    audited(&app, &caller, from, "policy.publish", &name, command).await?;
    Ok(Json(wire::policy(&app.driver.snapshot(), &policy)?))
}

/// Puts an older version of a policy in force again.
#[utoipa::path(
    post, path = "/policies/{name}/rollback", tag = "queues",
    params(("name" = String, Path, description = "The policy's name")),
    request_body = RollBack,
    responses((status = 200, body = Policy), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn roll_back(
    State(app): State<App>,
    caller: Caller,
    from: From,
    Path(name): Path<String>,
    Body(RollBack { version }): Body<RollBack>,
) -> Result<Json<Policy>, Failure> {
    caller.administers()?;
    let policy = wire::name("name", &name)?;
    let command = Command::RollBackPolicy { name: policy.clone(), version };
    audited(&app, &caller, from, "policy.roll_back", &name, command).await?;
    Ok(Json(wire::policy(&app.driver.snapshot(), &policy)?))
}

/// Says whether a rule can be published, and how it would re-order a queue.
#[utoipa::path(
    post, path = "/policies/check", tag = "queues",
    request_body = RuleCheck,
    responses((status = 200, body = RuleChecked), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
async fn check(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<RuleCheck>,
) -> Result<Json<RuleChecked>, Failure> {
    let mut checked = RuleChecked {
        ok: true,
        problem: None,
        at: None,
        names: Var::ALL.iter().map(|var| var.name().to_owned()).collect(),
        order_now: Vec::new(),
        order_then: Vec::new(),
    };
    let rule = match wire::rule_put(&asked.rule).and_then(|rule| rule.check().map(|()| rule)) {
        Ok(rule) => rule,
        Err(refusal) => {
            checked.ok = false;
            checked.problem = Some(refusal.to_string());
            if let Refusal::BadFormula { at, .. } = refusal {
                checked.at = u32::try_from(at).ok();
            }
            return Ok(Json(checked));
        }
    };
    if let Some(queue) = &asked.queue {
        // The order shows other people's jobs, so it is for those who own the policy.
        caller.administers()?;
        let queue = wire::name("queue", queue)?;
        let state = app.driver.snapshot();
        let first = |order: Vec<era_core::units::JobId>| {
            order.into_iter().take(PREVIEW_MAX).map(|job| job.0).collect()
        };
        checked.order_now = first(queue_order(&state, &queue, None)?);
        checked.order_then = first(queue_order(&state, &queue, Some(&rule))?);
    }
    Ok(Json(checked))
}
