//! Nodes as an engine describes them become nodes as the scheduler knows them, and a change
//! between two looks becomes news. Values only.

use std::collections::{BTreeMap, HashMap};

use era_core::resources::{Capacity, GPUS_PER_NODE_MAX, Gpu};
use era_core::units::Name;

use super::instance::EngineNode;
use crate::discover;
use crate::executor::{FoundNode, Report};

/// The label by which an administrator names a node.
const NAME_LABEL: &str = "era.name";
/// What an administrator says of the GPUs that an engine only counts.
const MODEL_LABEL: &str = "era.gpu.model";
const MEMORY_LABEL: &str = "era.gpu.memory";

/// What is known of the nodes of an engine, by their ids there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Nodes {
    by_id: BTreeMap<String, Known>,
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    found: FoundNode,
    gpus: Vec<String>,
    ready: bool,
    active: bool,
}

impl Nodes {
    /// What a look shows.
    pub(super) fn of(listed: &[EngineNode]) -> Nodes {
        let names = names(listed);
        let known = |node: &EngineNode| {
            let name = names.get(&node.id).cloned().unwrap_or_default();
            let known = Known {
                found: found(node, name),
                gpus: node.gpus.iter().take(GPUS_PER_NODE_MAX).cloned().collect(),
                ready: node.ready,
                active: node.active,
            };
            (node.id.clone(), known)
        };
        Nodes { by_id: listed.iter().map(known).collect() }
    }

    /// The engine's id of the node of this name.
    pub(super) fn id(&self, name: &str) -> Option<&str> {
        let found = self.by_id.iter().find(|(_, known)| known.found.name == name);
        found.map(|(id, _)| id.as_str())
    }

    /// Whether a node answers.
    pub(super) fn is_ready(&self, name: &str) -> bool {
        self.by_id.values().any(|known| known.found.name == name && known.ready)
    }

    /// The ids of these GPUs of a node, as the NVIDIA runtime reads them.
    pub(super) fn gpu_ids(&self, name: &str, gpus: &[u8]) -> Vec<String> {
        let known = self.by_id.values().find(|known| known.found.name == name);
        let id = |gpu: &u8| {
            let told = known.and_then(|known| known.gpus.get(usize::from(*gpu)));
            told.cloned().unwrap_or_else(|| gpu.to_string())
        };
        gpus.iter().map(id).collect()
    }

    /// What is to be told after the look before this one.
    pub(super) fn news(&self, before: &Nodes) -> Vec<Report> {
        let mut news = Vec::new();
        for (id, now) in &self.by_id {
            let was = before.by_id.get(id);
            let name = || now.found.name.clone();
            if !now.ready {
                if was.is_none_or(|was| was.ready) {
                    news.push(Report::NodeLost { name: name() });
                }
                continue;
            }
            if was.is_none_or(|was| !was.ready || was.found != now.found) {
                news.push(Report::Node(now.found.clone()));
            }
            match (was.is_none_or(|was| was.active), now.active) {
                (true, false) => news.push(Report::NodeDrained { name: name() }),
                (false, true) => news.push(Report::NodeResumed { name: name() }),
                _ => {}
            }
        }
        let left =
            before.by_id.iter().filter(|(id, was)| was.ready && !self.by_id.contains_key(*id));
        news.extend(left.map(|(_, was)| Report::NodeLost { name: was.found.name.clone() }));
        news
    }
}

/// What each node is called: as its administrator says, else as its system does. Of several that
/// are called alike the oldest keeps the name, and the others add a part of their id.
fn names(listed: &[EngineNode]) -> HashMap<String, String> {
    let mut by_age: Vec<&EngineNode> = listed.iter().collect();
    by_age.sort_by(|a, b| (&a.since, &a.id).cmp(&(&b.since, &b.id)));
    let mut taken = HashMap::new();
    let mut names = HashMap::new();
    for node in by_age {
        let wanted = node.labels.get(NAME_LABEL).unwrap_or(&node.host);
        let mut name = discover::node_name(wanted);
        if taken.insert(name.clone(), ()).is_some() {
            name = format!("{name}-{}", &node.id[..node.id.len().min(6)]);
            taken.insert(name.clone(), ());
        }
        names.insert(node.id.clone(), name);
    }
    names
}

fn found(node: &EngineNode, name: String) -> FoundNode {
    let memory = u64::try_from(node.memory_bytes).unwrap_or(0);
    let milli = u32::try_from(node.nano_cpus / 1_000_000).unwrap_or(0);
    let gpu = gpu(&node.labels);
    let capacity = Capacity {
        cpu: milli.max(1),
        memory: u32::try_from(discover::usable_memory(memory, None) >> 20).unwrap_or(u32::MAX),
        gpus: node.gpus.iter().take(GPUS_PER_NODE_MAX).map(|_| gpu.clone()).collect(),
        devices: BTreeMap::new(),
    };
    let own = |key: &str| [NAME_LABEL, MODEL_LABEL, MEMORY_LABEL].contains(&key);
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in &node.labels {
        // What the scheduler cannot hold as a label is the engine's own affair.
        if !own(key) && Name::new(key).is_ok() && Name::new(value).is_ok() {
            labels.insert(key.clone(), value.clone());
        }
    }
    let (os, arch) = &node.platform;
    labels.entry("os".into()).or_insert_with(|| os.clone());
    labels.entry("arch".into()).or_insert_with(|| arch.clone());
    labels.retain(|_, value| !value.is_empty());
    FoundNode { name, capacity, labels, simulated: false }
}

/// A node's GPUs, as its administrator describes them.
fn gpu(labels: &HashMap<String, String>) -> Gpu {
    let model = labels.get(MODEL_LABEL).map_or("gpu", String::as_str);
    let memory = labels.get(MEMORY_LABEL).and_then(|text| gibibytes(text)).unwrap_or(0);
    Gpu { model: discover::model_name(model), memory }
}

/// `80Gi` in MiB.
fn gibibytes(text: &str) -> Option<u32> {
    text.strip_suffix("Gi")?.parse::<u32>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, host: &str, since: &str) -> EngineNode {
        EngineNode {
            id: id.into(),
            host: host.into(),
            since: since.into(),
            ready: true,
            active: true,
            nano_cpus: 4_000_000_000,
            memory_bytes: 32 << 30,
            platform: ("linux".into(), "x86_64".into()),
            ..EngineNode::default()
        }
    }

    fn listed() -> Vec<EngineNode> {
        vec![node("bbbbbbbb", "vm", "2026-01-02"), node("aaaaaaaa", "vm", "2026-01-01")]
    }

    #[test]
    fn of_nodes_that_are_called_alike_the_oldest_keeps_the_name() {
        let nodes = Nodes::of(&listed());
        assert_eq!(nodes.id("vm"), Some("aaaaaaaa"));
        assert_eq!(nodes.id("vm-bbbbbb"), Some("bbbbbbbb"));
    }

    #[test]
    fn nodes_that_join_drain_go_down_and_leave_are_told_once() {
        let none = Nodes::default();
        let all = Nodes::of(&listed());
        assert!(matches!(&all.news(&none)[..], [Report::Node(_), Report::Node(_)]));
        assert_eq!(all.news(&all), []);
        let mut drained = listed();
        drained[0].active = false;
        let drained = Nodes::of(&drained);
        let name = || "vm-bbbbbb".to_owned();
        assert_eq!(drained.news(&all), [Report::NodeDrained { name: name() }]);
        assert_eq!(all.news(&drained), [Report::NodeResumed { name: name() }]);
        let mut down = listed();
        down[0].ready = false;
        let down = Nodes::of(&down);
        assert_eq!(down.news(&all), [Report::NodeLost { name: name() }]);
        assert_eq!(down.news(&down), []);
        assert!(matches!(&all.news(&down)[..], [Report::Node(_)]), "it is back");
        let one = Nodes::of(&listed()[1..]);
        assert_eq!(one.news(&all), [Report::NodeLost { name: name() }]);
        assert_eq!(one.news(&down), [], "what was lost before is not lost again");
    }

    #[test]
    fn a_node_says_what_it_has_and_its_gpus_keep_their_ids() {
        let mut node = node("aaaaaaaa", "gpu 1", "");
        node.gpus = vec!["GPU-a".into(), "GPU-b".into()];
        node.labels = [("era.gpu.model", "NVIDIA H100 80GB"), ("era.gpu.memory", "80Gi")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        node.labels.insert("pool".into(), "h100".into());
        node.labels.insert("com.example/notes".into(), "any text at all".into());
        let nodes = Nodes::of(&[node]);
        let known = &nodes.by_id["aaaaaaaa"];
        assert_eq!(known.found.name, "gpu-1");
        assert_eq!(known.found.capacity.cpu, 4000);
        assert!((28 << 10..32 << 10).contains(&known.found.capacity.memory));
        assert_eq!(known.found.capacity.gpus.len(), 2);
        assert_eq!(known.found.capacity.gpus[0].memory, 80 << 10);
        assert_eq!(known.found.capacity.gpus[0].model.as_str(), "h100");
        let labels: Vec<&str> = known.found.labels.keys().map(String::as_str).collect();
        assert_eq!(labels, ["arch", "os", "pool"]);
        assert_eq!(nodes.gpu_ids("gpu-1", &[1, 0]), ["GPU-b", "GPU-a"]);
    }
}
