//! What the projection remembered before a restart, read back: names and machines at once, jobs
//! and holds when an entry mentions them.

use std::collections::{BTreeMap, BTreeSet};

use era_core::Command;
use era_core::input::Terms;
use era_core::units::{GroupId, HoldId, JobId, NodeId, Time, UserId};
use serde::de::DeserializeOwned;
use sqlx::{AssertSqlSafe, Row};

use super::project::{Account, Memory, ReadEntry, Untouched};
use super::read::{flag, id32, unsigned};
use super::rows::{NodeRow, NodeSpan};
use crate::{ConnectionPool, StoreError};

/// Most jobs that are kept in memory between batches.
const JOBS_KEPT: usize = 65_536;
/// Most ids in one question.
const AT_ONCE: usize = 256;

/// Accounts, groups and machines.
pub(super) async fn names(from: &ConnectionPool) -> Result<Memory, StoreError> {
    let mut memory = Memory::default();
    for row in sqlx::query("SELECT id, name, team, balance FROM accounts").fetch_all(from).await? {
        let team = GroupId(id32(&row, 2)?);
        let account = Account { name: row.try_get(1)?, team, balance: row.try_get(3)? };
        memory.accounts.insert(UserId(id32(&row, 0)?), account);
    }
    for row in sqlx::query("SELECT id, name FROM teams").fetch_all(from).await? {
        memory.teams.insert(GroupId(id32(&row, 0)?), row.try_get(1)?);
    }
    let nodes = "SELECT id, name, pool, model, simulated FROM nodes";
    for row in sqlx::query(nodes).fetch_all(from).await? {
        let id = NodeId(id32(&row, 0)?);
        let (name, pool, model) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        memory.nodes.insert(id, NodeRow { id, name, pool, model, simulated: flag(&row, 4)? });
    }
    // In order, so that the last stretch of each node stays.
    let spans = "SELECT node, since, until, cpu, memory, gpu FROM node_spans ORDER BY node, since";
    for row in sqlx::query(spans).fetch_all(from).await? {
        let span = node_span(&row)?;
        memory.spans.insert(span.node, span);
    }
    Ok(memory)
}

/// One row of `node_spans`.
pub(super) fn node_span(row: &sqlx::any::AnyRow) -> Result<NodeSpan, StoreError> {
    Ok(NodeSpan {
        node: NodeId(id32(row, 0)?),
        since: Time(row.try_get(1)?),
        until: row.try_get::<Option<i64>, _>(2)?.map(Time),
        units: [unsigned(row, 3)?, unsigned(row, 4)?, unsigned(row, 5)?],
    })
}

/// Jobs and holds that these entries mention and the memory does not have.
pub(super) async fn mentioned(
    from: &ConnectionPool,
    memory: &mut Memory,
    entries: &[ReadEntry],
) -> Result<(), StoreError> {
    if memory.jobs.len() > JOBS_KEPT {
        memory.jobs.clear();
    }
    let jobs: BTreeSet<JobId> = entries.iter().flat_map(ReadEntry::jobs).collect();
    let missing: Vec<i64> = jobs
        .into_iter()
        .filter(|id| !memory.jobs.contains_key(id))
        .map(|id| id.0.cast_signed())
        .collect();
    for ids in missing.chunks(AT_ONCE) {
        for (id, body) in bodies(from, "live", "job", ids).await? {
            memory.jobs.insert(JobId(id.unsigned_abs()), parsed(&body)?);
        }
        let others = ids.iter().copied();
        let others = others.filter(|id| !memory.jobs.contains_key(&JobId(id.unsigned_abs())));
        untouched(from, memory, &others.collect::<Vec<_>>()).await?;
    }
    let holds: BTreeSet<HoldId> = entries.iter().filter_map(taken_hold).collect();
    let missing = holds.into_iter().filter(|id| !memory.holds.contains_key(id));
    let missing: Vec<i64> = missing.map(|id| id.0.cast_signed()).collect();
    for ids in missing.chunks(AT_ONCE) {
        for (id, body) in bodies(from, "holds", "hold", ids).await? {
            memory.holds.insert(HoldId(id.unsigned_abs()), parsed(&body)?);
        }
    }
    Ok(())
}

fn taken_hold(entry: &ReadEntry) -> Option<HoldId> {
    match &entry.input.command {
        Command::Submit { job, .. } => match job.terms {
            Terms::Hold { hold, .. } => Some(hold),
            _ => None,
        },
        _ => None,
    }
}

/// Jobs of arrays to which nothing has happened so far: made from what is kept for the array.
async fn untouched(
    from: &ConnectionPool,
    memory: &mut Memory,
    ids: &[i64],
) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    let marks = vec!["?"; ids.len()].join(",");
    let sql = format!(
        "SELECT id, array_first FROM jobs WHERE id IN ({marks}) \
         AND array_first IS NOT NULL AND ended IS NULL"
    );
    // Made of constants alone.
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for id in ids {
        query = query.bind(*id);
    }
    let mut of: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in query.fetch_all(from).await? {
        let first: i64 = row.try_get(1)?;
        of.entry(-first).or_default().push(row.try_get(0)?);
    }
    let arrays: Vec<i64> = of.keys().copied().collect();
    for (key, body) in bodies(from, "live", "job", &arrays).await? {
        let array: Untouched = parsed(&body)?;
        for id in of.get(&key).into_iter().flatten() {
            let id = JobId(id.unsigned_abs());
            memory.jobs.extend(array.job(id).map(|live| (id, live)));
        }
    }
    Ok(())
}

async fn bodies(
    from: &ConnectionPool,
    table: &'static str,
    key: &'static str,
    ids: &[i64],
) -> Result<Vec<(i64, String)>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["?"; ids.len()].join(",");
    let body = if table == "holds" { "bid" } else { "body" };
    let sql = format!("SELECT {key}, {body} FROM {table} WHERE {key} IN ({marks})");
    // Made of constants alone.
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for id in ids {
        query = query.bind(*id);
    }
    let rows = query.fetch_all(from).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| StoreError::Damaged {
        what: "what the tables remember (`era admin rebuild` makes it anew)".to_owned(),
        problem: e.to_string(),
    })
}
