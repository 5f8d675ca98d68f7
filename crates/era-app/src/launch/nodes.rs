//! Nodes as executors find them: they join, come back, change or are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use era_cloud::FoundNode;
use era_core::Command;
use era_core::cluster::{Health, Node, Pool, Rates};
use era_core::input::NewNode;
use era_core::units::{Milli, Name, NodeId};
use era_core::{Reply, Snapshot};
use era_store::Note;
use era_store::accounts::{AccountTables, AuditAsk};
use serde_json::value::RawValue;

use crate::driver::{Handle, Unanswered};
use crate::wire::SIMULATED;

/// The pool of nodes that name none.
pub const DEFAULT_POOL: &str = "default";
/// The label by which a node names its pool.
const POOL_LABEL: &str = "pool";
/// The share of a pool that promises never use.
const CLOSED_SHARE: Milli = Milli(100);
/// Most lines of what administrators did that are read at a time.
const WORDS_MAX: u32 = 1000;
/// How long it is until a database that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Nodes are there: whatever the scheduler does not know of them is told, and those that join do
/// so together. If one of them is refused, the others join without it.
pub async fn found(
    driver: &Handle,
    rows: &AccountTables,
    found: &[FoundNode],
) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    let (mut joining, mut back) = (Joining::default(), Vec::new());
    for node in found {
        let Some(known) = named(&snapshot, &node.name) else {
            joining.add(node);
            continue;
        };
        if known.capacity != node.capacity {
            let capacity = node.capacity.clone();
            ask(driver, Command::SetCapacity { node: known.id, capacity }, None).await?;
        }
        back.extend(Some(&**known).filter(|known| known.health == Health::Lost));
    }
    returned(driver, rows, &back).await?;
    for pool in joining.pools(&snapshot) {
        ask(driver, Command::PutPool { pool }, None).await?;
    }
    for simulated in [false, true] {
        let nodes: Vec<NewNode> = joining.nodes.remove(&simulated).unwrap_or_default();
        let join = |nodes| Command::Join { nodes };
        let note = || Note { simulated, ..Note::default() }.write();
        if nodes.is_empty() || ask(driver, join(nodes.clone()), note()).await? || nodes.len() == 1 {
            continue;
        }
        for node in nodes {
            ask(driver, join(vec![node]), note()).await?;
        }
    }
    Ok(())
}

/// Nodes that were lost are back, as an administrator left them: whoever drains a machine to mend
/// it turns it off and on before it is mended.
async fn returned(
    driver: &Handle,
    rows: &AccountTables,
    nodes: &[&Node],
) -> Result<(), Unanswered> {
    let words = last_words(rows, nodes.iter().map(|node| node.name.as_str()).collect()).await;
    for node in nodes {
        let drain = Command::Drain { node: node.id, stop_at: None };
        let commands = match words.get(node.name.as_str()) {
            None | Some(NodeRequest::Free) => vec![Command::Resume { node: node.id }],
            Some(NodeRequest::Drain) => vec![drain],
            // A lost node cannot be cordoned, and must not be up for a moment.
            Some(NodeRequest::Cordon) => vec![drain, Command::Cordon { node: node.id }],
        };
        for command in commands {
            ask(driver, command, None).await?;
        }
    }
    Ok(())
}

/// A node is gone.
pub async fn lost(driver: &Handle, name: &str) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    match named(&snapshot, name).filter(|node| node.health != Health::Lost) {
        Some(node) => ask(driver, Command::Lost { node: node.id }, None).await.map(drop),
        None => Ok(()),
    }
}

/// These are all the nodes of an executor that runs what is not simulated: others of its are gone.
pub(super) async fn only(driver: &Handle, names: &[String]) -> Result<(), Unanswered> {
    let gone = |node: &Node| {
        let simulated = node.labels.keys().any(|label| label.as_str() == SIMULATED);
        let listed = names.iter().any(|name| name == node.name.as_str());
        node.health != Health::Lost && !simulated && !listed
    };
    let snapshot = driver.snapshot();
    let gone: Vec<NodeId> =
        snapshot.cluster().nodes().filter(|node| gone(node)).map(|node| node.id).collect();
    for node in gone {
        ask(driver, Command::Lost { node }, None).await?;
    }
    Ok(())
}

/// A node takes no new work, by the word of its engine.
pub async fn drained(driver: &Handle, name: &str) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    match named(&snapshot, name).filter(|node| node.health == Health::Up) {
        Some(node) => {
            let drain = Command::Drain { node: node.id, stop_at: None };
            ask(driver, drain, None).await.map(drop)
        }
        None => Ok(()),
    }
}

/// A node that its engine had drained takes work again, unless an administrator drained it too:
/// that one's word ends with another word of theirs.
pub async fn resumed(driver: &Handle, rows: &AccountTables, name: &str) -> Result<(), Unanswered> {
    let snapshot = driver.snapshot();
    let Some(node) = named(&snapshot, name).filter(|node| node.health == Health::Draining) else {
        return Ok(());
    };
    let word = last_words(rows, BTreeSet::from([name])).await.remove(name);
    if matches!(word, Some(NodeRequest::Drain | NodeRequest::Cordon)) {
        tracing::info!(node = name, "it stays drained, since an administrator drained it");
        return Ok(());
    }
    ask(driver, Command::Resume { node: node.id }, None).await.map(drop)
}

/// What an administrator wants of a node.
#[derive(Debug, Clone, Copy)]
enum NodeRequest {
    Drain,
    Cordon,
    Free,
}

/// The last word of an administrator on each of these nodes that they said one on, by one walk
/// through what they did. Nothing is resumed until that is known.
async fn last_words(
    rows: &AccountTables,
    mut names: BTreeSet<&str>,
) -> BTreeMap<String, NodeRequest> {
    let mut words = BTreeMap::new();
    let mut said = AuditAsk { what: Some("node.".to_owned()), ..AuditAsk::default() };
    while !names.is_empty() {
        let lines = match rows.audit_lines(&said, WORDS_MAX).await {
            Ok(lines) => lines,
            Err(error) => {
                tracing::warn!(%error, "whose drains these are is not known yet");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let Some(oldest) = lines.last() else { break };
        said.before = oldest.id;
        for line in lines.iter().filter(|line| line.done) {
            let word = match line.what.as_str() {
                "node.drain" => NodeRequest::Drain,
                "node.cordon" => NodeRequest::Cordon,
                "node.resume" | "node.leave" => NodeRequest::Free,
                _ => continue,
            };
            if names.remove(line.target.as_str()) {
                words.insert(line.target.clone(), word);
            }
        }
    }
    words
}

/// Tells the scheduler something, and says whether it took it.
async fn ask(
    driver: &Handle,
    command: Command,
    note: Option<Box<RawValue>>,
) -> Result<bool, Unanswered> {
    let answer = driver.hand_in_patiently(command, note).await?.await?;
    if let Reply::Refused { refusal, .. } = answer.reply {
        tracing::warn!(%refusal, "what an executor says of a node was refused");
        return Ok(false);
    }
    Ok(true)
}

fn named<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Arc<Node>> {
    snapshot.cluster().nodes().find(|node| node.name.as_str() == name)
}

/// Nodes that join, apart by whether their tasks only sleep: that is noted beside the input.
#[derive(Debug, Default)]
struct Joining {
    nodes: BTreeMap<bool, Vec<NewNode>>,
}

impl Joining {
    /// Adds a node; one that was announced twice joins as it was announced last.
    fn add(&mut self, found: &FoundNode) {
        let Some(node) = new_node(found) else { return };
        for nodes in self.nodes.values_mut() {
            nodes.retain(|other| other.name != node.name);
        }
        self.nodes.entry(found.simulated).or_default().push(node);
    }

    /// Pools that they name and nobody knows.
    fn pools(&self, snapshot: &Snapshot) -> Vec<Pool> {
        let named: BTreeSet<&Name> = self.nodes.values().flatten().map(|node| &node.pool).collect();
        let unknown = |name: &&&Name| snapshot.cluster().pool(name).is_err();
        named.iter().filter(unknown).map(|name| new_pool((*name).clone())).collect()
    }
}

fn new_node(found: &FoundNode) -> Option<NewNode> {
    let Ok(name) = Name::new(&found.name) else {
        tracing::warn!(name = found.name, "a node's name is none: it cannot join");
        return None;
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
    let pool = wanted.or_else(|| constant(DEFAULT_POOL))?;
    let capacity = found.capacity.clone();
    Some(NewNode { name, pool, capacity, labels, rack: None, domain: None })
}

/// A pool at default rates. Part of it is closed to promises, rounded down: of one node none.
pub fn new_pool(name: Name) -> Pool {
    Pool { name, rates: Rates::default(), closed_share: CLOSED_SHARE, level_caps: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use era_core::resources::Capacity;

    use super::*;
    use crate::feed::tests::Site;

    #[tokio::test]
    async fn of_an_executors_nodes_only_those_that_it_lists_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(folder.path()).await;
        let (driver, rows) = (&site.app.driver, site.app.store.accounts());
        let real = |name: &str| FoundNode { simulated: false, ..node(name, 1000) };
        found(driver, &rows, &[real("here"), real("gone"), node("simulated", 1000)]).await.unwrap();
        let health = |name: &str| named(&driver.snapshot(), name).map(|node| node.health);
        only(driver, &["here".to_owned(), "new".to_owned()]).await.unwrap();
        assert_eq!(health("here"), Some(Health::Up));
        assert_eq!(health("gone"), Some(Health::Lost));
        assert_eq!(health("simulated"), Some(Health::Up), "another executor's");
        found(driver, &rows, &[real("gone")]).await.unwrap();
        assert_eq!(health("gone"), Some(Health::Up), "it is back");
        site.stop().await;
    }

    fn node(name: &str, cpu: u32) -> FoundNode {
        let capacity = Capacity { cpu, memory: 1024, gpus: Vec::new(), devices: BTreeMap::new() };
        let labels = BTreeMap::from([("pool".to_owned(), "lab".to_owned())]);
        FoundNode { name: name.to_owned(), capacity, labels, address: None, simulated: true }
    }

    #[tokio::test]
    async fn nodes_join_together_and_one_that_is_refused_keeps_no_other_away() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(folder.path()).await;
        let (driver, rows) = (&site.app.driver, site.app.store.accounts());
        let before = driver.snapshot().seq();
        let three = [node("a", 1000), node("b", 1000), node("a", 2000)];
        found(driver, &rows, &three).await.unwrap();
        let after = driver.snapshot();
        assert_eq!(after.seq() - before, 2, "one pool is made, and they join in one input");
        assert_eq!(named(&after, "a").map(|node| node.capacity.cpu), Some(2000));
        found(driver, &rows, &three[1..]).await.unwrap();
        assert_eq!(driver.snapshot().seq(), after.seq(), "what is known is not told again");
        found(driver, &rows, &[node("too-large", u32::MAX), node("c", 1000)]).await.unwrap();
        let last = driver.snapshot();
        assert!(named(&last, "c").is_some() && named(&last, "too-large").is_none());
        site.stop().await;
    }
}
