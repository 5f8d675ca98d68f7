//! Which format a file is in, and the one door to all of them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::source::{self, Source};
use super::table::brief;
use super::{Trace, alibaba, chronus, era_csv, helios, philly, swf};
use crate::BadInput;

/// How a workload is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Our own tables, which [`write()`](super::write()) writes.
    Era,
    /// The Standard Workload Format.
    Swf,
    /// `cluster_job_log` of Microsoft's Philly, JSON.
    Philly,
    /// `cluster_log.csv` of SenseTime's Helios.
    Helios,
    /// `pai_task_table` and `pai_job_table` of Alibaba's GPU cluster of 2020, or the table of its
    /// simulator.
    Alibaba,
    /// Tables of Chronus, with deadlines and values.
    Chronus,
}

impl TraceFormat {
    /// All of them.
    pub const ALL: [TraceFormat; 6] = [
        TraceFormat::Era,
        TraceFormat::Swf,
        TraceFormat::Philly,
        TraceFormat::Helios,
        TraceFormat::Alibaba,
        TraceFormat::Chronus,
    ];

    /// Its name, as a person gives it.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::Era => "era",
            TraceFormat::Swf => "swf",
            TraceFormat::Philly => "philly",
            TraceFormat::Helios => "helios",
            TraceFormat::Alibaba => "alibaba",
            TraceFormat::Chronus => "chronus",
        }
    }

    /// The format of a file with this name that begins so.
    fn of(path: &Path, start: &[u8]) -> Result<TraceFormat, BadInput> {
        let text = String::from_utf8_lossy(start);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let file = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if text.is_empty() {
            return Err(BadInput::new("the file is empty"));
        }
        if text.starts_with(['[', '{']) {
            return Ok(TraceFormat::Philly);
        }
        let line = text.lines().next().unwrap_or_default();
        let numbers = line.split_ascii_whitespace().filter(|f| f.parse::<f64>().is_ok()).count();
        if text.starts_with(';') || numbers == 18 || file.trim_end_matches(".gz").ends_with(".swf")
        {
            return Ok(TraceFormat::Swf);
        }
        let names: Vec<&str> = line.split(',').map(|name| name.trim().trim_matches('"')).collect();
        let all = |wanted: &[&str]| wanted.iter().all(|name| names.contains(name));
        if all(&["submit_s"]) {
            Ok(TraceFormat::Era)
        } else if all(&["expect_time_list"]) {
            Ok(TraceFormat::Chronus)
        } else if all(&["gpu_num", "submit_time"]) {
            Ok(TraceFormat::Helios)
        } else if all(&["num_gpu", "submit_time", "duration"])
            || all(&["job_name", "start_time", "end_time"])
            || alibaba::is_named(&file)
        {
            Ok(TraceFormat::Alibaba)
        } else {
            let known = TraceFormat::ALL.map(TraceFormat::name).join(", ");
            let problem = format!(
                "the format is not recognised from `{}`; the formats are {known}",
                brief(line)
            );
            Err(BadInput::new(problem).line(1))
        }
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<TraceFormat, BadInput> {
        let found = TraceFormat::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| {
            let known = TraceFormat::ALL.map(TraceFormat::name).join(", ");
            BadInput::new(format!("there is no format `{}`; there are {known}", brief(text)))
        })
    }
}

/// Reads a trace. The format is recognised from the file's name and content unless it is given,
/// and so is compression with gzip.
pub fn read(path: &Path, format: Option<TraceFormat>) -> Result<Trace, BadInput> {
    let trace = source::open(path).and_then(|source| read_source(path, source, format));
    // An error in a table beside this one has named its file already.
    trace.map_err(|error| if error.file.is_some() { error } else { error.file(path) })
}

fn read_source(
    path: &Path,
    source: Source,
    format: Option<TraceFormat>,
) -> Result<Trace, BadInput> {
    if source.start.is_empty() {
        return Err(BadInput::new("the file is empty"));
    }
    match format.map_or_else(|| TraceFormat::of(path, &source.start), Ok)? {
        TraceFormat::Era => era_csv::read(source.all),
        TraceFormat::Swf => swf::read(source.all),
        TraceFormat::Philly => philly::read(source.all),
        TraceFormat::Helios => helios::read(source.all),
        TraceFormat::Alibaba => alibaba::read(path, source),
        TraceFormat::Chronus => chronus::read(source.all),
    }
}
