//! The Standard Workload Format of the Parallel Workloads Archive: eighteen numbers a line,
//! comments after `;`, and -1 for what is unknown.
//!
//! Its processors become `gpu_milli`, its requested time `stated_s`. Its memory is that of one
//! processor, in KiB.

use std::io::BufRead;

use super::era_csv::{DURATION_UNKNOWN, DURATION_ZERO};
use super::gather::{Gather, Order, seconds, within};
use super::number::decimal;
use super::source::unreadable;
use super::table::brief;
use super::{Status, Trace, TraceJob};
use crate::BadInput;

const FIELDS: usize = 18;
/// A line of eighteen numbers is much shorter.
const LINE_BYTES_MAX: u64 = 64 * 1024;

const JOB: (usize, &str) = (0, "job number");
const SUBMIT: (usize, &str) = (1, "submit time");
const RUN: (usize, &str) = (3, "run time");
const ALLOCATED: (usize, &str) = (4, "allocated processors");
const REQUESTED: (usize, &str) = (7, "requested processors");
const REQUESTED_TIME: (usize, &str) = (8, "requested time");
const REQUESTED_MEMORY: (usize, &str) = (9, "requested memory");
const STATUS: (usize, &str) = (10, "status");
const USER: (usize, &str) = (11, "user");
const GROUP: (usize, &str) = (12, "group");

pub(super) fn read(mut source: impl BufRead) -> Result<Trace, BadInput> {
    let mut gather = Gather::new(Order::AsWritten);
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        number += 1;
        let mut limited = std::io::Read::take(&mut source, LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut bytes).map_err(unreadable)? == 0 {
            return gather.finish();
        }
        if bytes.len() as u64 == LINE_BYTES_MAX {
            return Err(BadInput::new("the line is too long for SWF").line(number));
        }
        if bytes.first() == Some(&b';') {
            continue;
        }
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| BadInput::new("the line is not text").line(number))?;
        take(text, number, &mut gather).map_err(|error| error.line(number))?;
    }
}

/// The fields of one line. -1 means unknown; any other negative number is wrong.
struct SwfLine<'l>([&'l str; FIELDS]);

impl<'l> SwfLine<'l> {
    fn of(text: &'l str) -> Result<Option<SwfLine<'l>>, BadInput> {
        let mut fields = [""; FIELDS];
        let mut count = 0;
        for field in text.split_ascii_whitespace() {
            if let Some(place) = fields.get_mut(count) {
                *place = field;
            }
            count += 1;
        }
        match count {
            0 => Ok(None),
            FIELDS => Ok(Some(SwfLine(fields))),
            n => Err(BadInput::new(format!("an SWF line has {FIELDS} fields, this one {n}"))),
        }
    }

    fn number(&self, (index, name): (usize, &str)) -> Result<Option<i64>, BadInput> {
        let text = self.0[index];
        let number = decimal(text, 0).ok_or_else(|| {
            BadInput::new(format!("give a number, not `{}`", brief(text))).field(name)
        })?;
        Ok((number != -1).then_some(number))
    }

    fn seconds(&self, field: (usize, &str)) -> Result<Option<i64>, BadInput> {
        let number = self.number(field)?.map(seconds).transpose();
        number.map_err(|problem| BadInput::new(problem).field(field.1))
    }

    fn size(&self, field: (usize, &str), most: i64) -> Result<Option<i64>, BadInput> {
        let number = self.number(field)?.map(|number| within(number, 0..=most)).transpose();
        let number = number.map_err(|problem| BadInput::new(problem).field(field.1))?;
        Ok(number.filter(|number| *number > 0))
    }

    fn name(&self, (index, _): (usize, &str)) -> &'l str {
        let text = self.0[index];
        if text == "-1" { "" } else { text }
    }
}

fn take(text: &str, number: u64, gather: &mut Gather) -> Result<(), BadInput> {
    let Some(line) = SwfLine::of(text)? else { return Ok(()) };
    let most = i64::from(u32::MAX) / 1000;
    let processors = match line.size(REQUESTED, most)? {
        Some(requested) => Some(requested),
        None => line.size(ALLOCATED, most)?,
    };
    let submit_s = line.seconds(SUBMIT)?;
    let duration_s = line.seconds(RUN)?;
    let stated_s = line.seconds(REQUESTED_TIME)?.filter(|stated| *stated > 0);
    let kib_each = line.size(REQUESTED_MEMORY, i64::MAX >> 24)?.unwrap_or(0);
    let memory = i128::from(kib_each) * i128::from(processors.unwrap_or(0)) / 1024;
    let memory_mib = u32::try_from(memory)
        .map_err(|_| BadInput::new("out of range").field(REQUESTED_MEMORY.1))?;
    let status = line.number(STATUS)?;
    let reason = match (submit_s, duration_s, processors) {
        // A job that was swapped out has a line for each piece, besides one for the whole.
        _ if matches!(status, Some(2..=4)) => Some("a piece of a job that is listed whole"),
        (None, _, _) => Some("its submission is not known"),
        (_, None, _) => Some(DURATION_UNKNOWN),
        (_, Some(0), _) => Some(DURATION_ZERO),
        (_, _, None) => Some("its size is not known"),
        _ => None,
    };
    if let Some(reason) = reason {
        gather.skip(reason);
        return Ok(());
    }
    let job = TraceJob {
        id: line.name(JOB).into(),
        submit_s: submit_s.unwrap_or_default(),
        duration_s: duration_s.unwrap_or_default(),
        stated_s,
        gpu_milli: u32::try_from(processors.unwrap_or_default() * 1000).unwrap_or(u32::MAX),
        memory_mib,
        user: gather.user(line.name(USER)),
        group: gather.group(line.name(GROUP)),
        status: match status {
            Some(0) => Status::Failed,
            Some(1) => Status::Completed,
            Some(5) => Status::Cancelled,
            _ => Status::Unknown,
        },
        ..TraceJob::default()
    };
    gather.job(job, number, SUBMIT.1)
}
