//! How much of many requests fits into slots, class by class: a maximum flow.
//!
//! Takers (requests) send amounts to the slots of their windows, so much at most to each; slots
//! hold so much at most in all. A class of takers is let in after another, and each sends as much
//! as it can without any earlier class sending less; an earlier taker may be sent elsewhere to
//! make room. The amounts that takers can send together form a polymatroid, so letting classes
//! in by falling worth is not a heuristic: the total worth is the largest there is.
//!
//! A class starts by spreading itself evenly, as far as there is room, so that of the many best
//! flows it finds a smooth one. Dinic's algorithm then finds the rest: breadth-first layers, and
//! within them a blocking flow with one pointer for each node. What a failed search has reached
//! can never lead to room again, so those slots are dead from then on; thousands of takers that
//! find no room cost next to nothing.
//!
//! This module knows amounts and indices only, neither time nor money.

/// The level of what was not reached.
const FAR: u32 = u32::MAX;

/// What wants into slots.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    /// Its first slot.
    pub(super) first: usize,
    /// The most that each slot of its window may take of it.
    pub(super) limits: FlowLimits,
    /// How much of it has not yet been placed.
    pub(super) left: u128,
}

/// The same in every slot but the first and the last, which its window may cover in part.
#[derive(Clone, Debug)]
pub(super) struct FlowLimits {
    pub(super) slots: usize,
    pub(super) first: u64,
    pub(super) inner: u64,
    pub(super) last: u64,
}

impl FlowLimits {
    pub(super) fn at(&self, nth: usize) -> u64 {
        match nth {
            0 => self.first,
            n if n + 1 == self.slots => self.last,
            _ => self.inner,
        }
    }

    fn total(&self) -> u128 {
        (0..self.slots).map(|nth| u128::from(self.at(nth))).sum()
    }
}

/// In which layer a node is, and how many of its arcs have been tried.
#[derive(Clone, Copy)]
struct Mark {
    level: u32,
    tried: u32,
}

const UNSEEN: Mark = Mark { level: FAR, tried: 0 };

/// Takers, slots and what flows between them.
pub(super) struct Network {
    takers: Vec<Taker>,
    /// Where each taker's slots begin in `flow`.
    offsets: Vec<usize>,
    flow: Vec<u64>,
    /// Whether a taker has ever been listed in `holders` for a slot; indexed as `flow`.
    listed: Vec<bool>,
    /// Room left in each slot.
    free: Vec<u64>,
    /// Who has or had something in a slot.
    holders: Vec<Vec<u32>>,
    dead: Vec<bool>,
    taker_marks: Vec<Mark>,
    slot_marks: Vec<Mark>,
    seen_takers: Vec<u32>,
    seen_slots: Vec<u32>,
}

impl Network {
    /// An empty network of `slots` that take `capacity` each.
    pub(super) fn new(takers: Vec<Taker>, slots: usize, capacity: u64) -> Network {
        let mut offsets = Vec::with_capacity(takers.len());
        let mut edges = 0;
        for taker in &takers {
            offsets.push(edges);
            edges += taker.limits.slots;
        }
        Network {
            taker_marks: vec![UNSEEN; takers.len()],
            takers,
            offsets,
            flow: vec![0; edges],
            listed: vec![false; edges],
            free: vec![capacity; slots],
            holders: vec![Vec::new(); slots],
            dead: vec![false; slots],
            slot_marks: vec![UNSEEN; slots],
            seen_takers: Vec::new(),
            seen_slots: Vec::new(),
        }
    }

    /// Lets a class in: places as much of it as fits beside all of what is placed already.
    pub(super) fn admit(&mut self, class: &[u32]) {
        for taker in class {
            self.spread(*taker as usize);
        }
        while let Some(depth) = self.layer(class) {
            for taker in class {
                while self.push(*taker, depth) {}
            }
        }
    }

    /// What a taker has in each slot of its window.
    pub(super) fn flows(&self, taker: usize) -> &[u64] {
        let from = self.offsets[taker];
        &self.flow[from..from + self.takers[taker].limits.slots]
    }

    fn edge(&self, taker: usize, slot: usize) -> usize {
        self.offsets[taker] + slot - self.takers[taker].first
    }

    /// How much more a taker may send to a slot of its window.
    fn slack(&self, taker: usize, slot: usize) -> u64 {
        let limit = self.takers[taker].limits.at(slot - self.takers[taker].first);
        limit - self.flow[self.edge(taker, slot)]
    }

    fn put(&mut self, taker: usize, slot: usize, amount: u64) {
        let edge = self.edge(taker, slot);
        self.flow[edge] += amount;
        if amount > 0 && !self.listed[edge] {
            self.listed[edge] = true;
            self.holders[slot].push(taker as u32);
        }
    }

    /// Places a taker evenly, in proportion to its limits, as far as there is room.
    fn spread(&mut self, index: usize) {
        let taker = self.takers[index].clone();
        let whole = taker.limits.total();
        let (mut passed, mut until) = (0, 0);
        for nth in 0..taker.limits.slots {
            passed += u128::from(taker.limits.at(nth));
            let next = part(taker.left, passed, whole);
            let share = u64::try_from(next - until).unwrap_or(u64::MAX);
            until = next;
            let slot = taker.first + nth;
            let amount = share.min(self.free[slot]).min(self.slack(index, slot));
            self.put(index, slot, amount);
            self.free[slot] -= amount;
            self.takers[index].left -= u128::from(amount);
        }
    }

    /// Layers what can be reached from the class, takers and slots in turn, up to the first
    /// layer of slots in which one has room; gives its depth. If there is none, all slots
    /// reached are full for ever: whatever could come to them could go nowhere else.
    fn layer(&mut self, class: &[u32]) -> Option<u32> {
        self.forget();
        let mut takers: Vec<u32> = Vec::new();
        for taker in class.iter().filter(|t| self.takers[**t as usize].left > 0) {
            self.taker_marks[*taker as usize].level = 0;
            takers.push(*taker);
        }
        for depth in 0.. {
            self.seen_takers.extend(&takers);
            let slots = self.slots_beyond(&takers, depth);
            self.seen_slots.extend(&slots);
            if slots.iter().any(|slot| self.free[*slot as usize] > 0) {
                return Some(depth);
            }
            takers = self.holders_beyond(&slots, depth + 1);
            if takers.is_empty() {
                break;
            }
        }
        for slot in &self.seen_slots {
            self.dead[*slot as usize] = true;
        }
        None
    }

    fn forget(&mut self) {
        for taker in self.seen_takers.drain(..) {
            self.taker_marks[taker as usize] = UNSEEN;
        }
        for slot in self.seen_slots.drain(..) {
            self.slot_marks[slot as usize] = UNSEEN;
        }
    }

    fn slots_beyond(&mut self, takers: &[u32], depth: u32) -> Vec<u32> {
        let mut slots = Vec::new();
        for taker in takers.iter().map(|t| *t as usize) {
            let Taker { first, limits, .. } = &self.takers[taker];
            for slot in *first..*first + limits.slots {
                let unseen = self.slot_marks[slot].level == FAR && !self.dead[slot];
                if unseen && self.slack(taker, slot) > 0 {
                    self.slot_marks[slot].level = depth;
                    slots.push(slot as u32);
                }
            }
        }
        slots
    }

    fn holders_beyond(&mut self, slots: &[u32], depth: u32) -> Vec<u32> {
        let mut takers = Vec::new();
        for slot in slots.iter().map(|s| *s as usize) {
            for holder in &self.holders[slot] {
                let taker = *holder as usize;
                let held = self.flow[self.edge(taker, slot)];
                if self.taker_marks[taker].level == FAR && held > 0 {
                    self.taker_marks[taker].level = depth;
                    takers.push(*holder);
                }
            }
        }
        takers
    }

    /// Sends one amount from a taker through the layers to a slot with room; false if none can.
    /// The path is kept in vectors, not on the stack, as it may be as long as there are slots.
    fn push(&mut self, from: u32, depth: u32) -> bool {
        if self.takers[from as usize].left == 0 {
            return false;
        }
        let mut takers = vec![from as usize];
        let mut slots: Vec<usize> = Vec::new();
        while let Some(taker) = takers.last().copied() {
            let level = slots.len() as u32;
            if let Some(slot) = self.next_slot(taker, level, depth) {
                slots.push(slot);
                if level == depth {
                    self.send(&takers, &slots);
                    return true;
                }
                match self.next_holder(slot, level + 1) {
                    Some(holder) => takers.push(holder),
                    None => {
                        slots.pop();
                        self.taker_marks[taker].tried += 1;
                    }
                }
            } else {
                takers.pop();
                if let Some(slot) = slots.pop() {
                    self.slot_marks[slot].tried += 1;
                }
            }
        }
        false
    }

    /// The next slot of the layer that the taker can send to, with room if it is the last layer.
    fn next_slot(&mut self, taker: usize, level: u32, depth: u32) -> Option<usize> {
        let (first, slots) = (self.takers[taker].first, self.takers[taker].limits.slots);
        while (self.taker_marks[taker].tried as usize) < slots {
            let slot = first + self.taker_marks[taker].tried as usize;
            let layered = self.slot_marks[slot].level == level && !self.dead[slot];
            let room = level < depth || self.free[slot] > 0;
            if layered && room && self.slack(taker, slot) > 0 {
                return Some(slot);
            }
            self.taker_marks[taker].tried += 1;
        }
        None
    }

    /// The next taker of the layer that could give way in the slot.
    fn next_holder(&mut self, slot: usize, level: u32) -> Option<usize> {
        while let Some(holder) = self.holders[slot].get(self.slot_marks[slot].tried as usize) {
            let taker = *holder as usize;
            let held = self.flow[self.edge(taker, slot)];
            if self.taker_marks[taker].level == level && held > 0 {
                return Some(taker);
            }
            self.slot_marks[slot].tried += 1;
        }
        None
    }

    /// Sends as much as the path allows: each taker on it takes the slot after it, and all but
    /// the first leave the slot before it for that.
    fn send(&mut self, takers: &[usize], slots: &[usize]) {
        let last = slots[slots.len() - 1];
        let wanted = u64::try_from(self.takers[takers[0]].left).unwrap_or(u64::MAX);
        let mut amount = wanted.min(self.free[last]);
        for (taker, slot) in takers.iter().zip(slots) {
            amount = amount.min(self.slack(*taker, *slot));
        }
        for (taker, slot) in takers[1..].iter().zip(slots) {
            amount = amount.min(self.flow[self.edge(*taker, *slot)]);
        }
        for (taker, slot) in takers[1..].iter().zip(slots) {
            let edge = self.edge(*taker, *slot);
            self.flow[edge] -= amount;
        }
        for (taker, slot) in takers.iter().zip(slots) {
            self.put(*taker, *slot, amount);
        }
        self.free[last] -= amount;
        self.takers[takers[0]].left -= u128::from(amount);
    }
}

/// `whole × num / den` without leaving 128 bits: exact where it can be, and otherwise close,
/// which is enough to start from.
fn part(whole: u128, num: u128, den: u128) -> u128 {
    let (product, den) = match whole.checked_mul(num) {
        Some(product) => (product, den),
        None => (whole.saturating_mul(num >> 32), den >> 32),
    };
    product.checked_div(den).unwrap_or(0)
}
