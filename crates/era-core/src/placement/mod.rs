//! Where a gang goes: whether it fits in a pool during a span of time, and on which nodes it is
//! put. What fits is exact, node by node and GPU by GPU; which of the fitting nodes are taken is
//! a scorer's choice and never changes whether or when something is accepted.

mod fragmentation;
mod order;
mod score;

use serde::{Deserialize, Serialize};

pub use fragmentation::Typical;
use order::{Candidate, order};
use score::{Left, Scores, Seating};

use crate::bid::{Block, Request, Shape, Topology};
use crate::calendar::{CPU, GPU0, Load, MEMORY, NodeCalendar, PoolCalendar, Seat};
use crate::cluster::{Eligibility, Near, Purpose};
use crate::resources::{Resources, WHOLE_GPU};
use crate::units::{NodeId, Time};

/// How nodes are chosen among those that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scorer {
    /// The first that fits.
    FirstFit,
    /// The one with least left: cores and GPUs, each as a share of what the largest node has.
    BestFit,
    /// As few nodes as possible, the fullest among equals.
    #[default]
    Consolidate,
    /// The one whose free GPUs become least unusable for typical work (fragmentation gradient
    /// descent).
    Fgd,
    /// The same, and with an eye to cores and memory: GPUs that typical work could not fill
    /// because these run out first count as lost too.
    LeastStranded,
}

/// A gang to be placed in a pool during `[from, to)`.
#[derive(Clone, Copy, Debug)]
pub struct Gang<'a> {
    pub request: &'a Request,
    /// Which nodes it may use.
    pub eligible: Eligibility<'a>,
    pub from: Time,
    pub to: Time,
    /// Until when preemptible work is in the way.
    pub soft_to: Time,
}

/// How to choose.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    pub scorer: Scorer,
    /// Typical work, for fragmentation.
    pub typical: &'a [Typical],
}

impl Gang<'_> {
    /// How many replicas of `each` this node can take, at most `most`; `taken` becomes what is
    /// taken there.
    fn room(
        &self,
        node_calendar: &NodeCalendar,
        each: &Resources,
        most: u32,
        taken: &mut Load,
    ) -> u32 {
        let count = node_calendar.room(self.from, self.to, self.soft_to, each, most, taken);
        // Preemptible work makes room for a promise, not for an absence of the node.
        let queued = self.eligible.purpose == Purpose::Queue;
        if queued && node_calendar.node.is_away(self.from, self.soft_to) { 0 } else { count }
    }

    /// The nodes that may have enough whole GPUs free; all of them where a share is asked for.
    fn perhaps(&self, pool: &PoolCalendar, each: &Resources) -> Perhaps {
        match each.whole_gpus() {
            Some(gpus) if gpus > 0 => {
                Perhaps { free: pool.gpus_perhaps_free(self.from, self.to), gpus }
            }
            _ => Perhaps { free: None, gpus: 0 },
        }
    }

    fn per_node(&self, most: u32) -> u32 {
        self.request.constraints.per_node_max.map_or(most, |cap| cap.min(most))
    }

    /// Whether the pool has room for it.
    pub fn fits(&self, pool: &PoolCalendar) -> bool {
        match self.request.shape {
            Shape::Replicas { min, .. } => match self.request.constraints.same {
                None => self.fits_anywhere(pool, min),
                Some(topology) => self.fits_together(pool, min, topology),
            },
            Shape::Gpus { .. } => self.fits_split(pool),
        }
    }

    fn fits_anywhere(&self, pool: &PoolCalendar, replicas: u32) -> bool {
        let mut left = replicas;
        let mut taken = Load::zero(0);
        let perhaps = self.perhaps(pool, &self.request.each);
        for (index, node_calendar) in pool.nodes.iter().enumerate() {
            if !perhaps.at(index) || !node_calendar.admits(&self.eligible) {
                continue;
            }
            left -= self.room(node_calendar, &self.request.each, self.per_node(left), &mut taken);
            if left == 0 {
                return true;
            }
        }
        false
    }

    fn fits_together(&self, pool: &PoolCalendar, replicas: u32, topology: Topology) -> bool {
        let mut sums: std::collections::BTreeMap<Near<'_>, u32> = Default::default();
        let mut taken = Load::zero(0);
        let perhaps = self.perhaps(pool, &self.request.each);
        for (index, node_calendar) in pool.nodes.iter().enumerate() {
            if !perhaps.at(index) || !node_calendar.admits(&self.eligible) {
                continue;
            }
            let count =
                self.room(node_calendar, &self.request.each, self.per_node(replicas), &mut taken);
            let sum = sums.entry(near(node_calendar, topology)).or_default();
            *sum += count;
            if *sum >= replicas {
                return true;
            }
        }
        false
    }

    /// Whole nodes and one part of another node.
    fn fits_split(&self, pool: &PoolCalendar) -> bool {
        match self.request.constraints.same {
            None => self.fits_split_on(pool, |_| true),
            Some(topology) => self.place_of_split(pool, topology).is_some(),
        }
    }

    /// A place that holds a whole total of GPUs.
    fn place_of_split<'a>(&self, pool: &'a PoolCalendar, same: Topology) -> Option<Near<'a>> {
        let places: std::collections::BTreeSet<Near<'a>> =
            pool.nodes.iter().map(|l| near(l, same)).collect();
        places.into_iter().find(|p| self.fits_split_on(pool, |l| near(l, same) == *p))
    }

    fn fits_split_on(&self, pool: &PoolCalendar, here: impl Fn(&NodeCalendar) -> bool) -> bool {
        let blocks = self.request.blocks(pool.gpus_per_node);
        let (whole, rest) = match &blocks[..] {
            [one] if one.each.gpu == pool.gpus_per_node * WHOLE_GPU => (Some(one), None),
            [one] => (None, Some(one)),
            [whole, rest, ..] => (Some(whole), Some(rest)),
            [] => return true,
        };
        let wanted = whole.map_or(0, |w| w.count);
        let (mut found, mut rest_found) = (0, rest.is_none());
        for node_calendar in pool.nodes.iter().filter(|l| l.admits(&self.eligible) && here(l)) {
            let taken = node_calendar.peak(self.from, self.to, self.soft_to);
            if found < wanted && whole.is_some_and(|w| node_calendar.count(&taken, &w.each, 1) > 0)
            {
                found += 1;
            } else if !rest_found
                && rest.is_some_and(|r| node_calendar.count(&taken, &r.each, 1) > 0)
            {
                rest_found = true;
            }
            if found == wanted && rest_found {
                return true;
            }
        }
        false
    }

    /// Chooses seats for the whole gang, or `None` if it does not fit.
    pub fn place(&self, pool: &PoolCalendar, choice: Choice<'_>) -> Option<Vec<Seat>> {
        let mut seats = Vec::new();
        let mut used: Vec<NodeId> = Vec::new();
        let distinct = matches!(self.request.shape, Shape::Gpus { .. });
        if let (true, Some(same)) = (distinct, self.request.constraints.same) {
            // Its parts are placed one by one, so the place that holds all of them comes first.
            let place = self.place_of_split(pool, same)?;
            let outside = pool.nodes.iter().filter(|l| near(l, same) != place);
            used.extend(outside.map(|l| l.node.id));
        }
        for block in self.request.blocks(pool.gpus_per_node) {
            let exclude = if distinct { &used[..] } else { &[] };
            let spans_nodes = distinct && !seats.is_empty();
            let placed = self.place_block(pool, &block, exclude, spans_nodes, choice)?;
            used.extend(placed.iter().map(|s| s.node));
            seats.extend(placed);
        }
        Some(seats)
    }

    /// Chooses seats for up to `count` more replicas: growth, or a single one.
    pub fn place_some(&self, pool: &PoolCalendar, count: u32, choice: Choice<'_>) -> Vec<Seat> {
        let block = Block { each: self.request.each.clone(), count };
        let options = self.options(pool, &block, &[], choice);
        let fitting = options.iter().map(|o| o.count).sum::<u32>().min(count);
        let order = order(options, fitting, choice.scorer, self.request.constraints.spread);
        self.seat(pool, &block.each, order, fitting, choice)
    }

    fn place_block(
        &self,
        pool: &PoolCalendar,
        block: &Block,
        exclude: &[NodeId],
        spans_nodes: bool,
        choice: Choice<'_>,
    ) -> Option<Vec<Seat>> {
        let options = self.options(pool, block, exclude, choice);
        let options = self.nearest(pool, options, block.count, choice.scorer)?;
        if options.iter().map(|o| u64::from(o.count)).sum::<u64>() < u64::from(block.count) {
            return None;
        }
        // A gang that spans nodes is as slow as its slowest rank: what is left over of whole
        // nodes goes where it has the fewest neighbours.
        let lonely = spans_nodes && choice.scorer == Scorer::Consolidate;
        let spread = self.request.constraints.spread || lonely;
        let order = order(options, block.count, choice.scorer, spread);
        Some(self.seat(pool, &block.each, order, block.count, choice))
    }

    /// Every node that can take at least one replica.
    fn options(
        &self,
        pool: &PoolCalendar,
        block: &Block,
        exclude: &[NodeId],
        choice: Choice<'_>,
    ) -> Vec<Candidate> {
        let most = match self.request.shape {
            Shape::Gpus { .. } => 1,
            Shape::Replicas { .. } => self.per_node(block.count),
        };
        let mut options = Vec::new();
        let mut taken = Load::zero(0);
        let mut scores = Scores::new(pool, &block.each, choice);
        let now = pool.free_now(self.from).filter(|_| self.soft_to > self.from);
        let exact = block.each.is_plain() && scores.goes_by_sums();
        let perhaps = if now.is_some() { Perhaps::ALL } else { self.perhaps(pool, &block.each) };
        let frees = pool.frees(&block.each).filter(|_| self.soft_to > self.from);
        for (index, node_calendar) in pool.nodes.iter().enumerate() {
            let free = now.map(|nodes| &nodes[index]);
            let fitting = free.map_or(most, |free| free.count(&block.each, most));
            if fitting == 0
                || frees.is_some_and(|times| times[index] > self.from)
                || !perhaps.at(index)
                || !node_calendar.admits(&self.eligible)
                || exclude.contains(&node_calendar.node.id)
            {
                continue;
            }
            if let Some(free) = free.filter(|free| exact && free.steady) {
                let (disturbs, left) =
                    (self.disturbs(node_calendar), (free.gpu, free.cpu, free.memory));
                let score = scores.of_left(left);
                options.push(Candidate { node: index, count: fitting, disturbs, left, score });
                continue;
            }
            let count = self.room(node_calendar, &block.each, most, &mut taken);
            if count > 0 {
                let (disturbs, left) = (self.disturbs(node_calendar), left(node_calendar, &taken));
                let score = scores.of(node_calendar, &taken, left);
                options.push(Candidate { node: index, count, disturbs, left, score });
            }
        }
        options
    }

    /// Whether others would have to make room there, now or later.
    fn disturbs(&self, node_calendar: &NodeCalendar) -> bool {
        match self.eligible.purpose {
            Purpose::Queue => !node_calendar.node.closed,
            Purpose::Promise => node_calendar.has_soft(self.from, self.to),
        }
    }

    /// Keeps the nodes of the nearest topology that holds the whole gang: a rack, then a domain,
    /// then anywhere; the tightest one that does. `None` where a demanded topology cannot.
    fn nearest(
        &self,
        pool: &PoolCalendar,
        options: Vec<Candidate>,
        wanted: u32,
        scorer: Scorer,
    ) -> Option<Vec<Candidate>> {
        let demanded = self.request.constraints.same;
        let one_node_does = options.iter().any(|o| o.count >= wanted);
        if demanded.is_none()
            && (one_node_does || scorer == Scorer::FirstFit || self.request.constraints.spread)
        {
            return Some(options);
        }
        let levels = match demanded {
            Some(Topology::Node) => &[Topology::Node][..],
            Some(Topology::Rack) => &[Topology::Rack],
            Some(Topology::Domain) => &[Topology::Domain],
            None => &[Topology::Rack, Topology::Domain],
        };
        for topology in levels {
            let mut sums: std::collections::BTreeMap<Near<'_>, u32> = Default::default();
            for option in &options {
                *sums.entry(near(&pool.nodes[option.node], *topology)).or_default() += option.count;
            }
            let tightest =
                sums.into_iter().filter(|(_, sum)| *sum >= wanted).min_by_key(|(_, sum)| *sum);
            if let Some((place, _)) = tightest {
                let here = |o: &Candidate| near(&pool.nodes[o.node], *topology) == place;
                return Some(options.iter().filter(|o| here(o)).copied().collect());
            }
        }
        demanded.is_none().then_some(options)
    }

    /// Seats replicas on the chosen nodes, GPU by GPU.
    fn seat(
        &self,
        pool: &PoolCalendar,
        each: &Resources,
        order: Vec<(usize, u32)>,
        wanted: u32,
        choice: Choice<'_>,
    ) -> Vec<Seat> {
        let seating = Seating::new(choice);
        let mut seats = Vec::with_capacity(wanted as usize);
        for (index, count) in order {
            let node_calendar = &pool.nodes[index];
            let mut taken = node_calendar.peak(self.from, self.to, self.soft_to);
            for _ in 0..count.min(wanted - seats.len() as u32) {
                let Some(gpus) = seating.gpus(node_calendar, &taken, each) else { break };
                taken.add(&node_calendar.take(each, gpus));
                seats.push(Seat { node: node_calendar.node.id, gpus });
            }
        }
        debug_assert_eq!(seats.len(), wanted as usize, "what was counted must also be seated");
        seats
    }
}

/// Which nodes are worth a look.
struct Perhaps {
    free: Option<Vec<u32>>,
    gpus: u32,
}

impl Perhaps {
    const ALL: Perhaps = Perhaps { free: None, gpus: 0 };

    fn at(&self, index: usize) -> bool {
        self.free.as_ref().is_none_or(|free| free[index].count_ones() >= self.gpus)
    }
}

/// What a node has beside what is taken.
fn left(node_calendar: &NodeCalendar, taken: &Load) -> Left {
    let capacity = &node_calendar.node.capacity;
    let gpus = &taken[GPU0..GPU0 + capacity.gpus.len()];
    (
        gpus.iter().map(|used| WHOLE_GPU.saturating_sub(*used)).sum(),
        capacity.cpu.saturating_sub(taken[CPU]),
        capacity.memory.saturating_sub(taken[MEMORY]),
    )
}

fn near(node_calendar: &NodeCalendar, topology: Topology) -> Near<'_> {
    Near::of(&node_calendar.node, topology)
}
