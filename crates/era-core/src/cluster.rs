//! Machines: nodes, the pools of like nodes, and the domains that an administrator draws.
//!
//! This module knows what there is and who may use it. What is promised on a node over time is
//! the calendar's; which node is best is placement's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bid::{Constraints, Shape, Topology};
use crate::refusal::Refusal;
use crate::resources::{Capacity, Resource, Resources, WHOLE_GPU, show_mib, suits};
use crate::units::{Milli, Money, Name, NodeId, Time};

/// Most nodes in a cluster.
pub const NODES_MAX: usize = 1 << 17;
/// Most pools, and most domains.
pub const POOLS_MAX: usize = 1024;
/// Most maintenance windows of a node that lie ahead.
pub const WINDOWS_MAX: usize = 64;

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: NodeId,
    /// What people call it.
    pub name: Name,
    /// The pool it belongs to.
    pub pool: Name,
    /// What it has.
    pub capacity: Capacity,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Name, Name>,
    /// The rack it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<Name>,
    /// The domain it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Name>,
    /// Whether it takes new work.
    pub health: Health,
    /// Announced absences, `[from, to)`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maintenance: Vec<(Time, Time)>,
    /// While it drains: when whatever is still there has to go elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_at: Option<Time>,
    /// Kept for large or high-level jobs by its domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<NodeReservation>,
    /// In the part of its pool that is closed to promises.
    #[serde(default)]
    pub closed: bool,
}

impl Node {
    /// Whether an announced absence touches `[from, to)`.
    pub fn is_away(&self, from: Time, to: Time) -> bool {
        self.maintenance.iter().any(|(away, back)| *away < to && from < *back)
    }
}

/// Whether a node takes new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Up,
    /// What runs or is promised there stays; nothing new comes.
    Cordoned,
    /// What runs there stays, promises have moved where they could; nothing new comes.
    Draining,
    /// Cut off or dead. It may come back.
    Lost,
}

/// Base rates in micro-credits an hour: for a core, a GiB, a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// One core for an hour.
    pub cpu: Money,
    /// One GiB for an hour.
    pub memory: Money,
    /// One GPU for an hour.
    pub gpu: Money,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates { cpu: Money::credits(1), memory: Money(50_000), gpu: Money::credits(8) }
    }
}

impl Rates {
    /// The rate of a resource.
    pub fn of(&self, resource: Resource) -> Money {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
            Resource::Gpu => self.gpu,
        }
    }
}

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub name: Name,
    /// What its resources cost at density 1.
    pub rates: Rates,
    /// The share of its nodes, rounded down, that promises never use.
    pub closed_share: Milli,
    /// The largest share of it that a level may have promised at a time, for the levels named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "crate::units::numbered")]
    pub level_caps: BTreeMap<u8, Milli>,
}

impl Pool {
    /// A pool at the default rates, all of it open to promises of every level.
    pub fn new(name: Name) -> Pool {
        let (rates, closed_share) = (Rates::default(), Milli(0));
        Pool { name, rates, closed_share, level_caps: BTreeMap::new() }
    }
}

/// A named part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    pub name: Name,
    /// Part of it that is kept for large or high-level jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<DomainKeep>,
}

/// How much of a domain is kept, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainKeep {
    /// The share of its nodes, rounded up.
    pub share: Milli,
    /// Who may use them.
    pub keep: NodeReservation,
}

/// Who may use a kept node: jobs of at least so many GPUs, or users of at least this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReservation {
    /// GPUs of the whole request, in thousandths.
    pub gpus_min: u64,
    /// Level of the user.
    pub level_min: u8,
}

/// All machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    nodes: imbl::OrdMap<NodeId, Arc<Node>>,
    pools: imbl::OrdMap<Name, Arc<Pool>>,
    domains: imbl::OrdMap<Name, Arc<Domain>>,
    next_node: u32,
}

/// Whether a request is a promise or queue work: they may use different nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A promise: not on the closed part of a pool.
    Promise,
    Queue,
}

/// Everything about a request that decides which nodes it may use, whatever the time.
#[derive(Clone, Copy, Debug)]
pub struct Eligibility<'a> {
    /// What each replica needs.
    pub each: &'a Resources,
    /// Where it may go.
    pub constraints: &'a Constraints,
    /// The level of its user.
    pub level: u8,
    /// GPUs of the whole request, in thousandths.
    pub gpus: u64,
    /// Promise or queue.
    pub purpose: Purpose,
}

impl Eligibility<'_> {
    /// Whether this node may be used at all.
    pub fn allows(&self, node: &Node) -> bool {
        node.health == Health::Up && self.would_allow(node)
    }

    /// The same, leaving aside whether the node is up: for what is already promised there.
    pub fn would_allow(&self, node: &Node) -> bool {
        (self.purpose == Purpose::Queue || !node.closed)
            && node.kept.is_none_or(|k| self.gpus >= k.gpus_min || self.level >= k.level_min)
            && self.names(node)
            && node.capacity.could_hold(self.each)
    }

    /// Whether the node is where the constraints say.
    pub fn names(&self, node: &Node) -> bool {
        let c = self.constraints;
        c.pool.as_ref().is_none_or(|p| *p == node.pool)
            && c.domain.as_ref().is_none_or(|d| Some(d) == node.domain.as_ref())
            && c.labels.iter().all(|(k, v)| node.labels.get(k) == Some(v))
    }
}

impl Cluster {
    /// The nodes, in the order of joining.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, id: NodeId) -> Result<&Arc<Node>, Refusal> {
        self.nodes.get(&id).ok_or(Refusal::UnknownNode { node: id })
    }

    /// The pools, by name.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.values()
    }

    pub fn pool(&self, name: &Name) -> Result<&Arc<Pool>, Refusal> {
        self.pools.get(name).ok_or_else(|| Refusal::Unknown {
            kind: "pool".into(),
            name: name.clone(),
            known: self.pools.keys().cloned().collect(),
        })
    }

    /// The domains, by name.
    pub fn domains(&self) -> impl Iterator<Item = &Arc<Domain>> {
        self.domains.values()
    }

    pub fn domain(&self, name: &Name) -> Result<&Arc<Domain>, Refusal> {
        self.domains.get(name).ok_or_else(|| Refusal::Unknown {
            kind: "domain".into(),
            name: name.clone(),
            known: self.domains.keys().cloned().collect(),
        })
    }

    pub fn nodes_of<'a>(&'a self, pool: &'a Name) -> impl Iterator<Item = &'a Arc<Node>> {
        self.nodes.values().filter(move |n| n.pool == *pool)
    }

    /// Creates or replaces a pool.
    pub fn put_pool(&mut self, pool: Pool) -> Result<(), Refusal> {
        let new = !self.pools.contains_key(&pool.name);
        if new && self.pools.len() >= POOLS_MAX {
            return Err(Refusal::Limit { what: "pools".into(), limit: POOLS_MAX });
        }
        self.pools.insert(pool.name.clone(), Arc::new(pool));
        self.mark_nodes();
        Ok(())
    }

    /// Creates or replaces a domain.
    pub fn put_domain(&mut self, domain: Domain) -> Result<(), Refusal> {
        let new = !self.domains.contains_key(&domain.name);
        if new && self.domains.len() >= POOLS_MAX {
            return Err(Refusal::Limit { what: "domains".into(), limit: POOLS_MAX });
        }
        self.domains.insert(domain.name.clone(), Arc::new(domain));
        self.mark_nodes();
        Ok(())
    }

    /// Removes an empty domain.
    pub fn remove_domain(&mut self, name: &Name) -> Result<(), Refusal> {
        self.domain(name)?;
        if self.nodes().any(|n| n.domain.as_ref() == Some(name)) {
            return Err(Refusal::InUse {
                what: "domain".into(),
                name: name.clone(),
                hint: "move its nodes out first".into(),
            });
        }
        self.domains.remove(name);
        Ok(())
    }

    /// Adds nodes and gives them their numbers. All of them, or none.
    pub fn add_nodes(&mut self, nodes: Vec<Node>) -> Result<Vec<NodeId>, Refusal> {
        if self.nodes.len() + nodes.len() > NODES_MAX {
            return Err(Refusal::Limit { what: "nodes".into(), limit: NODES_MAX });
        }
        let mut names: BTreeSet<Name> = self.nodes().map(|n| n.name.clone()).collect();
        for node in &nodes {
            self.pool(&node.pool)?;
            if let Some(domain) = &node.domain {
                self.domain(domain)?;
            }
            if !names.insert(node.name.clone()) {
                return Err(Refusal::Exists { what: "node".into(), name: node.name.clone() });
            }
        }
        let mut ids = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            node.id = NodeId(self.next_node);
            self.next_node += 1;
            ids.push(node.id);
            self.nodes.insert(node.id, Arc::new(node));
        }
        self.mark_nodes();
        Ok(ids)
    }

    pub fn remove_node(&mut self, id: NodeId) {
        self.nodes.remove(&id);
        self.mark_nodes();
    }

    /// Changes a node in place.
    pub fn edit_node(&mut self, id: NodeId, edit: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(&id) {
            edit(Arc::make_mut(node));
        }
        self.mark_nodes();
    }

    /// Decides anew which nodes are closed to promises and which are kept: the last joined of
    /// each pool are closed, the first joined of each domain are kept, so that a node that joins
    /// changes as few as possible.
    fn mark_nodes(&mut self) {
        let mut closed: BTreeSet<NodeId> = BTreeSet::new();
        for pool in self.pools.values() {
            let ids: Vec<NodeId> = self.nodes_of(&pool.name).map(|n| n.id).collect();
            let count = pool.closed_share.of(ids.len() as u64) as usize;
            closed.extend(ids.iter().rev().take(count).copied());
        }
        let mut kept = BTreeMap::new();
        for domain in self.domains.values() {
            let Some(keep) = domain.keep else { continue };
            let members = self.nodes().filter(|n| n.domain.as_ref() == Some(&domain.name));
            let ids: Vec<NodeId> = members.map(|n| n.id).collect();
            let count = (ids.len() as u64 * u64::from(keep.share.0)).div_ceil(1000) as usize;
            kept.extend(ids.into_iter().take(count).map(|id| (id, keep.keep)));
        }
        let changed: Vec<NodeId> = self
            .nodes()
            .filter(|n| n.closed != closed.contains(&n.id) || n.kept != kept.get(&n.id).copied())
            .map(|n| n.id)
            .collect();
        for id in changed {
            if let Some(node) = self.nodes.get_mut(&id) {
                let node = Arc::make_mut(node);
                node.closed = closed.contains(&id);
                node.kept = kept.get(&id).copied();
            }
        }
    }

    /// Refuses names that nobody knows, and replicas that no node could ever hold.
    pub fn check_request(&self, ask: &Eligibility<'_>) -> Result<(), Refusal> {
        if let Some(pool) = &ask.constraints.pool {
            self.pool(pool)?;
        }
        if let Some(domain) = &ask.constraints.domain {
            self.domain(domain)?;
        }
        if let Some(model) = &ask.each.gpu_model {
            let known: BTreeSet<&Name> =
                self.nodes().flat_map(|n| n.capacity.gpus.iter().map(|g| &g.model)).collect();
            if !known.contains(model) {
                return Err(Refusal::Unknown {
                    kind: "gpu.model".into(),
                    name: model.clone(),
                    known: known.into_iter().cloned().collect(),
                });
            }
        }
        for (device, _) in ask.each.devices.iter().filter(|(_, count)| **count > 0) {
            let known: BTreeSet<&Name> =
                self.nodes().flat_map(|n| n.capacity.devices.keys()).collect();
            if !known.contains(device) {
                return Err(Refusal::Unknown {
                    kind: "device".into(),
                    name: device.clone(),
                    known: known.into_iter().cloned().collect(),
                });
            }
        }
        if self.nodes().any(|n| ask.would_allow(n)) {
            return Ok(());
        }
        let asked = ask.each.to_string();
        if self.nodes().any(|n| n.capacity.could_hold(ask.each)) {
            let best = "nodes that could are not in the pool or domain, lack a label, are kept for \
                        larger jobs or higher levels, or are closed to promises";
            return Err(Refusal::NeverFits { asked, best: best.into() });
        }
        let best = self
            .nodes()
            .max_by_key(|n| (n.capacity.gpus.len(), n.capacity.cpu, n.capacity.memory))
            .map_or("there are no nodes".to_owned(), |n| {
                let largest = n.capacity.gpus.iter().map(|g| g.memory).max().unwrap_or(0);
                let wanted = ask.each.gpus_touched() as usize;
                let split = match (1..wanted).contains(&n.capacity.gpus.len()) {
                    true => {
                        "; what one node has not is asked for as replicas, or as a total of GPUs"
                    }
                    false => "",
                };
                let gpus = match n.capacity.gpus.len() {
                    0 => "no GPUs".to_owned(),
                    gpus => format!("{gpus} GPUs of {}", show_mib(largest)),
                };
                format!(
                    "the largest node has {gpus}, {} cores and {} of memory{split}",
                    crate::resources::show_milli(n.capacity.cpu),
                    show_mib(n.capacity.memory),
                )
            });
        Err(Refusal::NeverFits { asked, best })
    }

    /// Refuses a gang that is larger than what any pool could hold of it when empty. What waits in
    /// a queue may wait for nodes that are still to join; a promise is of those that there are.
    pub fn check_gang(&self, ask: &Eligibility<'_>, shape: Shape) -> Result<(), Refusal> {
        let wanted = shape.promised();
        let per_node = match shape {
            Shape::Replicas { .. } => ask.constraints.per_node_max,
            Shape::Gpus { .. } => None,
        };
        let per_node = per_node.unwrap_or(wanted).min(wanted);
        // What lies together, in the sense of the request, within a pool.
        let mut room: BTreeMap<(&Name, Option<Near<'_>>), (u64, u64)> = BTreeMap::new();
        for node in self.nodes().filter(|n| ask.would_allow(n)) {
            let place = ask.constraints.same.map(|same| Near::of(node, same));
            let (replicas, gpus) = room.entry((&node.pool, place)).or_default();
            *replicas += u64::from(node.capacity.count(ask.each, per_node));
            *gpus += node.capacity.gpus.iter().filter(|gpu| suits(gpu, ask.each)).count() as u64;
            if *replicas >= u64::from(wanted) {
                return Ok(());
            }
        }
        let largest = room.iter().max_by_key(|(_, (replicas, gpus))| (*replicas, *gpus));
        let Some(((pool, _), (replicas, gpus))) = largest else { return Ok(()) };
        let pools: BTreeSet<&Name> = room.keys().map(|(pool, _)| *pool).collect();
        // Too many GPUs are told as such; what else is short is seen by replica.
        let gpus_asked = ask.gpus.div_ceil(u64::from(WHOLE_GPU));
        let (asked, most, each) = match gpus_asked > *gpus && *gpus > 0 {
            true => (gpus_asked, *gpus, None),
            false => (u64::from(wanted), *replicas, Some(ask.each.to_string())),
        };
        let within = self.narrowed(ask, pool, each.is_none());
        let pool = (*pool).clone();
        Err(Refusal::GangNeverFits { asked, most, each, pool, pools: pools.len(), within })
    }

    /// What a request may not use of a pool, and why.
    fn narrowed(&self, ask: &Eligibility<'_>, pool: &Name, told_of_gpus: bool) -> Vec<String> {
        let Constraints { domain, labels, same, per_node_max, .. } = ask.constraints;
        let mut within = Vec::new();
        if told_of_gpus {
            within.extend(ask.each.gpu_model.iter().map(|model| format!("of model {model}")));
            let memory = ask.each.gpu_memory.iter();
            within.extend(memory.map(|mib| format!("with at least {}", show_mib(*mib))));
        }
        within.extend(domain.iter().map(|domain| format!("in domain {domain}")));
        within.extend(labels.iter().map(|(key, value)| format!("with {key}={value}")));
        within.extend(same.map(|same| match same {
            Topology::Node => "on one node".to_owned(),
            Topology::Rack => "in one rack".to_owned(),
            Topology::Domain => "in one domain".to_owned(),
        }));
        within.extend(per_node_max.map(|most| format!("at most {most} on a node")));
        let of_pool = || self.nodes().filter(|n| n.pool == *pool && ask.names(n));
        let closed = |n: &&Arc<Node>| n.closed && ask.purpose == Purpose::Promise;
        if of_pool().any(|n| closed(&n)) {
            within.push("without the part that is closed to promises".to_owned());
        }
        if of_pool().any(|n| !closed(&n) && n.capacity.could_hold(ask.each) && !ask.would_allow(n))
        {
            within.push("without what is kept for larger jobs or higher levels".to_owned());
        }
        within
    }
}

/// A place for comparing nearness. A node without a rack or domain is near itself alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Near<'a> {
    Named(&'a Name),
    Alone(NodeId),
}

impl Near<'_> {
    pub(crate) fn of(node: &Node, topology: Topology) -> Near<'_> {
        let name = match topology {
            Topology::Node => None,
            Topology::Rack => node.rack.as_ref(),
            Topology::Domain => node.domain.as_ref(),
        };
        name.map_or(Near::Alone(node.id), Near::Named)
    }
}
