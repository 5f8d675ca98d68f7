//! What happens by itself, and when: timers follow from jobs, holds and nodes, and are found again
//! from them alone. What is done when one is due is the scheduler's to say. That ended jobs are
//! forgotten has a list of its own, since it may come earlier than its time.

use crate::cluster::Node;
use crate::job::{Attempt, Hold, Job, Phase};
use crate::units::{HoldId, JobId, NodeId, Span, Time};

/// What happens by itself when its time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Growth that was told to stop is gone.
    ExtraGone { job: JobId, part: u16 },
    /// What was told to stop is gone.
    StopOver { job: JobId, part: u16 },
    /// What is still on a draining node has to go elsewhere.
    Vacate(NodeId),
    /// A hold expires.
    Hold(HoldId),
    /// Work in the way of a hold is told to give way.
    ClearHeld { hold: HoldId, part: u16 },
    /// Work in the way of a promise is told to give way.
    Clear { job: JobId, part: u16 },
    /// A promise starts.
    Start { job: JobId, part: u16 },
    /// A run's time is nearly over.
    Overrun { job: JobId, part: u16 },
}

/// When the stop signal of a run comes: one grace period before its end, or half-way through
/// where it is shorter than two of them.
pub(crate) fn stop_signal(from: Time, to: Time, grace: Span) -> Time {
    let half = Time(from.0 + (to.0 - from.0) / 2);
    (to - grace).max(half)
}

/// What happens to a node by itself, and when.
pub(crate) fn timer_of_node(node: &Node) -> Option<(Time, Timer)> {
    node.stop_at.map(|at| (at, Timer::Vacate(node.id)))
}

/// What happens to a hold by itself, and when.
pub(crate) fn timers_of_hold(hold: &Hold, grace: Span) -> Vec<(Time, Timer)> {
    let mut timers = vec![(hold.expires, Timer::Hold(hold.id))];
    for (index, (plan, _)) in (0u16..).zip(&hold.parts) {
        // Until it expires, it may be accepted.
        let due = plan.from - grace;
        if !hold.cleared.contains(&index) && due < hold.expires {
            timers.push((due, Timer::ClearHeld { hold: hold.id, part: index }));
        }
    }
    timers
}

/// What happens to a job by itself, and when.
pub(crate) fn timers_of(job: &Job, grace: Span) -> Vec<(Time, Timer)> {
    let id = job.id;
    if job.ended.is_some() {
        return Vec::new();
    }
    let mut timers = Vec::new();
    for (index, part) in job.parts.iter().enumerate() {
        let index = index as u16;
        if let Some((plan, false)) = part.coming() {
            timers.push((plan.from - grace, Timer::Clear { job: id, part: index }));
        }
        match &part.phase {
            Phase::Booked(booked) => {
                timers.push((booked.plan.from, Timer::Start { job: id, part: index }));
            }
            Phase::Active(run) => timers_of_run(run, id, index, grace, &mut timers),
            Phase::Waiting(_) | Phase::Done { .. } => {}
        }
    }
    timers
}

fn timers_of_run(
    run: &Attempt,
    job: JobId,
    part: u16,
    grace: Span,
    timers: &mut Vec<(Time, Timer)>,
) {
    let gone = run.extras.iter().filter_map(|extra| extra.stop_until);
    timers.extend(gone.map(|until| (until, Timer::ExtraGone { job, part })));
    if let Some(stop) = run.stop() {
        timers.push((stop.until, Timer::StopOver { job, part }));
    } else if run.tasks.iter().any(|t| t.is_live()) {
        let signal = stop_signal(run.since, run.plan.to, grace);
        timers.push((signal, Timer::Overrun { job, part }));
    }
}
