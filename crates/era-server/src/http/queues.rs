//! Queues and the policies that order them.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use era_api::Page;
use era_api::page::{NameFilter, PageAsk};
use era_api::queue::{
    Policy, PolicyVersion, Queue, QueueFilter, RollBack, Rule, RuleCheck, RuleChecked, Waiter,
};
use era_core::explain::{Explanation, queue_order};
use era_core::queue::Queue as CoreQueue;
use era_core::queue::formula::{Formula, Var};
use era_core::units::JobId;
use era_core::{Command, Refusal, explain_queue};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::{Body, From, Path, Query};
use super::failure::Failure;
use super::paging;
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
        .routes(routes!(waiting))
        .routes(routes!(policies))
        .routes(routes!(publish))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(roll_back))
        .routes(routes!(check))
}

/// Queues, in the order of service.
#[utoipa::path(
    get, path = "/queues", tag = "queues", params(QueueFilter),
    responses((status = 200, body = Page<Queue>))
)]
async fn queues(
    State(app): State<App>,
    _caller: Caller,
    Query(filter): Query<QueueFilter>,
) -> Result<Json<Page<Queue>>, Failure> {
    let size = paging::size(&PageAsk { cursor: None, limit: filter.limit })?;
    let after = filter.cursor.as_deref().map(place_in_service).transpose()?;
    let state = app.driver.snapshot();
    let wanted = |queue: &&CoreQueue| {
        after.is_none_or(|after| (queue.level, queue.name.as_str()) > after)
            && filter.policy.as_deref().is_none_or(|policy| queue.policy.as_str() == policy)
            && paging::has(queue.name.as_str(), filter.search.as_deref())
    };
    let some = state.queues().iter().filter(wanted).take(size + 1).collect();
    let place = |queue: &&CoreQueue| format!("{}/{}", queue.level, queue.name);
    Ok(Json(paging::page(some, size, place).map(|queue| wire::queue(&state, queue))))
}

/// Where a page of queues ended: at a level, with a name.
fn place_in_service(cursor: &str) -> Result<(u8, &str), Failure> {
    let place = cursor.split_once('/').and_then(|(level, name)| Some((level.parse().ok()?, name)));
    place.ok_or_else(paging::no_cursor)
}

/// Makes or changes a queue.
#[utoipa::path(
    put, path = "/queues/{name}", tag = "queues",
    params(("name" = String, Path, description = "The queue's name")),
    request_body = Queue,
    responses((status = 204))
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
    responses((status = 204))
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

/// Who waits in a queue, the next one first, and why; those that wait for other jobs come last.
#[utoipa::path(
    get, path = "/queues/{name}/waiting", tag = "queues",
    params(("name" = String, Path, description = "The queue's name"), PageAsk),
    responses((status = 200, body = Page<Waiter>))
)]
async fn waiting(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<Waiter>>, Failure> {
    let queue = wire::name("name", &name)?;
    let size = paging::size(&ask)?;
    let skip = usize::try_from(paging::number(&ask, 0)?).unwrap_or(usize::MAX);
    let state = app.driver.snapshot();
    // Off the runtime: it plans those ahead on paper.
    let paper = state.clone();
    let told = tokio::task::spawn_blocking(move || explain_queue(&paper, &queue, skip, size + 1));
    let mut told = told.await.map_err(|e| Failure::internal(&e))??;
    let more = told.len() > size;
    told.truncate(size);
    let directory = app.auth.directory();
    let waiter = |(id, explanation): &(JobId, Explanation)| {
        let job = state.job(*id).ok().filter(|job| caller.sees(job.user, job.group));
        let position = match explanation {
            Explanation::Waiting { position, .. } => *position,
            _ => 0,
        };
        Waiter {
            job: id.0,
            position,
            about: job.map(|job| wire::waiter(job, directory.user_name(job.user))),
            explanation: job.map(|_| wire::explanation(explanation)),
        }
    };
    let items = told.iter().map(waiter).collect();
    Ok(Json(Page { items, next: more.then(|| (skip + size).to_string()) }))
}

/// Policies, by name.
#[utoipa::path(
    get, path = "/policies", tag = "queues", params(NameFilter),
    responses((status = 200, body = Page<Policy>))
)]
async fn policies(
    State(app): State<App>,
    _caller: Caller,
    Query(filter): Query<NameFilter>,
) -> Result<Json<Page<Policy>>, Failure> {
    let state = app.driver.snapshot();
    let Page { items, next } =
        paging::named(&filter, state.policies().names(), |name| name.as_str())?;
    let all = items.into_iter().map(|name| wire::policy(&state, name));
    Ok(Json(Page { items: all.collect::<Result<_, Refusal>>()?, next }))
}

/// Publishes a version of a policy, which is in force at once.
#[utoipa::path(
    put, path = "/policies/{name}", tag = "queues",
    params(("name" = String, Path, description = "The policy's name")),
    request_body = Rule,
    responses((status = 200, body = Policy))
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

/// All versions of a policy that are kept, the newest first.
#[utoipa::path(
    get, path = "/policies/{name}/versions", tag = "queues",
    params(("name" = String, Path, description = "The policy's name"), PageAsk),
    responses((status = 200, body = Page<PolicyVersion>))
)]
async fn versions(
    State(app): State<App>,
    _caller: Caller,
    Path(name): Path<String>,
    Query(ask): Query<PageAsk>,
) -> Result<Json<Page<PolicyVersion>>, Failure> {
    let size = paging::size(&ask)?;
    let before = paging::number(&ask, u64::MAX)?;
    let all = wire::policy_versions(&app.driver.snapshot(), &wire::name("name", &name)?)?;
    let some = all.into_iter().filter(|one| u64::from(one.version) < before).take(size + 1);
    Ok(Json(paging::page(some.collect(), size, |one: &PolicyVersion| one.version.to_string())))
}

/// One version of a policy.
#[utoipa::path(
    get, path = "/policies/{name}/versions/{version}", tag = "queues",
    params(("name" = String, Path, description = "The policy's name"),
        ("version" = u32, Path, description = "The version's number")),
    responses((status = 200, body = PolicyVersion))
)]
async fn version(
    State(app): State<App>,
    _caller: Caller,
    Path((name, version)): Path<(String, u32)>,
) -> Result<Json<PolicyVersion>, Failure> {
    let all = wire::policy_versions(&app.driver.snapshot(), &wire::name("name", &name)?)?;
    let found = all.into_iter().find(|one| one.version == version);
    found.map(Json).ok_or_else(|| Failure::not_found("version", version))
}

/// Puts an older version of a policy in force again.
#[utoipa::path(
    post, path = "/policies/{name}/rollback", tag = "queues",
    params(("name" = String, Path, description = "The policy's name")),
    request_body = RollBack,
    responses((status = 200, body = Policy))
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
    responses((status = 200, body = RuleChecked))
)]
async fn check(
    State(app): State<App>,
    caller: Caller,
    Body(asked): Body<RuleCheck>,
) -> Result<Json<RuleChecked>, Failure> {
    let mut checked = RuleChecked {
        ok: true,
        problem: None,
        code: None,
        parameters: era_api::Parameters::new(),
        at: None,
        names: Var::ALL.iter().map(|var| var.name().to_owned()).collect(),
        order_now: Vec::new(),
        order_then: Vec::new(),
        jobs: Vec::new(),
    };
    let rule = match wire::rule_put(&asked.rule).and_then(|rule| rule.check().map(|()| rule)) {
        Ok(rule) => rule,
        Err(refusal) => {
            checked.ok = false;
            checked.problem = Some(refusal.to_string());
            (checked.code, checked.parameters) = wire::tagged(&refusal, "code");
            if let Some(Err(error)) = asked.rule.formula.as_deref().map(Formula::parse) {
                checked.at = u32::try_from(error.at).ok();
                (checked.code, checked.parameters) = wire::tagged(&error.problem, "fault");
            }
            return Ok(Json(checked));
        }
    };
    if let Some(queue) = &asked.queue {
        // The order shows other people's jobs, so it is for those who own the policy.
        caller.administers()?;
        let queue = wire::name("queue", queue)?;
        let state = app.driver.snapshot();
        let first =
            |order: Vec<JobId>| order.into_iter().take(PREVIEW_MAX).map(|job| job.0).collect();
        checked.order_now = first(queue_order(&state, &queue, None)?);
        checked.order_then = first(queue_order(&state, &queue, Some(&rule))?);
        let both: BTreeSet<u64> =
            checked.order_now.iter().chain(&checked.order_then).copied().collect();
        let directory = app.auth.directory();
        let waiter = |id: u64| {
            let job = state.job(JobId(id)).ok()?;
            let place = checked.order_now.iter().position(|one| *one == id);
            Some(Waiter {
                job: id,
                position: place.map_or(0, |place| u32::try_from(place + 1).unwrap_or(u32::MAX)),
                about: Some(wire::waiter(job, directory.user_name(job.user))),
                explanation: None,
            })
        };
        checked.jobs = both.into_iter().filter_map(waiter).collect();
    }
    Ok(Json(checked))
}
