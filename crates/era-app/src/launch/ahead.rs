//! What is promised to start soon is brought to its nodes before: the executor is told, some
//! minutes ahead and once for each plan. Whatever is not there in time is brought at the start.

use std::collections::BTreeSet;
use std::time::Duration;

use era_core::job::{Job, TaskId};
use era_core::units::{NodeId, Span, Time};

use super::orders::Orders;

/// How long before its start a task is staged.
const AHEAD: Span = Span::from_min(10);
/// How often promises are looked through.
pub(super) const EVERY: Duration = Duration::from_secs(5);

/// What was told to be staged: a task, the start that it was told for, and the node.
#[derive(Default)]
pub(super) struct Ahead {
    told: BTreeSet<(TaskId, Time, NodeId)>,
}

impl Ahead {
    /// Tells executors of what starts soon and was not told before.
    pub(super) fn look(&mut self, orders: &mut Orders) {
        let snapshot = orders.driver.snapshot();
        let now = snapshot.now();
        let soon = |job: &&std::sync::Arc<Job>| job.ended.is_none() && job.promise().is_some();
        let mut due = BTreeSet::new();
        for job in snapshot.jobs().filter(soon) {
            due.extend(starting(job, now));
        }
        self.told.retain(|one| due.contains(one));
        for (task, at, node) in due {
            if self.told.insert((task, at, node)) {
                orders.stage(&snapshot, task);
            }
        }
    }
}

/// The tasks of a job that start soon, when and where.
fn starting(job: &Job, now: Time) -> impl Iterator<Item = (TaskId, Time, NodeId)> {
    let parts = (0_u16..).zip(&job.parts);
    let waiting = parts.filter(|(_, part)| part.is_booked());
    let soon = waiting.filter_map(move |(index, part)| {
        let plan = part.plan()?;
        (plan.from > now && plan.from <= now + AHEAD).then_some((index, part, plan))
    });
    soon.flat_map(move |(index, part, plan)| {
        let attempt = part.attempt + 1;
        let task = move |rank| TaskId { job: job.id, part: index, attempt, rank };
        (0_u32..).zip(&plan.seats).map(move |(rank, seat)| (task(rank), plan.from, seat.node))
    })
}
