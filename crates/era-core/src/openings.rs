//! How many replicas of one kind could start in a pool at each slot boundary.
//!
//! Every node's bookings are read once, into a short list of what is free when: one bit for each
//! GPU, and how many replicas everything else would allow. From these lists the counts for any
//! duration follow in one pass, without sorting, since starts are slot boundaries. It knows
//! whole GPUs only, and neither preemptible work nor quotas: whoever asks about starts within
//! the grace period, or about a share of a GPU, looks elsewhere.

use crate::calendar::{CPU, GPU0, MEMORY, NodeCalendar};
use crate::cluster::Eligibility;
use crate::resources::{Resources, suits};
use crate::units::{Span, Time};

/// What is free on a node from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FreeFrom {
    from: Time,
    /// Free GPUs of the right kind, one bit each.
    gpus: u64,
    /// How many replicas all else allows.
    others: u32,
}

/// What is free on each node of a pool during a stretch of time.
#[derive(Debug)]
pub(crate) struct Openings {
    /// Node after node; the list of each ends with a step at which nothing is free.
    steps: Vec<FreeFrom>,
    gpus_each: u32,
    /// Most replicas on a node.
    per_node: u32,
}

/// How many replicas could start at each of a row of slot boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BySlot {
    /// The first boundary.
    pub(crate) first: Time,
    pub(crate) slot: Span,
    pub(crate) counts: Vec<i64>,
}

impl BySlot {
    /// No replicas at any boundary in `[from, to]`.
    pub(crate) fn none(from: Time, to: Time, slot: Span) -> BySlot {
        let (first, last) = (from.ceil_to(slot), to.floor_to(slot));
        let boundaries = (last.since(first).0 / slot.0 + 1).max(0);
        let boundaries = if first > last { 0 } else { boundaries as usize };
        BySlot { first, slot, counts: vec![0; boundaries] }
    }

    pub(crate) fn start(&self, index: usize) -> Time {
        Time(self.first.0 + index as i64 * self.slot.0)
    }

    /// The index of the first boundary that is not before `time`, within the row or at its end.
    pub(crate) fn index(&self, time: Time) -> usize {
        let offset = (time.0.saturating_sub(self.first.0)).max(0);
        let index = offset / self.slot.0 + i64::from(offset % self.slot.0 > 0);
        (index as usize).min(self.counts.len())
    }

    /// Every start in `[from, to]`, with how many replicas could start then.
    pub(crate) fn within(
        &self,
        from: Time,
        to: Time,
    ) -> impl DoubleEndedIterator<Item = (Time, i64)> + '_ {
        let last = self.index(Time(to.0.saturating_add(1)));
        let first = self.index(from).min(last);
        (first..last).map(|index| (self.start(index), self.counts[index]))
    }

    /// Counts `more` replicas at each boundary in `[from, to]`, as a difference to the boundary
    /// before; [`BySlot::sum`] makes counts of these.
    pub(crate) fn add(&mut self, from: Time, to: Time, more: i64) {
        let (low, high) = (self.index(from), self.index(Time(to.0.saturating_add(1))));
        if low < high {
            self.counts[low] += more;
            if let Some(after) = self.counts.get_mut(high) {
                *after -= more;
            }
        }
    }

    pub(crate) fn sum(mut self) -> BySlot {
        let mut sum = 0;
        for count in &mut self.counts {
            sum += *count;
            *count = sum;
        }
        self
    }
}

impl Openings {
    /// What the eligible nodes have free during `[from, to)`. `None` for shares of a GPU.
    pub(crate) fn of<'a>(
        node_calendars: impl Iterator<Item = &'a NodeCalendar>,
        eligible: &Eligibility<'_>,
        each: &Resources,
        per_node: u32,
        (from, to): (Time, Time),
    ) -> Option<Openings> {
        let gpus_each = each.whole_gpus()?;
        let mut openings = Openings { steps: Vec::new(), gpus_each, per_node };
        for node_calendar in node_calendars.filter(|node_calendar| node_calendar.admits(eligible)) {
            openings.add_node(node_calendar, each, from, to);
        }
        Some(openings)
    }

    fn add_node(&mut self, node_calendar: &NodeCalendar, each: &Resources, from: Time, to: Time) {
        let capacity = &node_calendar.node.capacity;
        let width = GPU0 + capacity.gpus.len();
        let any_gpu = each.gpu_model.is_none() && each.gpu_memory.is_none();
        let suitable = capacity.gpus.iter().enumerate().fold(0u64, |mask, (index, gpu)| {
            mask | (u64::from(any_gpu || suits(gpu, each)) << index)
        });
        let idle = [0u32; crate::calendar::COLUMNS_MAX];
        let begin = self.steps.len();
        let mut wanted = false;
        for (start, _, row) in node_calendar.firm_steps(from, to) {
            let row = row.unwrap_or(&idle[..width + capacity.devices.len()]);
            let taken = row[GPU0..width]
                .iter()
                .enumerate()
                .fold(0u64, |mask, (index, used)| mask | (u64::from(*used > 0) << index));
            let gpus = suitable & !taken;
            let mut step = FreeFrom { from: start.max(from), gpus, others: 0 };
            if self.gpus_each == 0 || gpus.count_ones() >= self.gpus_each {
                step.others = self.others(node_calendar, row, each);
            }
            if step.others == 0 {
                step.gpus = 0;
            }
            wanted |= step.others > 0;
            let last = self.steps[begin..].last();
            if last.is_none_or(|last| (last.gpus, last.others) != (step.gpus, step.others)) {
                self.steps.push(step);
            }
        }
        if wanted {
            self.steps.push(FreeFrom { from: to, gpus: 0, others: 0 });
        } else {
            self.steps.truncate(begin);
        }
    }

    /// How many replicas cores, memory and devices allow beside `taken`.
    fn others(&self, node_calendar: &NodeCalendar, taken: &[u32], each: &Resources) -> u32 {
        let capacity = &node_calendar.node.capacity;
        let fitting = |have: u32, used: u32, need: u32| {
            // One replica is the common question, and needs no division.
            match need {
                0 => self.per_node,
                _ if self.per_node == 1 => u32::from(have >= used.saturating_add(need)),
                _ => have.saturating_sub(used) / need,
            }
        };
        let mut count = self.per_node.min(fitting(capacity.cpu, taken[CPU], each.cpu));
        count = count.min(fitting(capacity.memory, taken[MEMORY], each.memory));
        if !each.devices.is_empty() && count > 0 {
            count = count.min(node_calendar.count_by_devices(taken, each));
        }
        count
    }

    /// Replicas that fit into what is free.
    fn fitting(&self, gpus: u64, others: u32) -> u32 {
        match self.gpus_each {
            0 => others,
            each if others <= 1 => others.min(u32::from(gpus.count_ones() >= each)),
            each => others.min(gpus.count_ones() / each),
        }
    }

    /// How many replicas could start at each slot boundary in `[from, to]` and run for so long.
    pub(crate) fn by_slot(&self, duration: Span, from: Time, to: Time, slot: Span) -> BySlot {
        let mut by_slot = BySlot::none(from, to, slot);
        let mut open = 0;
        for (index, step) in self.steps.iter().enumerate() {
            if step.others > 0 {
                continue;
            }
            if open < index {
                self.add_stretch(open, index, duration, &mut by_slot);
            }
            open = index + 1;
        }
        by_slot.sum()
    }

    /// Adds the starts within steps `open..close`, in each of which at least one replica fits.
    fn add_stretch(&self, open: usize, close: usize, duration: Span, by_slot: &mut BySlot) {
        let steps = &self.steps[open..=close];
        let latest = steps[steps.len() - 1].from - duration;
        let mut start = steps[0].from;
        if start > latest {
            return;
        }
        if steps.len() == 2 {
            let count = self.fitting(steps[0].gpus, steps[0].others);
            by_slot.add(start, latest, i64::from(count));
            return;
        }
        // `first` is the step at which a run begins, `last` the one in which it ends.
        let (mut first, mut last) = (0, 0);
        while start <= latest {
            while steps[first + 1].from <= start {
                first += 1;
            }
            last = last.max(first);
            while steps[last + 1].from < start + duration {
                last += 1;
            }
            let (mut gpus, mut others) = (u64::MAX, u32::MAX);
            for step in &steps[first..=last] {
                (gpus, others) = (gpus & step.gpus, others.min(step.others));
            }
            let next = steps[first + 1].from.min(Time(steps[last + 1].from.0 - duration.0 + 1));
            let count = self.fitting(gpus, others);
            if count > 0 {
                by_slot.add(start, latest.min(Time(next.0 - 1)), i64::from(count));
            }
            start = next;
        }
    }
}
