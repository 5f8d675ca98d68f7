//! Machines and accounts: what rows call them, and since when a machine was as it was.

use era_core::input::NewNode;
use era_core::resources::{Capacity, Resource};
use era_core::units::{NodeId, UserId};
use era_core::{Command, Event};

use super::Projection;
use super::memory::Account;
use crate::tables::rows::{NodeRow, NodeSpan};

impl Projection<'_> {
    /// What an input changes by being accepted.
    pub(super) fn cluster(&mut self) {
        let entry = self.entry;
        if entry.events.iter().any(|event| matches!(event, Event::Refused { .. })) {
            return;
        }
        let note = &entry.note;
        match &entry.input.command {
            Command::PutUser { user } => {
                let account = self.account(user.id);
                account.team = user.group;
                if let Some(name) = &note.user {
                    account.name.clone_from(name);
                }
            }
            Command::PutGroup { group } => {
                let name = note.group.clone().unwrap_or_else(|| group.id.to_string());
                self.memory.teams.insert(group.id, name);
                self.changes.teams.insert(group.id);
            }
            Command::Join { nodes } => self.joined(nodes),
            Command::Leave { node } | Command::Lost { node } => self.span_ends(*node),
            Command::Resume { node } => self.resumed(*node),
            Command::SetCapacity { node, capacity } => {
                self.span_ends(*node);
                self.span_begins(*node, units(capacity));
            }
            _ => {}
        }
    }

    /// An account, made where it is not known; its row will be written.
    pub(super) fn account(&mut self, account: UserId) -> &mut Account {
        self.changes.accounts.insert(account);
        self.memory.accounts.entry(account).or_insert_with(|| Account {
            name: account.to_string(),
            team: era_core::units::GroupId(0),
            balance: 0,
        })
    }

    fn joined(&mut self, nodes: &[NewNode]) {
        let ids = self.entry.events.iter().find_map(|event| match event {
            Event::NodesChanged { nodes: ids } if ids.len() == nodes.len() => Some(ids),
            _ => None,
        });
        for (node, id) in nodes.iter().zip(ids.into_iter().flatten()) {
            let row = NodeRow {
                id: *id,
                name: node.name.to_string(),
                pool: node.pool.to_string(),
                model: node.capacity.gpus.first().map(|gpu| gpu.model.to_string()),
                simulated: self.entry.note.simulated,
            };
            self.memory.nodes.insert(*id, row);
            self.changes.nodes.insert(*id);
            self.span_begins(*id, units(&node.capacity));
        }
    }

    fn resumed(&mut self, node: NodeId) {
        // One that was draining never was away; one that was lost comes back with what it had.
        if self.memory.spans.get(&node).is_some_and(|span| span.until.is_some()) {
            let units = self.memory.spans[&node].units;
            self.span_begins(node, units);
        }
    }

    fn span_begins(&mut self, node: NodeId, units: [u64; 3]) {
        let since = self.at();
        let span = NodeSpan { node, since, until: None, units };
        self.memory.spans.insert(node, span);
        self.changes.spans.insert((node, since), span);
    }

    fn span_ends(&mut self, node: NodeId) {
        let at = self.at();
        if let Some(span) = self.memory.spans.get_mut(&node).filter(|span| span.until.is_none()) {
            span.until = Some(at);
            self.changes.spans.insert((node, span.since), *span);
        }
    }
}

fn units(capacity: &Capacity) -> [u64; 3] {
    Resource::ALL.map(|resource| capacity.amount(resource))
}
