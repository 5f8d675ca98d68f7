//! Reading values out of rows, with what is out of range told as damage.

use era_core::units::{GroupId, JobId, NodeId, Time, UserId};
use era_spec::JobState;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::rows::{EventRow, JobRow, StatementRow, TaskRow};
use crate::StoreError;

pub(super) const JOB_COLUMNS: &str = "id, name, account, account_name, team, team_name, state, \
    queue, submitted, promised_start, promised_finish, started, ended, exit_code, price, \
    resources, replicas, duration_ms, array_first, array_index, simulated, reason, attempts, \
    charged, refunded, changed, project";
pub(super) const TASK_COLUMNS: &str = "job, part, attempt, replica, node, gpus, cpu, memory, gpu, \
    launched, started, ended, exit_code, cause, prepared_ms";
pub(super) const EVENT_COLUMNS: &str = "seq, place, at, kind, job, account, team, body";
/// With the tables that they are of: whether it was simulated is the job's to tell.
pub(super) const STATEMENT_COLUMNS: &str = "line.account, line.seq, line.place, line.at, line.job, \
    line.reason, line.amount, line.balance, COALESCE(jobs.simulated, 0) \
    FROM statement_lines AS line LEFT JOIN jobs ON jobs.id = line.job";

fn damaged(found: i64) -> StoreError {
    StoreError::Damaged {
        what: "a row of the tables (`era admin rebuild` makes them anew)".to_owned(),
        problem: format!("{found} is out of range"),
    }
}

pub(super) fn narrow<T: TryFrom<i64>>(found: i64) -> Result<T, StoreError> {
    T::try_from(found).map_err(|_| damaged(found))
}

pub(super) fn id32(row: &AnyRow, column: usize) -> Result<u32, StoreError> {
    narrow(row.try_get(column)?)
}

pub(super) fn unsigned(row: &AnyRow, column: usize) -> Result<u64, StoreError> {
    narrow(row.try_get(column)?)
}

pub(super) fn flag(row: &AnyRow, column: usize) -> Result<bool, StoreError> {
    Ok(row.try_get::<i64, _>(column)? != 0)
}

fn maybe<T: TryFrom<i64>>(row: &AnyRow, column: usize) -> Result<Option<T>, StoreError> {
    row.try_get::<Option<i64>, _>(column)?.map(narrow).transpose()
}

fn time(row: &AnyRow, column: usize) -> Result<Option<Time>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(Time))
}

pub(super) fn job(row: &AnyRow) -> Result<JobRow, StoreError> {
    let state: i64 = row.try_get(6)?;
    let array = maybe::<u64>(row, 18)?.zip(maybe::<u32>(row, 19)?);
    Ok(JobRow {
        id: JobId(unsigned(row, 0)?),
        name: row.try_get(1)?,
        account: UserId(id32(row, 2)?),
        account_name: row.try_get(3)?,
        team: GroupId(id32(row, 4)?),
        team_name: row.try_get(5)?,
        state: JobState::numbered(state).ok_or_else(|| damaged(state))?,
        queue: row.try_get(7)?,
        submitted: Time(row.try_get(8)?),
        promised_start: time(row, 9)?,
        promised_finish: time(row, 10)?,
        started: time(row, 11)?,
        ended: time(row, 12)?,
        exit_code: maybe(row, 13)?,
        price: row.try_get(14)?,
        resources: row.try_get(15)?,
        replicas: id32(row, 16)?,
        duration_ms: row.try_get(17)?,
        array: array.map(|(first, index)| (JobId(first), index)),
        simulated: flag(row, 20)?,
        reason: row.try_get(21)?,
        attempts: id32(row, 22)?,
        charged: row.try_get(23)?,
        refunded: row.try_get(24)?,
        changed: unsigned(row, 25)?,
        project: row.try_get(26)?,
    })
}

pub(super) fn task(row: &AnyRow) -> Result<TaskRow, StoreError> {
    Ok(TaskRow {
        job: JobId(unsigned(row, 0)?),
        part: narrow(row.try_get(1)?)?,
        attempt: id32(row, 2)?,
        rank: id32(row, 3)?,
        node: maybe(row, 4)?.map(NodeId),
        gpus: row.try_get::<i64, _>(5)?.cast_unsigned(),
        units: [unsigned(row, 6)?, unsigned(row, 7)?, unsigned(row, 8)?],
        launched: Time(row.try_get(9)?),
        started: time(row, 10)?,
        ended: time(row, 11)?,
        exit_code: maybe(row, 12)?,
        cause: row.try_get(13)?,
        prepared_ms: row.try_get(14)?,
    })
}

pub(super) fn event(row: &AnyRow) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        seq: unsigned(row, 0)?,
        place: id32(row, 1)?,
        at: Time(row.try_get(2)?),
        kind: row.try_get(3)?,
        job: maybe(row, 4)?.map(JobId),
        account: maybe(row, 5)?.map(UserId),
        team: maybe(row, 6)?.map(GroupId),
        event: serde_json::from_str(&row.try_get::<String, _>(7)?).ok(),
    })
}

pub(super) fn statement(row: &AnyRow) -> Result<StatementRow, StoreError> {
    Ok(StatementRow {
        account: UserId(id32(row, 0)?),
        seq: unsigned(row, 1)?,
        place: id32(row, 2)?,
        at: Time(row.try_get(3)?),
        job: maybe(row, 4)?.map(JobId),
        reason: row.try_get(5)?,
        amount: row.try_get(6)?,
        balance: row.try_get(7)?,
        simulated: flag(row, 8)?,
    })
}
