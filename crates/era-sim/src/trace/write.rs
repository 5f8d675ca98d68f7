//! Our own table, written job by job: what [`read`](super::read) reads back as the same values.

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::{NameTable, Status, TraceJob};

/// The columns, in the order in which they are written.
const HEADER: &str =
    "job_id,submit_s,duration_s,gpus,cpus,mem_gb,user,group,status,stated_s,deadline_s,value";
/// The columns of measured use, after the others.
const HEADER_OF_USE: &str = "used_gpus,used_cpus,used_mem_gb";

/// Writes jobs as our table, header first. Jobs may come from an iterator of any length: only one
/// is held at a time.
pub fn write<J: Borrow<TraceJob>>(
    out: &mut (impl Write + ?Sized),
    jobs: impl IntoIterator<Item = J>,
    users: &NameTable,
    groups: &NameTable,
) -> io::Result<()> {
    write_table(out, jobs, users, groups, false)
}

/// The same with what jobs were measured to use.
pub fn write_with_use<J: Borrow<TraceJob>>(
    out: &mut (impl Write + ?Sized),
    jobs: impl IntoIterator<Item = J>,
    users: &NameTable,
    groups: &NameTable,
) -> io::Result<()> {
    write_table(out, jobs, users, groups, true)
}

fn write_table<J: Borrow<TraceJob>>(
    out: &mut (impl Write + ?Sized),
    jobs: impl IntoIterator<Item = J>,
    users: &NameTable,
    groups: &NameTable,
    with_use: bool,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let of_use = HEADER_OF_USE.split(',').filter(|_| with_use);
    table.write_record(HEADER.split(',').chain(of_use))?;
    let mut cell = String::new();
    for job in jobs {
        let job = job.borrow();
        table.write_field(&*job.id)?;
        number(&mut table, &mut cell, Some(job.submit_s))?;
        number(&mut table, &mut cell, Some(job.duration_s))?;
        decimal(&mut table, &mut cell, Some(i64::from(job.gpu_milli)), 3)?;
        decimal(&mut table, &mut cell, known(job.cpu_milli), 3)?;
        memory(&mut table, &mut cell, (job.memory_mib > 0).then_some(job.memory_mib))?;
        table.write_field(named(job.user, users)?)?;
        table.write_field(named(job.group, groups)?)?;
        table.write_field(word(job.status))?;
        number(&mut table, &mut cell, job.stated_s)?;
        number(&mut table, &mut cell, job.deadline_s)?;
        decimal(&mut table, &mut cell, job.value, 6)?;
        if with_use {
            decimal(&mut table, &mut cell, job.used.gpu_milli.map(i64::from), 3)?;
            decimal(&mut table, &mut cell, job.used.cpu_milli.map(i64::from), 3)?;
            memory(&mut table, &mut cell, job.used.memory_mib)?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

/// Zero stands for unknown, which is written as nothing.
fn known(size: u32) -> Option<i64> {
    (size > 0).then_some(i64::from(size))
}

fn named(number: Option<u32>, names: &NameTable) -> io::Result<&str> {
    match number {
        None => Ok(""),
        Some(number) => names.name(number).ok_or_else(|| {
            let problem = format!("a job names number {number}, of which no name is known");
            io::Error::new(io::ErrorKind::InvalidInput, problem)
        }),
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Unknown => "",
        Status::Completed => "COMPLETED",
        Status::Failed => "FAILED",
        Status::Cancelled => "CANCELLED",
    }
}

/// Memory in GiB, of which a MiB is 0.0009765625.
fn memory<W: Write>(
    table: &mut csv::Writer<W>,
    cell: &mut String,
    mib: Option<u32>,
) -> io::Result<()> {
    decimal(table, cell, mib.map(|mib| i64::from(mib) * 9_765_625), 10)
}

fn number<W: Write>(
    table: &mut csv::Writer<W>,
    cell: &mut String,
    value: Option<i64>,
) -> io::Result<()> {
    decimal(table, cell, value, 0)
}

/// Writes a number of units of `10^-digits` without needless zeros, or nothing.
fn decimal<W: Write>(
    table: &mut csv::Writer<W>,
    cell: &mut String,
    value: Option<i64>,
    digits: usize,
) -> io::Result<()> {
    cell.clear();
    if let Some(value) = value {
        let unit = 10u64.pow(digits as u32);
        let sign = if value < 0 { "-" } else { "" };
        let (whole, rest) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
        // Writing to a string cannot fail.
        let _ = write!(cell, "{sign}{whole}");
        if rest > 0 {
            let _ = write!(cell, ".{rest:0digits$}");
            cell.truncate(cell.trim_end_matches('0').len());
        }
    }
    Ok(table.write_field(&*cell)?)
}
