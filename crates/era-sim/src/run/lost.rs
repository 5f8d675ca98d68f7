//! Machines that fail and come back in a run.
//!
//! What the core makes of them is its own affair: here it is told what an executor would tell it.

use era_core::Command;
use era_core::units::{NodeId, Span, Time};

use super::{Driver, MachineAbsence};

impl Driver<'_> {
    /// Nodes fail and come back.
    pub(super) fn change_weather(&mut self, second: i64, at: Time) {
        while let Some(change) = self.weather.as_mut().and_then(|weather| weather.take(second)) {
            let node = NodeId(change.node);
            if change.is_up {
                self.world.send(at, Command::Resume { node });
                let mut absences = self.book().run.absences.iter_mut().rev();
                if let Some(absence) = absences.find(|absence| absence.node == change.node) {
                    absence.to_s = second;
                }
            } else {
                self.lose(node, second, at);
                let absence = MachineAbsence { node: change.node, from_s: second, to_s: i64::MAX };
                self.book().run.absences.push(absence);
            }
        }
    }

    /// A node fails. What ran there is gone, but for what it had saved; the rest of its gang on
    /// other nodes stops.
    fn lose(&mut self, node: NodeId, second: i64, at: Time) {
        for (task, done) in self.book().left_by(node, second) {
            if done > Span::ZERO {
                self.world.send(at, Command::Checkpointed { task, done });
            }
        }
        self.world.send(at, Command::Lost { node });
        while self.world.report(at) {}
    }
}
