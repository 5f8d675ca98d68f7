//! Where the system does not tell whose bytes went over its network.

use std::collections::BTreeMap;

use era_core::job::TaskId;

/// Knows nothing.
#[derive(Debug, Default)]
pub(super) struct Network;

impl Network {
    /// Nothing of anybody.
    pub(super) fn look(&mut self, _: &[(TaskId, &[u32])]) -> BTreeMap<TaskId, (u64, u64)> {
        BTreeMap::new()
    }
}
