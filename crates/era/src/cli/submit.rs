//! `era submit`: hands a job in and returns at once.

use std::path::{Path, PathBuf};

use era_api::client::Client;
use era_api::job::{ExplanationView, JobChecked, JobSpec, Submitted};
use era_spec::secret::looks_like_one;
use serde::{Deserialize, Serialize};

use super::connection::Common;
use super::cost;
use super::exit::{BAD_INPUT, ExitWith};
use super::failure::GRANTING;
use super::look::quote::{line, understood};
use super::look::{self, Look, note};
use super::terminal;
use crate::cli::data::code;
use crate::job::{Code, Draft, JobFlags, Script};

/// Hand a job in, and return at once
///
/// With --value it is a bid: it gets a price and a guaranteed slot, or a refusal with
/// counter-offers. With --by or --from alone it takes the quoted price. Without any of them it
/// waits in a queue. A command that names a file in the working folder takes the folder along as
/// its code.
///
/// With --check nothing is handed in: all that the job would be refused for is told, with what it
/// gets where nothing is said.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    /// Only say what is wrong with it and what it gets; nothing is handed in
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    job: JobFlags,
    #[command(flatten)]
    common: Common,
}

impl Submit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        let written = self.job.written(&look.now)?;
        for line in written.notes.iter().chain(&exposed(&written.draft)) {
            note(line);
        }
        let draft = written.draft;
        if self.check {
            return check(&self.common, draft.spec, &look);
        }
        draft.check()?;
        if draft.spec.is_bid() {
            // Money is spent on it at once.
            note(&understood(&draft.spec, &look));
        }
        let client = self.common.client()?;
        let along = Along::of(&draft, Path::new("."));
        let mut job = draft.spec;
        terminal::tell_kind(&mut job);
        job.work.code = along.upload(&client)?;
        let submitted = client.submit(&job)?;
        look::print(self.common.output, &submitted, |submitted| {
            render(submitted, standing(&client, submitted).as_ref(), &look)
        })
    }
}

/// Tells what a job would be refused for, and what it gets where nothing is said.
fn check(common: &Common, mut job: JobSpec, look: &Look) -> anyhow::Result<()> {
    terminal::tell_kind(&mut job);
    let checked = common.client()?.check(&job)?;
    look::print(common.output, &checked, |checked| checked_text(checked, look))?;
    match checked.problems.is_empty() {
        true => Ok(()),
        false => Err(ExitWith(BAD_INPUT).into()),
    }
}

fn checked_text(checked: &JobChecked, look: &Look) -> String {
    let how = match (checked.bid, &checked.job.queue) {
        (true, _) => "for a promise: `era quote` tells its price".to_owned(),
        (false, Some(queue)) => format!("for queue {queue}"),
        (false, None) => "for the default queue".to_owned(),
    };
    let mut text = format!("{}, {how}\n", understood(&checked.job, look));
    if let Some(most) = checked.at_most {
        text += &format!("{}\n", cost::in_words(most));
    }
    for problem in &checked.problems {
        let field = problem.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        text += &format!("{field}{}\n", look.sentence(&problem.detail));
    }
    text
}

/// What whoever writes a credential among the variables should know.
pub(crate) fn exposed(draft: &Draft) -> Option<String> {
    let looks = |(name, value): &(&String, &String)| looks_like_one(name, value);
    let name = draft.spec.work.env.iter().find(looks)?.0;
    let secret = name.to_ascii_uppercase();
    Some(format!(
        "{name} looks like a credential and will stand in the journal, in plain text: better \
         `era secret set {secret}` once, and --secret {secret}"
    ))
}

/// What goes along as a job's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Along {
    folder: Option<PathBuf>,
    #[serde(default)]
    script: Option<Script>,
}

impl Along {
    /// The folder that was named, else the working folder where the command names a file in it.
    pub(crate) fn of(draft: &Draft, working: &Path) -> Along {
        Along::or_else(draft, || {
            names_a_file(&draft.spec.work.command, working).then(|| working.to_owned())
        })
    }

    /// The folder that was named, else the working folder.
    pub(crate) fn working(draft: &Draft) -> Along {
        Along::or_else(draft, || Some(".".into()))
    }

    pub(crate) fn folder(folder: PathBuf) -> Along {
        Along { folder: Some(folder), script: None }
    }

    fn or_else(draft: &Draft, unsaid: impl FnOnce() -> Option<PathBuf>) -> Along {
        let folder = match &draft.code {
            Some(Code::Folder(folder)) => Some(folder.clone()),
            Some(Code::None) => None,
            None => unsaid(),
        };
        Along { folder, script: draft.script.clone() }
    }

    /// The same from wherever it is read later.
    pub(crate) fn absolute(self) -> std::io::Result<Along> {
        let folder = self.folder.map(std::path::absolute).transpose()?;
        let script = match self.script {
            Some(Script { file, at }) => Some(Script { file: std::path::absolute(file)?, at }),
            None => None,
        };
        Ok(Along { folder, script })
    }

    /// The code's hash once it is there; `None` where there is none.
    pub(crate) fn upload(&self, client: &Client) -> anyhow::Result<Option<String>> {
        if self.folder.is_none() && self.script.is_none() {
            return Ok(None);
        }
        code::upload(client, self.folder.as_deref(), self.script.as_ref()).map(Some)
    }
}

/// Whether a command names a file below a folder; of a line for a shell, one of its words.
pub(crate) fn names_a_file(command: &[String], folder: &Path) -> bool {
    let named = |word: &str| {
        let path = Path::new(word);
        !word.is_empty() && path.is_relative() && folder.join(path).is_file()
    };
    let in_line = |line: &String| {
        line.split(|c: char| c.is_whitespace() || ";&|<>()\"'=".contains(c)).any(named)
    };
    match command {
        [shell, flag, line, ..] if flag == "-c" && shell.ends_with("sh") => in_line(line),
        words => words.iter().any(|word| named(word)),
    }
}

/// Where a job for a queue stands, and the first one of an array; `None` where nobody says.
pub(crate) fn standing(client: &Client, submitted: &Submitted) -> Option<ExplanationView> {
    match submitted.quote {
        Some(_) => None,
        None => client.explain(submitted.job).ok(),
    }
}

/// How a job that waits for credits gets them.
pub(crate) fn granting(told: &ExplanationView) -> String {
    match told.why.as_deref() {
        Some("funds") => format!("hint: {GRANTING}\n"),
        _ => String::new(),
    }
}

/// What became of a submission.
pub(crate) fn render(
    submitted: &Submitted,
    standing: Option<&ExplanationView>,
    look: &Look,
) -> String {
    let first = submitted.job;
    let mut text = match submitted.count {
        0 | 1 => format!("job {first}\n"),
        count => format!("jobs {first} to {}\n", first + u64::from(count) - 1),
    };
    match (&submitted.quote, standing) {
        (Some(quote), _) => text += &line(quote, look),
        (None, Some(told))
            if told.state != "waiting" || told.why.as_deref() == Some("next_pass") =>
        {
            text += if submitted.count > 1 { "the first starts now\n" } else { "starts now\n" };
        }
        (None, Some(told)) => text += &(look.sentence(&told.sentence) + "\n" + &granting(told)),
        (None, None) => {
            text += &format!("in its queue: `era explain {first}` says how it stands\n");
        }
    }
    if let Some(before) = submitted.checkpoints_of {
        text += &format!("begins with the checkpoints of job {before}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use era_api::Credits;
    use era_api::quote::QuoteView;

    use super::*;

    #[test]
    fn code_goes_along_where_the_command_names_a_file_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "").unwrap();
        let draft = |words: &[&str], code: Option<Code>| {
            let mut draft = Draft { code, ..Draft::default() };
            draft.spec.work.command = words.iter().map(|word| (*word).to_owned()).collect();
            draft
        };
        let here = Some(folder.path().to_owned());
        let sent = |draft: &Draft| Along::of(draft, folder.path()).folder;
        assert_eq!(sent(&draft(&["python", "train.py"], None)), here);
        assert_eq!(sent(&draft(&["sh", "-c", "cd . && python train.py>log"], None)), here);
        assert_eq!(sent(&draft(&["sh", "-c", "python other.py"], None)), None);
        assert_eq!(sent(&draft(&["true"], None)), None);
        assert_eq!(sent(&draft(&["python", "train.py"], Some(Code::None))), None);
    }

    #[test]
    fn whoever_writes_a_credential_among_the_variables_is_told() {
        let draft = |name: &str, value: &str| {
            let mut draft = Draft::default();
            draft.spec.work.env.insert(name.to_owned(), value.to_owned());
            draft
        };
        let told = exposed(&draft("wandb_api_key", "k1")).unwrap();
        assert!(told.contains("`era secret set WANDB_API_KEY`") && !told.contains("k1"), "{told}");
        assert_eq!(exposed(&draft("MODE", "fast")), None);
    }

    #[test]
    fn a_submission_is_told_with_its_slot_or_its_queue() {
        let quote = QuoteView {
            price: Credits(12_000_000),
            start: "2026-11-15T15:00:00Z".parse().unwrap(),
            finish: "2026-11-15T17:00:00Z".parse().unwrap(),
            alternative: 0,
            parts: Vec::new(),
        };
        let promised = Submitted { job: 7, count: 1, quote: Some(quote), checkpoints_of: None };
        let array = Submitted { job: 8, count: 100, quote: None, checkpoints_of: None };
        let again = Submitted { job: 9, count: 1, quote: None, checkpoints_of: Some(7) };
        let text = [promised, array, again].map(|s| render(&s, None, &look::plain())).join("\n");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_job_that_starts_at_once_is_not_said_to_wait() {
        let told = |count: u32, state: &str, why: Option<&str>| {
            let sentence = "It waits at position 1 of its queue: the wallet holds 0.00 credits.";
            let told = serde_json::json!({ "state": state, "why": why, "sentence": sentence });
            let told: ExplanationView = serde_json::from_value(told).unwrap();
            let submitted = Submitted { job: 8, count, quote: None, checkpoints_of: None };
            render(&submitted, Some(&told), &look::plain())
        };
        for (state, why) in [("running", None), ("ended", None), ("waiting", Some("next_pass"))] {
            assert_eq!(told(1, state, why), "job 8\nstarts now\n");
        }
        assert_eq!(told(3, "running", None), "jobs 8 to 10\nthe first starts now\n");
        assert!(told(1, "waiting", Some("funds")).contains("the wallet holds 0.00 credits"));
    }
}
