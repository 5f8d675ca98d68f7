//! `cluster_log.csv` of SenseTime's Helios clusters (SC '21): what Slurm knew of each job.
//!
//! Submissions are civil times, durations seconds. The virtual cluster is the group.

use std::io::BufRead;

use super::era_csv::{DURATION_UNKNOWN, DURATION_ZERO};
use super::gather::{Gather, Order, seconds, status};
use super::number::decimal;
use super::table::{Column, Row, Table, brief};
use super::{Trace, TraceJob};
use crate::BadInput;

pub(super) fn read(source: impl BufRead) -> Result<Trace, BadInput> {
    let mut table = Table::new(source)?;
    let id = table.required(&["job_id"])?;
    let submit = table.required(&["submit_time"])?;
    let gpus = table.required(&["gpu_num"])?;
    let duration = table.required(&["duration"])?;
    let cpus = table.column(&["cpu_num"]);
    let user = table.column(&["user"]);
    let group = table.column(&["vc"]);
    let state = table.column(&["state"]);
    let mut gather = Gather::new(Order::Sorted);
    while let Some(row) = table.next()? {
        let submit_s =
            civil_seconds(row.filled(&submit)?).map_err(|problem| row.bad(&submit, problem))?;
        let duration_s = duration_of(&row, &duration)?;
        let job = TraceJob {
            id: row.filled(&id)?.into(),
            submit_s,
            duration_s: duration_s.unwrap_or_default(),
            gpu_milli: row.milli(Some(&gpus))?,
            cpu_milli: row.milli(cpus.as_ref())?,
            status: status(row.text(state.as_ref())?).unwrap_or_default(),
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

/// A job that never started has no duration: the cell is empty, or `None` as Python writes it.
fn duration_of(row: &Row<'_>, column: &Column) -> Result<Option<i64>, BadInput> {
    let text = row.text(Some(column))?;
    if is_nothing(text) {
        return Ok(None);
    }
    let value = decimal(text, 0).ok_or_else(|| format!("give a number, not `{}`", brief(text)));
    value.and_then(seconds).map(Some).map_err(|problem| row.bad(column, problem))
}

/// Whether a text stands for the absence of one.
pub(super) fn is_nothing(text: &str) -> bool {
    matches!(text.trim(), "" | "None" | "nan" | "NaN" | "null")
}

/// A civil time such as `2017-10-09 07:03:19` in seconds after 1970, all days being alike.
pub(super) fn civil_seconds(text: &str) -> Result<i64, String> {
    let problem = || format!("give a time like 2017-10-09 07:03:19, not `{}`", brief(text));
    let time: jiff::civil::DateTime = text.trim().parse().map_err(|_| problem())?;
    let from = jiff::civil::DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    seconds(time.duration_since(from).as_secs()).map_err(|_| problem())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_times_are_seconds_after_1970() {
        assert_eq!(civil_seconds("1970-01-01 00:00:00"), Ok(0));
        assert_eq!(civil_seconds("2017-10-09 07:03:19"), Ok(1_507_532_599));
        assert_eq!(civil_seconds("2020-03-01 00:00:00"), Ok(1_583_020_800));
        for wrong in
            ["", "2017-13-09 07:03:19", "2017-02-29 00:00:00", "yesterday", "1969-12-31 00:00:00"]
        {
            assert!(civil_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
