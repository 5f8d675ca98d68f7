//! `era worker dead`: messages that no worker could serve.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Context;
use clap::Args;
use era_cloud::celery::bus::{Bus, BusError};
use era_cloud::celery::envelope::Envelope;
use era_cloud::celery::message::TaskMessage;
use era_cloud::celery::result::TaskState;
use era_cloud::celery::{names, result};

/// Most that are shown at once.
const SHOWN_MAX: usize = 1000;

/// Show messages that no worker could serve, or send them again
#[derive(Args)]
pub(crate) struct Dead {
    /// Put one back into the queue that it came from, by its number in the list, and forget that its
    /// task has failed
    #[arg(long, value_name = "NUMBER")]
    again: Option<String>,
}

impl Dead {
    pub(super) async fn run(&self, bus: &Bus) -> anyhow::Result<()> {
        match &self.again {
            Some(number) => again(bus, number).await,
            None => show(bus).await,
        }
    }
}

type Entry = (String, BTreeMap<String, Vec<u8>>);

fn text(fields: &BTreeMap<String, Vec<u8>>, name: &str) -> String {
    fields.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

async fn show(bus: &Bus) -> anyhow::Result<()> {
    let mut range = redis::cmd("XRANGE");
    range.arg(names::DEAD).arg("-").arg("+").arg("COUNT").arg(SHOWN_MAX);
    let entries: Vec<Entry> = bus.run("show dead messages", &range).await?;
    let mut out = std::io::stdout().lock();
    for (number, fields) in &entries {
        writeln!(out, "{number}  {}  {}", text(fields, "queue"), text(fields, "why"))?;
    }
    if entries.is_empty() {
        writeln!(out, "none")?;
    }
    Ok(())
}

async fn again(bus: &Bus, number: &str) -> anyhow::Result<()> {
    let mut range = redis::cmd("XRANGE");
    range.arg(names::DEAD).arg(number).arg(number);
    let entries: Vec<Entry> = bus.run("show dead messages", &range).await?;
    let (_, fields) =
        entries.first().with_context(|| format!("there is no dead message {number}"))?;
    let message = fields.get("message").context("it has no message")?;
    let mut all = redis::pipe();
    all.atomic();
    for id in failed(bus, message).await? {
        all.cmd("DEL").arg(result::key(&id)).ignore();
    }
    all.cmd("LPUSH").arg(text(fields, "queue")).arg(message).ignore();
    all.cmd("XDEL").arg(names::DEAD).arg(number).ignore();
    bus.run_all::<()>("take a message", &all).await?;
    Ok(())
}

/// The tasks of a message that have failed, since it could not be served. With such a result they
/// would be over.
async fn failed(bus: &Bus, message: &[u8]) -> Result<Vec<String>, BusError> {
    let envelope = Envelope::read(message).ok();
    let Some(message) = envelope.and_then(|envelope| TaskMessage::read(&envelope).ok()) else {
        return Ok(Vec::new());
    };
    let mut ids: Vec<String> = message.embed.behind().map(str::to_owned).collect();
    ids.push(message.headers.id);
    let kept = bus.results(&ids).await?;
    let is_failed =
        kept.into_iter().map(|kept| kept.is_some_and(|m| m.status == TaskState::Failure));
    Ok(ids.into_iter().zip(is_failed).filter_map(|(id, failed)| failed.then_some(id)).collect())
}
