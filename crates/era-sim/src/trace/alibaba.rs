//! Alibaba's GPU cluster of 2020 (NSDI '22), in the two shapes in which it is published.
//!
//! `pai_task_table` has one row for each role of a job, with sizes in percent for each of
//! `inst_num` instances; a job is the sum of its roles, from the first start to the last end. Who
//! submitted it, and when, is in `pai_job_table`, which is read too where it lies beside it. Both
//! come without a header. The simulator's table has a row for each job, sizes in GPUs.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::era_csv::{DURATION_UNKNOWN, DURATION_ZERO};
use super::gather::{Gather, Order, seconds, status, within};
use super::helios::is_nothing;
use super::number::{decimal, mib_of_gib};
use super::source::{self, Source};
use super::table::{Column, Row, Table, brief};
use super::{Status, Trace, TraceJob};
use crate::BadInput;

const JOB_TABLE: &str = "pai_job_table";
const TASK_TABLE: &str = "pai_task_table";
const JOB_COLUMNS: [&str; 6] = ["job_name", "inst_id", "user", "status", "start_time", "end_time"];
const TASK_COLUMNS: [&str; 10] = [
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];

/// Whether a file's name is that of one of the tables.
pub(super) fn is_named(file: &str) -> bool {
    file.starts_with(JOB_TABLE) || file.starts_with(TASK_TABLE)
}

pub(super) fn read(path: &Path, source: Source) -> Result<Trace, BadInput> {
    let line = first_line(&source.start);
    if line.split(',').any(|name| name.trim() == "num_gpu") {
        return of_simulator(source.all);
    }
    let cells = line.split(',').count();
    if cells == JOB_COLUMNS.len() {
        let tasks = beside(path, TASK_TABLE).ok_or_else(|| {
            BadInput::new("this table holds no sizes: put pai_task_table.csv beside it")
        })?;
        let in_tasks = |error: BadInput| error.file(&tasks);
        let submissions = submissions(source)?;
        return of_tasks(source::open(&tasks).map_err(in_tasks)?, &submissions).map_err(in_tasks);
    }
    let submissions = match beside(path, JOB_TABLE) {
        Some(jobs) => {
            source::open(&jobs).and_then(submissions).map_err(|error| error.file(&jobs))?
        }
        None => HashMap::new(),
    };
    of_tasks(source, &submissions)
}

fn first_line(start: &[u8]) -> String {
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    String::from_utf8_lossy(&start[..end]).trim_start_matches('\u{feff}').trim().to_owned()
}

/// The other table in the same folder, compressed or not.
fn beside(path: &Path, table: &str) -> Option<PathBuf> {
    [".csv", ".csv.gz"]
        .iter()
        .map(|ending| path.with_file_name(format!("{table}{ending}")))
        .find(|other| other != path && other.is_file())
}

/// A table with these columns, whether or not its first line names them.
fn table(source: Source, columns: &[&str]) -> Result<Table<Box<dyn BufRead>>, BadInput> {
    if first_line(&source.start).starts_with("job_name,") {
        Table::new(source.all)
    } else {
        Ok(Table::with_columns(source.all, columns))
    }
}

struct Submission {
    user: Box<str>,
    at: Option<i64>,
}

fn submissions(source: Source) -> Result<HashMap<Box<str>, Submission>, BadInput> {
    let mut table = table(source, &JOB_COLUMNS)?;
    let name = table.required(&["job_name"])?;
    let user = table.required(&["user"])?;
    let start = table.required(&["start_time"])?;
    let mut submissions = HashMap::new();
    while let Some(row) = table.next()? {
        let user = row.text(Some(&user))?.into();
        let at = time(&row, &start)?;
        submissions.insert(row.filled(&name)?.into(), Submission { user, at });
    }
    Ok(submissions)
}

/// What the rows of one job say together.
struct Sum {
    name: Box<str>,
    line: u64,
    start: Option<i64>,
    end: Option<i64>,
    ended: bool,
    gpu_milli: i64,
    cpu_milli: i64,
    memory_mib: i64,
    status: Status,
}

impl Sum {
    fn new(name: &str, line: u64) -> Sum {
        Sum {
            name: name.into(),
            line,
            start: None,
            end: None,
            ended: true,
            gpu_milli: 0,
            cpu_milli: 0,
            memory_mib: 0,
            status: Status::Completed,
        }
    }
}

struct TaskColumns {
    name: Column,
    instances: Column,
    status: Column,
    start: Column,
    end: Column,
    cpu: Column,
    memory: Column,
    gpu: Column,
}

fn of_tasks(
    source: Source,
    submissions: &HashMap<Box<str>, Submission>,
) -> Result<Trace, BadInput> {
    let mut table = table(source, &TASK_COLUMNS)?;
    let columns = TaskColumns {
        name: table.required(&["job_name"])?,
        instances: table.required(&["inst_num"])?,
        status: table.required(&["status"])?,
        start: table.required(&["start_time"])?,
        end: table.required(&["end_time"])?,
        cpu: table.required(&["plan_cpu"])?,
        memory: table.required(&["plan_mem"])?,
        gpu: table.required(&["plan_gpu"])?,
    };
    let mut sums: Vec<Sum> = Vec::new();
    let mut places: HashMap<Box<str>, usize> = HashMap::new();
    while let Some(row) = table.next()? {
        let name = row.filled(&columns.name)?;
        let place = match places.get(name) {
            Some(place) => *place,
            None => {
                places.insert(name.into(), sums.len());
                sums.push(Sum::new(name, row.line));
                sums.len() - 1
            }
        };
        add(&mut sums[place], &row, &columns)?;
    }
    let mut gather = Gather::new(Order::Sorted);
    for sum in sums {
        let submission = submissions.get(&sum.name);
        take(&sum, submission, &mut gather)?;
    }
    gather.finish()
}

/// Adds one role to its job.
fn add(sum: &mut Sum, row: &Row<'_>, columns: &TaskColumns) -> Result<(), BadInput> {
    let instances = number(row, &columns.instances, |text| decimal(text, 0))?.unwrap_or(1);
    let times = |each: Option<i64>, column| {
        let total = each.unwrap_or(0).checked_mul(instances).unwrap_or(i64::MAX);
        within(total, 0..=i64::from(u32::MAX)).map_err(|problem| row.bad(column, problem))
    };
    // A percent of a GPU is ten thousandths of it.
    let gpu = number(row, &columns.gpu, |text| decimal(text, 1))?;
    sum.gpu_milli += times(gpu, &columns.gpu)?;
    let cpu = number(row, &columns.cpu, |text| decimal(text, 1))?;
    sum.cpu_milli += times(cpu, &columns.cpu)?;
    let memory = number(row, &columns.memory, mib_of_gib)?;
    sum.memory_mib += times(memory, &columns.memory)?;
    let (start, end) = (time(row, &columns.start)?, time(row, &columns.end)?);
    if let (Some(start), Some(end)) = (start, end)
        && end < start
    {
        return Err(row.bad(&columns.end, format!("{end} is before the start at {start}")));
    }
    sum.start = sum.start.into_iter().chain(start).min();
    sum.end = sum.end.max(end);
    sum.ended &= start.is_some() && end.is_some();
    sum.status = match (sum.status, status(row.text(Some(&columns.status))?)) {
        (Status::Failed, _) | (_, Some(Status::Failed)) => Status::Failed,
        (Status::Completed, Some(Status::Completed)) => Status::Completed,
        _ => Status::Unknown,
    };
    Ok(())
}

fn take(sum: &Sum, submission: Option<&Submission>, gather: &mut Gather) -> Result<(), BadInput> {
    let (Some(start), Some(end), true) = (sum.start, sum.end, sum.ended) else {
        gather.skip(DURATION_UNKNOWN);
        return Ok(());
    };
    if end == start {
        gather.skip(DURATION_ZERO);
        return Ok(());
    }
    let size = |total: i64, field: &str| {
        u32::try_from(total).map_err(|_| {
            BadInput::new("out of range, all roles together").line(sum.line).field(field)
        })
    };
    let job = TraceJob {
        id: sum.name.clone(),
        submit_s: submission.and_then(|submission| submission.at).unwrap_or(start),
        duration_s: end - start,
        gpu_milli: size(sum.gpu_milli, "plan_gpu")?,
        cpu_milli: size(sum.cpu_milli, "plan_cpu")?,
        memory_mib: size(sum.memory_mib, "plan_mem")?,
        user: submission.and_then(|submission| gather.user(&submission.user)),
        status: sum.status,
        ..TraceJob::default()
    };
    gather.job(job, sum.line, "start_time")
}

fn of_simulator(source: impl BufRead) -> Result<Trace, BadInput> {
    let mut table = Table::new(source)?;
    let id = table.required(&["job_id"])?;
    let submit = table.required(&["submit_time"])?;
    let duration = table.required(&["duration"])?;
    let gpus = table.required(&["num_gpu"])?;
    let cpus = table.column(&["num_cpu"]);
    let instances = table.column(&["num_inst"]);
    let user = table.column(&["user"]);
    let group = table.column(&["group"]);
    let mut gather = Gather::new(Order::Sorted);
    while let Some(row) = table.next()? {
        let submit_s = row.required_seconds(&submit)?;
        let many = row.decimal(instances.as_ref(), 0)?.unwrap_or(1);
        let times = |each: u32, column: &Column| {
            within(i64::from(each).saturating_mul(many), 0..=i64::from(u32::MAX))
                .map(|total| u32::try_from(total).unwrap_or(u32::MAX))
                .map_err(|problem| row.bad(column, problem))
        };
        let duration_s = time(&row, &duration)?;
        let job = TraceJob {
            id: row.filled(&id)?.into(),
            submit_s,
            duration_s: duration_s.unwrap_or_default(),
            gpu_milli: times(row.milli(Some(&gpus))?, &gpus)?,
            cpu_milli: match &cpus {
                Some(column) => times(row.milli(Some(column))?, column)?,
                None => 0,
            },
            ..TraceJob::default()
        };
        match duration_s {
            None => gather.skip(DURATION_UNKNOWN),
            Some(0) => gather.skip(DURATION_ZERO),
            Some(_) => {
                let user = gather.user(row.text(user.as_ref())?);
                let group = gather.group(row.text(group.as_ref())?);
                gather.job(TraceJob { user, group, ..job }, row.line, "submit_time")?;
            }
        }
    }
    gather.finish()
}

/// A number that may be missing: empty, or as Python writes nothing.
fn number(
    row: &Row<'_>,
    column: &Column,
    parse: impl Fn(&str) -> Option<i64>,
) -> Result<Option<i64>, BadInput> {
    let text = row.text(Some(column))?;
    if is_nothing(text) {
        return Ok(None);
    }
    let value = parse(text);
    value.map(Some).ok_or_else(|| row.bad(column, format!("give a number, not `{}`", brief(text))))
}

fn time(row: &Row<'_>, column: &Column) -> Result<Option<i64>, BadInput> {
    let value = number(row, column, |text| decimal(text, 0))?;
    value.map(seconds).transpose().map_err(|problem| row.bad(column, problem))
}
