//! Queues and the policies that order them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use era_api::Page;
use era_api::page::{NameFilter, PageAsk};
use era_api::queue::{
    Policy, PolicyVersion, QueueFilter, QueueView, RollBack, Rule, RuleCheck, RuleChecked, Waiter,
};
use era_core::explain::{Explanation, queue_order};
use era_core::queue::Queue;
use era_core::queue::formula::{Formula, Var};
use era_core::units::JobId;
use era_core::{Command, Refusal, explain_queue};

use crate::answer::audited;
use crate::auth::Caller;
use crate::error::AppError;
use crate::{Services, paging, wire};

/// How many jobs of a queue a preview shows.
const PREVIEW_MAX: usize = 100;

/// Queues, in the order of service.
pub fn list(services: &Services, filter: QueueFilter) -> Result<Page<QueueView>, AppError> {
    let size = paging::size(&PageAsk { cursor: None, limit: filter.limit })?;
    let after = filter.cursor.as_deref().map(place_in_service).transpose()?;
    let state = services.driver.snapshot();
    let wanted = |queue: &&Queue| {
        after.is_none_or(|after| (queue.level, queue.name.as_str()) > after)
            && filter.policy.as_deref().is_none_or(|policy| queue.policy.as_str() == policy)
            && paging::has(queue.name.as_str(), filter.search.as_deref())
    };
    let some = state.queues().iter().filter(wanted).take(size + 1).collect();
    let place = |queue: &&Queue| format!("{}/{}", queue.level, queue.name);
    Ok(paging::page(some, size, place).map(|queue| wire::queue(&state, queue)))
}

/// Where a page of queues ended: at a level, with a name.
fn place_in_service(cursor: &str) -> Result<(u8, &str), AppError> {
    let place = cursor.split_once('/').and_then(|(level, name)| Some((level.parse().ok()?, name)));
    place.ok_or_else(paging::no_cursor)
}

/// Makes or changes a queue.
pub async fn put(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    mut queue: QueueView,
) -> Result<(), AppError> {
    caller.administers()?;
    queue.name = name.to_owned();
    let command = Command::PutQueue { queue: wire::queue_put(&queue)? };
    audited(services, caller, from, "queue.put", &queue.name, command).await?;
    Ok(())
}

/// Removes a queue in which nothing waits.
pub async fn remove(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
) -> Result<(), AppError> {
    caller.administers()?;
    let command = Command::RemoveQueue { name: wire::name("name", name)? };
    audited(services, caller, from, "queue.remove", name, command).await?;
    Ok(())
}

/// Who waits in a queue, the next one first, and why; those that wait for other jobs come last.
pub async fn waiting(
    services: &Services,
    caller: &Caller,
    name: &str,
    ask: PageAsk,
) -> Result<Page<Waiter>, AppError> {
    let queue = wire::name("name", name)?;
    let size = paging::size(&ask)?;
    let skip = usize::try_from(paging::number(&ask, 0)?).unwrap_or(usize::MAX);
    let state = services.driver.snapshot();
    // Off the runtime: it plans those ahead on paper.
    let paper = state.clone();
    let told = tokio::task::spawn_blocking(move || explain_queue(&paper, &queue, skip, size + 1));
    let mut told = told.await.map_err(|e| AppError::internal(&e))??;
    let more = told.len() > size;
    told.truncate(size);
    let directory = services.auth.directory();
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
    Ok(Page { items, next: more.then(|| (skip + size).to_string()) })
}

/// Policies, by name.
pub fn policies(services: &Services, filter: NameFilter) -> Result<Page<Policy>, AppError> {
    let state = services.driver.snapshot();
    let Page { items, next } =
        paging::named(&filter, state.policies().names(), |name| name.as_str())?;
    let all = items.into_iter().map(|name| wire::policy(&state, name));
    Ok(Page { items: all.collect::<Result<_, Refusal>>()?, next })
}

/// Publishes a version of a policy, which is in force at once.
pub async fn publish(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    rule: Rule,
) -> Result<Policy, AppError> {
    caller.administers()?;
    let policy = wire::name("name", name)?;
    let command = Command::PublishPolicy { name: policy.clone(), rule: wire::rule_put(&rule)? };
    audited(services, caller, from, "policy.publish", name, command).await?;
    Ok(wire::policy(&services.driver.snapshot(), &policy)?)
}

/// All versions of a policy that are kept, the newest first.
pub fn versions(
    services: &Services,
    name: &str,
    ask: PageAsk,
) -> Result<Page<PolicyVersion>, AppError> {
    let size = paging::size(&ask)?;
    let before = paging::number(&ask, u64::MAX)?;
    let all = wire::policy_versions(&services.driver.snapshot(), &wire::name("name", name)?)?;
    let some = all.into_iter().filter(|one| u64::from(one.version) < before).take(size + 1);
    Ok(paging::page(some.collect(), size, |one: &PolicyVersion| one.version.to_string()))
}

pub fn version(services: &Services, name: String, version: u32) -> Result<PolicyVersion, AppError> {
    let all = wire::policy_versions(&services.driver.snapshot(), &wire::name("name", &name)?)?;
    let found = all.into_iter().find(|one| one.version == version);
    found.ok_or_else(|| AppError::not_found("version", version))
}

/// Puts an older version of a policy in force again.
pub async fn roll_back(
    services: &Services,
    caller: &Caller,
    from: IpAddr,
    name: &str,
    RollBack { version }: RollBack,
) -> Result<Policy, AppError> {
    caller.administers()?;
    let policy = wire::name("name", name)?;
    let command = Command::RollBackPolicy { name: policy.clone(), version };
    audited(services, caller, from, "policy.roll_back", name, command).await?;
    Ok(wire::policy(&services.driver.snapshot(), &policy)?)
}

/// Says whether a rule can be published, and how it would re-order a queue.
pub fn check(
    services: &Services,
    caller: &Caller,
    asked: RuleCheck,
) -> Result<RuleChecked, AppError> {
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
            return Ok(checked);
        }
    };
    if let Some(queue) = &asked.queue {
        // The order shows other people's jobs, so it is for those who own the policy.
        caller.administers()?;
        let queue = wire::name("queue", queue)?;
        let state = services.driver.snapshot();
        let first =
            |order: Vec<JobId>| order.into_iter().take(PREVIEW_MAX).map(|job| job.0).collect();
        checked.order_now = first(queue_order(&state, &queue, None)?);
        checked.order_then = first(queue_order(&state, &queue, Some(&rule))?);
        let both: BTreeSet<u64> =
            checked.order_now.iter().chain(&checked.order_then).copied().collect();
        let directory = services.auth.directory();
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
    Ok(checked)
}
