//! Queues and policies.

use era_api::queue as wire;
use era_core::State;
use era_core::job::Job;
use era_core::queue::formula::Formula;
use era_core::queue::{PolicyRule, Queue};
use era_core::refusal::Refusal;
use era_core::units::{Name, Title};

use super::{BadField, fraction, milli, name, seconds, stamp};

/// A queue with how many wait and run.
pub fn queue(state: &State, queue: &Queue) -> wire::QueueView {
    let of_queue = |job: &era_core::job::Job| {
        job.queue().is_some_and(|terms| terms.queue == queue.name) && job.ended.is_none()
    };
    let all = state.jobs().filter(|job| of_queue(job)).count();
    // Also those that wait for other jobs, and have no place in the line yet.
    let waiting = state.jobs().filter(|job| of_queue(job) && job.is_waiting()).count();
    wire::QueueView {
        name: queue.name.to_string(),
        level: queue.level,
        policy: queue.policy.to_string(),
        share: fraction(queue.share),
        borrows: queue.borrows,
        preempts: queue.preempts,
        ages: queue.ages,
        waiting_max: queue.waiting_max,
        running_max: queue.running_max,
        gpus_max: queue.gpus_max.map(|gpus| gpus as f64 / 1000.0),
        waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
        running: u32::try_from(all.saturating_sub(waiting)).unwrap_or(u32::MAX),
    }
}

pub fn queue_put(given: &wire::QueueView) -> Result<Queue, BadField> {
    let gpus_max = match given.gpus_max {
        Some(gpus) => Some(u64::from(milli("gpus_max", gpus)?.0)),
        None => None,
    };
    Ok(Queue {
        name: name("name", &given.name)?,
        level: given.level,
        policy: name("policy", &given.policy)?,
        share: milli("share", given.share)?,
        borrows: given.borrows,
        preempts: given.preempts,
        ages: given.ages,
        waiting_max: given.waiting_max,
        running_max: given.running_max,
        gpus_max,
    })
}

/// A policy with its versions.
pub fn policy(state: &State, name: &Name) -> Result<wire::Policy, Refusal> {
    let (version, rules) = state.policies().history(name)?;
    let rule = rules.get(&version).map_or_else(
        || wire::Rule { order: "fifo".into(), formula: None, limits: Vec::new() },
        |r| self::rule(r),
    );
    Ok(wire::Policy {
        name: name.to_string(),
        version,
        rule,
        versions: rules.keys().copied().collect(),
    })
}

/// Its versions that are kept, the newest first.
pub fn policy_versions(state: &State, name: &Name) -> Result<Vec<wire::PolicyVersion>, Refusal> {
    let (current, rules) = state.policies().history(name)?;
    let version = |(version, rule): (&u32, &std::sync::Arc<PolicyRule>)| wire::PolicyVersion {
        version: *version,
        rule: self::rule(rule),
        in_force: *version == current,
    };
    Ok(rules.iter().rev().map(version).collect())
}

/// What is told of a job that waits.
pub fn waiter(job: &Job, user: String) -> wire::WaiterAbout {
    let part = job.parts.first();
    wire::WaiterAbout {
        name: job.name.as_ref().map(Title::to_string),
        user,
        submitted: stamp(job.submitted),
        gpus: part.map_or(0.0, |part| part.request.units()[2] as f64 / 1000.0),
        replicas: part.map_or(1, |part| part.request.shape.promised()),
        duration_s: part.map_or(0, |part| seconds(part.request.duration)),
    }
}

pub fn rule(rule: &PolicyRule) -> wire::Rule {
    let plain = |order: &str| wire::Rule { order: order.into(), formula: None, limits: Vec::new() };
    match rule {
        PolicyRule::Fifo => plain("fifo"),
        PolicyRule::Sjf => plain("sjf"),
        PolicyRule::Srtf => plain("srtf"),
        PolicyRule::Gittins => plain("gittins"),
        PolicyRule::FairShare => plain("fair-share"),
        PolicyRule::Las { limits } => wire::Rule { limits: limits.clone(), ..plain("las") },
        PolicyRule::Priority { formula } => {
            wire::Rule { formula: Some(formula.source().to_owned()), ..plain("priority") }
        }
    }
}

/// A rule that is to be published or tried.
pub fn rule_put(given: &wire::Rule) -> Result<PolicyRule, Refusal> {
    let bad = |problem: &str| {
        Err(Refusal::BadSetting { field: "order".into(), problem: problem.to_owned() })
    };
    match (given.order.as_str(), &given.formula) {
        ("priority", Some(source)) => {
            let formula = Formula::parse(source).map_err(Refusal::from)?;
            Ok(PolicyRule::Priority { formula })
        }
        ("priority", None) => bad("`priority` needs a formula"),
        (_, Some(_)) => bad("only `priority` has a formula"),
        ("fifo", None) => Ok(PolicyRule::Fifo),
        ("sjf", None) => Ok(PolicyRule::Sjf),
        ("srtf", None) => Ok(PolicyRule::Srtf),
        ("gittins", None) => Ok(PolicyRule::Gittins),
        ("fair-share", None) => Ok(PolicyRule::FairShare),
        ("las", None) => Ok(PolicyRule::Las { limits: given.limits.clone() }),
        _ => bad("give fifo, sjf, srtf, las, gittins, fair-share or priority"),
    }
}
