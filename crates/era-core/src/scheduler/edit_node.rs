//! Several changes of one node in one command: all of them are made, or none.

use super::Step;
use crate::input::NodeChange;
use crate::refusal::Refusal;
use crate::units::NodeId;

/// Most changes of a node in one command: as many as there are kinds.
const CHANGES_MAX: usize = 6;

impl Step<'_> {
    pub(super) fn edit_node(
        &mut self,
        node: NodeId,
        changes: Vec<NodeChange>,
    ) -> Result<(), Refusal> {
        self.state.cluster.node(node)?;
        if changes.len() > CHANGES_MAX {
            let (given, most) = (changes.len(), CHANGES_MAX);
            return Err(Refusal::TooMany { what: "changes".into(), given, most });
        }
        let before = self.state.clone();
        let (events, effects, over) = (self.events.len(), self.effects.len(), self.over.len());
        let made = changes.into_iter().try_for_each(|change| self.change_node(node, change));
        if made.is_err() {
            *self.state = before;
            self.events.truncate(events);
            self.effects.truncate(effects);
            self.over.truncate(over);
        }
        made
    }

    fn change_node(&mut self, node: NodeId, change: NodeChange) -> Result<(), Refusal> {
        match change {
            NodeChange::Domain { domain } => self.set_domain(node, domain),
            NodeChange::Maintenance { windows } => self.set_maintenance(node, windows),
            NodeChange::Cordon => self.cordon(node),
            NodeChange::Drain { stop_at } => self.drain(node, stop_at),
            NodeChange::Resume => self.resume(node),
            NodeChange::Leave => self.leave(node),
        }
    }
}
