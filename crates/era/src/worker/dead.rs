//! `era worker dead`: messages that no worker could serve.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Context;
use clap::Args;
use era_cloud::celery::bus::Bus;
use era_cloud::celery::names;

/// Most that are shown at once.
const SHOWN_MAX: usize = 1000;

/// Show messages that no worker could serve, or send them again
#[derive(Args)]
pub(crate) struct Dead {
    /// Put one back into the queue that it came from, by its number in the list
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
    all.cmd("LPUSH").arg(text(fields, "queue")).arg(message).ignore();
    all.cmd("XDEL").arg(names::DEAD).arg(number).ignore();
    bus.run_all::<()>("take a message", &all).await?;
    Ok(())
}
