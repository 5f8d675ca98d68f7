//! Our own table, written job by job: what [`read`](super::read) reads back as the same values.

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Names, Status, TraceJob};

/// The columns, in the order in which they are written.
const HEADER: &str =
    "job_id,submit_s,duration_s,gpus,cpus,mem_gb,user,group,status,stated_s,deadline_s,value";

/// Writes jobs as our table, header first. Jobs may come from an iterator of any length: only one
/// is held at a time.
pub fn write<J: Borrow<TraceJob>>(
    out: &mut (impl Write + ?Sized),
    jobs: impl IntoIterator<Item = J>,
    users: &Names,
    groups: &Names,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(HEADER.split(','))?;
    let mut cell = String::new();
    for job in jobs {
        let job = job.borrow();
        table.write_field(&*job.id)?;
        number(&mut table, &mut cell, Some(job.submit_s))?;
        number(&mut table, &mut cell, Some(job.duration_s))?;
        decimal(&mut table, &mut cell, Some(i64::from(job.gpu_milli)), 3)?;
        decimal(&mut table, &mut cell, known(job.cpu_milli), 3)?;
        let (gib, mib) = (i64::from(job.memory_mib / 1024), i64::from(job.memory_mib % 1024));
        // A MiB is 0.0009765625 GiB.
        let memory = gib * 10_000_000_000 + mib * 9_765_625;
        decimal(&mut table, &mut cell, known(job.memory_mib).and(Some(memory)), 10)?;
        table.write_field(named(job.user, users)?)?;
        table.write_field(named(job.group, groups)?)?;
        table.write_field(word(job.status))?;
        number(&mut table, &mut cell, job.stated_s)?;
        number(&mut table, &mut cell, job.deadline_s)?;
        decimal(&mut table, &mut cell, job.value, 6)?;
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}

/// Zero stands for unknown, which is written as nothing.
fn known(size: u32) -> Option<i64> {
    (size > 0).then_some(i64::from(size))
}

fn named(number: Option<u32>, names: &Names) -> io::Result<&str> {
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
