//! One node's line of the calendar: who has what there, and when.
//!
//! Two layers: *firm* bookings are promises and whatever may not be interrupted; *soft* ones are
//! queue work that may be preempted and growth beyond a promise. A promise may be made across a
//! soft booking, which then gives way; never across a firm one.

use std::borrow::Cow;
use std::sync::Arc;

use super::profile::{CPU, GPU0, Load, MEMORY, Profile, Take};
use crate::cluster::{Eligibility, Health, Node, NodeReservation, Purpose};
use crate::resources::{Resources, WHOLE_GPU, suits};
use crate::units::{HoldId, JobId, NodeId, Time};

/// Who holds a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BookingHolder {
    /// A replica of a job's part.
    Job {
        job: JobId,
        /// Which request of its bid.
        part: u16,
        attempt: u32,
        rank: u32,
    },
    /// A replica of a hold's part.
    Hold {
        hold: HoldId,
        /// Which request of its bid.
        part: u16,
        rank: u32,
    },
    /// An announced absence of the node.
    Maintenance,
}

/// Whether a booking may be made to give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// It may not.
    Firm,
    /// It may, with grace.
    Soft,
}

/// Something that is taken on a node for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    /// Who has it.
    pub holder: BookingHolder,
    pub from: Time,
    pub to: Time,
    pub layer: Layer,
    pub take: Take,
}

/// Where a replica sits: a node, and which of its GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Seat {
    pub node: NodeId,
    /// Which GPUs, one bit each.
    pub gpus: u64,
}

/// A node with its bookings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCalendar {
    /// The node as the cluster has it.
    pub node: Arc<Node>,
    /// What every search asks of every node, beside the bookings instead of behind a pointer.
    gate: NodeSummary,
    pub(super) firm: Profile,
    pub(super) soft: Profile,
    bookings: Vec<Arc<Booking>>,
}

/// The part of a node that every search looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeSummary {
    up: bool,
    closed: bool,
    kept: Option<NodeReservation>,
    cpu: u32,
    memory: u32,
    gpus: usize,
}

impl NodeSummary {
    fn of(node: &Node) -> NodeSummary {
        NodeSummary {
            up: node.health == Health::Up,
            closed: node.closed,
            kept: node.kept,
            cpu: node.capacity.cpu,
            memory: node.capacity.memory,
            gpus: node.capacity.gpus.len(),
        }
    }
}

impl NodeCalendar {
    /// A node with nothing but its maintenance windows.
    pub fn new(node: Arc<Node>) -> NodeCalendar {
        let width = GPU0 + node.capacity.gpus.len() + node.capacity.devices.len();
        let mut node_calendar = NodeCalendar {
            gate: NodeSummary::of(&node),
            node: node.clone(),
            firm: Profile::new(width),
            soft: Profile::new(width),
            bookings: Vec::new(),
        };
        for (from, to) in &node.maintenance {
            let everything = node_calendar.everything();
            node_calendar.add(Booking {
                holder: BookingHolder::Maintenance,
                from: *from,
                to: *to,
                layer: Layer::Firm,
                take: everything,
            });
        }
        node_calendar
    }

    /// The same bookings on a node of the same shape, of which something else changed.
    pub(super) fn with_node(&self, node: Arc<Node>) -> NodeCalendar {
        NodeCalendar { gate: NodeSummary::of(&node), node, ..self.clone() }
    }

    /// Whether a request may use the node at all. That it could hold it is left to the count.
    pub fn admits(&self, ask: &Eligibility<'_>) -> bool {
        self.gate.up
            && (ask.purpose == Purpose::Queue || !self.gate.closed)
            && self.gate.kept.is_none_or(|k| ask.gpus >= k.gpus_min || ask.level >= k.level_min)
            && (ask.constraints.is_anywhere() || ask.names(&self.node))
    }

    /// How many such replicas fit during `[from, to)`, at most `most`; `taken` becomes what is
    /// taken then. Preemptible bookings count until `soft_to`.
    pub fn room(
        &self,
        from: Time,
        to: Time,
        soft_to: Time,
        each: &Resources,
        most: u32,
        taken: &mut Load,
    ) -> u32 {
        // Most nodes that are full are full at once: look at the first instant before the rest.
        if let Some(row) = self.firm.at(from)
            && !self.fits_one(row, each)
        {
            return 0;
        }
        self.peak_into(from, to, soft_to, taken);
        self.count(taken, each, most)
    }

    /// A take of all that the node has.
    fn everything(&self) -> Take {
        let capacity = &self.node.capacity;
        let devices = capacity.devices.values().enumerate();
        Take {
            cpu: capacity.cpu,
            memory: capacity.memory,
            gpus: mask_of(capacity.gpus.len()),
            gpu_share: WHOLE_GPU,
            devices: devices.map(|(i, n)| (self.device_column(i), *n)).collect(),
        }
    }

    fn device_column(&self, index: usize) -> usize {
        GPU0 + self.node.capacity.gpus.len() + index
    }

    /// Whether the node has these GPUs, and devices of every kind that such a replica takes.
    pub fn has(&self, each: &Resources, gpus: u64) -> bool {
        let capacity = &self.node.capacity;
        gpus & !mask_of(capacity.gpus.len()) == 0
            && each.devices.iter().all(|(kind, n)| *n == 0 || capacity.devices.contains_key(kind))
    }

    /// Adds a replica on these GPUs to what is taken, if the node has them and room for it beside
    /// the rest; says whether it has.
    pub fn seat_beside(&self, taken: &mut Load, each: &Resources, gpus: u64) -> bool {
        if !self.has(each, gpus) {
            return false;
        }
        taken.add(&self.take(each, gpus));
        self.within_capacity(taken)
    }

    /// What a replica that sits on these GPUs takes here. Whoever asks has checked that the node
    /// has them.
    pub fn take(&self, each: &Resources, gpus: u64) -> Take {
        debug_assert!(self.has(each, gpus), "a seat on what {} does not have", self.node.id);
        let kinds = self.node.capacity.devices.keys().enumerate();
        let devices = kinds.filter_map(|(index, kind)| {
            each.devices.get(kind).map(|count| (self.device_column(index), *count))
        });
        Take {
            cpu: each.cpu,
            memory: each.memory,
            gpus,
            gpu_share: each.gpu.min(WHOLE_GPU),
            devices: devices.collect(),
        }
    }

    /// The bookings, by start.
    pub fn bookings(&self) -> &[Arc<Booking>] {
        &self.bookings
    }

    pub fn add(&mut self, booking: Booking) {
        self.layer_mut(booking.layer).add(booking.from, booking.to, &booking.take);
        let key = (booking.from, booking.holder);
        let at = self.bookings.partition_point(|b| (b.from, b.holder) < key);
        self.bookings.insert(at, Arc::new(booking));
    }

    /// Takes a booking out, and returns it.
    pub fn remove(&mut self, holder: BookingHolder) -> Option<Arc<Booking>> {
        let at = self.bookings.iter().position(|b| b.holder == holder)?;
        let booking = self.bookings.remove(at);
        self.layer_mut(booking.layer).remove(booking.from, booking.to, &booking.take);
        Some(booking)
    }

    fn layer_mut(&mut self, layer: Layer) -> &mut Profile {
        match layer {
            Layer::Firm => &mut self.firm,
            Layer::Soft => &mut self.soft,
        }
    }

    /// Forgets the shape of what lies wholly before `now`; bookings stay until they are removed.
    pub fn forget_before(&mut self, now: Time) {
        // A booking that began earlier is still to be removed from its start on, so the profile
        // may only be cut before the earliest live booking.
        let earliest = self.bookings.iter().map(|b| b.from).min().unwrap_or(now).min(now);
        self.firm.forget_before(earliest);
        self.soft.forget_before(earliest);
    }

    /// The most that is taken: by firm bookings during `[from, to)`, by both layers together
    /// during `[from, soft_to)`.
    pub fn peak(&self, from: Time, to: Time, soft_to: Time) -> Load {
        let mut row = Load::zero(0);
        self.peak_into(from, to, soft_to, &mut row);
        row
    }

    fn peak_into(&self, from: Time, to: Time, soft_to: Time, row: &mut Load) {
        row.clear(self.firm.width());
        self.firm.peak_into(from, to, row);
        if self.soft.is_empty() || soft_to <= from {
            return;
        }
        // The layers add up, and their peaks may fall on different instants: walk both.
        for (start, end, soft) in self.soft.steps(from, soft_to) {
            let Some(soft) = soft else { continue };
            let mut both = self.firm.peak(start.max(from), end.min(soft_to).min(to));
            both.plus(soft);
            row.raise(&both);
        }
    }

    /// When its bookings change next after `now`, by themselves.
    pub(super) fn next_change(&self, now: Time) -> Time {
        self.firm.next_change(now).min(self.soft.next_change(now))
    }

    /// Whether from `now` on nothing more is taken than now, in any column.
    pub(super) fn only_frees_after(&self, now: Time) -> bool {
        self.firm.only_falls_after(now) && self.soft.only_falls_after(now)
    }

    /// Tells which whole GPUs are free from when on, one bit each: at `now`, and after each change.
    pub(super) fn whole_gpus_over_time(&self, now: Time, mut tell: impl FnMut(Time, u64)) {
        let whole = |row: &[u32]| {
            let gpus = row[GPU0..][..self.gate.gpus].iter().enumerate();
            gpus.filter(|(_, used)| **used == 0).fold(0, |free, (index, _)| free | 1 << index)
        };
        if self.soft.is_empty() {
            for (from, _, row) in self.firm.steps(now, Time::MAX) {
                tell(from.max(now), row.map_or(mask_of(self.gate.gpus), whole));
            }
            return;
        }
        let mut times: Vec<Time> = self.firm.changes(now, Time::MAX).collect();
        times.extend(self.soft.changes(now, Time::MAX));
        times.push(now);
        times.sort_unstable();
        for time in times {
            let after = Time(time.0 + 1);
            tell(time, whole(&self.peak(time, after, after)));
        }
    }

    /// Whether any preemptible booking touches `[from, to)`.
    pub fn has_soft(&self, from: Time, to: Time) -> bool {
        self.soft.steps(from, to).any(|(_, _, row)| row.is_some_and(|r| r.iter().any(|v| *v > 0)))
    }

    /// Whether one such replica fits beside `taken`. The question that is asked most: it needs
    /// no division.
    fn fits_one(&self, taken: &[u32], each: &Resources) -> bool {
        let gate = &self.gate;
        taken[CPU] + each.cpu <= gate.cpu
            && taken[MEMORY] + each.memory <= gate.memory
            && (each.gpu == 0 || self.gpus_fit_one(taken, each))
            && (each.devices.is_empty() || self.count_by_devices(taken, each) > 0)
    }

    fn gpus_fit_one(&self, taken: &[u32], each: &Resources) -> bool {
        if each.gpu < WHOLE_GPU || each.gpu_model.is_some() || each.gpu_memory.is_some() {
            return self.count_by_gpus(taken, each) > 0;
        }
        let free = taken[GPU0..GPU0 + self.gate.gpus].iter().filter(|used| **used == 0).count();
        free as u32 * WHOLE_GPU >= each.gpu
    }

    /// How many such replicas fit beside `taken`, at most `most`.
    pub fn count(&self, taken: &[u32], each: &Resources, most: u32) -> u32 {
        if most <= 1 {
            return most.min(u32::from(self.fits_one(taken, each)));
        }
        let gate = &self.gate;
        let mut count = most;
        for (column, have, need) in [(CPU, gate.cpu, each.cpu), (MEMORY, gate.memory, each.memory)]
        {
            let fitting = have.saturating_sub(taken[column]).checked_div(need);
            count = count.min(fitting.unwrap_or(count));
        }
        if each.gpu > 0 && count > 0 {
            count = count.min(self.count_by_gpus(taken, each));
        }
        if !each.devices.is_empty() && count > 0 {
            count = count.min(self.count_by_devices(taken, each));
        }
        count
    }

    fn count_by_gpus(&self, taken: &[u32], each: &Resources) -> u32 {
        let gpus = &taken[GPU0..GPU0 + self.gate.gpus];
        let any_gpu = each.gpu_model.is_none() && each.gpu_memory.is_none();
        let suitable = |index: usize| any_gpu || suits(&self.node.capacity.gpus[index], each);
        if any_gpu && each.gpu >= WHOLE_GPU {
            let free = gpus.iter().filter(|used| **used == 0).count();
            return free as u32 / (each.gpu / WHOLE_GPU);
        }
        if each.gpu >= WHOLE_GPU {
            let free = gpus.iter().enumerate().filter(|(i, used)| **used == 0 && suitable(*i));
            free.count() as u32 / (each.gpu / WHOLE_GPU)
        } else {
            let left = gpus.iter().enumerate().filter(|(i, _)| suitable(*i));
            left.map(|(_, used)| WHOLE_GPU.saturating_sub(*used) / each.gpu).sum()
        }
    }

    /// How many such replicas the node's devices allow beside `taken`.
    pub(crate) fn count_by_devices(&self, taken: &[u32], each: &Resources) -> u32 {
        let kinds: Vec<_> = self.node.capacity.devices.iter().collect();
        each.devices
            .iter()
            .filter(|(_, need)| **need > 0)
            .map(|(kind, need)| match kinds.binary_search_by_key(&kind, |(k, _)| *k) {
                Ok(index) => kinds[index].1.saturating_sub(taken[self.device_column(index)]) / need,
                Err(_) => 0,
            })
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Chooses GPUs for one replica beside `taken`: whole ones by lowest index; for a share, the
    /// GPU that has least left. `None` if it does not fit.
    pub fn choose_gpus(&self, taken: &[u32], each: &Resources) -> Option<u64> {
        if each.gpu == 0 {
            return Some(0);
        }
        let gpus = &taken[GPU0..GPU0 + self.node.capacity.gpus.len()];
        let mut fitting = gpus
            .iter()
            .enumerate()
            .filter(|(index, _)| suits(&self.node.capacity.gpus[*index], each));
        if each.gpu < WHOLE_GPU {
            let (index, _) = fitting
                .filter(|(_, used)| **used + each.gpu <= WHOLE_GPU)
                .min_by_key(|(index, used)| (WHOLE_GPU - **used, *index))?;
            return Some(1 << index);
        }
        let mut mask = 0u64;
        for _ in 0..each.gpu / WHOLE_GPU {
            let (index, _) = fitting.find(|(_, used)| **used == 0)?;
            mask |= 1 << index;
        }
        Some(mask)
    }

    /// Whether every column of `taken` is within what the node has.
    pub fn within_capacity(&self, taken: &[u32]) -> bool {
        let capacity = &self.node.capacity;
        let gpus_end = GPU0 + capacity.gpus.len();
        taken[CPU] <= capacity.cpu
            && taken[MEMORY] <= capacity.memory
            && taken[GPU0..gpus_end].iter().all(|used| *used <= WHOLE_GPU)
            && taken[gpus_end..].iter().zip(capacity.devices.values()).all(|(used, n)| used <= n)
    }

    /// What firm bookings take during `[from, to)`, step by step.
    pub(crate) fn firm_steps(
        &self,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = (Time, Time, Option<&[u32]>)> {
        self.firm.steps(from, to)
    }

    /// Every instant in `(from, to]` at which a booking begins or ends.
    pub(crate) fn turns(&self, from: Time, to: Time, mut turn: impl FnMut(Time)) {
        let past = Time(to.0.saturating_add(1));
        self.firm.changes(from, past).for_each(&mut turn);
        self.soft.changes(from, past).for_each(&mut turn);
        // What takes over from something alike shows in neither.
        let first = self.bookings.partition_point(|b| b.from <= from);
        let begun = self.bookings[first..].iter().map(|b| b.from);
        begun.take_while(|at| *at <= to).for_each(turn);
    }

    /// Everything that is taken, of both layers where `with_soft`.
    pub(crate) fn taken(&self, with_soft: bool) -> Cow<'_, Profile> {
        if !with_soft || self.soft.is_empty() {
            return Cow::Borrowed(&self.firm);
        }
        let mut both = self.firm.clone();
        for booking in self.bookings.iter().filter(|b| b.layer == Layer::Soft) {
            both.add(booking.from, booking.to, &booking.take);
        }
        Cow::Owned(both)
    }

    /// Stretches of time, `[from, to)`, that touch `[from, to)` and during which at least one
    /// such replica fits at every instant (though perhaps not on the same GPU throughout).
    pub(crate) fn open_stretches(
        &self,
        profile: &Profile,
        each: &Resources,
        from: Time,
        to: Time,
    ) -> Vec<(Time, Time)> {
        let empty = Load::zero(profile.width());
        let mut open: Vec<(Time, Time)> = Vec::new();
        for (start, end, row) in profile.steps(from, to) {
            if self.count(row.unwrap_or(&empty), each, 1) == 0 {
                continue;
            }
            match open.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => open.push((start, end)),
            }
        }
        open
    }
}

/// The lowest `count` bits.
pub fn mask_of(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
