//! What machines and accounts are called, for sentences.

use std::collections::{BTreeMap, BTreeSet};

use era_core::units::{NodeId, UserId};
use era_store::StoreError;
use era_store::tables::Tables;

/// Names by number.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    nodes: BTreeMap<NodeId, String>,
    accounts: BTreeMap<UserId, String>,
    simulated: BTreeSet<NodeId>,
}

impl NameIndex {
    pub fn new(nodes: BTreeMap<NodeId, String>, accounts: BTreeMap<UserId, String>) -> NameIndex {
        NameIndex { nodes, accounts, simulated: BTreeSet::new() }
    }

    pub async fn load(tables: &Tables) -> Result<NameIndex, StoreError> {
        let (nodes, accounts) = (tables.node_names().await?, tables.account_names().await?);
        Ok(NameIndex { nodes, accounts, simulated: tables.simulated_nodes().await? })
    }

    /// What a machine is called; its number where nobody knows.
    pub fn node(&self, node: NodeId) -> String {
        self.nodes.get(&node).cloned().unwrap_or_else(|| format!("node {}", node.0))
    }

    /// Whether a machine's tasks only sleep.
    pub fn is_simulated(&self, node: NodeId) -> bool {
        self.simulated.contains(&node)
    }

    /// What an account is called; its number where nobody knows.
    pub fn account(&self, account: UserId) -> String {
        self.accounts.get(&account).cloned().unwrap_or_else(|| format!("account {}", account.0))
    }
}
