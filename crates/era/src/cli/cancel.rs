//! `era cancel`: gives jobs up.

use std::collections::BTreeMap;

use era_api::client::{Client, ClientError};
use era_api::job::{JobFilter, JobSummary};
use era_api::page::PAGE_MAX;
use serde::Serialize;

use super::connection::{Common, Form};
use super::failure::{BadUsage, ExitWith, INTERRUPTED};
use super::look::{self, note, say};
use super::prompt;

/// Give jobs up; a promise that has not begun is refunded by the rules
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// The jobs' numbers; the first job of an array stands for that job alone
    #[arg(value_name = "JOB", required_unless_present = "mine")]
    ids: Vec<u64>,
    /// All that is left of the arrays that these jobs belong to
    #[arg(long)]
    array: bool,
    /// All jobs of your own that are not over; asks first
    #[arg(long, conflicts_with_all = ["ids", "array"])]
    mine: bool,
    /// Do not ask
    #[arg(short, long, requires = "mine")]
    yes: bool,
    #[command(flatten)]
    common: Common,
}

/// What was given up, for programs.
#[derive(Debug, Default, Serialize)]
struct Cancelled {
    /// Jobs.
    cancelled: Vec<u64>,
    /// Arrays, by the job of each that was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arrays: Vec<u64>,
}

impl Cancel {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        if self.mine {
            return self.all_mine(&client);
        }
        let lone = self.ids.len() == 1;
        let mut told = Cancelled::default();
        let mut failed = None;
        for &id in &self.ids {
            let done = if self.array { cancel_array(&client, id) } else { client.cancel(id) };
            match done {
                Ok(()) if self.array => {
                    self.say(&format!("What was left of the array of job {id} is cancelled."))?;
                    told.arrays.push(id);
                }
                Ok(()) => {
                    self.say(&format!("Job {id} is cancelled."))?;
                    told.cancelled.push(id);
                }
                Err(error) if lone => return Err(error.into()),
                // The others are still to be given up.
                Err(error) => {
                    let error = error.into();
                    note(&format!("error: job {id}: {}", super::told(&error)));
                    failed = super::verdict(&error).map(|verdict| verdict.code);
                }
            }
        }
        self.tell(&told)?;
        match failed {
            Some(code) => Err(ExitWith(code).into()),
            None => Ok(()),
        }
    }

    fn all_mine(&self, client: &Client) -> anyhow::Result<()> {
        let jobs = active(client)?;
        let count = jobs.len();
        if count > 0 && !self.yes {
            if !prompt::somebody_there() {
                let what = format!("nobody can be asked here about {count} jobs: say -y");
                return Err(BadUsage(what).into());
            }
            if !prompt::yes(&format!("Cancel {count} jobs?"))? {
                return Err(ExitWith(INTERRUPTED).into());
            }
        }
        // Named by a job that is still there: the first one may be long forgotten.
        let arrays: BTreeMap<u64, u64> =
            jobs.iter().filter_map(|job| Some((job.array?.array, job.id))).collect();
        for &job in arrays.values() {
            unless_over(cancel_array(client, job))?;
        }
        for job in jobs.iter().filter(|job| job.array.is_none()) {
            unless_over(client.cancel(job.id))?;
        }
        self.say(&match count {
            0 => "You have no jobs that are not over.".to_owned(),
            count => format!("Cancelled: {count} jobs."),
        })?;
        let cancelled = jobs.iter().map(|job| job.id).collect();
        self.tell(&Cancelled { cancelled, arrays: Vec::new() })
    }

    /// A sentence for people, as soon as it is true.
    fn say(&self, sentence: &str) -> anyhow::Result<()> {
        match self.common.output {
            Form::Table | Form::Wide => say(sentence),
            Form::Json | Form::Yaml => Ok(()),
        }
    }

    /// All of it for programs.
    fn tell(&self, told: &Cancelled) -> anyhow::Result<()> {
        look::print(self.common.output, told, |_| String::new())
    }
}

/// The caller's own jobs that are not over.
fn active(client: &Client) -> anyhow::Result<Vec<JobSummary>> {
    let mut filter = JobFilter {
        state: Some("active".to_owned()),
        user: Some(client.me()?.name),
        limit: Some(PAGE_MAX),
        ..JobFilter::default()
    };
    let mut jobs = Vec::new();
    loop {
        let page = client.jobs(&filter)?;
        jobs.extend(page.items);
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            return Ok(jobs);
        }
    }
}

/// Gives up all that is left of the array that a job belongs to.
fn cancel_array(client: &Client, job: u64) -> Result<(), ClientError> {
    client.act(&format!("/jobs/{job}/cancel?array=true"), &serde_json::json!({}))
}

/// What ended by itself in the meantime is as good as cancelled.
fn unless_over(done: Result<(), ClientError>) -> Result<(), ClientError> {
    match done {
        Err(error) if error.problem().is_some_and(|problem| problem.code == "wrong_state") => {
            Ok(())
        }
        other => other,
    }
}
