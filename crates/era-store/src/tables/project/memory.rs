//! What a projection has to know of what came before: jobs that are not over, holds, machines,
//! and what accounts are called. It is kept in the tables too, so a restart finds it again.

use std::collections::BTreeMap;

use era_core::bid::{Bid, Request};
use era_core::job::StopReason;
use era_core::units::{GroupId, HoldId, JobId, NodeId, Time, UserId};
use era_spec::ArraySpec;
use serde::{Deserialize, Serialize};

use crate::tables::rows::{JobRow, NodeRow, NodeSpan, TaskRow};

/// All that is remembered.
#[derive(Clone, Debug, Default)]
pub(in crate::tables) struct Memory {
    /// Jobs that are not over, as far as they were mentioned lately.
    pub jobs: BTreeMap<JobId, LiveJob>,
    /// Arrays that were submitted in this batch, by their first job.
    pub arrays: BTreeMap<JobId, Untouched>,
    /// Holds that bind.
    pub holds: BTreeMap<HoldId, Bid>,
    /// Machines that were ever there.
    pub nodes: BTreeMap<NodeId, NodeRow>,
    /// The present stretch of each machine that is there.
    pub spans: BTreeMap<NodeId, NodeSpan>,
    pub accounts: BTreeMap<UserId, Account>,
    /// What groups are called.
    pub teams: BTreeMap<GroupId, String>,
}

/// An account, as rows name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tables) struct Account {
    pub name: String,
    pub team: GroupId,
    pub balance: i64,
}

/// A job that is not over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::tables) struct LiveJob {
    pub row: JobRow,
    /// One for each request.
    pub parts: Vec<LivePart>,
    /// How long after its arrival it was accepted.
    pub accept_ms: Option<i64>,
    /// How long its quote took.
    pub quote_us: Option<u64>,
    /// When its newest attempt was sent out.
    pub launched: Option<Time>,
    /// Whether an attempt of it ever ran.
    pub ran: bool,
    /// Whether its promise counts as kept, once it was due.
    pub kept: Option<bool>,
    /// Thousandths of a GPU times milliseconds that it got.
    pub gpu_ms: i64,
    /// The model of the GPUs that it got.
    pub model: Option<String>,
    /// The latest time that preparing took in its first run.
    pub prepared_ms: i64,
    /// The first code other than 0.
    pub bad_code: Option<i32>,
    /// What ended a task of it, if not itself.
    pub cause: Option<String>,
}

/// Jobs of an array that nothing happened to yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::tables) struct Untouched {
    /// The first of them, as it was at the submission.
    pub first: LiveJob,
    pub count: u32,
    pub indices: ArraySpec,
}

impl Untouched {
    /// The n-th, from 0.
    pub(super) fn nth(&self, n: u32) -> LiveJob {
        let mut live = self.first.clone();
        let first = live.row.id;
        live.row.id = JobId(first.0 + u64::from(n));
        live.row.array = Some((first, self.indices.nth(n)));
        live
    }

    /// The job with this number, if it is one of them.
    pub(in crate::tables) fn job(&self, id: JobId) -> Option<LiveJob> {
        let n = u32::try_from(id.0.checked_sub(self.first.row.id.0)?).ok()?;
        (n < self.count).then(|| self.nth(n))
    }
}

/// One request of a job that is not over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::tables) struct LivePart {
    /// What was asked for.
    pub request: Request,
    /// The start that was told.
    pub told: Option<Time>,
    /// The newest attempt.
    pub attempt: u32,
    /// Whether the newest attempt is not over.
    pub active: bool,
    /// Whether all tasks of the newest attempt run, or ran.
    pub running: bool,
    /// Why and until when the newest attempt was told to stop.
    pub stop: Option<(StopReason, Time)>,
    /// Tasks of the newest attempt that are not over.
    pub open: Vec<TaskRow>,
    /// Whether it is over.
    pub done: bool,
}

impl LivePart {
    pub(super) fn new(request: Request, told: Option<Time>) -> LivePart {
        LivePart {
            request,
            told,
            attempt: 0,
            active: false,
            running: false,
            stop: None,
            open: Vec::new(),
            done: false,
        }
    }
}

impl Memory {
    /// A job that is not over, if it is remembered.
    pub(super) fn job(&mut self, id: JobId) -> Option<&mut LiveJob> {
        if !self.jobs.contains_key(&id) {
            let (_, array) = self.arrays.range(..=id).next_back()?;
            let live = array.job(id)?;
            self.jobs.insert(id, live);
        }
        self.jobs.get_mut(&id)
    }

    /// What an account is called.
    pub(super) fn account_name(&self, account: UserId) -> String {
        self.accounts.get(&account).map_or_else(|| account.to_string(), |a| a.name.clone())
    }

    pub(super) fn team_of(&self, account: UserId) -> GroupId {
        self.accounts.get(&account).map_or(GroupId(0), |a| a.team)
    }

    /// What a group is called.
    pub(super) fn team_name(&self, team: GroupId) -> String {
        self.teams.get(&team).cloned().unwrap_or_else(|| team.to_string())
    }
}
