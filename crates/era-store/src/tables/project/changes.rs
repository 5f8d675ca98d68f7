//! What a batch of entries changes in the tables, gathered so that each row is written once.

use std::collections::{BTreeMap, BTreeSet};

use era_core::units::{GroupId, HoldId, JobId, NodeId, Time, UserId};
use serde_json::value::RawValue;

use super::memory::Memory;
use crate::tables::hours::{hour_of, hours};
use crate::tables::rows::{EventRow, JobRow, NodeSpan, RefusalRow, StatementRow, TaskRow};
use crate::tables::spending::SpendingRow;

/// Rows to be written.
#[derive(Clone, Debug, Default)]
pub(in crate::tables) struct Changes {
    /// Jobs that changed; their rows are taken from the memory when the batch is over.
    pub touched: BTreeSet<JobId>,
    /// New jobs of arrays to which nothing has happened.
    pub untouched: BTreeSet<JobId>,
    pub specs: Vec<(JobId, String)>,
    pub tasks: BTreeMap<(JobId, u16, u32, u32), TaskRow>,
    /// Events with what the journal has of them.
    pub events: Vec<(EventRow, Box<RawValue>)>,
    pub statement: Vec<StatementRow>,
    pub refusals: Vec<RefusalRow>,
    pub holds: BTreeSet<HoldId>,
    pub accounts: BTreeSet<UserId>,
    pub teams: BTreeSet<GroupId>,
    pub nodes: BTreeSet<NodeId>,
    pub spans: BTreeMap<(NodeId, Time), NodeSpan>,
    /// To be added: units times milliseconds, by hour and node.
    pub node_hours: BTreeMap<(i64, NodeId), [i64; 3]>,
    /// To be added, by hour and name.
    pub tallies: BTreeMap<(i64, String), i64>,
    /// To be added, by account, group, project and hour.
    pub spending: BTreeMap<(UserId, GroupId, String, i64), SpendingRow>,
}

impl Changes {
    /// Adds to a tally of the hour of this instant.
    pub(super) fn tally(&mut self, at: Time, what: &str, amount: i64) {
        if amount != 0 {
            *self.tallies.entry((hour_of(at), what.to_owned())).or_default() += amount;
        }
    }

    /// Adds what a task had on a node from one instant to another.
    pub(super) fn used(&mut self, node: NodeId, units: [u64; 3], from: Time, to: Time) {
        for (hour, ms) in hours(from, to) {
            let sums = self.node_hours.entry((hour, node)).or_default();
            for (sum, amount) in sums.iter_mut().zip(units) {
                *sum = sum.saturating_add(times(amount, ms));
            }
        }
    }

    /// Adds to what was spent on a job's project in an hour.
    pub(super) fn spent(&mut self, job: &JobRow, hour: i64, how: impl FnOnce(&mut SpendingRow)) {
        let project = job.project.clone().unwrap_or_default();
        how(self.spending.entry((job.account, job.team, project, hour)).or_default());
    }

    /// The rows of all jobs that changed, as the memory has them now.
    pub(in crate::tables) fn job_rows(&self, memory: &Memory) -> Vec<JobRow> {
        let touched = self.touched.iter().filter_map(|id| memory.jobs.get(id));
        let mut rows: Vec<JobRow> = touched.map(|live| live.row.clone()).collect();
        for first in &self.untouched {
            let Some(array) = memory.arrays.get(first) else { continue };
            let jobs = (0..array.count).map(|n| array.nth(n).row);
            rows.extend(jobs.filter(|row| !self.touched.contains(&row.id)));
        }
        rows
    }
}

pub(super) fn times(amount: u64, ms: i64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX).saturating_mul(ms)
}
