//! `era submit`: hands a job in and returns at once.

use std::path::{Path, PathBuf};

use era_api::client::Client;
use era_api::job::{NewJob, Submitted};
use era_api::quote::Value;

use super::connection::Common;
use super::look::{self, Look, note};
use super::quote::{line, question};
use crate::data::code;
use crate::job::{Code, Draft, JobFlags};

/// Hand a job in, and return at once
///
/// With --value it is a bid: it gets a price and a guaranteed slot, or a refusal with
/// counter-offers. With --by or --from alone it takes the quoted price. Without any of them it
/// waits in a queue. A command that names a file in the working folder takes the folder along as
/// its code.
#[derive(Debug, clap::Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    job: JobFlags,
    #[command(flatten)]
    common: Common,
}

impl Submit {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let look = self.common.look();
        let written = self.job.written(&look.now)?;
        for line in &written.notes {
            note(line);
        }
        let draft = written.draft;
        let mut job = draft.finish()?;
        let client = self.common.client()?;
        job.work.code = uploaded(&client, code_of(&draft, Path::new(".")).as_deref())?;
        priced(&client, &draft, &mut job)?;
        let submitted = client.submit(&job)?;
        look::print(self.common.output, &submitted, |submitted| render(submitted, &look))
    }
}

/// The folder that goes along: the one that was named, else the working folder where the command
/// names a file in it.
fn code_of(draft: &Draft, working: &Path) -> Option<PathBuf> {
    match &draft.code {
        Some(Code::Folder(folder)) => Some(folder.clone()),
        Some(Code::None) => None,
        None => {
            let named = |word: &String| {
                let path = Path::new(word);
                !word.is_empty() && path.is_relative() && working.join(path).is_file()
            };
            draft.command.iter().any(named).then(|| working.to_owned())
        }
    }
}

/// The code's hash once it is there.
pub(crate) fn uploaded(client: &Client, folder: Option<&Path>) -> anyhow::Result<Option<String>> {
    folder.map(|folder| code::upload(client, folder)).transpose()
}

/// A job that must run at some time, but does not say what that is worth, takes the price.
pub(crate) fn priced(client: &Client, draft: &Draft, job: &mut NewJob) -> anyhow::Result<()> {
    if draft.is_bid() && job.value.is_none() {
        let price = match job.most {
            Some(most) => most,
            None => client.quote(&question(draft, false, false))?.quote.price,
        };
        job.value = Some(Value::Flat(price));
        job.most = Some(price);
    }
    Ok(())
}

/// What became of a submission.
pub(crate) fn render(submitted: &Submitted, look: &Look) -> String {
    let first = submitted.job;
    let mut text = match submitted.count {
        0 | 1 => format!("job {first}\n"),
        count => format!("jobs {first} to {}\n", first + u64::from(count) - 1),
    };
    match &submitted.quote {
        Some(quote) => text += &line(quote, look),
        None => text += &format!("waits in its queue: `era explain {first}` says why\n"),
    }
    text
}

#[cfg(test)]
mod tests {
    use era_api::Credits;
    use era_api::quote::Quote;

    use super::*;

    #[test]
    fn code_goes_along_where_the_command_names_a_file_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "").unwrap();
        let draft = |words: &[&str], code: Option<Code>| Draft {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            code,
            ..Draft::default()
        };
        let here = Some(folder.path().to_owned());
        assert_eq!(code_of(&draft(&["python", "train.py"], None), folder.path()), here);
        assert_eq!(code_of(&draft(&["true"], None), folder.path()), None);
        let none = draft(&["python", "train.py"], Some(Code::None));
        assert_eq!(code_of(&none, folder.path()), None);
    }

    #[test]
    fn a_submission_is_told_with_its_slot_or_its_queue() {
        let quote = Quote {
            price: Credits(12_000_000),
            start: "2026-11-15T15:00:00Z".parse().unwrap(),
            finish: "2026-11-15T17:00:00Z".parse().unwrap(),
            alternative: 0,
            parts: Vec::new(),
        };
        let promised = Submitted { job: 7, count: 1, quote: Some(quote) };
        let array = Submitted { job: 8, count: 100, quote: None };
        let text = [promised, array].map(|s| render(&s, &look::plain())).join("\n");
        insta::assert_snapshot!(text);
    }
}
