//! Nodes, pools and domains, and who holds what.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Credits;

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    pub id: u32,
    pub name: String,
    pub pool: String,
    pub domain: Option<String>,
    pub rack: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// `up`, `cordoned`, `draining` or `lost`.
    pub health: String,
    /// What it has, as resources are written.
    pub capacity: BTreeMap<String, String>,
    /// What is given out now.
    pub allocated: BTreeMap<String, String>,
    /// Its GPUs, each with who holds it.
    pub gpus: Vec<GpuView>,
    /// Jobs that hold any of it now.
    pub jobs: Vec<u64>,
    pub maintenance: Vec<Absence>,
    /// While it drains: when what is still there is told to stop and goes on elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_at: Option<Timestamp>,
    /// Whether its tasks only sleep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// Which nodes are listed. Every field narrows the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct NodeFilter {
    /// Of this pool.
    pub pool: Option<String>,
    /// Of this domain; an empty string stands for those of none.
    pub domain: Option<String>,
    /// In one of these states, by comma: `up`, `cordoned`, `draining` or `lost`.
    pub health: Option<String>,
    /// With a GPU of this model.
    pub gpu_model: Option<String>,
    /// Whose name has this in it.
    pub search: Option<String>,
    /// Whether their tasks only sleep.
    pub simulated: Option<bool>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Most items, up to 1000.
    pub limit: Option<u32>,
}

/// A GPU of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Gpu)]
pub struct GpuView {
    pub index: u8,
    pub model: Option<String>,
    /// Its memory, such as `80Gi`.
    pub memory: Option<String>,
    /// The share of it that is given out now, 0 to 1.
    pub allocated: f64,
    /// Jobs that hold it now.
    pub jobs: Vec<u64>,
}

/// An announced absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Absence {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// A change of a node; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NodeEdit {
    /// `cordon`, `drain`, `resume` or `leave`.
    pub action: Option<NodeAction>,
    /// With `drain`: when whatever still runs there is told to stop, with grace, and goes on
    /// elsewhere; a time that has passed means at once. Without it what runs may finish.
    pub stop_at: Option<Timestamp>,
    /// Its domain; an empty string takes it out.
    pub domain: Option<String>,
    /// All announced absences from now on.
    pub maintenance: Option<Vec<Absence>>,
}

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeAction {
    /// It takes nothing new; what runs or is promised there stays.
    Cordon,
    /// It takes nothing new; promises move where they can, and what runs may finish, until
    /// `stop_at` where that is given.
    Drain,
    /// It takes work again.
    Resume,
    /// It leaves for good.
    Leave,
}

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Pool)]
pub struct PoolView {
    pub name: String,
    /// Credits for a core-hour at density 1.
    pub cpu_rate: Credits,
    /// Credits for a GiB-hour at density 1.
    pub memory_rate: Credits,
    /// Credits for a GPU-hour at density 1.
    pub gpu_rate: Credits,
    /// The share of its nodes that promises never use, 0 to 1.
    pub closed_share: f64,
    /// The largest share that a level may have promised at a time, by level.
    #[serde(default)]
    pub level_caps: BTreeMap<u8, f64>,
    /// How many nodes it has. Ignored when a pool is put.
    #[serde(default)]
    pub nodes: u32,
}

/// A named part of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Domain)]
pub struct DomainView {
    pub name: String,
    /// The share of its nodes that is kept for large or high-level jobs, 0 to 1.
    #[serde(default)]
    pub keep_share: f64,
    /// For jobs of at least so many GPUs.
    #[serde(default)]
    pub keep_gpus_min: u64,
    /// Or users of at least this level.
    #[serde(default)]
    pub keep_level_min: u8,
    /// Its nodes, by name. Ignored when a domain is put: nodes name their domain.
    #[serde(default)]
    pub nodes: Vec<String>,
}

/// A promise on a node, as a Gantt chart shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Booking)]
pub struct BookingView {
    /// The job, where the caller may see it.
    pub job: Option<u64>,
    pub from: Timestamp,
    pub to: Timestamp,
    /// Thousandths of a core.
    pub cpu_milli: u64,
    pub memory_mib: u64,
    pub gpus: Vec<u8>,
    /// `promise`, `running`, `hold` or `maintenance`.
    pub kind: String,
}

/// Utilisation by the platform's formula.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Utilisation {
    /// cpu·ratio + gpu·ratio + memory·ratio, a mean over machines, 0 to 1.
    pub now: f64,
    pub cpu: f64,
    pub memory: f64,
    pub gpu: f64,
    /// Over time, where a period was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<UtilisationPoint>,
}

/// Utilisation in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UtilisationPoint {
    pub from: Timestamp,
    /// By the formula.
    pub value: f64,
}
