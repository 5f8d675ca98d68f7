//! `era nodes`: the machines, and who holds what of them.

use std::collections::BTreeMap;

use era_api::client::TimeRange;
use era_api::cluster::{BookingView, NodeFilter, NodeView};
use jiff::ToSpan;
use serde::Serialize;

use super::connection::Common;
use super::look::{self, Look, right};

/// What is said where there are nodes, but none that is wanted.
const NONE: &str = "No node is like that; `era nodes` lists all.\n";

/// List nodes, or show one with its GPUs and what is promised on it
#[derive(Debug, clap::Args)]
pub(crate) struct Nodes {
    /// Show this node
    #[arg(value_name = "NAME", conflicts_with = "Which")]
    name: Option<String>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    common: Common,
}

/// Which nodes are listed.
#[derive(Debug, clap::Args)]
struct Which {
    /// Of this pool
    #[arg(short, long)]
    pool: Option<String>,
    /// Of this domain; '' stands for those of none
    #[arg(short, long)]
    domain: Option<String>,
    /// In one of these states, by comma: up, cordoned, draining, lost
    #[arg(long, visible_alias = "state")]
    health: Option<String>,
    /// With a GPU of this model
    #[arg(long, value_name = "MODEL")]
    gpu_model: Option<String>,
    /// Whose name has this in it
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only those that are simulated, or with `=false` only those that are not
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    simulated: Option<bool>,
}

/// A node with its promises.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    node: NodeView,
    bookings: Vec<BookingView>,
}

impl Nodes {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.common.client()?;
        let look = self.common.look();
        let Some(name) = &self.name else {
            let Which { pool, domain, health, gpu_model, search, simulated } = self.which;
            let filter = NodeFilter {
                pool,
                domain,
                health,
                gpu_model,
                search,
                simulated,
                ..NodeFilter::default()
            };
            let some = filter != NodeFilter::default();
            let nodes = client.nodes(&filter)?;
            return look::print(self.common.output, &nodes, |nodes| {
                if nodes.is_empty() && some { NONE.to_owned() } else { render(nodes, &look) }
            });
        };
        let node = client.node(name)?;
        let from = look.now.timestamp();
        let to = from.checked_add(168.hours())?;
        let period = TimeRange { from: Some(from), to: Some(to), step_s: None };
        let bookings = client.bookings(name, &period)?;
        look::print(self.common.output, &Whole { node, bookings }, |whole| {
            render_one(&whole.node, &whole.bookings, &look)
        })
    }
}

/// What is given out of what there is.
fn share(node: &NodeView, name: &str) -> String {
    let part = |amounts: &BTreeMap<String, String>| amounts.get(name).cloned();
    match (part(&node.allocated), part(&node.capacity)) {
        (_, None) => "–".to_owned(),
        (None, Some(all)) => format!("0/{all}"),
        (Some(used), Some(all)) => format!("{used}/{all}"),
    }
}

/// A cell for each GPU: how much of it is given out.
pub(crate) fn gpu_cells(node: &NodeView) -> String {
    let cell = |allocated: f64| match allocated {
        share if share <= 0.0 => '□',
        share if share < 0.999 => '◧',
        _ => '■',
    };
    node.gpus.iter().map(|gpu| cell(gpu.allocated)).collect()
}

/// The models of a node's GPUs.
fn models(node: &NodeView) -> String {
    let mut models: Vec<&str> = node.gpus.iter().filter_map(|gpu| gpu.model.as_deref()).collect();
    models.dedup();
    models.join(",")
}

fn render(nodes: &[NodeView], look: &Look) -> String {
    if nodes.is_empty() {
        return "There are no nodes.\n".to_owned();
    }
    let mut headings = vec!["NODE", "POOL", "HEALTH", "CPU", "MEMORY", "GPUS", "MODEL", "JOBS"];
    if look.wide {
        headings.extend(["DOMAIN", "RACK", "LABELS"]);
    }
    look.rows(&headings, nodes, |node| {
        let mut name = node.name.clone();
        if node.simulated {
            name += " (simulated)";
        }
        let mut row = vec![
            name.into(),
            node.pool.clone().into(),
            node.health.clone().into(),
            right(share(node, "cpu")),
            right(share(node, "memory")),
            gpu_cells(node).into(),
            models(node).into(),
            right(node.jobs.len()),
        ];
        if look.wide {
            let labels: Vec<String> = node.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            row.extend([
                node.domain.clone().unwrap_or_default().into(),
                node.rack.clone().unwrap_or_default().into(),
                labels.join(",").into(),
            ]);
        }
        row
    })
}

fn render_one(node: &NodeView, bookings: &[BookingView], look: &Look) -> String {
    let mut text = render(std::slice::from_ref(node), look);
    if !node.gpus.is_empty() {
        let mut table = look.table(&["GPU", "MODEL", "MEMORY", "GIVEN OUT", "JOBS"]);
        for gpu in &node.gpus {
            let jobs: Vec<String> = gpu.jobs.iter().map(u64::to_string).collect();
            table.add_row(vec![
                right(gpu.index),
                gpu.model.clone().unwrap_or_default().into(),
                gpu.memory.clone().unwrap_or_default().into(),
                right(format!("{:.0} %", gpu.allocated * 100.0)),
                jobs.join(", ").into(),
            ]);
        }
        text += &format!("\n{}", look::finish(&table));
    }
    for absence in &node.maintenance {
        let (from, to) = (look.time(absence.from), look.time(absence.to));
        text += &format!("\nAway from {from} to {to}\n");
    }
    if let Some(at) = node.stop_at {
        text += &format!("\nWhat is still there at {} is told to stop\n", look.time(at));
    }
    if !bookings.is_empty() {
        let mut table = look.table(&["FROM", "TO", "WHAT", "JOB", "CPU", "MEMORY", "GPUS"]);
        for booking in bookings {
            let gpus: Vec<String> = booking.gpus.iter().map(u8::to_string).collect();
            table.add_row(vec![
                look.time(booking.from).into(),
                look.time(booking.to).into(),
                booking.kind.clone().into(),
                right(booking.job.map_or_else(String::new, |job| job.to_string())),
                right(booking.cpu_milli as f64 / 1000.0),
                right(look::bytes(booking.memory_mib << 20)),
                gpus.join(",").into(),
            ]);
        }
        text += &format!("\n{}", look::finish(&table));
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A node with two GPUs, one of them shared.
    pub(crate) fn example() -> NodeView {
        let text = r#"{
            "id": 1, "name": "node-1", "pool": "a", "domain": null, "rack": "r1",
            "labels": {"zone": "b"}, "health": "up",
            "capacity": {"cpu": "32", "memory": "256Gi", "gpu": "2"},
            "allocated": {"cpu": "4", "memory": "16Gi", "gpu": "1.5"},
            "gpus": [
                {"index": 0, "model": "h100", "memory": "80Gi", "allocated": 1.0, "jobs": [7]},
                {"index": 1, "model": "h100", "memory": "80Gi", "allocated": 0.5, "jobs": [8, 9]}
            ],
            "jobs": [7, 8, 9],
            "maintenance": [{"from": "2026-11-20T06:00:00Z", "to": "2026-11-20T08:00:00Z"}]
        }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn nodes_are_listed_with_what_is_given_out() {
        let mut simulated = example();
        simulated.name = "node-2".to_owned();
        simulated.simulated = true;
        simulated.gpus.clear();
        insta::assert_snapshot!(render(&[example(), simulated], &look::plain()));
    }

    #[test]
    fn one_node_is_shown_with_gpus_and_promises() {
        let booking = BookingView {
            job: Some(7),
            from: "2026-11-15T14:00:00Z".parse().unwrap(),
            to: "2026-11-15T16:00:00Z".parse().unwrap(),
            cpu_milli: 4500,
            memory_mib: 16_384,
            gpus: vec![0, 1],
            kind: "promise".to_owned(),
        };
        insta::assert_snapshot!(render_one(&example(), &[booking], &look::plain()));
    }
}
