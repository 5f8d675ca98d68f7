//! What the core's events mean to people, a line each.

use era_core::Event;
use era_core::job::{Job, Outcome, Plan, StopReason};
use era_core::ledger::PostingReason;
use era_core::units::{JobId, Money, Span, UserId};

use super::text::{Mark, Page, about, clock, credits, stretch};
use super::world::{StepNews, World};

/// The users of the scenario, by number from 1.
pub(super) const USERS: [&str; 3] = ["ada", "bob", "chen"];

/// What people call a user.
pub(super) fn user_name(user: UserId) -> &'static str {
    let index = (user.0 as usize).wrapping_sub(1);
    USERS.get(index).copied().unwrap_or("?")
}

/// What people call a job.
pub(super) fn job_name(job: &Job) -> String {
    job.name.as_ref().map_or_else(|| job.id.to_string(), |name| name.to_string())
}

/// Tells all that happened since this was last asked.
pub(super) fn tell(page: &mut Page, world: &mut World) {
    for news in world.take_news() {
        // What went wrong comes before what was done about it.
        let mut events: Vec<&Event> = news.events.iter().collect();
        events.sort_by_key(|event| !matches!(event, Event::Stopping { .. }));
        for event in events {
            let Some((job, mark, text)) = entry(world, &news, event) else { continue };
            let Ok(job) = world.state().job(job) else { continue };
            page.entry(news.at, user_name(job.user), &job_name(job), mark, &text);
        }
    }
}

fn entry(world: &World, news: &StepNews, event: &Event) -> Option<(JobId, Mark, String)> {
    Some(match event {
        Event::Launched { job, part, attempt, plan } => {
            let parts = world.state().job(*job).map_or(1, |j| j.parts.len());
            let part =
                if parts > 1 { format!("part {} of {parts} ", part + 1) } else { String::new() };
            let again = if *attempt > 1 { "starts again" } else { "starts" };
            (*job, Mark::Starts, format!("{part}{again} on {}", nodes(world, plan)))
        }
        Event::Moved { job, rank: 0, to, .. } => {
            let node = world.node_name(to.node);
            (*job, Mark::Moves, format!("moves to {node}; the start that was told stands"))
        }
        Event::Stopping { job, why: StopReason::Preempted, until, .. } => {
            (*job, Mark::Yields, format!("gives way to a promise: has until {}", clock(*until)))
        }
        Event::Stopping { job, why: StopReason::Lost, until, .. } => {
            let text = format!("has lost its node; no second run before {}", clock(*until));
            (*job, Mark::Bad, text)
        }
        Event::Stopping { job, why: StopReason::Limit, until, .. } => {
            (*job, Mark::Yields, format!("reaches its limit at {}", clock(*until)))
        }
        Event::Checkpointed { job, done_ms, .. } if is_promise(world, *job) => {
            let done = about(Span(*done_ms));
            (*job, Mark::Asks, format!("has saved {done} of its work"))
        }
        Event::Requeued { job, .. } => {
            let saved = news.saved.get(job).copied().unwrap_or_default();
            let saved = if saved > Span::ZERO { about(saved) } else { "none".to_owned() };
            (
                *job,
                Mark::Yields,
                format!("waits again, keeps its age; {saved} of its work is saved"),
            )
        }
        Event::Replanned { job, plan, .. } => {
            let (when, where_) = (stretch(plan.from, plan.to), nodes(world, plan));
            (*job, Mark::Moves, format!("re-planned inside its window: {when} on {where_}"))
        }
        Event::Ended { job, outcome, .. } => ended(world, news, *job, outcome),
        _ => return None,
    })
}

fn ended(world: &World, news: &StepNews, job: JobId, outcome: &Outcome) -> (JobId, Mark, String) {
    let promised = is_promise(world, job);
    let unused = posted(news, job, PostingReason::RefundUnused);
    let earned = posted(news, job, PostingReason::Earned);
    match outcome {
        Outcome::Broken { reason } => {
            let refund = credits(posted(news, job, PostingReason::RefundBroken));
            (job, Mark::Bad, format!("broken: {reason}\n{refund} come back, all that was paid"))
        }
        Outcome::Succeeded if promised && unused > Money::ZERO => {
            (job, Mark::Good, format!("done early: {} come back", credits(unused)))
        }
        Outcome::Succeeded if promised => (job, Mark::Good, "done".to_owned()),
        Outcome::Succeeded => {
            (job, Mark::Good, format!("done; pays {} for its use", credits(earned)))
        }
        other => (job, Mark::Bad, format!("ended: {other:?}")),
    }
}

fn is_promise(world: &World, job: JobId) -> bool {
    world.state().job(job).is_ok_and(|j| j.promise().is_some())
}

/// What was posted for a job, for this reason.
fn posted(news: &StepNews, job: JobId, reason: PostingReason) -> Money {
    let amounts = news.events.iter().filter_map(|event| match event {
        Event::Posted { job: Some(j), posting } if *j == job && posting.reason == reason => {
            Some(posting.amount.0)
        }
        _ => None,
    });
    Money(amounts.sum())
}

/// The nodes of a plan, each once.
pub(super) fn nodes(world: &World, plan: &Plan) -> String {
    let mut nodes: Vec<_> = plan.seats.iter().map(|seat| seat.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.iter().map(|node| world.node_name(*node)).collect::<Vec<_>>().join(" ")
}
