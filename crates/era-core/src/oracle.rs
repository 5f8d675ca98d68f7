//! The naive oracle: the paper's pseudo-code, written plainly, to compare the core with.
//!
//! Every start, every slot, every unit and every node is looked at, one after the other. What is
//! promised is summed up from jobs and holds, what is free is read off a node's bookings at every
//! instant at which one begins, and a replica fits when it can be put down GPU by GPU. Nothing
//! here knows the search, the calendar's profiles or its prices, and nothing is left out early.
//!
//! It answers for bids of one request (like replicas, or a total of GPUs) and knows neither
//! quotas nor caps on levels. It does not rearrange: where it finds no room, the core may still.

use std::collections::BTreeMap;

use crate::bid::{Bid, Request, Shape, Topology, Value};
use crate::calendar::{Booking, BookingHolder, GPU0, Layer, NodeCalendar};
use crate::cluster::{Health, Node};
use crate::forecast::Curve;
use crate::market::{MechanismChoice, SlotView};
use crate::resources::{Resource, Resources};
use crate::state::State;
use crate::units::{Milli, Money, Name, NodeId, Span, Time};

/// What the oracle says to a bid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OracleAnswer {
    Accept {
        /// For how much.
        price: Money,
        start: Time,
        pool: Name,
    },
    /// There is room, but the best start costs more than it is worth.
    TooDear {
        /// What it costs.
        price: Money,
    },
    /// There is no start with room, or the bid is not of one request.
    NoRoom,
}

/// An exact price: micro-credits times this.
const RAW_PER_MICRO: u128 = 1000 * 3_600_000 * COMMON;
/// A multiple of the thousandths in a core or GPU, and of the MiB in a GiB.
const COMMON: u128 = 128_000;

/// What a bid of one request gets at `now`.
pub fn quote(state: &State, bid: &Bid, now: Time) -> OracleAnswer {
    let now = now.max(state.now());
    let [alternative] = &bid.one_of[..] else { return OracleAnswer::NoRoom };
    let [request] = &alternative.all_of[..] else { return OracleAnswer::NoRoom };
    let level = state.accounts().user(bid.user).map_or(0, |user| user.level);
    let mut best: Option<(i128, u128, Time, Name)> = None;
    for pool in state.cluster().pools() {
        let mut prices = Prices::new(state, &pool.name, request);
        for start in starts(state, bid, request, now) {
            if !fits(state, &pool.name, request, level, start, now) {
                continue;
            }
            let raw = prices.of_run(start, start + request.duration);
            let worth = bid.value.at(start + request.duration);
            let gain = i128::from(worth.0) * RAW_PER_MICRO as i128 - raw as i128;
            // The more it leaves of the value, then the cheaper, then the earlier, then the pool
            // that comes first.
            let better = match &best {
                None => true,
                Some((g, r, s, _)) => {
                    gain > *g || gain == *g && (raw < *r || raw == *r && start < *s)
                }
            };
            if better {
                best = Some((gain, raw, start, pool.name.clone()));
            }
        }
    }
    let Some((gain, raw, start, pool)) = best else { return OracleAnswer::NoRoom };
    let price = Money((raw.div_ceil(RAW_PER_MICRO)) as i64);
    if gain >= 0 {
        OracleAnswer::Accept { price, start, pool }
    } else {
        OracleAnswer::TooDear { price }
    }
}

/// Whether a request has room from now on: what a scheduling pass asks of every waiting job, here
/// by a look at every booking of every node.
pub fn has_room_now(state: &State, request: &Request, level: u8) -> bool {
    let now = state.now();
    state.cluster().pools().any(|pool| fits(state, &pool.name, request, level, now, now))
}

/// Now, if the window has begun, and every slot boundary from which the run ends in time: by the
/// deadline, the horizon, and the last instant at which it is worth anything.
fn starts(state: &State, bid: &Bid, request: &Request, now: Time) -> Vec<Time> {
    let slot = state.settings().slot;
    let window = request.window;
    let worthless_after = match &bid.value {
        Value::Flat(_) => Time::MAX,
        Value::Steps(steps) => steps.last().map_or(Time::MIN, |step| step.by),
    };
    let by = window.deadline.min(now + state.settings().horizon).min(worthless_after);
    let mut starts = Vec::new();
    if window.earliest <= now && now + request.duration <= by {
        starts.push(now);
    }
    let mechanism = &state.calendar().market().rules.mechanism;
    if matches!(mechanism, MechanismChoice::OnDemand { .. }) {
        return starts;
    }
    let mut boundary = now.floor_to(slot);
    while boundary + request.duration <= by {
        if boundary > now && boundary >= window.earliest {
            starts.push(boundary);
        }
        boundary = boundary + slot;
    }
    starts
}

/// The prices of a request in a pool, slot by slot.
struct Prices<'a> {
    state: &'a State,
    pool: &'a Name,
    request: &'a Request,
    /// The cost of a millisecond in each slot that was asked for.
    slots: BTreeMap<Time, u128>,
    /// Sums over all units for slots that look alike: resource, capacity, promised, curve.
    alike: Vec<(Resource, u64, u64, &'a Curve, u128)>,
}

impl<'a> Prices<'a> {
    fn new(state: &'a State, pool: &'a Name, request: &'a Request) -> Prices<'a> {
        Prices { state, pool, request, slots: BTreeMap::new(), alike: Vec::new() }
    }

    /// The exact price of `[from, to)`: each slot by its milliseconds.
    fn of_run(&mut self, from: Time, to: Time) -> u128 {
        let len = self.state.settings().slot;
        let mut sum = 0;
        let mut slot = from.floor_to(len);
        while slot < to {
            let covered = to.min(slot + len).since(from.max(slot));
            sum += self.of_slot(slot) * covered.0.unsigned_abs() as u128;
            slot = slot + len;
        }
        sum
    }

    /// The cost of a millisecond in a slot, additive over resources.
    fn of_slot(&mut self, slot: Time) -> u128 {
        if let Some(known) = self.slots.get(&slot) {
            return *known;
        }
        let rates = self.state.cluster().pool(self.pool).map(|p| p.rates).unwrap_or_default();
        let mut sum = 0;
        for resource in Resource::ALL {
            let rate = rates.of(resource).0.max(0).unsigned_abs() as u128;
            let weight = rate * (COMMON / u128::from(resource.units_per_whole()));
            sum += weight * self.of_units(resource, slot);
        }
        self.slots.insert(slot, sum);
        sum
    }

    /// The densities of all units of a resource in a slot, one by one.
    fn of_units(&mut self, resource: Resource, slot: Time) -> u128 {
        let capacity = capacity(self.state, self.pool, resource, slot);
        let promised = promised(self.state, self.pool, resource, slot);
        let forecast = &self.state.calendar().market().forecast;
        let curve = forecast.at(self.pool, resource, slot);
        let same = |k: &&(Resource, u64, u64, &Curve, u128)| {
            k.0 == resource && k.1 == capacity && k.2 == promised && k.3 == curve
        };
        if let Some(known) = self.alike.iter().find(same) {
            return known.4;
        }
        let units = u64::from(self.request.each.amount(resource))
            * u64::from(self.request.shape.promised());
        let mut sum = 0;
        for unit in 1..=units {
            let density = self.of_unit(resource, capacity, promised, curve, unit);
            sum += u128::from(density.0);
        }
        self.alike.push((resource, capacity, promised, curve, sum));
        sum
    }

    /// The density of the i-th further unit, between floor and ceiling.
    fn of_unit(
        &self,
        resource: Resource,
        capacity: u64,
        promised: u64,
        curve: &Curve,
        unit: u64,
    ) -> Milli {
        let market = self.state.calendar().market();
        let rules = &market.rules;
        if promised + unit > capacity {
            return rules.ceiling;
        }
        let density = match rules.mechanism {
            // The highest density at which expected demand would need this unit too.
            MechanismChoice::BasicEcon => {
                let mut highest = Milli(0);
                for step in curve.steps() {
                    if step.quantity + promised + unit > capacity && step.density > highest {
                        highest = step.density;
                    }
                }
                highest
            }
            MechanismChoice::FirstFit { density } | MechanismChoice::OnDemand { density } => {
                density
            }
            MechanismChoice::Surge { .. } => {
                let view = SlotView { resource, capacity, expected: curve };
                let next = market.mechanism().marginal(&view, promised + unit - 1);
                next.map_or(rules.ceiling, |marginal| marginal.density)
            }
        };
        density.max(rules.floor).min(rules.ceiling)
    }
}

/// What could be promised of a resource in a slot: all of every node that takes promises and is
/// not away at any time of the slot.
fn capacity(state: &State, pool: &Name, resource: Resource, slot: Time) -> u64 {
    let end = slot + state.settings().slot;
    let mut sum = 0;
    for node in state.cluster().nodes().filter(|n| n.pool == *pool) {
        let away = node.maintenance.iter().any(|(from, to)| *from < end && slot < *to);
        if node.health == Health::Up && !node.closed && !away {
            sum += node.capacity.amount(resource);
        }
    }
    sum
}

/// What is promised of a resource in a slot: all units of every promise and hold that touches it.
fn promised(state: &State, pool: &Name, resource: Resource, slot: Time) -> u64 {
    let end = slot + state.settings().slot;
    let mut sum = 0;
    for job in state.jobs().filter(|job| job.promise().is_some()) {
        for part in job.parts.iter().filter(|part| !part.is_done()) {
            let Some(plan) = part.last_plan() else { continue };
            if plan.pool == *pool && plan.from < end && slot < plan.to {
                sum += part.request.units()[resource as usize];
            }
        }
    }
    for hold in state.holds() {
        for ((plan, _), request) in hold.parts.iter().zip(hold.requests()) {
            if plan.pool == *pool && plan.from < end && slot < plan.to {
                sum += request.units()[resource as usize];
            }
        }
    }
    sum
}

/// Whether the request has room in a pool from `start` on.
fn fits(state: &State, pool: &Name, request: &Request, level: u8, start: Time, now: Time) -> bool {
    // Preemptible work needs its grace to be gone, and who starts right after that has made its
    // room already.
    let soft_to = now + state.settings().grace + Span(1);
    let mut groups: BTreeMap<NodeGroup<'_>, Vec<Free<'_>>> = BTreeMap::new();
    for node in state.cluster().nodes().filter(|node| node.pool == *pool) {
        let Some(node_calendar) = state.calendar().node(node.id) else { continue };
        if may_use(node, request, level) {
            let free = Free::of(node, node_calendar, start, request.duration, soft_to);
            groups.entry(group_of(node, request.constraints.same)).or_default().push(free);
        }
    }
    let largest = state.cluster().nodes().filter(|node| node.pool == *pool);
    let largest = largest.map(|node| node.capacity.gpus.len() as u32).max().unwrap_or(0);
    groups.values().any(|nodes| match request.shape {
        Shape::Replicas { min, .. } => {
            let cap = request.constraints.per_node_max.unwrap_or(min);
            let counts = nodes.iter().map(|free| u64::from(free.clone().count(&request.each, cap)));
            counts.sum::<u64>() >= u64::from(min)
        }
        Shape::Gpus { total } => fits_split(nodes, &request.each, total, largest),
    })
}

/// Which nodes have to hold the whole gang: any, or those that are near one another.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum NodeGroup<'a> {
    All,
    Named(&'a Name),
    Alone(NodeId),
}

fn group_of(node: &Node, same: Option<Topology>) -> NodeGroup<'_> {
    let place = match same {
        None => return NodeGroup::All,
        Some(Topology::Node) => None,
        Some(Topology::Rack) => node.rack.as_ref(),
        Some(Topology::Domain) => node.domain.as_ref(),
    };
    place.map_or(NodeGroup::Alone(node.id), NodeGroup::Named)
}

/// Whole nodes, and one part of another: every node is tried for the part.
fn fits_split(nodes: &[Free<'_>], each: &Resources, total: u32, largest: u32) -> bool {
    if largest == 0 {
        return false;
    }
    let (whole, rest) = (total / largest, total % largest);
    let takes = |free: &Free<'_>, gpus: u32| free.clone().put(&each.times(gpus));
    let wholes = |except: Option<usize>| {
        let others = nodes.iter().enumerate().filter(|(index, _)| Some(*index) != except);
        others.filter(|(_, free)| takes(free, largest)).count() as u32
    };
    if rest == 0 {
        return wholes(None) >= whole;
    }
    (0..nodes.len()).any(|index| takes(&nodes[index], rest) && wholes(Some(index)) >= whole)
}

/// Whether a promise for this request may use a node, whatever the time.
fn may_use(node: &Node, request: &Request, level: u8) -> bool {
    let wanted = &request.constraints;
    if node.health != Health::Up || node.closed {
        return false;
    }
    if let Some(keep) = node.kept {
        let gpus = u64::from(request.each.gpu) * u64::from(request.shape.promised());
        if gpus < keep.gpus_min && level < keep.level_min {
            return false;
        }
    }
    if wanted.pool.as_ref().is_some_and(|pool| *pool != node.pool) {
        return false;
    }
    if wanted.domain.is_some() && wanted.domain != node.domain {
        return false;
    }
    wanted.labels.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

/// What is free on a node at every instant of a run.
#[derive(Clone)]
struct Free<'a> {
    node: &'a Node,
    cpu: u32,
    memory: u32,
    /// Of each GPU, in thousandths.
    gpus: Vec<u32>,
    devices: Vec<u32>,
}

impl<'a> Free<'a> {
    fn all(node: &'a Node) -> Free<'a> {
        Free {
            node,
            cpu: node.capacity.cpu,
            memory: node.capacity.memory,
            gpus: vec![1000; node.capacity.gpus.len()],
            devices: node.capacity.devices.values().copied().collect(),
        }
    }

    /// What is free throughout `[start, start + duration)`: the least at any instant. Less can
    /// only become free where something begins, so those instants and the start are looked at.
    fn of(
        node: &'a Node,
        node_calendar: &NodeCalendar,
        start: Time,
        duration: Span,
        soft_to: Time,
    ) -> Free<'a> {
        let end = start + duration;
        let begins = node_calendar.bookings().iter().map(|booking| booking.from);
        let away = node.maintenance.iter().map(|(from, _)| *from);
        let mut free = Free::all(node);
        for at in begins.chain(away).filter(|at| start < *at && *at < end).chain([start]) {
            free.lower_to(&Free::at(node, node_calendar, at, soft_to));
        }
        free
    }

    /// What is free at an instant. Work that may be preempted is in the way until `soft_to`.
    fn at(node: &'a Node, node_calendar: &NodeCalendar, at: Time, soft_to: Time) -> Free<'a> {
        let mut free = Free::all(node);
        if node.maintenance.iter().any(|(from, to)| *from <= at && at < *to) {
            free.cpu = 0;
            free.memory = 0;
            free.gpus.fill(0);
            free.devices.fill(0);
        }
        for booking in node_calendar.bookings() {
            let counts = booking.layer == Layer::Firm || at < soft_to;
            if booking.holder != BookingHolder::Maintenance
                && counts
                && booking.from <= at
                && at < booking.to
            {
                free.less(booking);
            }
        }
        free
    }

    fn less(&mut self, booking: &Booking) {
        let take = &booking.take;
        self.cpu = self.cpu.saturating_sub(take.cpu);
        self.memory = self.memory.saturating_sub(take.memory);
        for (index, gpu) in self.gpus.iter_mut().enumerate() {
            if take.gpus >> index & 1 == 1 {
                *gpu = gpu.saturating_sub(take.gpu_share);
            }
        }
        for (column, count) in &take.devices {
            let index = column - GPU0 - self.node.capacity.gpus.len();
            self.devices[index] = self.devices[index].saturating_sub(*count);
        }
    }

    fn lower_to(&mut self, other: &Free<'_>) {
        self.cpu = self.cpu.min(other.cpu);
        self.memory = self.memory.min(other.memory);
        for (mine, theirs) in self.gpus.iter_mut().zip(&other.gpus) {
            *mine = (*mine).min(*theirs);
        }
        for (mine, theirs) in self.devices.iter_mut().zip(&other.devices) {
            *mine = (*mine).min(*theirs);
        }
    }

    /// How many replicas can be put down one after the other, at most `cap`.
    fn count(mut self, each: &Resources, cap: u32) -> u32 {
        let mut count = 0;
        while count < cap && self.put(each) {
            count += 1;
        }
        count
    }

    /// Puts one replica down, if it fits.
    fn put(&mut self, each: &Resources) -> bool {
        if self.cpu < each.cpu || self.memory < each.memory {
            return false;
        }
        self.cpu -= each.cpu;
        self.memory -= each.memory;
        for (kind, wanted) in each.devices.iter().filter(|(_, wanted)| **wanted > 0) {
            let index = self.node.capacity.devices.keys().position(|have| have == kind);
            match index.filter(|index| self.devices[*index] >= *wanted) {
                Some(index) => self.devices[index] -= wanted,
                None => return false,
            }
        }
        let (mut gpus_left, share) = if each.gpu < 1000 {
            (u32::from(each.gpu > 0), each.gpu)
        } else {
            (each.gpu / 1000, 1000)
        };
        for (gpu, free) in self.node.capacity.gpus.iter().zip(&mut self.gpus) {
            let suits = each.gpu_model.as_ref().is_none_or(|model| *model == gpu.model)
                && each.gpu_memory.is_none_or(|least| gpu.memory >= least);
            if gpus_left > 0 && suits && *free >= share {
                *free -= share;
                gpus_left -= 1;
            }
        }
        gpus_left == 0
    }
}
