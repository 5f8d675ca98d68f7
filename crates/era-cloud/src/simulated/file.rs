//! Simulated nodes from a file, YAML or JSON:
//!
//! ```yaml
#![doc = include_str!("example.yaml")]
//! ```
//!
//! Where a count is given, the nodes are called `a100-0`, `a100-1`, and so on. `pool` and `rack`
//! become labels of these names. Tasks sleep for `task_s` seconds at most, 2 where it is not given.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use era_core::resources::{Capacity, GPUS_PER_NODE_MAX, Gpu, Resources, WHOLE_GPU};
use era_core::units::Name;
use era_spec::plain::{Misread, misread};
use era_spec::{Quantity, reading::resources};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{SLEEP_MAX, SimulatedNodes};
use crate::executor::FoundNode;

/// What such a file looks like, for help and errors.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// No file makes more nodes than this.
const NODES_MAX: usize = 100_000;
/// What a GPU is called where the file does not say.
const GPU_MODEL: &str = "simulated";
/// How much memory it then has, in MiB.
const GPU_MEMORY: u32 = 16 << 10;

/// What is wrong with a file of nodes.
#[derive(Debug, thiserror::Error)]
pub enum BadNodes {
    /// It is neither YAML nor JSON, or not `nodes` with at most `task_s` beside it: whoever wrote
    /// it meant something else, and is shown the whole.
    #[error(
        "this is no file of nodes: {0}\nIt looks like this:\n\n{example}",
        example = EXAMPLE.trim_end()
    )]
    Shape(String),
    /// A field is unknown, missing or of the wrong type.
    #[error("the file of nodes cannot be read: {0}")]
    Unreadable(String),
    /// An amount or a name is wrong.
    #[error("node `{node}`: {why}")]
    Node { node: String, why: String },
    /// There are too many.
    #[error("the file makes more than 100000 nodes: ask for fewer")]
    TooMany,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    task_s: Option<u32>,
    nodes: Vec<NodeEntry>,
}

/// The same without what is in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outline {
    #[serde(rename = "task_s")]
    _task_s: Option<IgnoredAny>,
    #[serde(rename = "nodes")]
    _nodes: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    name: String,
    count: Option<usize>,
    pool: Option<String>,
    rack: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "resources")]
    capacity: BTreeMap<String, Quantity>,
}

/// The nodes of a file.
pub fn read(text: &str) -> Result<SimulatedNodes, BadNodes> {
    // JSON is YAML too.
    let options = || serde_saphyr::Options { with_snippet: false, ..Default::default() };
    let file: File = serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let outline: Result<Outline, _> = serde_saphyr::from_str_with_options(text, options());
        outline.map_or_else(
            |bad| BadNodes::Shape(place(text, &bad)),
            |_| BadNodes::Unreadable(place(text, &error)),
        )
    })?;
    let (mut nodes, mut names) = (Vec::new(), BTreeSet::new());
    for entry in &file.nodes {
        let found = one_kind(entry)?;
        if nodes.len() + entry.count.unwrap_or(1) > NODES_MAX {
            return Err(BadNodes::TooMany);
        }
        for number in 0..entry.count.unwrap_or(1) {
            let mut node = found.clone();
            if entry.count.is_some() {
                node.name = format!("{}-{number}", entry.name);
            }
            let wrong = |why: String| BadNodes::Node { node: node.name.clone(), why };
            Name::new(&node.name).map_err(|error| wrong(error.to_string()))?;
            if !names.insert(node.name.clone()) {
                return Err(wrong("there are two of this name: give another".into()));
            }
            nodes.push(node);
        }
    }
    let sleep_max = file.task_s.map_or(SLEEP_MAX, |seconds| Duration::from_secs(seconds.into()));
    Ok(SimulatedNodes { nodes, sleep_max })
}

/// What is wrong, with its place in front.
fn place(text: &str, error: &serde_saphyr::Error) -> String {
    let error = error.without_snippet();
    let read = error.location().map(|at| (at.line(), at.column()));
    let Misread { line, column, what } = misread(text, &error.to_string(), read);
    format!("line {line}, column {column}: {what}")
}

fn one_kind(entry: &NodeEntry) -> Result<FoundNode, BadNodes> {
    let wrong = |why: String| BadNodes::Node { node: entry.name.clone(), why };
    let mut labels = entry.labels.clone();
    for (key, value) in [("pool", &entry.pool), ("rack", &entry.rack)] {
        if let Some(value) = value {
            labels.insert(key.into(), value.clone());
        }
    }
    for word in labels.iter().flat_map(|(key, value)| [key, value]) {
        Name::new(word).map_err(|error| wrong(error.to_string()))?;
    }
    let amounts: Vec<(&str, String)> =
        entry.capacity.iter().map(|(key, amount)| (key.as_str(), amount.to_string())).collect();
    let asked = Resources::parse(amounts.iter().map(|(key, text)| (*key, text.as_str())))
        .map_err(|error| wrong(error.to_string()))?;
    let capacity = capacity(&asked).map_err(|why| wrong(why.into()))?;
    Ok(FoundNode { name: entry.name.clone(), capacity, labels, address: None, simulated: true })
}

fn capacity(asked: &Resources) -> Result<Capacity, &'static str> {
    if asked.cpu == 0 || asked.memory == 0 {
        return Err("a node has processors and memory: give `cpu` and `memory`");
    }
    let whole = asked.gpu.is_multiple_of(WHOLE_GPU);
    let count = (asked.gpu / WHOLE_GPU) as usize;
    if !whole || count > GPUS_PER_NODE_MAX {
        return Err("a node has whole GPUs, and at most 32 of them");
    }
    let named = || Name::new(GPU_MODEL).map_err(|_| "a GPU has a model: give `gpu.model`");
    let model = asked.gpu_model.clone().map_or_else(named, Ok)?;
    let gpu = Gpu { model, memory: asked.gpu_memory.unwrap_or(GPU_MEMORY) };
    Ok(Capacity {
        cpu: asked.cpu,
        memory: asked.memory,
        gpus: vec![gpu; count],
        devices: asked.devices.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use era_spec::plain::names_a_type;

    const GOOD: &str = "nodes:\n- name: big\n  count: 2\n  pool: training\n  rack: r1\n  \
                        labels: { disk: ssd }\n  capacity: { cpu: 64, memory: 512Gi, gpu: 8, \
                        gpu.model: a100, gpu.memory: 80Gi }\n- name: small\n  \
                        capacity: { cpu: 500m, memory: 1Gi }\n";

    #[test]
    fn nodes_are_counted_out_and_marked_simulated() {
        let SimulatedNodes { nodes, sleep_max } = read(GOOD).expect("good");
        assert_eq!(sleep_max, SLEEP_MAX);
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["big-0", "big-1", "small"]);
        assert!(nodes.iter().all(|node| node.simulated));
        assert_eq!((nodes[0].capacity.gpus.len(), nodes[0].capacity.gpus[7].memory), (8, 80 << 10));
        assert_eq!(nodes[0].labels["pool"], "training");
        assert_eq!((nodes[2].capacity.cpu, nodes[2].capacity.gpus.len()), (500, 0));
    }

    #[test]
    fn json_is_understood_too() {
        let text =
            r#"{"task_s": 90, "nodes":[{"name":"n","capacity":{"cpu":2,"memory":"4Gi","gpu":1}}]}"#;
        let SimulatedNodes { nodes, sleep_max } = read(text).expect("good");
        assert_eq!(nodes[0].capacity.gpus[0].model.as_str(), GPU_MODEL);
        assert_eq!(sleep_max, Duration::from_secs(90));
    }

    #[test]
    fn the_example_is_a_good_one() {
        let SimulatedNodes { nodes, sleep_max } = read(EXAMPLE).expect("good");
        assert_eq!((nodes.len(), sleep_max), (4, Duration::from_secs(600)));
        assert_eq!((nodes[3].name.as_str(), nodes[3].labels["rack"].as_str()), ("a100-3", "r1"));
        assert_eq!(nodes[0].capacity.gpus[7].memory, 80 << 10);
    }

    #[test]
    fn a_file_of_something_else_is_told_what_one_of_nodes_looks_like() {
        for text in [
            "",
            "3",
            "- name: a\n  capacity: {cpu: 1, memory: 1Gi}",
            "node: []",
            "a: [",
            "nodes: 3",
        ] {
            let error = read(text).expect_err(text);
            assert!(matches!(error, BadNodes::Shape(_)), "{text:?}: {error}");
            assert!(error.to_string().ends_with(EXAMPLE.trim_end()), "{error}");
        }
        let within = read("nodes:\n- name: a").expect_err("no capacity");
        assert!(matches!(within, BadNodes::Unreadable(_)), "{within}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("nodes: 3", "nodes"),
            ("task_s: -1\nnodes: []", "-1 must not be negative"),
            ("task_s: soon\nnodes: []", "`soon` does not belong here"),
            ("nodes:\n- name: a\n  capacity: { cpu: 1, mem: 1Gi }", "did you mean `memory`?"),
            ("nodes:\n- name: a\n  capacity: { cpu: [1], memory: 1Gi }", "an amount such as 2"),
            ("nodes:\n- name: a\n  capacity: { cpu: -1, memory: 1Gi }", "negative"),
            ("nodes:\n- name: a\n  count: many\n  capacity: { cpu: 1 }", "`many`"),
            ("nodes:\n- name: a\n  capacity: { cpu: 1, memory: 1Gi }\n  rok: 1", "rok"),
            ("nodes:\n- name: a\n  capacity: { cpu: lots, memory: 1Gi }", "lots"),
            ("nodes:\n- name: a\n  capacity: { cpu: 1, memory: 1Gi, gpu: 0.5 }", "whole"),
            ("nodes:\n- name: a\n  capacity: { memory: 1Gi }", "cpu"),
            ("nodes:\n- name: 'a b'\n  capacity: { cpu: 1, memory: 1Gi }", "a b"),
            ("nodes:\n- name: a\n  count: 100001\n  capacity: { cpu: 1, memory: 1Gi }", "100000"),
            (
                "nodes:\n- name: a\n  capacity: {cpu: 1, memory: 1Gi}\n- name: a\n  capacity: \
                 {cpu: 1, memory: 1Gi}",
                "two",
            ),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(word), "{word:?} in {error}");
            assert!(!names_a_type(&error), "{error}");
        }
    }
}
