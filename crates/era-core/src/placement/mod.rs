//! Where a gang goes: whether it fits in a pool during a span of time, and on which nodes it is
//! put. What fits is exact, node by node and GPU by GPU; which of the fitting nodes are taken is
//! a scorer's choice and never changes whether or when something is accepted.

mod fragmentation;

use serde::{Deserialize, Serialize};

pub use fragmentation::{Typical, fragmentation};

use crate::bid::{Request, Shape, Topology};
use crate::calendar::{Lane, PoolCalendar, Row, Seat};
use crate::cluster::{Eligibility, Purpose};
use crate::resources::{Resources, WHOLE_GPU};
use crate::units::{Name, NodeId, Time};

/// How nodes are chosen among those that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scorer {
    /// The first that fits.
    FirstFit,
    /// The one with least left.
    BestFit,
    /// As few nodes as possible, the fullest among equals.
    #[default]
    Consolidate,
    /// The one whose free GPUs become least unusable for typical work (fragmentation gradient
    /// descent).
    Fgd,
}

/// A gang to be placed in a pool during `[from, to)`.
#[derive(Clone, Copy, Debug)]
pub struct Gang<'a> {
    /// The request.
    pub request: &'a Request,
    /// Which nodes it may use.
    pub eligible: Eligibility<'a>,
    /// Start.
    pub from: Time,
    /// End.
    pub to: Time,
    /// Until when preemptible work is in the way.
    pub soft_to: Time,
}

/// How to choose.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The scorer.
    pub scorer: Scorer,
    /// Typical work, for fragmentation.
    pub typical: &'a [Typical],
}

/// Like replicas of a gang: `count` times `each`.
#[derive(Clone, Debug)]
pub struct Block {
    /// What each needs.
    pub each: Resources,
    /// How many.
    pub count: u32,
}

/// What a request is split into on nodes of `gpus_per_node` GPUs: its replicas, or for a total
/// of GPUs whole nodes and one part of a node.
pub fn blocks(request: &Request, gpus_per_node: u32) -> Vec<Block> {
    match request.shape {
        Shape::Replicas { min, .. } => vec![Block { each: request.each.clone(), count: min }],
        Shape::Gpus { total } => {
            // Where nodes have none, one that has a single GPU is asked for, in vain.
            let gpus_per_node = gpus_per_node.max(1);
            let (whole, rest) = (total / gpus_per_node, total % gpus_per_node);
            let mut blocks = Vec::with_capacity(2);
            if whole > 0 {
                blocks.push(Block { each: request.each.times(gpus_per_node), count: whole });
            }
            if rest > 0 {
                blocks.push(Block { each: request.each.times(rest), count: 1 });
            }
            blocks
        }
    }
}

impl Gang<'_> {
    /// How many replicas of `each` this node can take, at most `most`; `taken` becomes what is
    /// taken there.
    fn room(&self, lane: &Lane, each: &Resources, most: u32, taken: &mut Row) -> u32 {
        let count = lane.room(self.from, self.to, self.soft_to, each, most, taken);
        // Preemptible work makes room for a promise, not for an absence of the node.
        let queued = self.eligible.purpose == Purpose::Queue;
        if queued && lane.node.is_away(self.from, self.soft_to) { 0 } else { count }
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
        let mut taken = Row::zero(0);
        let perhaps = self.perhaps(pool, &self.request.each);
        for (index, lane) in pool.lanes.iter().enumerate() {
            if !perhaps.at(index) || !lane.admits(&self.eligible) {
                continue;
            }
            left -= self.room(lane, &self.request.each, self.per_node(left), &mut taken);
            if left == 0 {
                return true;
            }
        }
        false
    }

    fn fits_together(&self, pool: &PoolCalendar, replicas: u32, topology: Topology) -> bool {
        let mut sums: std::collections::BTreeMap<Near<'_>, u32> = Default::default();
        let mut taken = Row::zero(0);
        let perhaps = self.perhaps(pool, &self.request.each);
        for (index, lane) in pool.lanes.iter().enumerate() {
            if !perhaps.at(index) || !lane.admits(&self.eligible) {
                continue;
            }
            let count = self.room(lane, &self.request.each, self.per_node(replicas), &mut taken);
            let sum = sums.entry(near(lane, topology)).or_default();
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
            pool.lanes.iter().map(|l| near(l, same)).collect();
        places.into_iter().find(|p| self.fits_split_on(pool, |l| near(l, same) == *p))
    }

    fn fits_split_on(&self, pool: &PoolCalendar, here: impl Fn(&Lane) -> bool) -> bool {
        let blocks = blocks(self.request, pool.gpus_per_node);
        let (whole, rest) = match &blocks[..] {
            [one] if one.each.gpu == pool.gpus_per_node * WHOLE_GPU => (Some(one), None),
            [one] => (None, Some(one)),
            [whole, rest, ..] => (Some(whole), Some(rest)),
            [] => return true,
        };
        let wanted = whole.map_or(0, |w| w.count);
        let (mut found, mut rest_found) = (0, rest.is_none());
        for lane in pool.lanes.iter().filter(|l| l.admits(&self.eligible) && here(l)) {
            let taken = lane.peak(self.from, self.to, self.soft_to);
            if found < wanted && whole.is_some_and(|w| lane.count(&taken, &w.each, 1) > 0) {
                found += 1;
            } else if !rest_found && rest.is_some_and(|r| lane.count(&taken, &r.each, 1) > 0) {
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
            let outside = pool.lanes.iter().filter(|l| near(l, same) != place);
            used.extend(outside.map(|l| l.node.id));
        }
        for block in blocks(self.request, pool.gpus_per_node) {
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
        self.seat(pool, &block.each, order, fitting)
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
        Some(self.seat(pool, &block.each, order, block.count))
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
        let mut taken = Row::zero(0);
        let perhaps = self.perhaps(pool, &block.each);
        for (index, lane) in pool.lanes.iter().enumerate() {
            if !perhaps.at(index) || !lane.admits(&self.eligible) || exclude.contains(&lane.node.id)
            {
                continue;
            }
            let count = self.room(lane, &block.each, most, &mut taken);
            if count > 0 {
                options.push(Candidate::new(self, index, lane, &taken, count, block, choice));
            }
        }
        options
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
                *sums.entry(near(&pool.lanes[option.lane], *topology)).or_default() += option.count;
            }
            let tightest =
                sums.into_iter().filter(|(_, sum)| *sum >= wanted).min_by_key(|(_, sum)| *sum);
            if let Some((place, _)) = tightest {
                let here = |o: &Candidate| near(&pool.lanes[o.lane], *topology) == place;
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
    ) -> Vec<Seat> {
        let mut seats = Vec::with_capacity(wanted as usize);
        for (index, count) in order {
            let lane = &pool.lanes[index];
            let mut taken = lane.peak(self.from, self.to, self.soft_to);
            for _ in 0..count.min(wanted - seats.len() as u32) {
                let Some(gpus) = lane.choose_gpus(&taken, each) else { break };
                taken.add(&lane.take(each, gpus));
                seats.push(Seat { node: lane.node.id, gpus });
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
    fn at(&self, index: usize) -> bool {
        self.free.as_ref().is_none_or(|free| free[index].count_ones() >= self.gpus)
    }
}

/// A node that can take `count` replicas.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    lane: usize,
    count: u32,
    /// Open nodes with preemptible work in the way come last, for queue work those open to
    /// promises do.
    disturbs: bool,
    /// GPU thousandths, cores and memory left beside what is taken.
    left: (u32, u32, u32),
    /// How much less useful the free GPUs become; only for fragmentation.
    gradient: i64,
}

impl Candidate {
    fn new(
        gang: &Gang<'_>,
        index: usize,
        lane: &Lane,
        taken: &Row,
        count: u32,
        block: &Block,
        choice: Choice<'_>,
    ) -> Candidate {
        let capacity = &lane.node.capacity;
        let gpus = &taken[crate::calendar::GPU0..][..capacity.gpus.len()];
        let disturbs = match gang.eligible.purpose {
            Purpose::Queue => !lane.node.closed,
            Purpose::Promise => lane.has_soft(gang.from, gang.to),
        };
        let gradient = match choice.scorer {
            Scorer::Fgd => fragmentation::gradient(lane, taken, &block.each, choice.typical),
            _ => 0,
        };
        Candidate {
            lane: index,
            count,
            disturbs,
            left: (
                gpus.iter().map(|used| WHOLE_GPU.saturating_sub(*used)).sum(),
                capacity.cpu.saturating_sub(taken[crate::calendar::CPU]),
                capacity.memory.saturating_sub(taken[crate::calendar::MEMORY]),
            ),
            gradient,
        }
    }
}

/// A place for comparing nearness. A node without a rack or domain is near itself alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Near<'a> {
    Named(&'a Name),
    Alone(NodeId),
}

fn near(lane: &Lane, topology: Topology) -> Near<'_> {
    let name = match topology {
        Topology::Node => None,
        Topology::Rack => lane.node.rack.as_ref(),
        Topology::Domain => lane.node.domain.as_ref(),
    };
    name.map_or(Near::Alone(lane.node.id), Near::Named)
}

/// The nodes in the order in which they are filled, each with how many replicas it gets.
fn order(
    mut options: Vec<Candidate>,
    wanted: u32,
    scorer: Scorer,
    spread: bool,
) -> Vec<(usize, u32)> {
    if spread {
        return spread_out(options, wanted);
    }
    match scorer {
        Scorer::FirstFit => options.sort_by_key(|o| (o.disturbs, o.lane)),
        Scorer::BestFit => options.sort_by_key(|o| (o.disturbs, o.left, o.lane)),
        Scorer::Fgd => options.sort_by_key(|o| (o.disturbs, o.gradient, o.left, o.lane)),
        Scorer::Consolidate => return consolidate(options, wanted),
    }
    let mut left = wanted;
    let mut order = Vec::new();
    for option in options {
        if left == 0 {
            break;
        }
        let count = option.count.min(left);
        order.push((option.lane, count));
        left -= count;
    }
    order
}

/// Largest first, and what is left over on the fullest node that takes all of it.
fn consolidate(mut options: Vec<Candidate>, wanted: u32) -> Vec<(usize, u32)> {
    options.sort_by_key(|o| (o.disturbs, std::cmp::Reverse(o.count), o.left, o.lane));
    let mut order = Vec::new();
    let mut left = wanted;
    let mut rest = &options[..];
    while left > 0 && !rest.is_empty() {
        let finishing =
            rest.iter().filter(|o| o.count >= left).min_by_key(|o| (o.disturbs, o.left, o.lane));
        if let Some(last) = finishing {
            order.push((last.lane, left));
            break;
        }
        order.push((rest[0].lane, rest[0].count));
        left -= rest[0].count;
        rest = &rest[1..];
    }
    order
}

/// One replica a node, emptiest first, and again until all are seated.
fn spread_out(mut options: Vec<Candidate>, wanted: u32) -> Vec<(usize, u32)> {
    options.sort_by_key(|o| (o.disturbs, std::cmp::Reverse(o.left), o.lane));
    let mut counts: Vec<(usize, u32, u32)> = options.iter().map(|o| (o.lane, 0, o.count)).collect();
    let mut left = wanted;
    while left > 0 {
        let before = left;
        for (_, given, most) in &mut counts {
            if left > 0 && given < most {
                *given += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    counts.into_iter().filter(|(_, n, _)| *n > 0).map(|(lane, n, _)| (lane, n)).collect()
}
