//! How much of a node's free GPUs is of no use to typical work, and where one more replica makes
//! that worst least.
//!
//! Two measures, each in GPU thousandths and weighed by how common a kind of work is:
//! - *fragmentation* (Weng et al., ATC '23): what is free and cannot serve even one replica of
//!   the kind, because a GPU has too little left, or the node too few GPUs, cores or memory;
//! - *stranding*: fragmentation, and beside it what would stay free once replicas of the kind
//!   had filled the node until its cores or memory ran out. Fragmentation alone is blind to
//!   that: eight free GPUs beside cores for one replica count as wholly useful.
//!
//! This module sees one node at one time. It does not know which node is taken in the end.

use serde::{Deserialize, Serialize};

use crate::calendar::{CPU, GPU0, MEMORY, NodeCalendar};
use crate::resources::{Capacity, GPUS_PER_NODE_MAX, Resources, WHOLE_GPU, suits};
use crate::units::Name;

/// A kind of work, and how common it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Typical {
    /// What a replica of it needs.
    pub each: Resources,
    /// How common, relative to the others.
    pub weight: u32,
}

/// Differences of less than this many GPU thousandths, as an average over typical work, do not
/// decide between nodes. Without such a threshold tiny differences scatter work over nodes that
/// are as good as equal, and it is the whole nodes that run out (measured on the data of the
/// paper: 94.4 % of the GPUs allocated instead of 95.3 %).
const RESOLUTION: i64 = 80;

/// What is free on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    cpu: u32,
    memory: u32,
    /// Thousandths of each GPU; zero beyond the last one.
    gpus: [u32; GPUS_PER_NODE_MAX],
    count: usize,
}

impl Free {
    /// What is left of the node beside `taken`.
    pub(super) fn beside(taken: &[u32], node_calendar: &NodeCalendar) -> Free {
        let capacity = &node_calendar.node.capacity;
        let count = capacity.gpus.len();
        let mut gpus = [0; GPUS_PER_NODE_MAX];
        for (free, used) in gpus.iter_mut().zip(&taken[GPU0..GPU0 + count]) {
            *free = WHOLE_GPU.saturating_sub(*used);
        }
        Free {
            cpu: capacity.cpu.saturating_sub(taken[CPU]),
            memory: capacity.memory.saturating_sub(taken[MEMORY]),
            gpus,
            count,
        }
    }

    fn gpus(&self) -> &[u32] {
        &self.gpus[..self.count]
    }

    /// What is left once a replica sits on these GPUs.
    fn less(&self, each: &Resources, mask: u64) -> Free {
        let mut after = *self;
        after.cpu = after.cpu.saturating_sub(each.cpu);
        after.memory = after.memory.saturating_sub(each.memory);
        for (index, free) in after.gpus[..self.count].iter_mut().enumerate() {
            if mask >> index & 1 == 1 {
                *free = free.saturating_sub(each.gpu.min(WHOLE_GPU));
            }
        }
        after
    }
}

/// A kind of typical work, made ready to be asked about many nodes.
struct Kind<'a> {
    each: &'a Resources,
    weight: i64,
    /// Of each GPU that it touches, and of how many.
    share: u32,
    gpus: u32,
    /// GPU thousandths for each core thousandth and each MiB, times 2²⁰; nothing where it needs
    /// none. Multiplying is what makes a decision over a thousand nodes cheap.
    gpu_per_cpu: Option<u64>,
    gpu_per_memory: Option<u64>,
    /// Whether any node with GPUs will do, whatever their models and its devices.
    anywhere: bool,
}

const SCALE: u32 = 20;

/// Whether any node with enough free will do.
pub(super) fn is_anywhere(each: &Resources) -> bool {
    each.gpu_model.is_none() && each.gpu_memory.is_none() && each.devices.is_empty()
}

impl<'a> Kind<'a> {
    fn of(typical: &'a Typical) -> Kind<'a> {
        let each = &typical.each;
        let per = |need: u32| (u64::from(each.gpu) << SCALE).checked_div(u64::from(need));
        Kind {
            each,
            weight: i64::from(typical.weight),
            share: each.gpu.min(WHOLE_GPU),
            gpus: each.gpus_touched(),
            gpu_per_cpu: per(each.cpu),
            gpu_per_memory: per(each.memory),
            anywhere: is_anywhere(each),
        }
    }

    /// GPU thousandths that one replica could choose from: none if it does not fit.
    fn usable(&self, free: &Free, node: &Capacity) -> u64 {
        if self.share == 0 || free.cpu < self.each.cpu || free.memory < self.each.memory {
            return 0;
        }
        // Devices by what there is, not by what is free of them: they are few and rarely asked for.
        let has = |(kind, need): (&Name, &u32)| node.devices.get(kind).is_some_and(|n| n >= need);
        if !self.anywhere && !self.each.devices.iter().all(has) {
            return 0;
        }
        let (mut sum, mut count) = (0, 0);
        for (index, left) in free.gpus().iter().enumerate() {
            let fits =
                *left >= self.share && (self.anywhere || suits(&node.gpus[index], self.each));
            sum += if fits { *left } else { 0 };
            count += u32::from(fits);
        }
        if count >= self.gpus { u64::from(sum) } else { 0 }
    }

    /// The same, less what cores and memory would not suffice for.
    fn fillable(&self, free: &Free, usable: u64) -> u64 {
        let bound = |ratio: Option<u64>, left: u32| {
            ratio.map_or(u64::MAX, |ratio| (u64::from(left) * ratio) >> SCALE)
        };
        usable.min(bound(self.gpu_per_cpu, free.cpu)).min(bound(self.gpu_per_memory, free.memory))
    }
}

/// What counts as useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// What cannot serve even one replica.
    Fragmentation,
    /// That, and what cores and memory do not suffice to use.
    Stranding,
}

/// Typical work, made ready.
pub(super) struct Workload<'a> {
    kinds: Vec<Kind<'a>>,
    measure: Measure,
    weight: i64,
    anywhere: bool,
}

impl<'a> Workload<'a> {
    pub(super) fn new(typical: &'a [Typical], measure: Measure) -> Workload<'a> {
        let kinds: Vec<Kind<'a>> = typical.iter().map(Kind::of).collect();
        let weight = kinds.iter().map(|k| k.weight).sum::<i64>().max(1);
        let anywhere = kinds.iter().all(|kind| kind.anywhere);
        Workload { kinds, measure, weight, anywhere }
    }

    /// Whether nothing depends on models and devices, only on how much is free.
    pub(super) fn is_anywhere(&self) -> bool {
        self.anywhere
    }

    /// Free GPU thousandths that are of no use, times the weights.
    fn useless(&self, free: &Free, node: &Capacity) -> i64 {
        let all: u64 = free.gpus().iter().map(|left| u64::from(*left)).sum();
        let mut sum = 0;
        for kind in &self.kinds {
            let usable = kind.usable(free, node);
            let mut useless = all - usable;
            if self.measure == Measure::Stranding {
                useless += all - kind.fillable(free, usable);
            }
            sum += useless as i64 * kind.weight;
        }
        sum
    }

    /// How much one such replica raises what is useless here, in steps of the resolution.
    pub(super) fn gradient(
        &self,
        node_calendar: &NodeCalendar,
        free: &Free,
        each: &Resources,
    ) -> i64 {
        let node = &node_calendar.node.capacity;
        let Some((after, _)) = self.best(node_calendar, free, each) else { return i64::MAX };
        let rise = after - self.useless(free, node);
        let step = RESOLUTION * self.weight;
        (rise + step / 2).div_euclid(step)
    }

    /// The GPUs on which one such replica does least harm.
    pub(super) fn gpus(
        &self,
        node_calendar: &NodeCalendar,
        taken: &[u32],
        each: &Resources,
    ) -> Option<u64> {
        self.best(node_calendar, &Free::beside(taken, node_calendar), each).map(|(_, mask)| mask)
    }

    /// What is useless afterwards, and the GPUs: for a share of a GPU the one on which it hurts
    /// least; whole ones are all alike, and the first that are free are taken.
    fn best(
        &self,
        node_calendar: &NodeCalendar,
        free: &Free,
        each: &Resources,
    ) -> Option<(i64, u64)> {
        let node = &node_calendar.node.capacity;
        let suitable = |index: &usize| suits(&node.gpus[*index], each);
        if each.gpu == 0 || each.gpu >= WHOLE_GPU {
            let whole = (0..free.count).filter(|i| free.gpus[*i] == WHOLE_GPU).filter(suitable);
            let wanted = (each.gpu / WHOLE_GPU) as usize;
            let mask = whole.take(wanted).fold(0u64, |mask, index| mask | 1 << index);
            let enough = mask.count_ones() as usize == wanted;
            return enough.then(|| (self.useless(&free.less(each, mask), node), mask));
        }
        let mut best: Option<(i64, u64)> = None;
        for index in (0..free.count).filter(|i| free.gpus[*i] >= each.gpu).filter(suitable) {
            let alike = |other: &usize| {
                free.gpus[*other] == free.gpus[index] && node.gpus[*other] == node.gpus[index]
            };
            if (0..index).any(|other| alike(&other)) {
                continue;
            }
            let after = self.useless(&free.less(each, 1 << index), node);
            if best.is_none_or(|(least, _)| after < least) {
                best = Some((after, 1 << index));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::resources::Gpu;

    fn model(index: u8) -> Name {
        Name::new(["old", "new"][usize::from(index) % 2]).unwrap()
    }

    /// What the documentation of the measures says, word for word, in exact fractions.
    fn naive(free: &Free, typical: &[Typical], node: &Capacity, measure: Measure) -> i128 {
        let all: i128 = free.gpus().iter().map(|f| i128::from(*f)).sum();
        let mut sum = 0;
        for Typical { each, weight } in typical {
            let good: Vec<i128> = (0..free.count)
                .filter(|i| free.gpus[*i] >= each.gpu.min(WHOLE_GPU))
                .filter(|i| suits(&node.gpus[*i], each))
                .map(|i| i128::from(free.gpus[i]))
                .collect();
            let fits = each.gpu > 0
                && good.len() >= each.gpu.div_ceil(WHOLE_GPU) as usize
                && each.cpu <= free.cpu
                && each.memory <= free.memory;
            let usable: i128 = if fits { good.iter().sum() } else { 0 };
            let mut fillable = usable;
            for (need, left) in [(each.cpu, free.cpu), (each.memory, free.memory)] {
                if need > 0 {
                    let bound = i128::from(left) * i128::from(each.gpu) / i128::from(need);
                    fillable = fillable.min(bound);
                }
            }
            let useless = match measure {
                Measure::Fragmentation => all - usable,
                Measure::Stranding => 2 * all - usable - fillable,
            };
            sum += useless * i128::from(*weight);
        }
        sum
    }

    fn kind() -> impl Strategy<Value = Typical> {
        let gpu = prop_oneof![Just(0), 1u32..1000, (1u32..5).prop_map(|n| n * WHOLE_GPU)];
        let named = proptest::option::of(0u8..2);
        (gpu, 0u32..40_000, 0u32..200_000, named, 1u32..100).prop_map(
            |(gpu, cpu, memory, named, weight)| Typical {
                each: Resources {
                    gpu,
                    cpu,
                    memory,
                    gpu_model: named.map(model),
                    ..Resources::default()
                },
                weight,
            },
        )
    }

    fn node() -> impl Strategy<Value = (Free, Capacity)> {
        let gpus = proptest::collection::vec((0u32..=1000, 0u8..2), 0..9);
        (gpus, 0u32..100_000, 0u32..500_000).prop_map(|(list, cpu, memory)| {
            let mut gpus = [0; GPUS_PER_NODE_MAX];
            gpus.iter_mut().zip(&list).for_each(|(slot, (free, _))| *slot = *free);
            let models = list.iter().map(|(_, m)| Gpu { model: model(*m), memory: 0 });
            let capacity =
                Capacity { cpu, memory, gpus: models.collect(), devices: BTreeMap::new() };
            (Free { cpu, memory, gpus, count: list.len() }, capacity)
        })
    }

    proptest! {
        #[test]
        fn what_is_useless_is_what_the_plain_definition_says(
            (free, capacity) in node(),
            typical in proptest::collection::vec(kind(), 0..8),
        ) {
            for measure in [Measure::Fragmentation, Measure::Stranding] {
                let fast = i128::from(Workload::new(&typical, measure).useless(&free, &capacity));
                let plain = naive(&free, &typical, &capacity, measure);
                // Fixed-point ratios round down, by less than two thousandths of a GPU a kind.
                let weights: i128 = typical.iter().map(|t| i128::from(t.weight)).sum();
                let slack = if measure == Measure::Stranding { 2 * weights } else { 0 };
                prop_assert!((plain..=plain + slack).contains(&fast), "{fast} is not {plain}");
            }
        }
    }
}
