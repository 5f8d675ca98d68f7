//! `era logs`: what a job printed.

use std::collections::VecDeque;
use std::io::Write;

use era_api::client::Client;
use era_api::job::{LogFilter, LogLine};

use super::connection::Common;
use super::follow;
use super::look::{Form, Look, note};
use super::submit::granting;

/// Lines that are asked for at a time.
const PAGE: u32 = 1000;

/// Print what a job printed
#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// The job's number
    #[arg(value_name = "JOB")]
    id: u64,
    /// Go on until the job is over
    #[arg(short, long)]
    follow: bool,
    /// Begin at this offset
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,
    /// Only the last so many lines, and what follows them
    #[arg(short = 'n', long, value_name = "LINES", conflicts_with = "from")]
    tail: Option<usize>,
    /// Only this attempt
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Only this replica
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// With the time of each line
    #[arg(short, long)]
    timestamps: bool,
    #[command(flatten)]
    common: Common,
}

impl Logs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let zone = self.timestamps.then(super::clock::zone);
        let (from, attempt, rank) = (self.from, self.attempt, self.rank);
        let ask = LogFilter { from, attempt, rank, ..LogFilter::default() };
        let mut out = std::io::stdout().lock();
        let form = self.common.output;
        let mut print = |line: &LogLine| -> anyhow::Result<()> {
            match form {
                Form::Json => writeln!(out, "{}", serde_json::to_string(line)?)?,
                Form::Yaml => write!(out, "---\n{}", serde_saphyr::to_string(line)?)?,
                // Which replica printed a line is told for all but the first.
                Form::Table => {
                    write!(out, "{}", follow::shown(line, line.rank > 0, zone.as_ref()))?;
                }
                Form::Wide => write!(out, "{}", follow::shown(line, true, zone.as_ref()))?,
            }
            Ok(())
        };
        let mut ask = ask;
        if let Some(count) = self.tail {
            let mut last = VecDeque::new();
            all(&client, self.id, &mut ask, |line| {
                last.push_back(line.clone());
                if last.len() > count {
                    last.pop_front();
                }
                Ok(())
            })?;
            last.iter().try_for_each(&mut print)?;
        }
        if self.follow {
            tell_wait(&client, self.id, &self.common.look());
        }
        match self.follow {
            true => follow::lines(&client, self.id, ask, |line| print(&line).map(|()| true)),
            false if self.tail.is_some() => Ok(()),
            false => all(&client, self.id, &mut ask, print),
        }
    }
}

/// Tells whoever follows the log of a job that waits why there is nothing yet.
fn tell_wait(client: &Client, job: u64, look: &Look) {
    // Whether there is such a job is said by its log.
    if let Ok(standing) = client.explain(job)
        && standing.state == "waiting"
    {
        note((look.sentence(&standing.sentence) + "\n" + &granting(&standing)).trim_end());
    }
}

/// All that is there now, a page at a time; what is asked begins after it then.
fn all(
    client: &Client,
    job: u64,
    ask: &mut LogFilter,
    mut take: impl FnMut(&LogLine) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let page = client.logs(job, &LogFilter { limit: Some(PAGE), ..*ask })?;
        let Some(last) = page.items.last() else { return Ok(()) };
        ask.from = Some(last.next);
        page.items.iter().try_for_each(&mut take)?;
        if page.next.is_none() {
            return Ok(());
        }
    }
}
