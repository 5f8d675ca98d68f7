//! Which GPUs of a pool are wholly free throughout any long stretch of time, node by node.
//!
//! Time is cut into leaves of a few slots; a leaf holds, for each node, one bit for each GPU that
//! nothing firm touches during the leaf. Above the leaves, each row is the intersection of four
//! rows below, so any stretch is the intersection of a few rows, and most nodes that cannot hold
//! a gang are ruled out without a look at their bookings. What is left is looked at exactly: this
//! index only ever says "perhaps".

use std::sync::Arc;

use imbl::Vector;

use super::node::{NodeCalendar, mask_of};
use super::profile::{GPU0, Profile};
use crate::units::{Span, Time};

const LEAF_SLOTS: i64 = 16;
/// Rows below that one row covers.
const FAN: usize = 4;
/// Levels, leaves included.
const LEVELS: usize = 4;
/// Leaves that one row of the highest level covers.
const WHOLE: i64 = 64;

/// One bit for each free GPU of each node.
type FreeGpuBits = Arc<Vec<u32>>;

/// The index of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    leaf: Span,
    /// Number (from the epoch) of the first leaf; a multiple of [`WHOLE`].
    base: i64,
    /// Persistent, so that whoever changes a few rows beside a snapshot copies few.
    levels: [Vector<FreeGpuBits>; LEVELS],
}

impl Idle {
    /// No rows yet: [`Idle::extend`] makes them.
    pub(crate) fn new(slot: Span, now: Time) -> Idle {
        let leaf = Span(slot.0 * LEAF_SLOTS);
        let base = now.0.div_euclid(leaf.0).div_euclid(WHOLE) * WHOLE;
        Idle { leaf, base, levels: Default::default() }
    }

    fn end(&self) -> i64 {
        self.base + self.levels[0].len() as i64
    }

    fn leaf_at(&self, time: Time) -> i64 {
        time.0.div_euclid(self.leaf.0)
    }

    /// Drops rows that lie wholly before `now` and adds rows until `until` is covered.
    pub(crate) fn extend(&mut self, now: Time, until: Time, node_calendars: &[Arc<NodeCalendar>]) {
        let passed = (self.leaf_at(now) - self.base).div_euclid(WHOLE).max(0) as usize;
        for (level, rows) in self.levels.iter_mut().enumerate() {
            let gone = passed * (WHOLE as usize >> (2 * level));
            *rows = rows.split_off(gone.min(rows.len()));
        }
        self.base += passed as i64 * WHOLE;
        let first_new = self.end();
        while self.end() <= self.leaf_at(until) {
            for (level, rows) in self.levels.iter_mut().enumerate() {
                let count = WHOLE as usize >> (2 * level);
                rows.extend((0..count).map(|_| Arc::new(vec![0; node_calendars.len()])));
            }
        }
        if first_new < self.end() {
            let (from, to) = (self.start_of(first_new), self.start_of(self.end()));
            for (index, node_calendar) in node_calendars.iter().enumerate() {
                self.refresh(index, node_calendar, from, to);
            }
        }
    }

    fn start_of(&self, leaf: i64) -> Time {
        Time(leaf * self.leaf.0)
    }

    /// Works out a node's bits anew for every leaf that `[from, to)` touches.
    pub(crate) fn refresh(
        &mut self,
        index: usize,
        node_calendar: &NodeCalendar,
        from: Time,
        to: Time,
    ) {
        let first = self.leaf_at(from).max(self.base);
        let last = self.leaf_at(Time(to.0 - 1)).min(self.end() - 1);
        if first > last || from >= to {
            return;
        }
        let gpus = node_calendar.node.capacity.gpus.len();
        let bits = free_bits(&node_calendar.firm, gpus, self.leaf, first, last);
        for (offset, bits) in bits.into_iter().enumerate() {
            let row = (first - self.base) as usize + offset;
            set(&mut self.levels[0], row, index, bits);
        }
        let (mut low, mut high) = ((first - self.base) as usize, (last - self.base) as usize);
        for level in 1..LEVELS {
            (low, high) = (low / FAN, high / FAN);
            for row in low..=high {
                let below = &self.levels[level - 1];
                let bits =
                    (row * FAN..(row + 1) * FAN).fold(u32::MAX, |all, r| all & below[r][index]);
                set(&mut self.levels[level], row, index, bits);
            }
        }
    }

    /// For each node, the GPUs that may be free throughout `[from, to)`; `None` where the stretch
    /// holds no whole leaf or is not covered, and so nothing can be ruled out.
    pub(crate) fn free_during(&self, from: Time, to: Time) -> Option<Vec<u32>> {
        let first = from.0.div_euclid(self.leaf.0) + i64::from(from.0.rem_euclid(self.leaf.0) > 0);
        let first = usize::try_from(first - self.base).ok()?;
        let last = usize::try_from(self.leaf_at(to).min(self.end()) - self.base).ok()?;
        if first >= last {
            return None;
        }
        let mut free: Option<Vec<u32>> = None;
        let mut add = |row: &FreeGpuBits| match &mut free {
            None => free = Some(row.to_vec()),
            Some(free) => free.iter_mut().zip(row.iter()).for_each(|(mine, row)| *mine &= row),
        };
        // Up the levels from both ends: whole rows of a level go to the level above.
        let (mut low, mut high) = (first, last);
        for level in 0..LEVELS {
            let top = level == LEVELS - 1;
            while low < high && (top || !low.is_multiple_of(FAN)) {
                add(&self.levels[level][low]);
                low += 1;
            }
            while low < high && !high.is_multiple_of(FAN) {
                high -= 1;
                add(&self.levels[level][high]);
            }
            (low, high) = (low / FAN, high / FAN);
        }
        free
    }

    /// Whether two indices agree on all leaves that begin at `now` or later.
    pub(crate) fn agrees_from(&self, now: Time, other: &Idle) -> bool {
        let first = self.leaf_at(now) + 1;
        let row = |of: &Idle, leaf: i64| of.levels[0].get((leaf - of.base) as usize).cloned();
        (first..self.end().min(other.end())).all(|leaf| row(self, leaf) == row(other, leaf))
    }
}

fn set(rows: &mut Vector<FreeGpuBits>, row: usize, index: usize, bits: u32) {
    if rows[row][index] != bits {
        Arc::make_mut(&mut rows[row])[index] = bits;
    }
}

/// The GPUs that nothing touches, for each leaf of `first..=last`.
fn free_bits(firm: &Profile, gpus: usize, leaf: Span, first: i64, last: i64) -> Vec<u32> {
    let all = mask_of(gpus) as u32;
    let mut bits = vec![all; (last - first + 1) as usize];
    let (from, to) = (Time(first * leaf.0), Time((last + 1) * leaf.0));
    for (start, end, row) in firm.steps(from, to) {
        let Some(row) = row else { continue };
        let taken = row[GPU0..GPU0 + gpus]
            .iter()
            .enumerate()
            .fold(0u32, |mask, (gpu, used)| mask | (u32::from(*used > 0) << gpu));
        if taken == 0 {
            continue;
        }
        let low = (start.max(from).0.div_euclid(leaf.0) - first) as usize;
        let high = ((end.min(to).0 - 1).div_euclid(leaf.0) - first) as usize;
        for leaf_bits in &mut bits[low..=high] {
            *leaf_bits &= !taken;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::{Booking, BookingHolder, Layer};
    use crate::cluster::{Health, Node};
    use crate::resources::{Capacity, Gpu};
    use crate::units::{HoldId, Name, NodeId};

    fn node_calendar() -> NodeCalendar {
        let gpu = Gpu { model: Name::new("g").unwrap(), memory: 1 };
        NodeCalendar::new(Arc::new(Node {
            id: NodeId(0),
            name: Name::new("n").unwrap(),
            pool: Name::new("p").unwrap(),
            capacity: Capacity { cpu: 0, memory: 0, gpus: vec![gpu; 4], ..Default::default() },
            labels: Default::default(),
            rack: None,
            domain: None,
            health: Health::Up,
            maintenance: Vec::new(),
            stop_at: None,
            kept: None,
            closed: false,
        }))
    }

    proptest! {
        #[test]
        fn nothing_that_is_free_is_ever_ruled_out_and_whole_leaves_are_exact(
            takes in proptest::collection::vec((0i64..4000, 1i64..900, 0u64..16), 0..20),
            removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
            queries in proptest::collection::vec((0i64..4000, 1i64..1500), 1..20),
        ) {
            let (slot, until) = (Span(1), Time(5000));
            let mut index = Idle::new(slot, Time(0));
            let mut node_calendars = vec![Arc::new(node_calendar())];
            index.extend(Time(0), until, &node_calendars);
            let mut live: Vec<(Time, Time, u32)> = Vec::new();
            for (from, len, gpus) in takes {
                let (from, to) = (Time(from), Time(from + len));
                let holder = BookingHolder::Hold { hold: HoldId(1), part: 0, rank: live.len() as u32 };
                let take = crate::calendar::Take { gpus, gpu_share: 1000, ..Default::default() };
                let node_calendar = Arc::make_mut(&mut node_calendars[0]);
                node_calendar.add(Booking { holder, from, to, layer: Layer::Firm, take });
                index.refresh(0, node_calendar, from, to);
                live.push((from, to, gpus as u32));
            }
            for which in removed {
                if live.is_empty() { break }
                let at = which.index(live.len());
                let holder = BookingHolder::Hold { hold: HoldId(1), part: 0, rank: at as u32 };
                let node_calendar = Arc::make_mut(&mut node_calendars[0]);
                if node_calendar.remove(holder).is_some() {
                    let (from, to, _) = live[at];
                    live[at].2 = 0;
                    index.refresh(0, node_calendar, from, to);
                }
            }
            let mut fresh = Idle::new(slot, Time(0));
            fresh.extend(Time(0), until, &node_calendars);
            prop_assert_eq!(&index, &fresh);
            for (from, len) in queries {
                let (from, to) = (from, from + len);
                let Some(free) = index.free_during(Time(from), Time(to)) else { continue };
                // Exactly what is free throughout the whole leaves inside the stretch.
                let inner = ((from + 15) / 16 * 16, to / 16 * 16);
                let taken = live.iter().filter(|(a, b, _)| a.0 < inner.1 && inner.0 < b.0);
                let expected = taken.fold(0b1111, |mask, (_, _, gpus)| mask & !gpus);
                prop_assert_eq!(free[0], expected);
            }
        }
    }
}
