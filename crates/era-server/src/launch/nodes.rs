//! Nodes as executors find them: they join, come back, change or are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use era_cloud::FoundNode;
use era_core::Command;
use era_core::cluster::{Health, Node, Pool, Rates};
use era_core::input::NewNode;
use era_core::units::{Milli, Name};
use era_core::{Reply, Snapshot};
use era_store::Note;
use serde_json::value::RawValue;

use crate::driver::{Handle, Unanswered};
use crate::wire::SIMULATED;

/// The pool of nodes that name none.
pub const DEFAULT_POOL: &str = "default";
/// The label by which a node names its pool.
const POOL_LABEL: &str = "pool";
/// The share of a pool that promises never use.
const CLOSED_SHARE: Milli = Milli(100);

/// A node is there: whatever the scheduler does not know of it is told.
pub(super) async fn found(driver: &Handle, found: &FoundNode) -> Result<(), Unanswered> {
    for (command, note) in news(&driver.snapshot(), found) {
        ask(driver, command, note).await?;
    }
    Ok(())
}

/// A node is gone.
pub(super) async fn lost(driver: &Handle, name: &str) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    match named(&snapshot, name).filter(|node| node.health != Health::Lost) {
        Some(node) => ask(driver, Command::Lost { node: node.id }, None).await,
        None => Ok(()),
    }
}

/// A node takes no new work, by the word of its engine.
pub(super) async fn drained(driver: &Handle, name: &str) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    match named(&snapshot, name).filter(|node| node.health == Health::Up) {
        Some(node) => ask(driver, Command::Drain { node: node.id }, None).await,
        None => Ok(()),
    }
}

/// A node that its engine had drained takes work again.
pub(super) async fn resumed(driver: &Handle, name: &str) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    match named(&snapshot, name).filter(|node| node.health == Health::Draining) {
        Some(node) => ask(driver, Command::Resume { node: node.id }, None).await,
        None => Ok(()),
    }
}

async fn ask(
    driver: &Handle,
    command: Command,
    note: Option<Box<RawValue>>,
) -> Result<(), Unanswered> {
    let answer = driver.hand_in_patiently(command, note).await?;
    let answer = answer.await.map_err(|_| Unanswered::Stopped)?;
    if let Reply::Refused { refusal, .. } = answer.reply {
        tracing::warn!(%refusal, "what an executor says of a node was refused");
    }
    Ok(())
}

fn named<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Arc<Node>> {
    snapshot.cluster().nodes().find(|node| node.name.as_str() == name)
}

/// What the scheduler must be told so that it knows a node as it was found.
fn news(snapshot: &Snapshot, found: &FoundNode) -> Vec<(Command, Option<Box<RawValue>>)> {
    let Some(node) = named(snapshot, &found.name) else { return joining(snapshot, found) };
    let mut news = Vec::new();
    if node.capacity != found.capacity {
        let capacity = found.capacity.clone();
        news.push((Command::SetCapacity { node: node.id, capacity }, None));
    }
    // Whoever drained it did so on purpose.
    if node.health == Health::Lost {
        news.push((Command::Resume { node: node.id }, None));
    }
    news
}

fn joining(snapshot: &Snapshot, found: &FoundNode) -> Vec<(Command, Option<Box<RawValue>>)> {
    let Ok(name) = Name::new(&found.name) else {
        tracing::warn!(name = found.name, "a node's name is none: it cannot join");
        return Vec::new();
    };
    let mut labels: BTreeMap<Name, Name> = BTreeMap::new();
    for (key, value) in &found.labels {
        match (Name::new(key), Name::new(value)) {
            (Ok(key), Ok(value)) => drop(labels.insert(key, value)),
            _ => tracing::warn!(node = found.name, key, "a label is no pair of names: left out"),
        }
    }
    let constant = |text: &str| Name::new(text).ok();
    if let (true, Some(key), Some(value)) = (found.simulated, constant(SIMULATED), constant("true"))
    {
        labels.insert(key, value);
    }
    let wanted = constant(POOL_LABEL).and_then(|label| labels.get(&label).cloned());
    let Some(pool) = wanted.or_else(|| constant(DEFAULT_POOL)) else { return Vec::new() };
    let mut news = Vec::new();
    if snapshot.cluster().pool(&pool).is_err() {
        news.push((Command::PutPool { pool: new_pool(pool.clone()) }, None));
    }
    let capacity = found.capacity.clone();
    let node = NewNode { name, pool, capacity, labels, rack: None, domain: None };
    let note = Note { simulated: found.simulated, ..Note::default() }.write();
    news.push((Command::Join { nodes: vec![node] }, note));
    news
}

/// A pool at default rates. Part of it is closed to promises, rounded down: of one node none.
pub fn new_pool(name: Name) -> Pool {
    Pool { name, rates: Rates::default(), closed_share: CLOSED_SHARE, level_caps: BTreeMap::new() }
}
