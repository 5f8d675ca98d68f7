//! The table of the Chronus trace: jobs with deadlines, times in minutes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::BadInput;
use crate::trace::{Trace, TraceJob};

/// Reads it, compressed if its name says so.
pub fn read(path: &Path) -> Result<Trace, BadInput> {
    let file = File::open(path).map_err(|e| BadInput::new(e.to_string()).file(path))?;
    let trace = if path.extension().is_some_and(|end| end == "gz") {
        table(BufReader::new(MultiGzDecoder::new(file)))
    } else {
        table(BufReader::new(file))
    };
    trace.map_err(|error| error.file(path))
}

fn table(lines: impl BufRead) -> Result<Trace, BadInput> {
    let mut columns: Vec<String> = Vec::new();
    let mut trace = Trace::default();
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line.map_err(|error| BadInput::new(error.to_string()).line(number))?;
        let cells: Vec<&str> = line.trim_end().split(',').collect();
        if columns.is_empty() {
            columns = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        let cell = |name: &str| -> Result<i64, BadInput> {
            let index = columns.iter().position(|column| column == name);
            let text = index.and_then(|index| cells.get(index)).copied().unwrap_or("");
            let whole = text.parse().ok().filter(|n| (0..1_000_000_000).contains(n));
            let bad = || BadInput::new(format!("`{text}` is no whole number of a sensible size"));
            whole.ok_or_else(|| bad().line(number).field(name))
        };
        let submit = cell("submit_time")?;
        trace.jobs.push(TraceJob {
            id: cell("job_id")?.to_string().into(),
            submit_s: submit * 60,
            duration_s: (cell("duration")? * 60).max(1),
            gpu_milli: (cell("num_gpu")? * 1000) as u32,
            deadline_s: Some((submit + cell("expect_time_list")?) * 60),
            ..TraceJob::default()
        });
    }
    trace.jobs.sort_by_key(|job| job.submit_s);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_minutes_and_the_deadline_counts_from_the_submission() {
        let text = "job_id,num_gpu,submit_time,duration,expect_time_list\n7,4,10,3,8\n";
        let job = table(text.as_bytes()).unwrap().jobs.remove(0);
        assert_eq!((job.submit_s, job.duration_s, job.deadline_s), (600, 180, Some(1080)));
        assert_eq!(job.gpu_milli, 4000);
    }

    #[test]
    fn what_is_no_number_is_found_by_line_and_column() {
        let text = "job_id,num_gpu,submit_time,duration,expect_time_list\n7,four,10,3,8\n";
        let error = table(text.as_bytes()).unwrap_err();
        assert_eq!((error.line, error.field.as_deref()), (Some(2), Some("num_gpu")));
    }
}
