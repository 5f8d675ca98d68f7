//! A pool's price slots: what is promised in each, what could be, and what the next unit costs.
//!
//! Prices are kept ready for the amount that is promised now, so that pricing a request is a
//! walk over plain arrays. Slots come in shared chunks: a snapshot shares them, a change copies
//! the few that it touches. Each chunk also keeps the least and the sum of its prices, from which
//! the search bounds what any start in it could cost. Where slots are alike, as they are wherever
//! nothing is promised yet, that bound is the price itself.
//!
//! A promise counts whole in every slot that it touches, and pays by its milliseconds in it.

use std::sync::Arc;

use crate::forecast::{Curve, Series};
use crate::market::{Marginal, MarketRules, Mechanism, SlotView, Weights};
use crate::resources::{PerResource, Resource};
use crate::units::{Milli, Span, Time};

static NOTHING: Curve = Curve::EMPTY;

/// Slots in a chunk.
pub const CHUNK: usize = 64;

/// Everything that a price depends on besides what is promised.
pub struct Pricing<'a> {
    pub rules: &'a MarketRules,
    pub mechanism: &'a dyn Mechanism,
    pub expected: PerResource<&'a Series>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    promised: [u64; CHUNK],
    capacity: [u64; CHUNK],
    density: [u32; CHUNK],
    room: [u64; CHUNK],
    density_min: u32,
    density_sum: u64,
    room_min: u64,
    promised_min: u64,
    /// Whether capacity and expected demand are the same in all slots.
    alike: bool,
}

impl Column {
    fn new(capacity: u64) -> Column {
        Column {
            promised: [0; CHUNK],
            capacity: [capacity; CHUNK],
            density: [0; CHUNK],
            room: [0; CHUNK],
            density_min: 0,
            density_sum: 0,
            room_min: 0,
            promised_min: 0,
            alike: false,
        }
    }

    fn summarise(&mut self, one_demand: bool) {
        self.density_min = self.density.iter().copied().min().unwrap_or(0);
        self.density_sum = self.density.iter().map(|d| u64::from(*d)).sum();
        self.room_min = self.room.iter().copied().min().unwrap_or(0);
        self.promised_min = self.promised.iter().copied().min().unwrap_or(0);
        self.alike = one_demand && self.capacity.iter().all(|c| *c == self.capacity[0]);
    }
}

/// Sums of the densities of one number of units, one remembered for each resource: neighbouring
/// slots are most often in the same state, so that most sums are not worked out twice.
#[derive(Default)]
pub struct DensitySums<'a> {
    last: PerResource<Option<(SlotState<'a>, u128)>>,
}

/// All that the price of a further unit in a slot depends on.
#[derive(Clone, Copy)]
struct SlotState<'a> {
    capacity: u64,
    promised: u64,
    expected: &'a Curve,
}

impl SlotState<'_> {
    fn is(&self, other: &SlotState<'_>) -> bool {
        self.capacity == other.capacity
            && self.promised == other.promised
            && std::ptr::eq(self.expected, other.expected)
    }
}

impl<'a> DensitySums<'a> {
    /// The sum of the densities of `units` further units in a slot; `units` is the same each time.
    fn of(
        &mut self,
        pricing: &Pricing<'a>,
        resource: Resource,
        state: SlotState<'a>,
        units: u64,
    ) -> u128 {
        let last = &mut self.last[resource as usize];
        if let Some((_, sum)) = last.as_ref().filter(|(known, _)| known.is(&state)) {
            return *sum;
        }
        let SlotState { capacity, promised, expected } = state;
        let slot = SlotView { resource, capacity, expected };
        let sum = sum_of_units(pricing, &slot, promised, units);
        *last = Some((state, sum));
        sum
    }
}

/// 64 slots of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    columns: PerResource<Column>,
}

/// What a number of units costs at least for a millisecond, raw.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowestPrice {
    /// In any slot of a chunk.
    pub each: u128,
    /// In all slots of the chunk together.
    pub all: u128,
}

/// A pool's slots from now to the horizon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    len: Span,
    /// Number (from the epoch) of the first slot of the first chunk; a multiple of [`CHUNK`].
    base: i64,
    chunks: Vec<Arc<Chunk>>,
}

impl Slots {
    /// No slots yet: [`Slots::extend`] makes them.
    pub fn new(len: Span, now: Time) -> Slots {
        let slot = now.0.div_euclid(len.0);
        let base = slot.div_euclid(CHUNK as i64) * CHUNK as i64;
        Slots { len, base, chunks: Vec::new() }
    }

    /// The length of a slot.
    pub fn slot_len(&self) -> Span {
        self.len
    }

    /// The number of the slot that holds an instant, counted from the epoch.
    pub fn slot_at(&self, time: Time) -> i64 {
        time.0.div_euclid(self.len.0)
    }

    pub fn start_of(&self, slot: i64) -> Time {
        Time(slot * self.len.0)
    }

    /// The first slot that has a price.
    pub fn first(&self) -> i64 {
        self.base
    }

    /// The first slot that has no price yet.
    pub fn end(&self) -> i64 {
        self.base + (self.chunks.len() * CHUNK) as i64
    }

    /// The chunk of a slot, and the slot's place in it.
    pub fn locate(&self, slot: i64) -> Option<(usize, usize)> {
        let offset = usize::try_from(slot - self.base).ok()?;
        (offset / CHUNK < self.chunks.len()).then_some((offset / CHUNK, offset % CHUNK))
    }

    /// What `units` cost at least in a chunk. Exact where all slots are in the same state, and
    /// where the units cost no more than the first of them.
    pub fn least<'a>(
        &self,
        index: usize,
        weights: &Weights,
        units: &PerResource<u64>,
        pricing: &Pricing<'a>,
        sums: &mut DensitySums<'a>,
    ) -> LowestPrice {
        let mut least = LowestPrice::default();
        for (resource, column) in Resource::ALL.into_iter().zip(&self.chunks[index].columns) {
            let (units, weight) = (units[resource as usize], weights.0[resource as usize]);
            if units == 0 || weight == 0 {
                continue;
            }
            let scale = u128::from(weight) * u128::from(units);
            let mut each = scale * u128::from(column.density_min);
            let mut all = scale * u128::from(column.density_sum);
            if column.alike && units > column.room_min {
                // Prices do not fall as more is promised, so none is below that of the slot in
                // which the least is.
                let time = self.start_of(self.base + (index * CHUNK) as i64);
                let expected = pricing.expected[resource as usize].at(time);
                let (capacity, promised) = (column.capacity[0], column.promised_min);
                let state = SlotState { capacity, promised, expected };
                each = u128::from(weight) * sums.of(pricing, resource, state, units);
                all = all.max(each * CHUNK as u128);
            }
            least.each += each;
            least.all += all;
        }
        least
    }

    /// Drops chunks that lie wholly before `now` and adds new ones until `until` is covered.
    /// `capacity` is what could be promised at an instant. Returns the first slot added.
    pub fn extend(
        &mut self,
        now: Time,
        until: Time,
        pricing: &Pricing<'_>,
        capacity: impl Fn(Resource, Time) -> u64,
    ) -> Option<i64> {
        let now_slot = self.slot_at(now);
        let passed = ((now_slot - self.base).max(0) as usize / CHUNK).min(self.chunks.len());
        self.chunks.drain(..passed);
        self.base += (passed * CHUNK) as i64;
        if self.chunks.is_empty() {
            self.base = now_slot.div_euclid(CHUNK as i64) * CHUNK as i64;
        }
        let first_new = self.end();
        while self.end() <= self.slot_at(until) {
            let at = self.end();
            let mut chunk = Chunk { columns: Resource::ALL.map(|_| Column::new(0)) };
            for (resource, column) in Resource::ALL.into_iter().zip(&mut chunk.columns) {
                for (i, slot) in column.capacity.iter_mut().enumerate() {
                    *slot = capacity(resource, self.start_of(at + i as i64));
                }
            }
            self.chunks.push(Arc::new(chunk));
            let index = self.chunks.len() - 1;
            self.reprice(index, 0, CHUNK, pricing);
        }
        (first_new < self.end()).then_some(first_new)
    }

    /// Promises (or gives back) `units` in every slot that `[from, to)` touches, and prices those
    /// slots anew.
    pub fn promise(
        &mut self,
        from: Time,
        to: Time,
        units: &PerResource<u64>,
        give_back: bool,
        pricing: &Pricing<'_>,
    ) {
        self.promise_within(self.base, from, to, units, give_back, pricing);
    }

    /// The same, leaving slots before `floor` alone.
    pub fn promise_within(
        &mut self,
        floor: i64,
        from: Time,
        to: Time,
        units: &PerResource<u64>,
        give_back: bool,
        pricing: &Pricing<'_>,
    ) {
        let first = self.slot_at(from).max(self.base).max(floor);
        let last = self.slot_at(Time(to.0 - 1)).min(self.end() - 1);
        let mut slot = first;
        while slot <= last {
            let Some((index, start)) = self.locate(slot) else { break };
            let count = (CHUNK - start).min((last - slot + 1) as usize);
            let chunk = Arc::make_mut(&mut self.chunks[index]);
            for (column, units) in chunk.columns.iter_mut().zip(units) {
                for promised in &mut column.promised[start..start + count] {
                    if give_back {
                        debug_assert!(*promised >= *units, "gave back more than was promised");
                        *promised -= units;
                    } else {
                        *promised += units;
                    }
                }
            }
            self.reprice_columns(index, start, start + count, pricing, |r| units[r] > 0);
            slot += count as i64;
        }
    }

    fn reprice(&mut self, index: usize, from: usize, to: usize, pricing: &Pricing<'_>) {
        self.reprice_columns(index, from, to, pricing, |_| true);
    }

    fn reprice_columns(
        &mut self,
        index: usize,
        from: usize,
        to: usize,
        pricing: &Pricing<'_>,
        which: impl Fn(usize) -> bool,
    ) {
        let first_slot = self.base + (index * CHUNK) as i64;
        let len = self.len;
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        for (resource, column) in Resource::ALL.into_iter().zip(&mut chunk.columns) {
            if !which(resource as usize) {
                continue;
            }
            let series = pricing.expected[resource as usize];
            let (mut expected, mut until) = series.run_at(Time(first_slot * len.0));
            let one_demand = Time((first_slot + CHUNK as i64 - 1) * len.0) < until;
            for i in from..to {
                let time = Time((first_slot + i as i64) * len.0);
                if time >= until {
                    (expected, until) = series.run_at(time);
                }
                let slot = SlotView { resource, capacity: column.capacity[i], expected };
                let marginal = next_unit(pricing, &slot, column.promised[i]);
                column.density[i] = marginal.density.0;
                column.room[i] = marginal.room;
            }
            column.summarise(one_demand);
        }
    }

    /// Prices everything anew: the rules, the forecast or the capacity changed.
    pub fn reprice_all(&mut self, pricing: &Pricing<'_>, capacity: impl Fn(Resource, Time) -> u64) {
        for index in 0..self.chunks.len() {
            let first_slot = self.base + (index * CHUNK) as i64;
            let starts: Vec<Time> =
                (0..CHUNK).map(|i| self.start_of(first_slot + i as i64)).collect();
            let chunk = Arc::make_mut(&mut self.chunks[index]);
            for (resource, column) in Resource::ALL.into_iter().zip(&mut chunk.columns) {
                for (slot, time) in column.capacity.iter_mut().zip(&starts) {
                    *slot = capacity(resource, *time);
                }
            }
            self.reprice(index, 0, CHUNK, pricing);
        }
    }

    /// Writes the raw cost of `units` for a millisecond in each slot of a chunk, as prefix sums.
    pub fn costs<'a>(
        &self,
        index: usize,
        weights: &Weights,
        units: &PerResource<u64>,
        pricing: &Pricing<'a>,
        sums: &mut DensitySums<'a>,
        prefix: &mut [u128; CHUNK + 1],
    ) {
        let mut cost = [0u128; CHUNK];
        for (resource, column) in Resource::ALL.into_iter().zip(&self.chunks[index].columns) {
            let (units, weight) = (units[resource as usize], weights.0[resource as usize]);
            if units == 0 || weight == 0 {
                continue;
            }
            let scale = u128::from(weight) * u128::from(units);
            let series = pricing.expected[resource as usize];
            let (mut expected, mut until) = (&NOTHING, Time::MIN);
            for (i, cost) in cost.iter_mut().enumerate() {
                *cost += if units <= column.room[i] {
                    scale * u128::from(column.density[i])
                } else {
                    let time = self.start_of(self.base + (index * CHUNK + i) as i64);
                    if time >= until {
                        (expected, until) = series.run_at(time);
                    }
                    let (capacity, promised) = (column.capacity[i], column.promised[i]);
                    let state = SlotState { capacity, promised, expected };
                    u128::from(weight) * sums.of(pricing, resource, state, units)
                };
            }
        }
        let mut sum = 0;
        for i in 0..CHUNK {
            prefix[i] = sum;
            sum += cost[i];
        }
        prefix[CHUNK] = sum;
    }

    /// The price density of the next unit of a resource in a slot.
    pub fn density(&self, resource: Resource, slot: i64) -> Option<Milli> {
        let (index, i) = self.locate(slot)?;
        Some(Milli(self.chunks[index].columns[resource as usize].density[i]))
    }

    pub fn promised(&self, resource: Resource, slot: i64) -> u64 {
        let Some((index, i)) = self.locate(slot) else { return 0 };
        self.chunks[index].columns[resource as usize].promised[i]
    }

    /// What could be promised of a resource in a slot.
    pub fn capacity(&self, resource: Resource, slot: i64) -> u64 {
        let Some((index, i)) = self.locate(slot) else { return 0 };
        self.chunks[index].columns[resource as usize].capacity[i]
    }

    /// Whether two sets of slots agree from a slot on.
    pub fn agrees_from(&self, slot: i64, other: &Slots) -> bool {
        let end = self.end().min(other.end());
        (slot..end).all(|s| {
            let (Some((a, i)), Some((b, j))) = (self.locate(s), other.locate(s)) else {
                return false;
            };
            self.chunks[a].columns.iter().zip(&other.chunks[b].columns).all(|(x, y)| {
                (x.promised[i], x.capacity[i], x.density[i], x.room[i])
                    == (y.promised[j], y.capacity[j], y.density[j], y.room[j])
            })
        })
    }
}

/// The price of the next unit, within floor and ceiling.
fn next_unit(pricing: &Pricing<'_>, slot: &SlotView<'_>, taken: u64) -> Marginal {
    match pricing.mechanism.marginal(slot, taken) {
        Some(m) => Marginal { density: pricing.rules.clip(m.density), room: m.room },
        None => Marginal { density: pricing.rules.ceiling, room: u64::MAX },
    }
}

/// The sum of the densities of `units` further units.
fn sum_of_units(pricing: &Pricing<'_>, slot: &SlotView<'_>, promised: u64, units: u64) -> u128 {
    let (mut taken, mut left, mut sum) = (promised, units, 0u128);
    while left > 0 {
        let next = next_unit(pricing, slot, taken);
        let count = left.min(next.room.max(1));
        sum += u128::from(count) * u128::from(next.density.0);
        taken += count;
        left -= count;
    }
    sum
}
