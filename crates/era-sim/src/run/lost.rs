//! Machines that fail and come back in a run, and jobs that do not end by themselves.
//!
//! What the core makes of them is its own affair: here it is told what an executor would tell it.

use era_core::Command;
use era_core::units::{NodeId, Span, Time};

use super::{Absence, Driver};

impl Driver<'_> {
    /// Nodes fail and come back.
    pub(super) fn change_weather(&mut self, second: i64, at: Time) {
        while let Some(change) = self.weather.as_mut().and_then(|weather| weather.take(second)) {
            let node = NodeId(change.node);
            if change.is_up {
                self.send(at, Command::Resume { node });
                let mut absences = self.run.absences.iter_mut().rev();
                if let Some(absence) = absences.find(|absence| absence.node == change.node) {
                    absence.to_s = second;
                }
            } else {
                self.lose(node, second, at);
                let absence = Absence { node: change.node, from_s: second, to_s: i64::MAX };
                self.run.absences.push(absence);
            }
        }
    }

    /// A node fails. What ran there is gone, but for what it had saved; the rest of its gang on
    /// other nodes stops.
    fn lose(&mut self, node: NodeId, second: i64, at: Time) {
        let hit = self.executor.on_node(node.0);
        let every_s = self.options.checkpoint_every_s;
        let mut stopped = Vec::new();
        for (index, task) in hit {
            let saved_s = self.executor.saved_s(index, second, every_s);
            let done = Span::from_s(saved_s);
            if done > Span::ZERO {
                self.send(at, Command::Checkpointed { task, done });
            }
            let lost = (index, node);
            stopped.extend(self.executor.lose(lost, second, saved_s, &mut self.run));
            self.run.jobs[index].losses += 1;
        }
        self.send(at, Command::Lost { node });
        for task in stopped {
            self.send(at, Command::Exited { task, code: 143, at: None });
        }
    }

    /// The core ended a job at its limit.
    pub(super) fn over_limit(&mut self, index: usize, second: i64) {
        // A gang is told rank by rank. What is done in the second of its limit ends by itself.
        if self.run.jobs[index].end_s.is_none() && !self.executor.is_done(index, second) {
            self.executor.finish(index, second, &mut self.run);
            self.run.jobs[index].end_s = Some(second);
            self.run.jobs[index].over_limit = true;
        }
    }
}
