//! What a batch changed, written in one transaction with the cursor.

use era_core::units::JobId;
use serde_json::value::RawValue;

use super::project::{Changes, Memory};
use super::rows::{EventRow, JobRow, RefusalRow, StatementRow, TaskRow};
use super::upsert::{Cell, OnConflict, Upsert};
use crate::{StoreError, Transaction};

type Cells = Vec<Cell>;

const JOBS: Upsert = Upsert {
    table: "jobs",
    columns: &[
        "id",
        "name",
        "account",
        "account_name",
        "team",
        "team_name",
        "state",
        "queue",
        "submitted",
        "promised_start",
        "promised_finish",
        "started",
        "ended",
        "exit_code",
        "price",
        "resources",
        "replicas",
        "duration_ms",
        "array_first",
        "array_index",
        "simulated",
        "reason",
        "attempts",
        "charged",
        "refunded",
        "changed",
        "project",
    ],
    keys: 1,
    on_conflict: OnConflict::Set(&[
        "state",
        "queue",
        "promised_finish",
        "started",
        "ended",
        "exit_code",
        "price",
        "duration_ms",
        "simulated",
        "reason",
        "attempts",
        "charged",
        "refunded",
        "changed",
    ]),
};
const SPECS: Upsert = Upsert {
    table: "specs",
    columns: &["job", "spec"],
    keys: 1,
    on_conflict: OnConflict::Set(&["spec"]),
};
const LIVE: Upsert = Upsert {
    table: "live",
    columns: &["job", "body"],
    keys: 1,
    on_conflict: OnConflict::Set(&["body"]),
};
const HOLDS: Upsert = Upsert {
    table: "holds",
    columns: &["hold", "bid"],
    keys: 1,
    on_conflict: OnConflict::Set(&["bid"]),
};
const TASKS: Upsert = Upsert {
    table: "tasks",
    columns: &[
        "job",
        "part",
        "attempt",
        "replica",
        "node",
        "gpus",
        "cpu",
        "memory",
        "gpu",
        "launched",
        "started",
        "ended",
        "exit_code",
        "cause",
        "prepared_ms",
    ],
    keys: 4,
    on_conflict: OnConflict::Set(&["started", "ended", "exit_code", "cause", "prepared_ms"]),
};
const EVENTS: Upsert = Upsert {
    table: "events",
    columns: &["seq", "place", "at", "kind", "job", "account", "team", "body"],
    keys: 2,
    on_conflict: OnConflict::Keep,
};
const STATEMENT: Upsert = Upsert {
    table: "statement_lines",
    columns: &["account", "seq", "place", "at", "job", "reason", "amount", "balance"],
    keys: 3,
    on_conflict: OnConflict::Keep,
};
const REFUSALS: Upsert = Upsert {
    table: "refusals",
    columns: &["seq", "at", "account", "code", "sentence", "price"],
    keys: 1,
    on_conflict: OnConflict::Keep,
};
const ACCOUNTS: Upsert = Upsert {
    table: "accounts",
    columns: &["id", "name", "team", "balance"],
    keys: 1,
    on_conflict: OnConflict::Set(&["name", "team", "balance"]),
};
const TEAMS: Upsert = Upsert {
    table: "teams",
    columns: &["id", "name"],
    keys: 1,
    on_conflict: OnConflict::Set(&["name"]),
};
const NODES: Upsert = Upsert {
    table: "nodes",
    columns: &["id", "name", "pool", "model", "simulated"],
    keys: 1,
    on_conflict: OnConflict::Set(&["name", "pool", "model", "simulated"]),
};
const SPANS: Upsert = Upsert {
    table: "node_spans",
    columns: &["node", "since", "until", "cpu", "memory", "gpu"],
    keys: 2,
    on_conflict: OnConflict::Set(&["until", "cpu", "memory", "gpu"]),
};
const NODE_HOURS: Upsert = Upsert {
    table: "node_hours",
    columns: &["hour", "node", "cpu", "memory", "gpu"],
    keys: 2,
    on_conflict: OnConflict::Add,
};
const TALLIES: Upsert = Upsert {
    table: "tallies",
    columns: &["hour", "what", "amount"],
    keys: 2,
    on_conflict: OnConflict::Add,
};

const SPENDING: Upsert = Upsert {
    table: "spending",
    columns: &["account", "team", "project", "hour", "charged", "refunded", "cpu", "memory", "gpu"],
    keys: 4,
    on_conflict: OnConflict::Add,
};

/// Writes what a batch changed, and what is to be remembered; gives back its events.
pub(super) async fn write(
    to: &mut Transaction,
    changes: Changes,
    memory: &Memory,
) -> Result<Vec<EventRow>, StoreError> {
    JOBS.put(to, changes.job_rows(memory).into_iter().map(job).collect()).await?;
    let specs = changes.specs.iter().map(|(id, spec)| vec![id.0.into(), spec.clone().into()]);
    SPECS.put(to, specs.collect()).await?;
    remember(to, &changes, memory).await?;
    TASKS.put(to, changes.tasks.into_values().map(task).collect()).await?;
    let events = changes.events.into_iter().map(|(row, text)| (event(&row, &text), row));
    let (cells, events): (Vec<Cells>, Vec<EventRow>) = events.unzip();
    EVENTS.put(to, cells).await?;
    STATEMENT.put(to, changes.statement.into_iter().map(statement).collect()).await?;
    REFUSALS.put(to, changes.refusals.into_iter().map(refusal).collect()).await?;
    let spans = changes.spans.values().map(|span| {
        let [cpu, memory, gpu] = span.units.map(Cell::from);
        let node = i64::from(span.node.0).into();
        vec![node, span.since.0.into(), span.until.map(|t| t.0).into(), cpu, memory, gpu]
    });
    SPANS.put(to, spans.collect()).await?;
    let hours = changes.node_hours.iter().map(|((hour, node), sums)| {
        let [cpu, memory, gpu] = sums.map(Cell::from);
        vec![(*hour).into(), i64::from(node.0).into(), cpu, memory, gpu]
    });
    NODE_HOURS.put(to, hours.collect()).await?;
    let tallies = changes.tallies.iter();
    let tallies =
        tallies.map(|((hour, what), n)| vec![(*hour).into(), what.clone().into(), (*n).into()]);
    TALLIES.put(to, tallies.collect()).await?;
    let spending = changes.spending.iter().map(|((account, team, project, hour), spent)| {
        let [cpu, memory, gpu] = spent.unit_ms.map(Cell::from);
        vec![
            i64::from(account.0).into(),
            i64::from(team.0).into(),
            project.clone().into(),
            (*hour).into(),
            spent.charged.into(),
            spent.refunded.into(),
            cpu,
            memory,
            gpu,
        ]
    });
    SPENDING.put(to, spending.collect()).await?;
    Ok(events)
}

/// Writes what the projection must know after a restart.
async fn remember(
    to: &mut Transaction,
    changes: &Changes,
    memory: &Memory,
) -> Result<(), StoreError> {
    let (mut live, mut over) = (Vec::new(), Vec::new());
    for id in &changes.touched {
        match memory.jobs.get(id) {
            Some(job) if job.row.ended.is_none() => live.push(body(id.0.cast_signed(), job)?),
            _ => over.push(*id),
        }
    }
    for first in &changes.untouched {
        if let Some(array) = memory.arrays.get(first) {
            live.push(body(-first.0.cast_signed(), array)?);
        }
    }
    LIVE.put(to, live).await?;
    forget(to, &over).await?;
    let held = changes.holds.iter().filter_map(|id| Some((id, memory.holds.get(id)?)));
    let held: Result<Vec<Cells>, StoreError> =
        held.map(|(id, bid)| body(id.0.cast_signed(), bid)).collect();
    HOLDS.put(to, held?).await?;
    for id in changes.holds.iter().filter(|id| !memory.holds.contains_key(id)) {
        let id = id.0.cast_signed();
        sqlx::query("DELETE FROM holds WHERE hold = ?").bind(id).execute(&mut **to).await?;
    }
    let accounts = changes.accounts.iter().filter_map(|id| Some((id, memory.accounts.get(id)?)));
    let accounts = accounts.map(|(id, a)| {
        vec![
            i64::from(id.0).into(),
            a.name.clone().into(),
            i64::from(a.team.0).into(),
            a.balance.into(),
        ]
    });
    ACCOUNTS.put(to, accounts.collect()).await?;
    let teams = changes.teams.iter().filter_map(|id| Some((id, memory.teams.get(id)?)));
    let teams = teams.map(|(id, name)| vec![i64::from(id.0).into(), name.clone().into()]);
    TEAMS.put(to, teams.collect()).await?;
    let nodes = changes.nodes.iter().filter_map(|id| memory.nodes.get(id));
    let nodes = nodes.map(|n| {
        let (name, pool, model) = (n.name.clone(), n.pool.clone(), n.model.clone());
        let simulated = i64::from(n.simulated);
        vec![i64::from(n.id.0).into(), name.into(), pool.into(), model.into(), simulated.into()]
    });
    NODES.put(to, nodes.collect()).await
}

/// Forgets what had to be remembered of jobs that are over.
async fn forget(to: &mut Transaction, over: &[JobId]) -> Result<(), StoreError> {
    const AT_ONCE: usize = 256;
    for ids in over.chunks(AT_ONCE) {
        // A few sizes only, so that statements are used again; what is missing is filled up with
        // one that is never there.
        let count = ids.len().next_power_of_two();
        let marks = vec!["?"; count].join(",");
        let sql = format!("DELETE FROM live WHERE job IN ({marks})");
        // Made of constants alone.
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for index in 0..count {
            query = query.bind(ids.get(index).map_or(0, |id| id.0.cast_signed()));
        }
        query.execute(&mut **to).await?;
    }
    Ok(())
}

fn body<T: serde::Serialize>(id: i64, value: &T) -> Result<Cells, StoreError> {
    let text = serde_json::to_string(value).map_err(|e| StoreError::Damaged {
        what: "what the tables remember".to_owned(),
        problem: e.to_string(),
    })?;
    Ok(vec![id.into(), text.into()])
}

fn job(row: JobRow) -> Cells {
    let (first, index) = row.array.unzip();
    vec![
        row.id.0.into(),
        row.name.into(),
        i64::from(row.account.0).into(),
        row.account_name.into(),
        i64::from(row.team.0).into(),
        row.team_name.into(),
        row.state.number().into(),
        row.queue.into(),
        row.submitted.0.into(),
        row.promised_start.map(|t| t.0).into(),
        row.promised_finish.map(|t| t.0).into(),
        row.started.map(|t| t.0).into(),
        row.ended.map(|t| t.0).into(),
        row.exit_code.map(i64::from).into(),
        row.price.into(),
        row.resources.into(),
        i64::from(row.replicas).into(),
        row.duration_ms.into(),
        first.map(|first| first.0.cast_signed()).into(),
        index.map(i64::from).into(),
        i64::from(row.simulated).into(),
        row.reason.into(),
        i64::from(row.attempts).into(),
        row.charged.into(),
        row.refunded.into(),
        row.changed.into(),
        row.project.into(),
    ]
}

fn task(row: TaskRow) -> Cells {
    let [cpu, memory, gpu] = row.units.map(Cell::from);
    vec![
        row.job.0.into(),
        i64::from(row.part).into(),
        i64::from(row.attempt).into(),
        i64::from(row.rank).into(),
        row.node.map(|node| i64::from(node.0)).into(),
        row.gpus.into(),
        cpu,
        memory,
        gpu,
        row.launched.0.into(),
        row.started.map(|t| t.0).into(),
        row.ended.map(|t| t.0).into(),
        row.exit_code.map(i64::from).into(),
        row.cause.into(),
        row.prepared_ms.into(),
    ]
}

fn event(row: &EventRow, text: &RawValue) -> Cells {
    vec![
        row.seq.into(),
        i64::from(row.place).into(),
        row.at.0.into(),
        row.kind.clone().into(),
        row.job.map(|id| id.0.cast_signed()).into(),
        row.account.map(|id| i64::from(id.0)).into(),
        row.team.map(|id| i64::from(id.0)).into(),
        text.get().to_owned().into(),
    ]
}

fn statement(row: StatementRow) -> Cells {
    vec![
        i64::from(row.account.0).into(),
        row.seq.into(),
        i64::from(row.place).into(),
        row.at.0.into(),
        row.job.map(|id| id.0.cast_signed()).into(),
        row.reason.into(),
        row.amount.into(),
        row.balance.into(),
    ]
}

fn refusal(row: RefusalRow) -> Cells {
    vec![
        row.seq.into(),
        row.at.0.into(),
        i64::from(row.account.0).into(),
        row.code.into(),
        row.sentence.into(),
        row.price.into(),
    ]
}
