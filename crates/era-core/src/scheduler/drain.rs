//! Nodes that are to take nothing new, and are emptied.
//!
//! A cordon leaves what is there. A drain moves promises that have not begun, at the start that was
//! told; with a time it also empties the node then: what runs is stopped with grace and goes on
//! elsewhere as after a loss of hardware, a promise within its window, queue work in its queue.

use super::Step;
use super::nodes::ranks_on;
use super::replan::Effort;
use crate::cluster::{Health, Node};
use crate::job::StopReason;
use crate::refusal::Refusal;
use crate::state::State;
use crate::timer::timer_of_node;
use crate::units::{JobId, NodeId, Time};

/// Why a promise is broken, where it fits nowhere else.
const DRAINED: &str = "its node was drained";

impl State {
    /// Changes a node in place, and keeps its timer true.
    pub(super) fn edit_node(&mut self, id: NodeId, edit: impl FnOnce(&mut Node)) {
        let timer = |state: &State| timer_of_node(state.cluster.node(id).ok()?);
        if let Some(timer) = timer(self) {
            self.timers.remove(&timer);
        }
        self.cluster.edit_node(id, edit);
        self.timers.extend(timer(self));
    }
}

impl Step<'_> {
    pub(super) fn drain(&mut self, node: NodeId, stop_at: Option<Time>) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        if stop_at.is_some_and(|at| at > Time::LATEST) {
            return Err(Refusal::BadSetting {
                field: "stop_at".into(),
                problem: "give a time before the year 10000, or none".into(),
            });
        }
        let due = stop_at.is_some_and(|at| at <= self.state.now);
        self.set_health(node, Health::Draining, stop_at.filter(|_| !due));
        for (holder, _) in self.promises_on(node) {
            self.relocate(holder, Effort::SameStart);
        }
        if due {
            self.vacate(node);
        }
        Ok(())
    }

    pub(super) fn cordon(&mut self, node: NodeId) -> Result<(), Refusal> {
        if self.state.cluster.node(node)?.health == Health::Lost {
            // Its promises have left.
            return Err(Refusal::BadSetting {
                field: "node".into(),
                problem: "it is lost and takes nothing anyway: cordon it when it is back".into(),
            });
        }
        self.set_health(node, Health::Cordoned, None);
        Ok(())
    }

    pub(super) fn resume(&mut self, node: NodeId) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        self.set_health(node, Health::Up, None);
        Ok(())
    }

    pub(super) fn set_health(&mut self, node: NodeId, health: Health, stop_at: Option<Time>) {
        self.state.edit_node(node, |n| (n.health, n.stop_at) = (health, stop_at));
        self.follow(vec![node]);
    }

    /// Whatever is still on a draining node goes elsewhere.
    pub(super) fn vacate(&mut self, node: NodeId) {
        if self.state.cluster.node(node).is_ok_and(|n| n.stop_at.is_some()) {
            self.set_health(node, Health::Draining, None);
        }
        let until = self.state.now + self.state.settings.grace;
        for (job, part) in self.runs_on(node) {
            self.stop_there(job, part, node, until);
        }
        for (holder, _) in self.promises_on(node) {
            self.relocate(holder, Effort::Whatever { why: DRAINED });
        }
    }

    /// Stops what a run has on a node: growth alone, or the gang of a promised rank.
    fn stop_there(&mut self, id: JobId, index: usize, node: NodeId, until: Time) {
        let Ok(job) = self.state.job(id) else { return };
        let part = &job.parts[index];
        let ranks = ranks_on(part, node);
        let live = |(rank, task): (u32, &crate::job::Task)| task.is_live() && ranks.contains(&rank);
        let gang = (0u32..).zip(part.tasks()).any(live);
        if part.stop().is_some() {
            // It is to be gone soon anyway.
        } else if gang {
            self.gang_lost(id, index, until, StopReason::Drained, DRAINED);
        } else {
            self.stop_extras(id, index, &ranks, until);
        }
    }
}
