//! Tables of Chronus (SoCC '21): jobs with deadlines and values, times in minutes, unsorted.
//!
//! The deadline is the submission plus `expect_time_list`; a best-effort job has none.

use std::io::BufRead;

use super::era_csv::{DURATION_UNKNOWN, DURATION_ZERO};
use super::gather::{Gather, Order, seconds};
use super::table::Table;
use super::{Trace, TraceJob};
use crate::BadInput;

const MINUTE_S: i64 = 60;

pub(super) fn read(source: impl BufRead) -> Result<Trace, BadInput> {
    let mut table = Table::new(source)?;
    let id = table.required(&["job_id"])?;
    let submit = table.required(&["submit_time"])?;
    let duration = table.required(&["duration"])?;
    let gpus = table.required(&["num_gpu"])?;
    let expected = table.required(&["expect_time_list"])?;
    let value = table.column(&["expect_value_list"]);
    let user = table.column(&["user"]);
    let best_effort = table.column(&["best_effort"]);
    let kind = table.column(&["job_type"]);
    let mut gather = Gather::new(Order::Sorted);
    while let Some(row) = table.next()? {
        let to_seconds = |minutes: i64, column| {
            seconds(minutes * MINUTE_S).map_err(|problem| row.bad(column, problem))
        };
        let submit_s = to_seconds(row.required_seconds(&submit)?, &submit)?;
        let kind = row.text(kind.as_ref())?.trim();
        let strict = kind.is_empty() || kind == "strict";
        let promised = strict && row.decimal(best_effort.as_ref(), 0)?.unwrap_or(0) == 0;
        let deadline_s = if promised {
            Some(submit_s + to_seconds(row.required_seconds(&expected)?, &expected)?)
        } else {
            None
        };
        let duration_s = match row.seconds(Some(&duration))? {
            Some(minutes) => Some(to_seconds(minutes, &duration)?),
            None => None,
        };
        let job = TraceJob {
            id: row.filled(&id)?.into(),
            submit_s,
            duration_s: duration_s.unwrap_or_default(),
            gpu_milli: row.milli(Some(&gpus))?,
            deadline_s,
            value: row.credits(value.as_ref())?,
            ..TraceJob::default()
        };
        match duration_s {
            None => gather.skip(DURATION_UNKNOWN),
            Some(0) => gather.skip(DURATION_ZERO),
            Some(_) => {
                let user = gather.user(row.text(user.as_ref())?);
                gather.job(TraceJob { user, ..job }, row.line, "submit_time")?;
            }
        }
    }
    gather.finish()
}
