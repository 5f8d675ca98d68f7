//! `era run`: from the command to its exit code, as if it ran here: code up, price, job, logs,
//! outputs down.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use era_api::client::{Client, ClientError};
use era_api::data::JobFolder;
use era_api::job::{
    JobFilter, JobSpec, JobState, JobSummary, JobView, LogFilter, LogLine, Submitted,
};
use era_api::quote::QuoteAsk;
use era_api::terminal::TerminalEnd;

use super::connection::Common;
use super::exit::{BadUsage, ExitWith, INTERRUPTED, NO_CODE};
use super::look::money::credits;
use super::look::quote::{line, paid, understood};
use super::look::{Form, Look, note, span};
use super::terminal::{self, Left};
use super::waits::Waits;
use super::{accept, attach, cost, follow, look, outputs, prompt, submit};
use crate::cli::data::code;
use crate::job::JobFlags;

/// Run a command on the cluster as if it ran here
///
/// Uploads the working folder (respecting .gitignore and .eraignore), shows the price and the
/// slot, asks, submits, streams the logs, brings the outputs back into outputs/JOB, and exits
/// with the job's code. Ctrl-C asks whether to cancel the job or to leave it running. Where nobody
/// can be asked, as in a script, a price is taken only with -y. Of an array all jobs are waited
/// for, and the code is that of the first that did not succeed.
///
/// With --pty the job has a terminal, which is this one once it has started: `era run --pty --
/// bash`. Every key goes to the job, Ctrl-C too; leaving the shell ends the job, and `~.` at the
/// beginning of a line leaves it running for `era attach`.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Take the price without asking; needed where nobody can be asked
    #[arg(short, long)]
    yes: bool,
    /// Return once it is submitted
    #[arg(short, long)]
    detach: bool,
    /// Leave the outputs on the server
    #[arg(long)]
    no_outputs: bool,
    /// Where the outputs go [default: outputs/JOB]
    #[arg(long, value_name = "FOLDER")]
    outputs: Option<PathBuf>,
    #[command(flatten)]
    job: JobFlags,
    #[command(flatten)]
    common: Common,
}

/// What can happen while a job is watched.
enum WatchEvent {
    Line(LogLine),
    End(anyhow::Result<()>),
    Interrupt,
}

impl Run {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        let written = self.job.written(&look.now)?;
        for line in written.notes.iter().chain(&submit::exposed(&written.draft)) {
            note(line);
        }
        let draft = written.draft;
        draft.check()?;
        let mut job = draft.spec.clone();
        terminal::tell_kind(&mut job);
        if job.work.terminal && !self.detach {
            terminal::must_be_here()?;
            if job.array.is_some() {
                let what = "an array has many terminals and this is one: add --detach, and use \
                            `era attach` with a job of it";
                return Err(BadUsage(what.to_owned()).into());
            }
        }
        if job.is_bid() && !self.yes && !prompt::somebody_there() {
            // A script that means to buy says so: nobody buys by being out of reach.
            let what = "nobody can be asked here whether to take the price: -y takes it, and \
                        `era quote` only shows it";
            return Err(BadUsage(what.to_owned()).into());
        }
        let client = self.common.client()?;
        note(&understood(&job, &look));
        job.work.code = submit::Along::working(&draft).upload(&client)?;
        self.agree(&client, &mut job, &look)?;
        let submitted = client.submit(&job)?;
        let standing = submit::standing(&client, &submitted);
        let render = |s: &Submitted| submit::render(s, standing.as_ref(), &look);
        if self.common.output == Form::Json || self.common.output == Form::Yaml || self.detach {
            look::print(self.common.output, &submitted, render)?;
        } else {
            note(render(&submitted).trim_end());
        }
        let waits = Waits::told(standing);
        match submitted.count {
            _ if self.detach => Ok(()),
            0 | 1 => self.watch(&client, submitted.job, job.work.terminal, waits, &look),
            count => self.await_array(&client, submitted.job, count, waits, &look),
        }
    }

    /// Until every job of an array is over, then their outputs, then the code of the first that
    /// has one. Their logs are not mixed: `era logs` shows each.
    fn await_array(
        &self,
        client: &Client,
        first: u64,
        count: u32,
        mut waits: Waits,
        look: &Look,
    ) -> anyhow::Result<()> {
        let last = first + u64::from(count) - 1;
        note(&format!("Waiting for jobs {first} to {last}; Ctrl-C leaves them alone."));
        let active = JobFilter {
            array: Some(first),
            state: Some("active".to_owned()),
            limit: Some(1),
            ..JobFilter::default()
        };
        let mut pause = Duration::from_millis(20);
        while !follow::patiently(|| client.jobs(&active))?.items.is_empty() {
            waits.look_at_array(client, first, look)?;
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(2));
        }
        let jobs = outputs::of_array(client, first)?;
        let failed: Vec<&JobSummary> =
            jobs.iter().filter(|job| job.state != JobState::Succeeded).collect();
        note(&told_of_array(jobs.len(), &failed));
        if !self.no_outputs {
            let folder = self.outputs.clone().unwrap_or_else(|| PathBuf::from("outputs"));
            let mut files = 0;
            for job in &jobs {
                files += code::bring(
                    client,
                    job.id,
                    JobFolder::Outputs,
                    &folder.join(job.id.to_string()),
                )?;
            }
            if files > 0 {
                note(&format!("{files} files in {}", folder.display()));
            }
        }
        match failed.first() {
            None => Ok(()),
            Some(job) => Err(ExitWith(exit_code(job)).into()),
        }
    }

    /// Shows what it costs, and asks.
    fn agree(&self, client: &Client, job: &mut JobSpec, look: &Look) -> anyhow::Result<()> {
        if !job.is_bid() {
            cost::tell(client, job);
            return Ok(());
        }
        let ask = !self.yes;
        // While somebody thinks, price and slot are set aside; nobody else pays for the wait.
        let quoted = client.quote(&QuoteAsk { hold: ask, ..QuoteAsk::of(job) })?;
        note(line(&quoted.quote, look).trim_end());
        if let Some(told) = paid(&quoted) {
            note(&told);
        }
        if ask && !prompt::yes("Take it?")? {
            if let Some(hold) = quoted.hold {
                client.drop_hold(hold.id)?;
            }
            return Err(ExitWith(INTERRUPTED).into());
        }
        match quoted.hold {
            Some(hold) => accept::take(job, hold.id),
            None => job.most = Some(job.most.unwrap_or(quoted.quote.price)),
        }
        Ok(())
    }

    /// Its terminal or its logs until it is over, then outputs, then its code.
    fn watch(
        &self,
        client: &Client,
        id: u64,
        terminal: bool,
        mut waits: Waits,
        look: &Look,
    ) -> anyhow::Result<()> {
        let (sender, heard) = channel();
        listen_for_interrupts(sender.clone())?;
        let attended = match terminal {
            true => self.attend(client, id, &mut waits, look, &heard)?,
            false => Attended::Not,
        };
        match attended {
            Attended::Over => {}
            Attended::Detached => {
                note(&attach::goes_on(id));
                return Err(ExitWith(INTERRUPTED).into());
            }
            Attended::Not => self.read(client, id, (waits, look), sender, &heard)?,
        }
        let job = settled(client, id)?;
        note(&ending(&job, look));
        if !self.no_outputs {
            let into = self.outputs.clone();
            let into = into.unwrap_or_else(|| PathBuf::from("outputs").join(id.to_string()));
            let files = code::bring(client, id, JobFolder::Outputs, &into)?;
            if files > 0 {
                note(&format!("{files} files in {}", into.display()));
            }
        }
        match exit_code(&job.summary) {
            0 => Ok(()),
            code => Err(ExitWith(code).into()),
        }
    }

    /// Waits until a job runs, telling how it stands, and is at its terminal until it is over.
    fn attend(
        &self,
        client: &Client,
        id: u64,
        waits: &mut Waits,
        look: &Look,
        heard: &Receiver<WatchEvent>,
    ) -> anyhow::Result<Attended> {
        let (mut pause, mut attended) = (Duration::from_millis(10), Attended::Not);
        loop {
            let now = follow::patiently(|| client.job(id))?.summary.state;
            if now.is_over() {
                return Ok(attended);
            }
            waits.look(client, id, look)?;
            if now == JobState::Running {
                match terminal::attend(&self.common, id, 0) {
                    Ok(Left::Over(TerminalEnd::Exited(_))) => return Ok(Attended::Over),
                    Ok(Left::Detached) => return Ok(Attended::Detached),
                    // It is started again where there is room.
                    Ok(Left::Over(TerminalEnd::Lost(_))) => attended = Attended::Over,
                    Err(error) if has_just_ended(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            match heard.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                _ if wants_cancel()? => {
                    client.cancel(id)?;
                    note("Cancelled; waiting for it to stop.");
                }
                _ => return Ok(Attended::Detached),
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Its logs until it is over.
    fn read(
        &self,
        client: &Client,
        id: u64,
        (waits, look): (Waits, &Look),
        sender: Sender<WatchEvent>,
        heard: &Receiver<WatchEvent>,
    ) -> anyhow::Result<()> {
        let reader = Client::new(client.url(), client.token())?;
        let reader = self.common.client().unwrap_or(reader);
        std::thread::spawn(move || {
            let lines = sender.clone();
            let taken = |line| Ok(lines.send(WatchEvent::Line(line)).is_ok());
            let end = follow::lines(&reader, id, LogFilter::default(), taken);
            // Nobody listens any more once the command is over.
            let _ = sender.send(WatchEvent::End(end));
        });
        if self.stream(client, id, (waits, look), heard)? {
            return Ok(());
        }
        note(&format!(
            "Job {id} goes on: `era logs -f {id}` follows it, `era outputs {id}` brings its \
             outputs."
        ));
        Err(ExitWith(INTERRUPTED).into())
    }

    /// Prints lines until the job is over; `false` if it was left running.
    fn stream(
        &self,
        client: &Client,
        id: u64,
        (mut waits, look): (Waits, &Look),
        heard: &Receiver<WatchEvent>,
    ) -> anyhow::Result<bool> {
        let mut cancelled = false;
        loop {
            waits.look(client, id, look)?;
            let event = match waits.pause() {
                Some(pause) => heard.recv_timeout(pause),
                None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(true),
            };
            match event {
                WatchEvent::Line(line) => print_line(&line)?,
                WatchEvent::End(end) => return end.map(|()| true),
                WatchEvent::Interrupt if cancelled => return Ok(false),
                WatchEvent::Interrupt => {
                    if !prompt::somebody_there() || wants_cancel()? {
                        client.cancel(id)?;
                        note("Cancelled; waiting for it to stop. Ctrl-C again leaves it alone.");
                        cancelled = true;
                    } else {
                        return Ok(false);
                    }
                }
            }
        }
    }
}

/// What became of a job at its terminal.
enum Attended {
    /// Nobody was there: it has none, or was over before. Its log has what it printed.
    Not,
    /// It is over.
    Over,
    /// It was left running.
    Detached,
}

/// Whether a job ran a moment ago and cannot be attached to any more.
fn has_just_ended(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<ClientError>();
    matches!(refused, Some(ClientError::Refused(problem)) if problem.code == "not_running")
}

/// Whether the job is to be cancelled rather than left running.
fn wants_cancel() -> anyhow::Result<bool> {
    loop {
        let answer = prompt::line("\nCancel the job, or detach and leave it running? [c/d] ")?;
        match answer.to_ascii_lowercase().as_str() {
            "c" | "cancel" => return Ok(true),
            "d" | "detach" => return Ok(false),
            _ => {}
        }
    }
}

/// Ctrl-C as an event, for as long as the command runs.
fn listen_for_interrupts(sender: Sender<WatchEvent>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if sender.send(WatchEvent::Interrupt).is_err() {
                    break;
                }
            }
        });
    });
    Ok(())
}

fn print_line(line: &LogLine) -> anyhow::Result<()> {
    let text = follow::shown(line, line.rank > 0, None);
    if line.stream == "err" {
        std::io::stderr().write_all(text.as_bytes())?;
    } else {
        std::io::stdout().write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The job once it is over: its log may end a moment before the books are closed.
fn settled(client: &Client, id: u64) -> anyhow::Result<JobView> {
    let mut pause = Duration::from_millis(2);
    loop {
        let job = follow::patiently(|| client.job(id))?;
        if job.summary.state.is_over() {
            return Ok(job);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// The code that the shell gets.
fn exit_code(job: &JobSummary) -> u8 {
    match (job.state, job.exit_code) {
        (JobState::Succeeded, _) => 0,
        (JobState::Failed, Some(code)) => match u8::try_from(code) {
            Ok(0) | Err(_) => NO_CODE,
            Ok(code) => code,
        },
        _ => NO_CODE,
    }
}

/// Most jobs of an array that are named as not having succeeded.
const NAMED_MAX: usize = 10;

/// How an array ended, in a sentence.
fn told_of_array(all: usize, failed: &[&JobSummary]) -> String {
    if failed.is_empty() {
        return format!("All {all} jobs succeeded.");
    }
    let mut named: Vec<String> = failed
        .iter()
        .take(NAMED_MAX)
        .map(|job| format!("{} ({})", job.id, job.state.as_str().replace('_', " ")))
        .collect();
    if failed.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    let succeeded = all - failed.len();
    format!("{succeeded} of {all} jobs succeeded; not {}", named.join(", "))
}

/// How it ended, in a sentence.
fn ending(job: &JobView, look: &Look) -> String {
    let summary = &job.summary;
    let mut text = format!("Job {} {}", summary.id, summary.state.as_str().replace('_', " "));
    if let (Some(started), Some(ended)) = (summary.started, summary.ended) {
        let seconds = ended.as_second().saturating_sub(started.as_second());
        text += &format!(" after {}", span(u64::try_from(seconds).unwrap_or(0)));
    } else if let Some(ended) = summary.ended {
        text += &format!(" at {}", look.time(ended));
    }
    text += &format!(", for {} credits", credits(job.cost.net));
    if let Some(reason) = &job.reason {
        text += &format!(": {}", look.sentence(reason));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests::example;

    #[test]
    fn the_shell_gets_the_jobs_own_code() {
        let ended = |state, code| {
            let mut job = example();
            (job.summary.state, job.summary.exit_code) = (state, code);
            exit_code(&job.summary)
        };
        assert_eq!(ended(JobState::Succeeded, Some(0)), 0);
        assert_eq!(ended(JobState::Failed, Some(3)), 3);
        assert_eq!(ended(JobState::Failed, None), NO_CODE);
        assert_eq!(ended(JobState::Failed, Some(-9)), NO_CODE);
        assert_eq!(ended(JobState::Cancelled, None), NO_CODE);
        assert_eq!(ended(JobState::LimitReached, Some(0)), NO_CODE);
    }

    #[test]
    fn of_an_array_it_is_told_what_did_not_succeed() {
        let mut job = example().summary;
        (job.id, job.state) = (9, JobState::LimitReached);
        assert_eq!(told_of_array(3, &[]), "All 3 jobs succeeded.");
        assert_eq!(told_of_array(3, &[&job]), "2 of 3 jobs succeeded; not 9 (limit reached)");
        let many = vec![&job; NAMED_MAX + 1];
        assert!(told_of_array(20, &many).ends_with("9 (limit reached), …"));
    }

    #[test]
    fn the_ending_is_told_with_its_cost() {
        insta::assert_snapshot!(ending(&example(), &look::plain()));
    }
}
