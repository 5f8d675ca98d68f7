//! Our own tables: `job_id,submit_s,duration_s,gpus,cpus,mem_gb,user,group,status`, and where
//! they are known `stated_s`, `deadline_s`, `value` (in credits), and what was measured to be used
//! in the mean, `used_gpus`, `used_cpus` and `used_mem_gb`; in any order.
//!
//! Other names for the same things are understood, and columns of other names are not looked at.
//! Empty means unknown.

use std::io::BufRead;

use super::gather::{Gather, Order, status};
use super::table::{Column, Row, Table};
use super::{MeasuredUse, Trace, TraceJob};
use crate::BadInput;

pub(super) const DURATION_UNKNOWN: &str = "how long it ran is not known";
pub(super) const DURATION_ZERO: &str = "it ran for less than a second";

struct Columns {
    id: Column,
    submit: Column,
    duration: Column,
    gpus: Column,
    cpus: Option<Column>,
    memory: Option<Column>,
    user: Option<Column>,
    group: Option<Column>,
    status: Option<Column>,
    stated: Option<Column>,
    deadline: Option<Column>,
    value: Option<Column>,
    used_gpus: Option<Column>,
    used_cpus: Option<Column>,
    used_memory: Option<Column>,
}

impl Columns {
    fn of<R: BufRead>(table: &Table<R>) -> Result<Columns, BadInput> {
        Ok(Columns {
            id: table.required(&["job_id", "job", "id"])?,
            submit: table.required(&["submit_s"])?,
            duration: table.required(&["duration_s"])?,
            gpus: table.required(&["gpus", "procs"])?,
            cpus: table.column(&["cpus"]),
            memory: table.column(&["mem_gb"]),
            user: table.column(&["user"]),
            group: table.column(&["group"]),
            status: table.column(&["status"]),
            // An estimate that equals the duration tells nothing, so it comes last.
            stated: table.column(&["stated_s", "est_s", "est_bucket_s", "est_exact_s"]),
            deadline: table.column(&["deadline_s"]),
            value: table.column(&["value"]),
            used_gpus: table.column(&["used_gpus"]),
            used_cpus: table.column(&["used_cpus"]),
            used_memory: table.column(&["used_mem_gb"]),
        })
    }
}

pub(super) fn read(source: impl BufRead) -> Result<Trace, BadInput> {
    let mut table = Table::new(source)?;
    let columns = Columns::of(&table)?;
    let mut gather = Gather::new(Order::AsWritten);
    let mut rows = 0u64;
    while let Some(row) = table.next()? {
        rows += 1;
        take(&row, &columns, &mut gather)?;
    }
    if rows == 0 {
        return Err(BadInput::new("there is only a header, no job"));
    }
    gather.finish()
}

fn take(row: &Row<'_>, columns: &Columns, gather: &mut Gather) -> Result<(), BadInput> {
    let id = row.filled(&columns.id)?;
    let submit_s = row.required_seconds(&columns.submit)?;
    let stated_s = row.seconds(columns.stated.as_ref())?;
    let deadline_s = row.seconds(columns.deadline.as_ref())?;
    if let (Some(0), Some(column)) = (stated_s, &columns.stated) {
        return Err(row.bad(column, "give at least 1, or nothing where it is unknown"));
    }
    if let (Some(deadline), Some(column)) = (deadline_s, &columns.deadline)
        && deadline < submit_s
    {
        let problem = format!("{deadline} is before the submission at {submit_s}");
        return Err(row.bad(column, problem));
    }
    let word = row.text(columns.status.as_ref())?;
    let status = match (status(word), &columns.status) {
        (Some(status), _) => status,
        (None, Some(column)) => {
            let problem = "give completed, failed or cancelled, or nothing where it is unknown";
            return Err(row.bad(column, problem));
        }
        (None, None) => super::Status::Unknown,
    };
    let duration_s = row.seconds(Some(&columns.duration))?;
    let job = TraceJob {
        id: id.into(),
        submit_s,
        duration_s: duration_s.unwrap_or(0),
        stated_s,
        gpu_milli: row.milli(Some(&columns.gpus))?,
        cpu_milli: row.milli(columns.cpus.as_ref())?,
        memory_mib: row.mib_of_gib(columns.memory.as_ref())?,
        user: None,
        group: None,
        status,
        deadline_s,
        value: row.credits(columns.value.as_ref())?,
        used: MeasuredUse {
            cpu_milli: row.known_milli(columns.used_cpus.as_ref())?,
            memory_mib: row.known_mib_of_gib(columns.used_memory.as_ref())?,
            gpu_milli: row.known_milli(columns.used_gpus.as_ref())?,
        },
    };
    match duration_s {
        None => gather.skip(DURATION_UNKNOWN),
        Some(0) => gather.skip(DURATION_ZERO),
        Some(_) => {
            let user = gather.user(row.text(columns.user.as_ref())?);
            let group = gather.group(row.text(columns.group.as_ref())?);
            gather.job(TraceJob { user, group, ..job }, row.line, "submit_s")?;
        }
    }
    Ok(())
}
