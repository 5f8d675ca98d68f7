//! `era bench engines`: the engines that a site may stand on, each beside what it is compared with
//! in the same run. One file an engine; each gives some keys of the one report.

mod celery;
mod databases;
mod docker;
mod failover;

use anyhow::Result;
use serde_json::{Map, Value};

use super::{cores, print};

pub(super) fn run(json: bool) -> Result<()> {
    let parts =
        [databases::measure()?, failover::measure()?, celery::measure()?, docker::measure()?];
    print(&merge(parts), json);
    Ok(())
}

/// The keys of all parts, and the machine's core count.
fn merge(parts: impl IntoIterator<Item = Map<String, Value>>) -> Value {
    let mut all: Map<String, Value> = parts.into_iter().flatten().collect();
    all.insert("cores".to_owned(), cores().into());
    Value::Object(all)
}
