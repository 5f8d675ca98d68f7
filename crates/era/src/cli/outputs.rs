//! `era outputs`: brings back what jobs left, whoever watched them: their outputs or their
//! checkpoints.

use std::path::PathBuf;

use comfy_table::Cell;
use era_api::client::Client;
use era_api::data::{JobFolder, OutputFile};
use era_api::job::{JobFilter, JobSummary};
use era_api::page::PAGE_MAX;
use serde::Serialize;

use super::connection::Common;
use super::look::{self, Look, bytes, finish, note, right};
use crate::cli::data::code;

/// Bring back what jobs left in their outputs
///
/// Each job's files go to outputs/JOB, its checkpoints to checkpoints/JOB. What is there already in
/// the same form is not brought again.
#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    /// The jobs' numbers
    #[arg(value_name = "JOB", required = true)]
    ids: Vec<u64>,
    /// Their checkpoints instead, as they are now
    #[arg(long)]
    checkpoints: bool,
    /// All jobs of the arrays that these begin
    #[arg(long)]
    array: bool,
    /// Where they go; with several jobs, a folder for each in it [default: outputs/JOB or
    /// checkpoints/JOB]
    #[arg(long, value_name = "FOLDER", conflicts_with = "list")]
    to: Option<PathBuf>,
    /// Only list them
    #[arg(short, long)]
    list: bool,
    #[command(flatten)]
    common: Common,
}

/// What one job left.
#[derive(Serialize)]
struct Left {
    job: u64,
    files: Vec<OutputFile>,
}

impl Outputs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let ids = match self.array {
            true => {
                let mut ids = Vec::new();
                for first in &self.ids {
                    ids.extend(of_array(&client, *first)?.iter().map(|job| job.id));
                }
                ids
            }
            false => self.ids,
        };
        let kept = if self.checkpoints { JobFolder::Checkpoints } else { JobFolder::Outputs };
        if self.list {
            let mut left = Vec::new();
            for job in ids {
                left.push(Left { job, files: code::kept(&client, job, kept)? });
            }
            let look = self.common.look();
            return look::print(self.common.output, &left, |left| table(left, &look));
        }
        let several = ids.len() > 1;
        for id in ids {
            let into = match &self.to {
                Some(folder) if several => folder.join(id.to_string()),
                Some(folder) => folder.clone(),
                None => PathBuf::from(kept.as_str()).join(id.to_string()),
            };
            match code::bring(&client, id, kept, &into)? {
                0 => note(&format!("Job {id} has no {kept}.")),
                files => note(&format!("{files} files in {}", into.display())),
            }
        }
        Ok(())
    }
}

/// The jobs of an array, by number.
pub(super) fn of_array(client: &Client, first: u64) -> anyhow::Result<Vec<JobSummary>> {
    let mut filter =
        JobFilter { array: Some(first), limit: Some(PAGE_MAX), ..JobFilter::default() };
    let mut jobs = Vec::new();
    loop {
        let page = client.jobs(&filter)?;
        jobs.extend(page.items);
        match page.next {
            Some(next) => filter.cursor = Some(next),
            None => break,
        }
    }
    jobs.sort_unstable_by_key(|job| job.id);
    Ok(jobs)
}

fn table(left: &[Left], look: &Look) -> String {
    if left.iter().all(|left| left.files.is_empty()) {
        return "Nothing was left.\n".to_owned();
    }
    let mut table = look.table(&["JOB", "FILE", "SIZE", "CHANGED"]);
    for Left { job, files } in left {
        for file in files {
            table.add_row(vec![
                Cell::new(job),
                Cell::new(&file.path),
                right(bytes(file.bytes)),
                Cell::new(look.time(file.changed)),
            ]);
        }
    }
    finish(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_listed_by_job() {
        let file = |path: &str, bytes| OutputFile {
            path: path.to_owned(),
            bytes,
            changed: "2026-11-15T13:00:00Z".parse().unwrap(),
            executable: false,
        };
        let left = [
            Left { job: 7, files: vec![file("model.pt", 3 << 20), file("log/loss.csv", 120)] },
            Left { job: 8, files: Vec::new() },
            Left { job: 9, files: vec![file("model.pt", 5 << 20)] },
        ];
        insta::assert_snapshot!(table(&left, &look::plain()));
        assert_eq!(table(&left[1..2], &look::plain()), "Nothing was left.\n");
    }
}
