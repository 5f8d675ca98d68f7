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
pub enum Format {
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

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Era,
        Format::Swf,
        Format::Philly,
        Format::Helios,
        Format::Alibaba,
        Format::Chronus,
    ];

    /// Its name, as a person gives it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Era => "era",
            Format::Swf => "swf",
            Format::Philly => "philly",
            Format::Helios => "helios",
            Format::Alibaba => "alibaba",
            Format::Chronus => "chronus",
        }
    }

    /// The format of a file with this name that begins so.
    fn of(path: &Path, start: &[u8]) -> Result<Format, BadInput> {
        let text = String::from_utf8_lossy(start);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let file = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if text.is_empty() {
            return Err(BadInput::new("the file is empty"));
        }
        if text.starts_with(['[', '{']) {
            return Ok(Format::Philly);
        }
        let line = text.lines().next().unwrap_or_default();
        let numbers = line.split_ascii_whitespace().filter(|f| f.parse::<f64>().is_ok()).count();
        if text.starts_with(';') || numbers == 18 || file.trim_end_matches(".gz").ends_with(".swf")
        {
            return Ok(Format::Swf);
        }
        let names: Vec<&str> = line.split(',').map(|name| name.trim().trim_matches('"')).collect();
        let all = |wanted: &[&str]| wanted.iter().all(|name| names.contains(name));
        if all(&["submit_s"]) {
            Ok(Format::Era)
        } else if all(&["expect_time_list"]) {
            Ok(Format::Chronus)
        } else if all(&["gpu_num", "submit_time"]) {
            Ok(Format::Helios)
        } else if all(&["num_gpu", "submit_time", "duration"])
            || all(&["job_name", "start_time", "end_time"])
            || alibaba::is_named(&file)
        {
            Ok(Format::Alibaba)
        } else {
            let known = Format::ALL.map(Format::name).join(", ");
            let problem = format!(
                "the format is not recognised from `{}`; the formats are {known}",
                brief(line)
            );
            Err(BadInput::new(problem).line(1))
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<Format, BadInput> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| {
            let known = Format::ALL.map(Format::name).join(", ");
            BadInput::new(format!("there is no format `{}`; there are {known}", brief(text)))
        })
    }
}

/// Reads a trace. The format is recognised from the file's name and content unless it is given,
/// and so is compression with gzip.
pub fn read(path: &Path, format: Option<Format>) -> Result<Trace, BadInput> {
    let trace = source::open(path).and_then(|source| read_source(path, source, format));
    // An error in a table beside this one has named its file already.
    trace.map_err(|error| if error.file.is_some() { error } else { error.file(path) })
}

fn read_source(path: &Path, source: Source, format: Option<Format>) -> Result<Trace, BadInput> {
    if source.start.is_empty() {
        return Err(BadInput::new("the file is empty"));
    }
    match format.map_or_else(|| Format::of(path, &source.start), Ok)? {
        Format::Era => era_csv::read(source.all),
        Format::Swf => swf::read(source.all),
        Format::Philly => philly::read(source.all),
        Format::Helios => helios::read(source.all),
        Format::Alibaba => alibaba::read(path, source),
        Format::Chronus => chronus::read(source.all),
    }
}
