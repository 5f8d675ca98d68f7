//! Least-attained service: a line for each class of service received.
//!
//! In a line, those that run come before those that wait, in the order in which they began to run
//! in that class. Whoever has to stop is the first to go on. Whoever has received the service of
//! its class goes to the end of the next line; it stays ahead of those that wait there if nobody
//! of them takes its place at once.

use super::Step;
use crate::job::{Job, ServicePosition};
use crate::queue::{PolicyRule, Queue};
use crate::units::{JobId, Time};

/// The class of a job. Where jobs are preempted they move from line to line, one at a time;
/// elsewhere only those that wait are ordered, by the service of earlier attempts.
pub(super) fn class_of(limits: &[u64], job: &Job, queue: &Queue, now: Time) -> u8 {
    let part = job.first_part();
    if queue.preempts { part.position.class } else { earned_class(limits, part.attained(now)) }
}

/// The class of so much service, in GPU thousandths times milliseconds.
fn earned_class(limits: &[u64], attained: u64) -> u8 {
    limits.partition_point(|limit| limit * 1_000_000 <= attained) as u8
}

/// What orders a job within its class: smaller goes first.
pub(super) fn turn_of(job: &Job, now: Time) -> (bool, i64) {
    let part = job.first_part();
    let settled = part.is_active() && part.position.came != Some(now);
    (!settled, part.position.turn)
}

impl Step<'_> {
    fn next_turn(&mut self) -> i64 {
        self.state.next_turn += 1;
        self.state.next_turn
    }

    /// Moves running jobs that have received the service of their class to the next line.
    pub(super) fn move_on(&mut self, queue: &Queue) {
        let rule = self.state.rule_of(queue);
        let PolicyRule::Las { limits } = &*rule else { return };
        let now = self.state.now;
        let due = self.state.lines.range(..=(now, JobId(u64::MAX)));
        let mut due: Vec<JobId> = due.map(|(_, job)| *job).collect();
        due.sort_unstable();
        for id in due {
            let Some(job) = self.job(id) else { continue };
            if job.queue().is_none_or(|terms| terms.queue != queue.name) {
                continue;
            }
            let position = job.first_part().position;
            let earned = earned_class(limits, job.first_part().attained(now));
            let position = if earned > position.class {
                ServicePosition {
                    class: position.class + 1,
                    turn: self.next_turn(),
                    came: Some(now),
                }
            } else if position.came.is_some_and(|came| came < now) {
                ServicePosition { turn: self.next_turn(), came: None, ..position }
            } else {
                continue;
            };
            self.edit_part(id, 0, |part| part.position = position);
        }
    }

    /// Gives those that have to stop their turn among those that wait, in the order in which they
    /// ran.
    pub(super) fn stand_in_line(&mut self, queue: &Queue, stopped: &[JobId]) {
        let PolicyRule::Las { .. } = &*self.state.rule_of(queue) else { return };
        let now = self.state.now;
        for id in stopped.iter().rev() {
            // Who came to stand at the end stays there.
            if self.part(*id, 0).is_some_and(|part| part.position.came != Some(now)) {
                let turn = -self.next_turn();
                self.edit_part(*id, 0, |part| part.position.turn = turn);
            }
        }
    }

    /// The turn of a job that begins to run, where that counts.
    pub(super) fn begin_turn(&mut self, job: &Job) -> Option<i64> {
        let queue = job.queue().and_then(|terms| self.state.queue(&terms.queue).ok());
        let rule = queue.filter(|queue| queue.preempts).map(|queue| self.state.rule_of(queue));
        let counts = rule.is_some_and(|rule| matches!(&*rule, PolicyRule::Las { .. }));
        counts.then(|| self.next_turn())
    }
}
