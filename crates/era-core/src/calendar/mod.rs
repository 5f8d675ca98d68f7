//! The calendar: what is promised on every node over time, and what a further promise would cost.
//!
//! All of it is derived: jobs, holds and the cluster decide what it says, and `check` builds it
//! anew to compare. It exists because asking it is fast. It knows nothing of users or values.

mod idle;
mod moment;
mod node;
mod profile;
mod slots;

use std::sync::Arc;

use idle::Idle;
pub(crate) use moment::FreeNow;
use moment::Moment;
pub use node::{Booking, BookingHolder, Layer, NodeCalendar, Seat, mask_of};
pub use profile::{COLUMNS_MAX, CPU, GPU0, Load, MEMORY, Profile, Take};
pub use slots::{CHUNK, DensitySums, LowestPrice, Pricing, Slots};

use crate::bid::{Request, Shape};
use crate::cluster::{Cluster, Health, Node, Pool};
use crate::forecast::Forecast;
use crate::market::{MarketRules, Mechanism, Weights};
use crate::resources::{PerResource, Resource, Resources};
use crate::units::{Name, NodeId, Span, Time};

/// The rules and the forecast in force, with the mechanism that they name.
pub struct Market {
    pub rules: MarketRules,
    /// The published forecast.
    pub forecast: Arc<Forecast>,
    mechanism: Box<dyn Mechanism>,
}

impl Market {
    pub fn new(rules: MarketRules, forecast: Arc<Forecast>) -> Market {
        let mechanism = rules.build();
        Market { rules, forecast, mechanism }
    }

    pub fn mechanism(&self) -> &dyn Mechanism {
        &*self.mechanism
    }

    /// What the prices of a pool depend on.
    pub fn pricing(&self, pool: &Name) -> Pricing<'_> {
        Pricing {
            rules: &self.rules,
            mechanism: &*self.mechanism,
            expected: self.forecast.of(pool),
        }
    }
}

impl PartialEq for Market {
    fn eq(&self, other: &Market) -> bool {
        self.rules == other.rules && self.forecast == other.forecast
    }
}

impl std::fmt::Debug for Market {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Market").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// One pool's part of the calendar.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolCalendar {
    pub pool: Arc<Pool>,
    /// What its units weigh in a price.
    pub weights: Weights,
    /// The calendars of its nodes, in the order of joining.
    pub nodes: Vec<Arc<NodeCalendar>>,
    /// Its price slots.
    pub slots: Arc<Slots>,
    /// Which of its GPUs are free for long.
    idle: Idle,
    /// What is free now.
    moment: Moment,
    /// GPUs of its largest node: what a total of GPUs is split by.
    pub gpus_per_node: u32,
    /// All that its nodes have.
    capacity: PerResource<u64>,
    /// Whether any of its nodes is kept for large jobs or high levels.
    pub(crate) any_kept: bool,
}

impl PoolCalendar {
    fn new(pool: Arc<Pool>, slot: Span, now: Time) -> PoolCalendar {
        let weights = Weights::of(&pool.rates);
        let slots = Arc::new(Slots::new(slot, now));
        let idle = Idle::new(slot, now);
        let moment = Moment::new(now, &[]);
        PoolCalendar {
            pool,
            weights,
            nodes: Vec::new(),
            slots,
            idle,
            moment,
            gpus_per_node: 0,
            capacity: [0; 3],
            any_kept: false,
        }
    }

    /// All that its nodes have.
    pub fn capacity(&self) -> PerResource<u64> {
        self.capacity
    }

    /// For each node, the GPUs that may be free of anything firm throughout `[from, to)`. The
    /// others are certainly not. `None` where nothing can be said.
    pub fn gpus_perhaps_free(&self, from: Time, to: Time) -> Option<Vec<u32>> {
        self.idle.free_during(from, to)
    }

    /// When each node has room for such a replica, where that is known: not before.
    pub(crate) fn frees(&self, each: &Resources) -> Option<&[Time]> {
        self.moment.frees(each)
    }

    /// The first time at which a request for GPUs alone, anywhere, has room; `None` where that is
    /// not known. Without end if it never has.
    pub(crate) fn first_room(&self, request: &Request) -> Option<Time> {
        let anywhere = request.constraints.is_empty() && self.moment.knows_all();
        if !anywhere
            || request.shape.promised() != 1 && matches!(request.shape, Shape::Replicas { .. })
        {
            return None;
        }
        let mut first = Time::MIN;
        let mut nodes = 0;
        for block in request.blocks(self.gpus_per_node) {
            // Whoever holds a larger part could hold a smaller one: each part needs one more node.
            nodes += block.count as usize;
            let mut times = self.moment.frees(&block.each)?.to_vec();
            if nodes > times.len() {
                return Some(Time::MAX);
            }
            first = first.max(*times.select_nth_unstable(nodes - 1).1);
        }
        (!self.any_kept).then_some(first)
    }

    /// What is free on each node for whoever starts at `from`, if that is now.
    pub(crate) fn free_now(&self, from: Time) -> Option<&[FreeNow]> {
        self.moment.nodes(from)
    }
}

/// The calendar of the whole cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Calendar {
    horizon: Span,
    slot: Span,
    now: Time,
    market: Arc<Market>,
    pools: Vec<Arc<PoolCalendar>>,
    /// Where a node's calendar is: pool, then place in it.
    homes: imbl::OrdMap<NodeId, (u32, u32)>,
}

impl Calendar {
    /// An empty calendar.
    pub fn new(slot: Span, horizon: Span, now: Time, market: Arc<Market>) -> Calendar {
        Calendar { horizon, slot, now, market, pools: Vec::new(), homes: imbl::OrdMap::new() }
    }

    /// The market in force.
    pub fn market(&self) -> &Arc<Market> {
        &self.market
    }

    /// The pools, by name.
    pub fn pools(&self) -> &[Arc<PoolCalendar>] {
        &self.pools
    }

    pub fn pool(&self, name: &Name) -> Option<&Arc<PoolCalendar>> {
        let index = self.pools.binary_search_by(|p| p.pool.name.cmp(name)).ok()?;
        self.pools.get(index)
    }

    fn pool_index(&self, name: &Name) -> Option<usize> {
        self.pools.binary_search_by(|p| p.pool.name.cmp(name)).ok()
    }

    /// A node's calendar.
    pub fn node(&self, node: NodeId) -> Option<&Arc<NodeCalendar>> {
        let (pool, node_calendar) = self.homes.get(&node)?;
        self.pools.get(*pool as usize)?.nodes.get(*node_calendar as usize)
    }

    /// Changes a node's calendar; `change` returns during which time firm bookings changed.
    fn edit_node<T>(
        &mut self,
        node: NodeId,
        change: impl FnOnce(&mut NodeCalendar) -> (T, Option<(Time, Time)>),
    ) -> Option<T> {
        let now = self.now;
        let (pool, place) = *self.homes.get(&node)?;
        let pool = Arc::make_mut(self.pools.get_mut(pool as usize)?);
        let node_calendar = Arc::make_mut(pool.nodes.get_mut(place as usize)?);
        let (result, changed) = change(node_calendar);
        if let Some((from, to)) = changed {
            pool.idle.refresh(place as usize, node_calendar, from, to);
        }
        pool.moment.refresh(now, place as usize, node_calendar);
        Some(result)
    }

    /// Books a seat. A node that is not there (any more) is left alone.
    pub fn book(
        &mut self,
        holder: BookingHolder,
        seat: Seat,
        each: &Resources,
        layer: Layer,
        from: Time,
        to: Time,
    ) {
        self.edit_node(seat.node, |node_calendar| {
            let take = node_calendar.take(each, seat.gpus);
            node_calendar.add(Booking { holder, from, to, layer, take });
            ((), (layer == Layer::Firm).then_some((from, to)))
        });
    }

    /// Takes a booking off a node.
    pub fn unbook(&mut self, holder: BookingHolder, node: NodeId) -> Option<Arc<Booking>> {
        let now = self.now;
        self.edit_node(node, |node_calendar| {
            let booking = node_calendar.remove(holder);
            node_calendar.forget_before(now);
            let firm = booking.as_ref().filter(|b| b.layer == Layer::Firm);
            let changed = firm.map(|b| (b.from, b.to));
            (booking, changed)
        })?
    }

    /// Counts units as promised in a pool's slots during `[from, to)`, or gives them back.
    pub fn promise(
        &mut self,
        pool: &Name,
        from: Time,
        to: Time,
        units: &PerResource<u64>,
        give_back: bool,
    ) {
        let Some(index) = self.pool_index(pool) else { return };
        let market = self.market.clone();
        let pool = Arc::make_mut(&mut self.pools[index]);
        let pricing = market.pricing(&pool.pool.name);
        Arc::make_mut(&mut pool.slots).promise(from, to, units, give_back, &pricing);
    }

    /// Lets time pass: slots that are over go, slots that come into the horizon are priced.
    pub fn advance(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        self.now = now;
        let until = now + self.horizon;
        let market = self.market.clone();
        for index in 0..self.pools.len() {
            let slots = &self.pools[index].slots;
            let covered = slots.end() > slots.slot_at(until);
            let current = slots.slot_at(now) - slots.first() < CHUNK as i64;
            // Mostly nothing changes, and then nothing that a snapshot shares is copied.
            if covered && current && !self.pools[index].moment.is_due(now) {
                continue;
            }
            let pool = Arc::make_mut(&mut self.pools[index]);
            pool.moment.advance(now, &pool.nodes);
            if covered && current {
                continue;
            }
            let capacity = open_capacity(&pool.nodes, self.slot);
            let pricing = market.pricing(&pool.pool.name);
            Arc::make_mut(&mut pool.slots).extend(now, until, &pricing, capacity);
            pool.idle.extend(now, until, &pool.nodes);
        }
    }

    /// Takes over what changed in the cluster: nodes, pools, health, maintenance. Bookings stay
    /// where they are; those of nodes that left are gone.
    pub fn follow(&mut self, cluster: &Cluster) {
        let market = self.market.clone();
        let until = self.now + self.horizon;
        let mut pools = Vec::new();
        let mut homes = imbl::OrdMap::new();
        for pool in cluster.pools() {
            let mut calendar = match self.pool(&pool.name) {
                Some(old) => PoolCalendar::clone(old),
                None => PoolCalendar::new(pool.clone(), self.slot, self.now),
            };
            calendar.pool = pool.clone();
            calendar.weights = Weights::of(&pool.rates);
            calendar.nodes = cluster.nodes_of(&pool.name).map(|node| self.node_for(node)).collect();
            for (place, node_calendar) in calendar.nodes.iter().enumerate() {
                homes.insert(node_calendar.node.id, (pools.len() as u32, place as u32));
            }
            let gpus = calendar.nodes.iter().map(|l| l.node.capacity.gpus.len()).max();
            calendar.gpus_per_node = gpus.unwrap_or(0) as u32;
            let nodes = || calendar.nodes.iter().map(|l| &l.node);
            calendar.capacity =
                Resource::ALL.map(|r| nodes().map(|node| node.capacity.amount(r)).sum());
            calendar.any_kept = nodes().any(|node| node.kept.is_some());
            let pricing = market.pricing(&pool.name);
            let slots = Arc::make_mut(&mut calendar.slots);
            slots.extend(self.now, until, &pricing, open_capacity(&calendar.nodes, self.slot));
            slots.reprice_all(&pricing, open_capacity(&calendar.nodes, self.slot));
            calendar.idle = self.idle_for(&calendar, until);
            calendar.moment = Moment::new(self.now, &calendar.nodes);
            pools.push(Arc::new(calendar));
        }
        self.pools = pools;
        self.homes = homes;
    }

    /// The index of a pool whose nodes may have changed. Health and the like leave it as it is.
    fn idle_for(&self, pool: &PoolCalendar, until: Time) -> Idle {
        if let Some(old) = self.pool(&pool.pool.name) {
            let same = old.nodes.len() == pool.nodes.len()
                && old.nodes.iter().zip(&pool.nodes).all(|(a, b)| {
                    a.node.id == b.node.id
                        && a.node.capacity == b.node.capacity
                        && a.node.maintenance == b.node.maintenance
                });
            if same {
                return old.idle.clone();
            }
        }
        let mut idle = Idle::new(self.slot, self.now);
        idle.extend(self.now, until, &pool.nodes);
        idle
    }

    /// The calendar of a node as it is now, with the bookings that it had.
    fn node_for(&self, node: &Arc<Node>) -> Arc<NodeCalendar> {
        let Some(old) = self.node(node.id) else {
            return Arc::new(NodeCalendar::new(node.clone()));
        };
        if old.node == *node {
            return old.clone();
        }
        let same_shape =
            old.node.capacity == node.capacity && old.node.maintenance == node.maintenance;
        if same_shape {
            return Arc::new(old.with_node(node.clone()));
        }
        let mut node_calendar = NodeCalendar::new(node.clone());
        let had = (old.node.capacity.gpus.len(), old.node.capacity.devices.len());
        let has = (node.capacity.gpus.len(), node.capacity.devices.len());
        // What was booked on a GPU that is gone has been taken off by whoever changed the node.
        for booking in old.bookings() {
            if booking.holder != BookingHolder::Maintenance
                && (had == has || booking.take.devices.is_empty())
            {
                node_calendar.add(Booking::clone(booking));
            }
        }
        Arc::new(node_calendar)
    }

    /// Takes over other rules or another forecast.
    pub fn reprice(&mut self, market: Arc<Market>) {
        self.market = market;
        let market = self.market.clone();
        for pool in &mut self.pools {
            let pool = Arc::make_mut(pool);
            let pricing = market.pricing(&pool.pool.name);
            let capacity = open_capacity(&pool.nodes, self.slot);
            Arc::make_mut(&mut pool.slots).reprice_all(&pricing, capacity);
        }
    }

    /// Whether two calendars say the same from `now` on.
    pub fn agrees(&self, other: &Calendar) -> Result<(), String> {
        if self.pools.len() != other.pools.len() {
            return Err("pools differ".into());
        }
        for (a, b) in self.pools.iter().zip(&other.pools) {
            let name = &a.pool.name;
            if !a.slots.agrees_from(a.slots.slot_at(self.now), &b.slots) {
                return Err(format!("slots of pool {name} differ"));
            }
            if !a.idle.agrees_from(self.now, &b.idle) {
                return Err(format!("the index of free GPUs of pool {name} differs"));
            }
            if !a.moment.is_true_of(&a.nodes) {
                return Err(format!("what is free now in pool {name} differs"));
            }
            if a.nodes.len() != b.nodes.len() {
                return Err(format!("nodes of pool {name} differ"));
            }
            for (x, y) in a.nodes.iter().zip(&b.nodes) {
                let same = x.node == y.node
                    && x.bookings() == y.bookings()
                    && x.firm.agrees_from(self.now, &y.firm)
                    && x.soft.agrees_from(self.now, &y.soft);
                if !same {
                    let (is, should) = (x.bookings(), y.bookings());
                    return Err(format!("node {} has {is:?}, should have {should:?}", x.node.id));
                }
            }
        }
        Ok(())
    }
}

/// What could be promised at a time: all that the open nodes of the pool have, less those that
/// are away for maintenance at any time of the slot.
fn open_capacity(
    node_calendars: &[Arc<NodeCalendar>],
    slot: Span,
) -> impl Fn(Resource, Time) -> u64 + use<> {
    let open: Vec<&Arc<NodeCalendar>> =
        node_calendars.iter().filter(|l| l.node.health == Health::Up && !l.node.closed).collect();
    let total: PerResource<u64> =
        Resource::ALL.map(|r| open.iter().map(|l| l.node.capacity.amount(r)).sum());
    let mut away = Vec::new();
    for node_calendar in open {
        let amounts = Resource::ALL.map(|r| node_calendar.node.capacity.amount(r));
        if !node_calendar.node.maintenance.is_empty() {
            away.push((node_calendar.node.maintenance.clone(), amounts));
        }
    }
    move |resource, time| {
        // A node that is away twice in a slot is still missed once.
        let touches = |(from, to): &(Time, Time)| *from < time + slot && time < *to;
        let gone = away.iter().filter(|(windows, _)| windows.iter().any(touches));
        total[resource as usize] - gone.map(|(_, amounts)| amounts[resource as usize]).sum::<u64>()
    }
}
