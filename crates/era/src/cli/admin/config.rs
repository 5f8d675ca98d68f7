//! `era admin config`: the rules of the house, by name.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use era_api::settings::SettingsView;
use serde_json::Value;

use crate::cli::connection::Common;
use crate::cli::look;

/// How often a watched server is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Settings: list, show, set, watch
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show all settings in force
    Ls {
        #[command(flatten)]
        common: Common,
    },
    /// Show one
    Get {
        /// Its name
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Change some: NAME=VALUE, lengths of time as 30s or 2h
    Set {
        /// What is changed
        #[arg(required = true, value_name = "NAME=VALUE", value_parser = change)]
        changes: Vec<(String, Value)>,
        #[command(flatten)]
        common: Common,
    },
    /// Show changes as they happen, until Ctrl-C
    Watch {
        #[command(flatten)]
        common: Common,
    },
}

impl ConfigCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            ConfigCommand::Ls { common } => {
                look::print(common.output, &common.client()?.settings()?, |all| lines(&all.0))
            }
            ConfigCommand::Get { name, common } => {
                let mut all = common.client()?.settings()?.0;
                let value = all.remove(&name).with_context(|| {
                    format!("there is no setting `{name}`: `era admin config ls` lists them")
                })?;
                look::print(common.output, &value, |value| format!("{value}\n"))
            }
            ConfigCommand::Set { changes, common } => {
                let changes = SettingsView(changes.into_iter().collect());
                common.client()?.change_settings(&changes)?;
                look::print(common.output, &changes, |changes| lines(&changes.0))
            }
            ConfigCommand::Watch { common } => watch(&common),
        }
    }
}

fn watch(common: &Common) -> anyhow::Result<()> {
    let client = common.client()?;
    let mut known = BTreeMap::new();
    loop {
        let now = client.settings()?.0;
        let news: BTreeMap<String, Value> = now
            .iter()
            .filter(|(name, value)| known.get(*name) != Some(*value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !news.is_empty() {
            let mut out = std::io::stdout().lock();
            out.write_all(lines(&news).as_bytes())?;
            out.flush()?;
        }
        known = now;
        std::thread::sleep(ASK_EVERY);
    }
}

fn lines(all: &BTreeMap<String, Value>) -> String {
    all.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

/// `NAME=VALUE`: a number, a length of time, a value of JSON, or else a word.
fn change(text: &str) -> Result<(String, Value), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = pair.ok_or("write NAME=VALUE")?;
    let value = value.trim();
    let read = serde_json::from_str(value).ok();
    let span = || value.parse::<crate::job::SpanSpec>().ok().map(|span| Value::from(span.seconds));
    let value = read.or_else(span).unwrap_or_else(|| Value::from(value));
    Ok((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_as_people_write_them() {
        for (text, expected) in [
            ("lease=30s", json!(30)),
            ("horizon = 2d", json!(172_800)),
            ("refund_unused=0.8", json!(0.8)),
            ("backfill=easy", json!("easy")),
            ("typical=[]", json!([])),
        ] {
            assert_eq!(change(text).map(|(_, value)| value), Ok(expected), "{text}");
        }
        assert!(change("lease").is_err());
        assert!(change("=3").is_err());
    }
}
