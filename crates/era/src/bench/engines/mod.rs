//! `era bench engines`: the engines that a site may stand on, each beside what it is compared with
//! in the same run. One file an engine; each gives some keys of the one report.

mod celery;
mod databases;
mod docker;
mod failover;

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use super::{cores, print};

/// What measures one engine.
type Measure = fn() -> Result<Map<String, Value>>;

/// Every engine by its name.
const ENGINES: [(&str, Measure); 4] = [
    ("databases", databases::measure),
    ("failover", failover::measure),
    ("celery", celery::measure),
    ("docker", docker::measure),
];

pub(super) fn run(json: bool, only: Option<&str>) -> Result<()> {
    let wanted = |(name, _): &&(&str, Measure)| only.is_none_or(|only| only == *name);
    let parts = ENGINES.iter().filter(wanted).map(|(_, measure)| measure());
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let names = ENGINES.map(|(name, _)| name).join(", ");
    ensure!(!parts.is_empty(), "there is no such engine: give one of {names}");
    print(&merge(parts), json);
    Ok(())
}

/// The keys of all parts, and the machine's core count.
fn merge(parts: impl IntoIterator<Item = Map<String, Value>>) -> Value {
    let mut all: Map<String, Value> = parts.into_iter().flatten().collect();
    all.insert("cores".to_owned(), cores().into());
    Value::Object(all)
}
