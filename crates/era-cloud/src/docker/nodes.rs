//! Nodes as an engine describes them become nodes as the scheduler knows them, and a change
//! between two looks becomes news.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use era_core::resources::{Capacity, GPUS_PER_NODE_MAX, Gpu};
use era_core::units::Name;
use serde::{Deserialize, Serialize};

use super::instance::EngineNode;
use crate::discover;
use crate::executor::{ExecutorReport, FoundNode};

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

/// What a server that starts anew must know of nodes, by their ids: what they were called, so that
/// none is renamed because another one left, and which of them the engine had drained, so that
/// only its own drains end with its word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered(BTreeMap<String, EarlierNode>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EarlierNode {
    name: String,
    drained: bool,
}

impl Remembered {
    /// What was kept; nothing where nothing was.
    pub(super) fn read(path: &Path) -> io::Result<Remembered> {
        match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Remembered::default()),
            Err(error) => Err(error),
        }
    }

    /// Keeps it, whole.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(self).map_err(io::Error::other)?)?;
        std::fs::rename(&new, path)
    }
}

impl Nodes {
    /// What a look shows.
    pub(super) fn of(listed: &[EngineNode], remembered: &Remembered) -> Nodes {
        let names = names(listed, remembered);
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

    fn named(&self, name: &str) -> Option<(&str, &Known)> {
        let found = self.by_id.iter().find(|(_, known)| known.found.name == name);
        found.map(|(id, known)| (id.as_str(), known))
    }

    /// The engine's id of the node of this name.
    pub(super) fn id(&self, name: &str) -> Option<&str> {
        self.named(name).map(|(id, _)| id)
    }

    /// Whether a node answers.
    pub(super) fn is_ready(&self, name: &str) -> bool {
        self.named(name).is_some_and(|(_, known)| known.ready)
    }

    /// The ids of these GPUs of a node, as the NVIDIA runtime reads them; `None` unless all of them
    /// are known. Their numbers would not do: a runtime counts them in an order of its own.
    pub(super) fn gpu_ids(&self, name: &str, gpus: &[u8]) -> Option<Vec<String>> {
        if gpus.is_empty() {
            return Some(Vec::new());
        }
        let (_, known) = self.named(name)?;
        gpus.iter().map(|gpu| known.gpus.get(usize::from(*gpu)).cloned()).collect()
    }

    /// Reports for the difference between this listing of nodes and the one before it; without one,
    /// for all nodes. Losses come first: a lost node may have had the name of a new one.
    pub(super) fn news(
        &self,
        before: Option<&Nodes>,
        remembered: &Remembered,
    ) -> Vec<ExecutorReport> {
        let mut news = match before {
            Some(before) => self.losses(before),
            None => {
                let ready = self.by_id.values().filter(|known| known.ready);
                let names = ready.map(|known| known.found.name.clone()).collect();
                vec![ExecutorReport::NodesAre { names }]
            }
        };
        for (id, now) in self.by_id.iter().filter(|(_, known)| known.ready) {
            let name = now.found.name.clone();
            let was = before.and_then(|before| before.by_id.get(id));
            let was = was.filter(|was| was.ready && was.found.name == name);
            if was.is_none_or(|was| was.found != now.found) {
                news.push(ExecutorReport::Node(now.found.clone()));
            }
            let drained = match was {
                Some(was) => !was.active,
                None => remembered.0.get(id).is_some_and(|was| was.drained && was.name == name),
            };
            // One that appears drained is told to be, whatever was told of it before it went.
            match (drained, now.active) {
                (_, false) if was.is_none_or(|was| was.active) => {
                    news.push(ExecutorReport::NodeDrained { name });
                }
                (true, true) => news.push(ExecutorReport::NodeResumed { name }),
                _ => {}
            }
        }
        news
    }

    /// The names under which nobody answers any more who did before.
    fn losses(&self, before: &Nodes) -> Vec<ExecutorReport> {
        let there = |id: &str, was: &Known| {
            let now = self.by_id.get(id).filter(|now| now.ready);
            now.is_some_and(|now| now.found.name == was.found.name)
        };
        let lost = before.by_id.iter().filter(|(id, was)| was.ready && !there(id, was));
        lost.map(|(_, was)| ExecutorReport::NodeLost { name: was.found.name.clone() }).collect()
    }

    /// What a server that starts anew must know. That a node was drained is known until its resume
    /// was told at an earlier look: whoever dies over telling it tells it again.
    pub(super) fn remembered(&self, before: Option<&Nodes>, kept: &Remembered) -> Remembered {
        let was = |(id, now): (&String, &Known)| {
            let drained = match before {
                Some(before) => before.by_id.get(id).is_some_and(|was| !was.active),
                None => kept.0.get(id).is_some_and(|was| was.drained),
            };
            let was = EarlierNode { name: now.found.name.clone(), drained: drained || !now.active };
            (id.clone(), was)
        };
        Remembered(self.by_id.iter().map(was).collect())
    }
}

/// What each node is called: as its administrator says; else as it was called before, for as long
/// as the engine knows it; else as its system is. Of several that are called alike the oldest keeps
/// the name, and the others add a part of their id.
fn names(listed: &[EngineNode], remembered: &Remembered) -> HashMap<String, String> {
    let mut by_age: Vec<&EngineNode> = listed.iter().collect();
    by_age.sort_by(|a, b| (&a.since, &a.id).cmp(&(&b.since, &b.id)));
    let longer = |name: &str, id: &str| format!("{name}-{}", &id[..id.len().min(6)]);
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = HashMap::new();
    for node in &by_age {
        let Some(was) = remembered.0.get(&node.id) else { continue };
        let said = node.labels.get(NAME_LABEL).map(|said| discover::node_name(said));
        let stays = said.is_none_or(|said| was.name == said || was.name == longer(&said, &node.id));
        if stays && taken.insert(was.name.clone()) {
            names.insert(node.id.clone(), was.name.clone());
        }
    }
    for node in by_age {
        if names.contains_key(&node.id) {
            continue;
        }
        let wanted = node.labels.get(NAME_LABEL).unwrap_or(&node.host);
        let mut name = discover::node_name(wanted);
        if !taken.insert(name.clone()) {
            name = longer(&name, &node.id);
            taken.insert(name.clone());
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
    FoundNode { name, capacity, labels, address: None, simulated: false }
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

    /// A look at these, by whoever remembers nothing.
    fn look(listed: &[EngineNode]) -> Nodes {
        Nodes::of(listed, &Remembered::default())
    }

    /// What is told of these after the look before, by whoever remembers nothing else.
    fn told(now: &Nodes, before: &Nodes) -> Vec<String> {
        now.news(Some(before), &Remembered::default()).iter().map(word).collect()
    }

    fn word(report: &ExecutorReport) -> String {
        match report {
            ExecutorReport::Node(node) => format!("{} is there", node.name),
            ExecutorReport::NodeLost { name } => format!("{name} is lost"),
            ExecutorReport::NodeDrained { name } => format!("{name} is drained"),
            ExecutorReport::NodeResumed { name } => format!("{name} is resumed"),
            ExecutorReport::NodesAre { names } => format!("there are: {}", names.join(", ")),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn of_nodes_that_are_called_alike_the_oldest_keeps_the_name() {
        let nodes = look(&listed());
        assert_eq!(nodes.id("vm"), Some("aaaaaaaa"));
        assert_eq!(nodes.id("vm-bbbbbb"), Some("bbbbbbbb"));
    }

    #[test]
    fn nodes_that_join_drain_go_down_and_leave_are_told_once() {
        let all = look(&listed());
        let both = ["vm is there", "vm-bbbbbb is there"];
        assert_eq!(told(&all, &Nodes::default()), both);
        assert!(told(&all, &all).is_empty());
        let mut drained = listed();
        drained[0].active = false;
        let drained = look(&drained);
        assert_eq!(told(&drained, &all), ["vm-bbbbbb is drained"]);
        assert!(told(&drained, &drained).is_empty());
        assert_eq!(told(&all, &drained), ["vm-bbbbbb is resumed"]);
        let mut down = listed();
        down[0].ready = false;
        let down = look(&down);
        assert_eq!(told(&down, &all), ["vm-bbbbbb is lost"]);
        assert!(told(&down, &down).is_empty());
        assert_eq!(told(&all, &down), ["vm-bbbbbb is there"], "it is back");
        let one = look(&listed()[1..]);
        assert_eq!(told(&one, &all), ["vm-bbbbbb is lost"]);
        assert!(told(&one, &down).is_empty(), "what was lost before is not lost again");
    }

    #[test]
    fn a_drained_node_that_restarts_comes_back_drained() {
        let mut drained = listed();
        drained[0].active = false;
        let mut down = drained.clone();
        down[0].ready = false;
        let (drained, down) = (look(&drained), look(&down));
        assert_eq!(told(&down, &drained), ["vm-bbbbbb is lost"]);
        assert_eq!(told(&drained, &down), ["vm-bbbbbb is there", "vm-bbbbbb is drained"]);
        let both = told(&drained, &Nodes::default());
        assert_eq!(both, ["vm is there", "vm-bbbbbb is there", "vm-bbbbbb is drained"]);
    }

    #[test]
    fn a_node_that_is_renamed_is_lost_under_its_old_name_first() {
        let all = look(&listed());
        let kept = all.remembered(None, &Remembered::default());
        let mut renamed = listed();
        renamed[1].labels.insert(NAME_LABEL.into(), "gpu-1".into());
        let renamed = Nodes::of(&renamed, &kept);
        assert_eq!(told(&renamed, &all), ["vm is lost", "gpu-1 is there"]);
        assert_eq!(renamed.id("vm-bbbbbb"), Some("bbbbbbbb"), "no other name changes for that");
    }

    #[test]
    fn a_replacement_keeps_the_name_that_it_was_given_when_the_old_one_is_removed() {
        let mut left = listed();
        left[1].ready = false;
        let left = look(&left);
        let kept = left.remembered(None, &Remembered::default());
        let removed = Nodes::of(&listed()[..1], &kept);
        assert!(told(&removed, &left).is_empty());
        assert_eq!(removed.id("vm-bbbbbb"), Some("bbbbbbbb"));
        // Nor does one that starts anew rename it, as long as it remembers.
        let fresh = look(&listed()[..1]);
        assert_eq!(fresh.id("vm"), Some("bbbbbbbb"));
        // Where one machine takes the name of another, the other is lost first.
        assert_eq!(told(&fresh, &look(&listed()[1..])), ["vm is lost", "vm is there"]);
    }

    #[test]
    fn the_first_look_tells_all_there_are_and_what_was_resumed_since() {
        let mut drained = listed();
        drained[0].active = false;
        let drained = look(&drained);
        let kept = drained.remembered(None, &Remembered::default());
        let first = |listed: &[EngineNode]| -> Vec<String> {
            Nodes::of(listed, &kept).news(None, &kept).iter().map(word).collect()
        };
        let all = [
            "there are: vm, vm-bbbbbb",
            "vm is there",
            "vm-bbbbbb is there",
            "vm-bbbbbb is resumed",
        ];
        assert_eq!(first(&listed()), all);
        assert_eq!(first(&listed()[1..]), ["there are: vm", "vm is there"]);
        // Whoever died over telling that it was resumed tells it again.
        let all = look(&listed());
        let still = all.remembered(Some(&drained), &kept);
        assert!(still.0["bbbbbbbb"].drained);
        assert!(!all.remembered(Some(&all), &still).0["bbbbbbbb"].drained);
    }

    #[test]
    fn what_is_remembered_of_nodes_is_kept_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("docker-nodes");
        assert_eq!(Remembered::read(&path).expect("nothing"), Remembered::default());
        let kept = look(&listed()).remembered(None, &Remembered::default());
        kept.write(&path).expect("written");
        assert_eq!(Remembered::read(&path).expect("read"), kept);
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
        let nodes = look(&[node]);
        let known = &nodes.by_id["aaaaaaaa"];
        assert_eq!(known.found.name, "gpu-1");
        assert_eq!(known.found.capacity.cpu, 4000);
        assert!((28 << 10..32 << 10).contains(&known.found.capacity.memory));
        assert_eq!(known.found.capacity.gpus.len(), 2);
        assert_eq!(known.found.capacity.gpus[0].memory, 80 << 10);
        assert_eq!(known.found.capacity.gpus[0].model.as_str(), "h100");
        let labels: Vec<&str> = known.found.labels.keys().map(String::as_str).collect();
        assert_eq!(labels, ["arch", "os", "pool"]);
        let ids = |name: &str, gpus: &[u8]| nodes.gpu_ids(name, gpus).map(|ids| ids.join(" "));
        assert_eq!(ids("gpu-1", &[1, 0]).as_deref(), Some("GPU-b GPU-a"));
        assert_eq!(ids("gpu-1", &[2]), None, "no number stands for one that is not known");
        assert_eq!(ids("gpu-2", &[0]), None);
        assert_eq!(ids("gpu-2", &[]).as_deref(), Some(""));
    }
}
