//! `cluster_job_log` of Microsoft's Philly (ATC '19): one JSON array, an object for each job.
//!
//! A job may have been tried several times; its duration is the sum over its attempts, its size
//! the largest of them. The array is taken in job by job, so that memory holds only the trace.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};

use super::era_csv::{DURATION_UNKNOWN, DURATION_ZERO};
use super::gather::{Gather, Order, status};
use super::helios::{civil_seconds, is_nothing};
use super::source::unreadable;
use super::{Trace, TraceJob};
use crate::BadInput;

#[derive(Deserialize)]
struct PhillyJob {
    jobid: Box<str>,
    #[serde(default)]
    status: Option<Box<str>>,
    #[serde(default)]
    vc: Option<Box<str>>,
    #[serde(default)]
    user: Option<Box<str>>,
    #[serde(deserialize_with = "submitted_time")]
    submitted_time: Option<i64>,
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
#[serde(try_from = "LoggedAttempt")]
struct Attempt {
    /// Where both its ends are known.
    ran_s: Option<i64>,
    gpus: u32,
}

#[derive(Deserialize)]
struct LoggedAttempt {
    #[serde(deserialize_with = "start_time")]
    start_time: Option<i64>,
    #[serde(deserialize_with = "end_time")]
    end_time: Option<i64>,
    #[serde(default)]
    detail: Vec<PhillyMachine>,
}

#[derive(Deserialize)]
struct PhillyMachine {
    #[serde(default)]
    gpus: Vec<serde::de::IgnoredAny>,
}

impl TryFrom<LoggedAttempt> for Attempt {
    type Error = String;

    fn try_from(logged: LoggedAttempt) -> Result<Attempt, String> {
        let ran_s = logged.start_time.zip(logged.end_time).map(|(start, end)| end - start);
        if ran_s.is_some_and(|ran_s| ran_s < 0) {
            return Err(about("end_time", "it is before the start"));
        }
        let gpus: usize = logged.detail.iter().map(|machine| machine.gpus.len()).sum();
        match u32::try_from(gpus) {
            Ok(gpus) if gpus <= u32::MAX / 1000 => Ok(Attempt { ran_s, gpus }),
            _ => Err(about("gpus", "there are too many")),
        }
    }
}

/// The parser knows the line of an error and nothing of its field: so the text carries the field,
/// and [`explained`] takes it out again.
fn about(field: &str, problem: &str) -> String {
    format!("{field}: {problem}")
}

const FIELDS: [&str; 4] = ["submitted_time", "start_time", "end_time", "gpus"];

fn submitted_time<'de, D: Deserializer<'de>>(json: D) -> Result<Option<i64>, D::Error> {
    time(json, FIELDS[0])
}

fn start_time<'de, D: Deserializer<'de>>(json: D) -> Result<Option<i64>, D::Error> {
    time(json, FIELDS[1])
}

fn end_time<'de, D: Deserializer<'de>>(json: D) -> Result<Option<i64>, D::Error> {
    time(json, FIELDS[2])
}

fn time<'de, D: Deserializer<'de>>(json: D, field: &str) -> Result<Option<i64>, D::Error> {
    match Option::<Box<str>>::deserialize(json)? {
        None => Ok(None),
        Some(text) if is_nothing(&text) => Ok(None),
        Some(text) => civil_seconds(&text)
            .map(Some)
            .map_err(|problem| D::Error::custom(about(field, &problem))),
    }
}

pub(super) fn read(source: impl BufRead) -> Result<Trace, BadInput> {
    let mut gather = Gather::new(Order::Sorted);
    let mut json = serde_json::Deserializer::from_reader(source);
    let done = Jobs(&mut gather).deserialize(&mut json);
    match done.and_then(|()| json.end()) {
        Ok(()) => gather.finish(),
        Err(error) => Err(explained(error)),
    }
}

/// What is wrong, from what the parser says.
fn explained(error: serde_json::Error) -> BadInput {
    use serde_json::error::Category;
    let line = error.line() as u64;
    match error.classify() {
        Category::Io => return unreadable(error.into()),
        Category::Eof => {
            return BadInput::new("the JSON ends before its end; fetch the file again").line(line);
        }
        Category::Syntax | Category::Data => {}
    }
    let text = error.to_string();
    // The line has a place of its own in our error.
    let problem = text.rsplit_once(" at line ").map_or(&*text, |(problem, _)| problem);
    let missing = problem.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    let ours = problem.split_once(": ").filter(|(field, _)| FIELDS.contains(field));
    match (ours, missing) {
        (Some((field, problem)), _) => BadInput::new(problem).line(line).field(field),
        (None, Some(field)) => BadInput::new(problem).line(line).field(field),
        (None, None) => BadInput::new(problem).line(line),
    }
}

/// Takes in the jobs of the array, one after the other.
struct Jobs<'g>(&'g mut Gather);

impl<'de> DeserializeSeed<'de> for Jobs<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Jobs<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of jobs, as in Philly's cluster_job_log")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut jobs: A) -> Result<(), A::Error> {
        while let Some(job) = jobs.next_element::<PhillyJob>()? {
            // Sorted later, so no order can be wrong here.
            take(job, self.0).map_err(|error| A::Error::custom(error.problem))?;
        }
        Ok(())
    }
}

fn take(job: PhillyJob, gather: &mut Gather) -> Result<(), BadInput> {
    let ran_s = job.attempts.iter().filter_map(|attempt| attempt.ran_s).reduce(|a, b| a + b);
    let gpus = job.attempts.iter().map(|attempt| attempt.gpus).max().unwrap_or(0);
    let reason = match (job.submitted_time, ran_s, gpus) {
        (None, _, _) => Some("its submission is not known"),
        (_, None, _) => Some(DURATION_UNKNOWN),
        (_, Some(0), _) => Some(DURATION_ZERO),
        (_, _, 0) => Some("its size is not known"),
        _ => None,
    };
    if let Some(reason) = reason {
        gather.skip(reason);
        return Ok(());
    }
    let job = TraceJob {
        submit_s: job.submitted_time.unwrap_or_default(),
        duration_s: ran_s.unwrap_or_default(),
        gpu_milli: gpus * 1000,
        status: status(job.status.as_deref().unwrap_or_default()).unwrap_or_default(),
        user: gather.user(job.user.as_deref().unwrap_or_default()),
        group: gather.group(job.vc.as_deref().unwrap_or_default()),
        id: job.jobid,
        ..TraceJob::default()
    };
    gather.job(job, 0, "submitted_time")
}
