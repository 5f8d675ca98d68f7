//! `era cancel`: gives jobs up.

use std::collections::BTreeMap;

use era_api::Credits;
use era_api::client::{Client, ClientError};
use era_api::job::{JobFilter, JobSummary, Refund};
use era_api::page::PAGE_MAX;
use serde::Serialize;

use super::connection::Common;
use super::exit::{BadUsage, ExitWith, INTERRUPTED};
use super::look::{self, Form, note, say};
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
    /// What comes back of what was paid for them; of those that ran, at most.
    refund: Credits,
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
            // Not known is not told: it is no reason to go on.
            let refund = client.refund(id, self.array).ok();
            let done = if self.array { cancel_array(&client, id) } else { client.cancel(id) };
            if let (Ok(()), Some(refund)) = (&done, refund) {
                told.refund.0 += refund.back.0;
            }
            let back = refund.map_or_else(|| ".".to_owned(), back);
            match done {
                Ok(()) if self.array => {
                    self.say(&format!(
                        "What was left of the array of job {id} is cancelled{back}"
                    ))?;
                    told.arrays.push(id);
                }
                Ok(()) => {
                    self.say(&format!("Job {id} is cancelled{back}"))?;
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
        // Named by a job that is still there: the first one may be long forgotten.
        let arrays: BTreeMap<u64, u64> =
            jobs.iter().filter_map(|job| Some((job.array?.array, job.id))).collect();
        let alone = jobs.iter().filter(|job| job.array.is_none()).map(|job| job.id);
        let whole: Vec<(u64, bool)> = arrays
            .into_values()
            .map(|job| (job, true))
            .chain(alone.map(|job| (job, false)))
            .collect();
        let mut refund = Refund { back: Credits::ZERO, kept: Credits::ZERO, runs: false };
        for one in whole.iter().filter_map(|&(job, array)| client.refund(job, array).ok()) {
            refund.back.0 += one.back.0;
            refund.kept.0 += one.kept.0;
            refund.runs |= one.runs;
        }
        let back = back(refund);
        if count > 0 && !self.yes {
            if !prompt::somebody_there() {
                let what = format!("nobody can be asked here about {count} jobs: say -y");
                return Err(BadUsage(what).into());
            }
            if !prompt::yes(&format!("Cancel {count} jobs{}?", back.trim_end_matches('.')))? {
                return Err(ExitWith(INTERRUPTED).into());
            }
        }
        for (job, array) in whole {
            unless_over(if array { cancel_array(client, job) } else { client.cancel(job) })?;
        }
        self.say(&match count {
            0 => "You have no jobs that are not over.".to_owned(),
            count => format!("Cancelled: {count} jobs{back}"),
        })?;
        let cancelled = jobs.iter().map(|job| job.id).collect();
        self.tell(&Cancelled { cancelled, arrays: Vec::new(), refund: refund.back })
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

/// What comes back, as the end of a sentence. Where nothing was paid there is nothing to tell.
pub(super) fn back(refund: Refund) -> String {
    let Refund { back, kept, runs } = refund;
    match (back > Credits::ZERO, runs) {
        (true, true) => {
            format!(": at most {back} credits come back, less the longer it takes to stop.")
        }
        (true, false) => format!(": {back} credits come back."),
        (false, _) if kept > Credits::ZERO => ": nothing comes back.".to_owned(),
        (false, _) => ".".to_owned(),
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
